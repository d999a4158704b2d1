"""A response line is parsed, and its document located, rung by rung."""

import json
from typing import Any

import pytest
from msgspec import Raw

from proxy.errors import DocumentError
from proxy.shaping.result.frame import Copy, content_of
from proxy.shaping.result.read import locate, parse
from tests.given import answer, document, tool_result
from tests.shaping.result.results import STRUCTURED, TEXT, members, places


def block(*blocks: int, **members: Any) -> Copy:
    return Copy("text", blocks=blocks, **members)


SAME = {"items": [1, 2.5, "ä"], "total": 2}
WRAPPED: dict[str, Any] = {"result": [{"a": 1}, "two"]}
RESOURCE = {"type": "resource", "resource": {"uri": "file:///a", "text": '{"a":1}'}}
LISTED = tool_result('{"a": 1}', "two", structuredContent=WRAPPED)
QUOTED = tool_result('"a b"', structuredContent="a b")
MEMBER = Copy("member", "result")
IN_BLOCK = tool_result(
    "[{'a': 1}]",
    structuredContent={"result": [{"type": "text", "text": "[{'a': 1}]", "_meta": None}]},
)

# What is read, and its document with its places.
PLACES: dict[str, tuple[dict[str, Any], Any, tuple[Copy, ...]]] = {
    # A text repeats structuredContent.
    "compact": (tool_result(json.dumps(SAME), structuredContent=SAME), SAME, (STRUCTURED, TEXT)),
    "pretty": (
        tool_result(json.dumps(SAME, indent=2), structuredContent=SAME),
        SAME,
        (STRUCTURED, TEXT),
    ),
    "in other words": (
        tool_result('{"b": "\\u00e4", "a": 1.0}', structuredContent={"a": 1, "b": "ä"}),
        {"a": 1, "b": "ä"},
        (STRUCTURED, TEXT),
    ),
    "a number": (tool_result("-1.5", structuredContent=-1.5), -1.5, (STRUCTURED, TEXT)),
    "a word": (tool_result("true", structuredContent=True), True, (STRUCTURED, TEXT)),
    "a number in prose": (tool_result("Total: 5", structuredContent=5), 5, (STRUCTURED,)),
    "behind prose": (
        tool_result("Items:", '{"a":1}', structuredContent={"a": 1}),
        {"a": 1},
        (STRUCTURED, block(1)),
    ),
    "a text": (tool_result("a b", structuredContent="a b"), "a b", (STRUCTURED, TEXT)),
    "a quoted text": (QUOTED, "a b", (STRUCTURED, block(0, quoted=True))),
    # A text repeats its only member.
    "a text in it": (
        tool_result("long", structuredContent={"result": "long"}),
        "long",
        (MEMBER, TEXT),
    ),
    "JSON in it": (
        tool_result("[1, 2]", structuredContent={"result": "[1, 2]"}),
        [1, 2],
        (MEMBER, TEXT),
    ),
    "a number in it": (tool_result("12", structuredContent={"result": "12"}), "12", (MEMBER, TEXT)),
    "a block in it": (IN_BLOCK, "[{'a': 1}]", (Copy("member", "result", as_block=True), TEXT)),
    "an array in it": (LISTED, WRAPPED, (STRUCTURED, block(0, 1))),
    "one element": (
        tool_result('{"a": 1}', structuredContent={"result": [{"a": 1}]}),
        {"result": [{"a": 1}]},
        (STRUCTURED, TEXT),
    ),
    "a value in it": (
        tool_result("Two:", "[1, 2]", structuredContent={"result": [1, 2]}),
        {"result": [1, 2]},
        (STRUCTURED, block(1)),
    ),
    # No text repeats it.
    "prose": (tool_result("Here.", structuredContent={"a": 1}), {"a": 1}, (STRUCTURED,)),
    "other JSON": (tool_result('{"a": 2}', structuredContent={"a": 1}), {"a": 1}, (STRUCTURED,)),
    "no text": ({"content": [], "structuredContent": [1]}, [1], (STRUCTURED,)),
    "no content": ({"structuredContent": {"a": 1}}, {"a": 1}, (STRUCTURED,)),
    "null": ({**tool_result("text"), "structuredContent": None}, "text", (TEXT,)),
    # Texts alone.
    "the only JSON": (tool_result("Found two:", "[1,2]", "Done."), [1, 2], (block(1),)),
    "a resource": ({"content": [RESOURCE]}, {"a": 1}, (TEXT,)),
    "several JSON": (
        tool_result('{"a":1}', "[2]", '{"a":3}'),
        [{"a": 1}, [2], {"a": 3}],
        (block(0, 1, 2, each=True),),
    ),
    "several JSON after prose": (
        tool_result("Found 2", '{"a":1}', '{"a":3}'),
        [{"a": 1}, {"a": 3}],
        (block(1, 2, each=True),),
    ),
    "plain words": (tool_result("plain words"), "plain words", (TEXT,)),
    "a lone number": (tool_result("12"), "12", (TEXT,)),
    "an empty text": (tool_result(""), "", (TEXT,)),
    "JSON that is cut": (tool_result('{"cut": '), '{"cut": ', (TEXT,)),
    "a JSON string": (tool_result('"two\\nlines"'), "two\nlines", (block(0, quoted=True),)),
    "JSON in a JSON string": (tool_result('"[1,2]"'), [1, 2], (block(0, quoted=True),)),
    "a quotation mark": (tool_result('"Quoted" at first'), '"Quoted" at first', (TEXT,)),
}


