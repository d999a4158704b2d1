"""A document is written back into its result, with notices and promised structuredContent."""

import json
from typing import Any

import pytest
from mcp_abridge.document.tree import Document, encode
from mcp_abridge.query.call import Notice
from mcp_abridge.shaping.result.frame import Frame
from mcp_abridge.shaping.result.write import write

from tests.builders import answer, document, result, tool_result
from tests.jobs import CONTRACT, shaped, structured
from tests.shaping.result.results import reading

IMAGE = {"type": "image", "data": "AA==", "mimeType": "image/png"}
BOTH = document({"a": [1, 2]}, structured=True)
BLOCKS = tool_result('{"a":1}', '{"a":2}', '{"a":3}')
WRAPPED = tool_result("Two:", "[1, 2]", structuredContent={"result": [1, 2]})
LISTED = tool_result("1", "true", "x", structuredContent={"result": [1, True, "x"]})
IN_MEMBER = tool_result("long", structuredContent={"result": "long"})
IN_BLOCK = tool_result(
    "long", structuredContent={"result": [{"type": "text", "text": "long", "_meta": None}]}
)
TOTAL = {"pagination": {"total": 9}}
NOTICE = [Notice("pagination", {"total": 9})]
BARE = [Notice("truncation", {"truncated": True}, bare=True)]


def rewritten(
    value: dict[str, Any], new: Any, notices: list[Notice] | None = None, **options: Any
) -> dict[str, Any]:
    """Read a result, put `new` in place of its document and write it."""
    located = reading(value)
    located.document.root.set(new)
    raw, _ = write(located.frame, located.document, notices or [], **options)
    decoded: dict[str, Any] = json.loads(encode(raw))
    return decoded


def resource(text: str) -> dict[str, Any]:
    return {"content": [{"type": "resource", "resource": {"uri": "file:///a", "text": text}}]}


# What a result becomes with another document in it, and with notices.
REWRITTEN: dict[str, tuple[dict[str, Any], Any, list[Notice], dict[str, Any]]] = {
    # If structuredContent was an object, it stays one.
    "an array": (BOTH, [1, 2], [], tool_result("[1,2]", structuredContent={"items": [1, 2]})),
    "null": (BOTH, None, [], tool_result("null", structuredContent={"text": "null"})),
    "a text": (BOTH, "a b", [], tool_result("a b", structuredContent={"text": "a b"})),
    "an array in an array": (document([1, 2], structured=True), [1], [],
     tool_result("[1]", structuredContent=[1])),
    "a wrapped value": (WRAPPED, {"result": [1]}, [],
     tool_result("Two:", '{"result":[1]}', structuredContent={"result": [1]})),
    "a structured text": (tool_result("a b", structuredContent="a b"), "a", [],
     tool_result("a", structuredContent="a")),
    "a structured text, quoted": (tool_result('"a b"', structuredContent="a b"), "a", [],
     tool_result('"a"', structuredContent="a")),
    "a text in a member": (IN_MEMBER, "l", [], tool_result("l", structuredContent={"result": "l"})),
    "a text in a block in a member": (
     IN_BLOCK, "l", NOTICE,
     tool_result("l", '{"pagination":{"total":9}}',
          structuredContent={"result": [{"type": "text", "text": "l"}], **TOTAL})),
    "JSON in a block in a member": (
     IN_BLOCK, [1], [],
     tool_result("[1]", structuredContent={"result": [{"type": "text", "text": "[1]"}]})),
    "a block among others": (
     {"content": [IMAGE, {"type": "text", "text": "[1,2]"}, IMAGE]}, [1], [],
     {"content": [IMAGE, {"type": "text", "text": "[1]"}, IMAGE]}),
    "a resource": (resource("[1,2]"), [1], [], resource("[1]")),
    "a JSON string": (tool_result('"two\\nlines"'), "a\nb", [], tool_result('"a\\nb"')),
    "fewer blocks": (BLOCKS, [{"a": 1}, "b"], [], tool_result('{"a":1}', "b")),
    "no block": (BLOCKS, [], [], tool_result()),
    "more blocks": (BLOCKS, [1, 2, 3, 4], [], tool_result("1", "2", "3", "4")),
    "an object of blocks": (tool_result("[1]", "[2]"), {"items": []}, [],
     tool_result('{"items":[]}')),
    "an object of elements": (LISTED, {"a": 1}, [],
     tool_result('{"a":1}', structuredContent={"a": 1})),
    # A text repeats structuredContent, in another layout or spelling, or behind prose.
    "pretty": (tool_result('{\n  "a": 1\n}', structuredContent={"a": 1}), {"a": 2}, [],
     document({"a": 2}, structured=True)),
    "in other words": (tool_result('{"a": "\\u00e4"}', structuredContent={"a": "ä"}), {"a": 2}, [],
     document({"a": 2}, structured=True)),
    "behind prose": (tool_result("Items:", '{"a":1}', structuredContent={"a": 1}), {"a": 2}, [],
     tool_result("Items:", '{"a":2}', structuredContent={"a": 2})),
    "one element": (tool_result('{"a": 1}', structuredContent={"result": [{"a": 1}]}), {"a": 2}, [],
     document({"a": 2}, structured=True)),
    # No text repeats it.
    "other JSON": (tool_result('{"a": 2}', structuredContent={"a": 1}), {"a": 3}, [],
     tool_result('{"a": 2}', structuredContent={"a": 3})),
    "a number in prose": (tool_result("Total: 5", structuredContent=5), {"a": 3}, [],
     tool_result("Total: 5", structuredContent={"a": 3})),
    "no content": ({"structuredContent": {"a": 1}}, {"a": 3}, [],
     {"content": [], "structuredContent": {"a": 3}}),
    # Texts alone.
    "the only JSON": (tool_result("Found two:", "[1,2]", "Done."), [1], [],
     tool_result("Found two:", "[1]", "Done.")),
    "JSON after prose": (tool_result("Found 2", '{"a":1}', '{"a":3}'), [{"a": 1}], [],
     tool_result("Found 2", '{"a":1}')),
    "a lone number": (tool_result("12"), "1", [], tool_result("1")),
    "JSON in a JSON string": (tool_result('"[1,2]"'), [1], [], tool_result('"[1]"')),
    "a quotation mark": (tool_result('"Quoted" at first'), "Q", [], tool_result("Q")),
    # Notices.
    "in an object": (BOTH, {"a": 1}, NOTICE, document({"a": 1, **TOTAL}, structured=True)),
    "in both copies": (BOTH, [1, 2], NOTICE, document({"items": [1, 2], **TOTAL}, structured=True)),
    "beside an array": (tool_result("[1,2]"), [1], NOTICE, document({"items": [1], **TOTAL})),
    "beside a JSON string": (tool_result('"long"'), "l", NOTICE, document({"text": "l", **TOTAL})),
    "behind a text": (
     {"content": [{"type": "text", "text": "long"}, IMAGE]}, "l", BARE,
     {"content": [*tool_result("l", '{"truncated":true}')["content"], IMAGE]}),
    "beside a text in a member": (IN_MEMBER, "l", NOTICE,
     tool_result("l", '{"pagination":{"total":9}}', structuredContent={"result": "l", **TOTAL})),
    "in JSON in a member": (
     tool_result('{"a":1}', structuredContent={"result": '{"a":1}'}), {"a": 1}, NOTICE,
     tool_result('{"a":1,"pagination":{"total":9}}',
          structuredContent={"result": '{"a":1,"pagination":{"total":9}}'})),
    "in structuredContent alone": (
     {"content": [], "structuredContent": [1, 2]}, [1], NOTICE,
     tool_result(structuredContent={"items": [1], **TOTAL})),
    "beside a structured text": (tool_result("a b", structuredContent="a b"), "a", NOTICE,
     tool_result("a", '{"pagination":{"total":9}}', structuredContent={"text": "a", **TOTAL})),
}  # fmt: skip


