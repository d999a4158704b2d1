"""Random responses: a document in the places in which servers put it, and what is beside it."""

import json

from tests.fuzz.grammar import Dice, grow, jumbled, prose, spaced, spelled, texts

IDS = (
    *("1", "0", "-7", "5.0", '"5"', '"a"', '"\\u0061"', '"é😀"', "1e3", '""'),
    *("99999999999999999999",),
)
# The members of a result; `written` is the document, `text` a text with it, both JSON.
CONTENTS: dict[str, int] = {
    '"content":[<block>]': 9,
    '"content":[<copy><beside?4>],"structuredContent":<written>': 4,
    '"content":[<block>],"structuredContent":{"result":<text>}': 2,
    '"content":[<block>,<copy><beside?4>]': 2,
    '"content":[{"type":"text","text":<prose>}],"structuredContent":<written>': 2,
    '"content":[{"type":"text","text":"{\\"a\\":1}"},{"type":"text","text":"{\\"a\\":1.10}"}],'
    '"structuredContent":{"result":[{"a":1},{"a":1.10}]}': 1,
    '"structuredContent":<written>': 1,
    '"content":<odd>,"structuredContent":<written>': 1,
    '"content":[<image>,<block><beside>]': 2,
}
BLOCKS = (
    *('{"type":"text","text":<text>}', '{"text":<text>,"type":"text"}') * 5,
    '{"type":"resource","resource":{"uri":"file:///a","text":<text>}}',
    '{"type":"text","text":<text>,"annotations":{"priority":1.0}}',
    '{"type":"text","text":<text>,"_meta":<number>}',
)
IMAGE = '{"type":"image","data":"AA==","n":1.10}'
BESIDE = (IMAGE, '{"type":"resource_link","n":1.10}', f'{{"type":"hologram"}},{IMAGE}')
ODD = ("[]", "null", "{}", '"text"', "[5]", '[{"type":"text"}]')
FURTHER = (
    *(',"isError":true',) * 6,
    *(f',"isError":{value}' for value in ("false", "null", '"true"', "1")),
    *(',"_meta":<anything>',) * 6,
    *(',"resultType":"complete"', ',"resultType":"input_required"', ',"resultType":7'),
    ',"task":{"taskId":"t1"}',
    *(",<member>",) * 3,
)
ERRORS = (
    *('{"code":-32602,"message":<text>}', '{"code":7,"message":<text>,"data":<anything>}') * 3,
    *('"no"', "null", "[]"),
)
ENVELOPES = {
    '{"jsonrpc":"2.0","id":<id>,<member>}': 7,
    '{<member>,"jsonrpc":"2.0","id":<id>}': 2,
    '{"jsonrpc":"2.0",<member>,"id":<id>,"vendor":1.10}': 1,
}


def response(dice: Dice, id: str) -> bytes:
    if dice.one_in(40):
        error = grow(dice, dice.pick(ERRORS), text=grow(dice, "<text>"))
        return envelope(dice, id, f'"error":{error}')
    json_text = grow(dice, "<document>")
    if dice.one_in(6):
        json_text = jumbled(dice, json_text)
    body = texts(dice, spaced(dice, json_text, lines=dice.one_in(6)))
    values = {
        "written": spaced(dice, json_text),
        "text": spelled(dice, body),
        "copy": block(dice, spaced(dice, json_text, lines=dice.one_in(6))),
        "block": block(dice, body),
        "beside": "," + dice.pick(BESIDE),
        "image": IMAGE,
        "odd": dice.pick(ODD),
        "prose": json.dumps(prose(dice)),
    }
    result = grow(dice, dice.choices([*CONTENTS], [*CONTENTS.values()])[0], **values)
    while dice.one_in(4):
        result += grow(dice, dice.pick(FURTHER))
    result = "{" + result + "}"
    return envelope(dice, id, f'"result":{jumbled(dice, result) if dice.one_in(9) else result}')


def envelope(dice: Dice, id: str, member: str) -> bytes:
    template = dice.choices([*ENVELOPES], [*ENVELOPES.values()])[0]
    return grow(dice, template, id=id, member=member).encode("utf-8", "surrogatepass")


def block(dice: Dice, text: str) -> str:
    return grow(dice, dice.pick(BLOCKS), text=spelled(dice, text))
