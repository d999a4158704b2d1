"""Random responses: the document of an answer in the places where servers put it, and around it."""

import json

from msgspec import Struct

from tests.fuzz import texts, values
from tests.fuzz.dice import Dice
from tests.fuzz.values import Tree

IDS = (
    *("1", "0", "-7", "5.0", '"5"', '"a"', '"\\u0061"', '"é😀"', "1e3", '""'),
    *("99999999999999999999",),
)
KINDS = ("image", "audio", "resource_link", "hologram")


class Given(Struct):
    """A response line and how it was made.

    `failed`: it is an error of any kind.
    """

    line: bytes
    id: bytes
    document: str = ""
    failed: bool = False


def given(dice: Dice, id: str | None = None) -> Given:
    id = dice.pick(IDS) if id is None else id
    if dice.one_in(40):
        return _error(dice, id)
    tree = values.document(dice)
    written = values.write(dice, tree)
    members = _content(dice, tree, written)
    failed = dice.one_in(12)
    if failed:
        members.append(("isError", "true"))
    elif dice.one_in(20):
        members.append(("isError", dice.pick(("false", "null", '"true"', "1"))))
    if dice.one_in(12):
        members.append(("_meta", values.write(dice, values.anything(dice, 2))))
    if dice.one_in(15):
        members.append(
            ("resultType", dice.pick(('"complete"', '"complete"', '"input_required"', "7")))
        )
    if dice.one_in(60):
        members.append(("task", '{"taskId":"t1"}'))
    if dice.one_in(25):
        members.append((dice.pick(values.ODD_NAMES), values.write(dice, values.anything(dice, 1))))
    if dice.one_in(5):
        dice.shuffle(members)
    line = envelope(dice, id, "result", _object(dice, members))
    return Given(line.encode("utf-8", "surrogatepass"), id.encode(), written, failed)


def envelope(dice: Dice, id: str, member: str, value: str) -> str:
    head = [("jsonrpc", '"2.0"'), ("id", id)]
    order = dice.below(10)
    members = [*head, (member, value)] if order < 7 else [(member, value), *head]
    if order == 9:
        dice.shuffle(members)
    if dice.one_in(40):
        members.append((dice.pick(("x", "vendor", "")), values.number(dice)))
    return _object(dice, members)


def _error(dice: Dice, id: str) -> Given:
    said = values.string(dice, long=dice.one_in(2))
    members = [("code", str(dice.pick((-32602, -1, 7)))), ("message", said)]
    if dice.one_in(2):
        members.append(("data", values.write(dice, values.anything(dice, 2))))
    value = dice.pick(('"no"', "null", "[]")) if dice.one_in(6) else _object(dice, members)
    return Given(envelope(dice, id, "error", value).encode(), id.encode(), failed=True)


def _content(dice: Dice, tree: Tree, written: str) -> list[tuple[str, str]]:
    """Return the members that hold the document."""
    kind = dice.below(24)
    said = texts.text(dice, values.write(dice, tree, lines=True) if dice.one_in(6) else written)
    if kind < 9:
        return [("content", _array(dice, [block(dice, said)]))]
    if kind < 13:
        copy = values.write(dice, tree, lines=dice.one_in(3))
        blocks = [block(dice, copy), *_others(dice)]
        return [("content", _array(dice, blocks)), ("structuredContent", written)]
    if kind < 15:
        held = f'{{"{dice.pick(("result", "content", "text"))}":{json.dumps(said)}}}'
        return [("content", _array(dice, [block(dice, said)])), ("structuredContent", held)]
    if kind < 17:
        blocks = [block(dice, texts.text(dice, written)) for _ in range(dice.within(2, 5))]
        return [("content", _array(dice, blocks + _others(dice)))]
    if kind < 19:
        prose = block(dice, values.prose(dice))
        return [("content", _array(dice, [prose])), ("structuredContent", written)]
    if kind == 19:
        return _by_elements(dice)
    if kind == 20:
        return [("structuredContent", written)]
    if kind == 21:
        content = dice.pick(("[]", "null", "{}", '"text"', "[5]", '[{"type":"text"}]'))
        return [("content", content), ("structuredContent", written)]
    blocks = [*_others(dice), block(dice, said), *_others(dice)]
    return [("content", _array(dice, blocks))]


def _by_elements(dice: Dice) -> list[tuple[str, str]]:
    """Return an array in one member, each element of which is a text block too."""
    elements = [values.write(dice, values.record(dice)) for _ in range(dice.within(1, 6))]
    blocks = [block(dice, each) for each in elements]
    held = '{"result":[' + ",".join(elements) + "]}"
    return [("content", _array(dice, blocks)), ("structuredContent", held)]


def block(dice: Dice, said: str) -> str:
    spelled = values.spelled(dice, said)
    if dice.one_in(12):
        inner = f'{{"uri":"file:///a","text":{spelled}}}'
        return f'{{"type":"resource","resource":{inner}}}'
    members = [("type", '"text"'), ("text", spelled)]
    if dice.one_in(10):
        members.append(("annotations", '{"priority":1.0}'))
    if dice.one_in(15):
        members.append((dice.pick(("_meta", "vendor")), values.number(dice)))
    if dice.one_in(5):
        members.reverse()
    return _object(dice, members)


def _others(dice: Dice) -> list[str]:
    if not dice.one_in(4):
        return []
    return [
        f'{{"type":"{dice.pick(KINDS)}","data":"AA==","n":1.10}}' for _ in range(dice.within(1, 3))
    ]


def _object(dice: Dice, members: list[tuple[str, str]]) -> str:
    comma, colon = (", ", ": ") if dice.one_in(6) else (",", ":")
    return "{" + comma.join(f"{json.dumps(name)}{colon}{value}" for name, value in members) + "}"


def _array(dice: Dice, elements: list[str]) -> str:
    return "[" + (", " if dice.one_in(6) else ",").join(elements) + "]"