@pytest.mark.parametrize(("value", "document", "copies"), PLACES.values(), ids=PLACES)
def test_the_document_is_found_in_all_its_places(
    value: dict[str, Any], document: Any, copies: tuple[Copy, ...]
) -> None:
    assert places(value) == (document, copies)


def test_lone_surrogates_do_not_keep_a_text_from_mirroring_structured_content() -> None:
    structured = '{"a":"\ufffd"}'.encode()  # replaced with the line
    text = json.dumps({"type": "text", "text": r'{"a": "\ud800"}'})
    value = {"content": Raw(f"[{text}]".encode()), "structuredContent": Raw(structured)}
    located = locate(value, "auto")

    assert located is not None
    assert located.frame.copies == (STRUCTURED, TEXT)


@pytest.mark.parametrize(
    "value",
    [
        {"content": []},
        {"content": [{"type": "image", "data": "", "mimeType": "image/png"}]},
        {"content": [{"type": "resource_link", "uri": "file:///a", "name": "a"}]},
        {"content": [{"type": "resource", "resource": {"uri": "a", "blob": "AA=="}}]},
        {"content": [{"type": "text"}, {"type": "text", "text": 5}, {"text": "no type"}, 7, None]},
        {},
        tool_result("prose", "more prose"),
        tool_result("[1]", "[2]", "prose"),
    ],
)
def test_a_result_with_none_of_these_has_no_document(value: dict[str, Any]) -> None:
    assert locate(members(value), "auto") is None


def test_content_that_is_no_array_cannot_be_read() -> None:
    with pytest.raises(DocumentError, match="content: "):
        locate(members({"content": {"type": "text"}}), "auto")


def test_a_rule_may_say_which_copy_is_the_document() -> None:
    both = tool_result("[1]", "prose", structuredContent={"a": 1})

    assert places(both, "structured")[0] == {"a": 1}
    assert places(both, "blocks") == ([[1], "prose"], (Copy("text", blocks=(0, 1), each=True),))
    assert places(tool_result('{"a":1}'), "text") == ('{"a":1}', (TEXT,))
    value = {**tool_result('{"a":1}'), "structuredContent": {"content": '{"a":1}'}}
    assert places(value, "text") == ('{"a":1}', (Copy("member", "content"), TEXT))
    assert places({**tool_result("5"), "structuredContent": {"n": 5}}, "text") == ("5", (TEXT,))
    assert locate(members(tool_result("[1]")), "structured") is None
    assert locate(members({"content": []}), "blocks") is None


LINES = [
    answer(document({"a": 1})),
    answer({**document({"a": 1}, structured=True), "isError": False, "_meta": {"n": 1.50}}),
    answer(tool_result("two", "texts")),
    answer({**tool_result("text"), "vendor": 1}),
    b'{ "result": {"content": [{"type": "text", "text": "a"}]}, "jsonrpc": "2.0", "id": 5.0}',
    rb'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"\ud800"}]}}',
]


@pytest.mark.parametrize("raw", LINES)
def test_a_line_means_the_same_however_far_it_is_decoded(raw: bytes) -> None:
    line, whole = parse(raw), parse(raw, intact=True)

    assert list(line.envelope) == list(whole.envelope)
    assert [line.envelope[name] for name in line.envelope if name != "result"] == [
        whole.envelope[name] for name in whole.envelope if name != "result"
    ]
    assert set(line.members) == set(whole.members)
    texts = content_of(whole.members)[1]
    assert texts == (content_of(line.members) if line.content is None else line.content)[1]