@pytest.mark.parametrize(("value", "new", "notices", "expected"), REWRITTEN.values(), ids=REWRITTEN)
def test_a_document_is_written_into_all_its_places(
    value: dict[str, Any], new: Any, notices: list[Notice], expected: dict[str, Any]
) -> None:
    assert rewritten(value, new, notices) == expected


def test_an_array_in_a_snapshot_stays_an_array() -> None:
    frame = Frame.decode(reading(document([1, 2], structured=True)).frame.encode())
    raw, _ = write(frame, Document.read(b"[2]"), [])
    assert json.loads(encode(raw)) == tool_result("[2]", structuredContent=[2])


def test_one_copy_can_be_left_out() -> None:
    value = document({"a": [1, 2]}, structured=True)

    assert rewritten(value, {"a": 1}, copies="text") == tool_result('{"a":1}')
    assert rewritten(value, {"a": 1}, copies="structured") == tool_result(
        structuredContent={"a": 1}
    )
    assert rewritten(tool_result("[1]"), [2], copies="structured") == tool_result("[2]")
    nothing = tool_result("[1]", structuredContent=None)
    assert rewritten(nothing, [2], copies="structured") == nothing | tool_result("[2]")
    prose = tool_result("prose", structuredContent={"a": 1})
    assert rewritten(prose, {"a": 2}, copies="text") == tool_result(
        "prose", structuredContent={"a": 2}
    )


@pytest.mark.parametrize("more", ["", "validate: warn", "validate: refuse"])
def test_a_document_that_is_only_text_stands_in_structured_content_too(more: str) -> None:
    value = {**document({"n": 1}), "_meta": {"a": 1.0}}
    outcome = shaped(CONTRACT + more, value)
    assert outcome.raw == answer({**value, "structuredContent": {"n": 1}})
    assert outcome.warnings == ()


def test_a_kept_number_is_spelled_in_both_copies_as_the_server_spelled_it() -> None:
    text = tool_result('{"n":1.0,"m":1e400}')
    outcome = shaped(CONTRACT + "response: [{keep: [n, m]}]", text)
    assert b'"structuredContent":{"n":1.0,"m":1e400}' in outcome.raw


@pytest.mark.parametrize(
    ("value", "promised"),
    [
        (tool_result("just words"), {"text": "just words"}),
        (tool_result("two", "blocks"), {"text": "two\nblocks"}),
        (document([1, 2]), {"text": "[1,2]"}),
        ({"content": []}, {"text": ""}),
    ],
)
def test_structured_content_of_a_result_that_is_no_object_is_its_text(
    value: dict[str, Any], promised: Any
) -> None:
    outcome = shaped(CONTRACT, value)
    assert structured(outcome) == promised
    assert result(outcome.raw)["content"] == value["content"]


def test_the_checked_text_of_a_member_becomes_structured_content() -> None:
    value = tool_result('{"n":1.0}', structuredContent={"result": '{"n":1.0}'})
    assert shaped(CONTRACT + "validate: warn", value).raw == answer(value)
    outcome = shaped(CONTRACT + "validate: refuse", value)
    assert b'"structuredContent":{"n":1.0}' in outcome.raw
    assert result(outcome.raw)["content"] == value["content"]
