"""A response line is parsed, and its document located, rung by rung."""

import json
from typing import Any

import pytest
from mcp_abridge.document.tree import plain
from mcp_abridge.errors import DocumentError
from mcp_abridge.shaping.result.frame import Copy
from mcp_abridge.shaping.result.read import Kind, locate
from msgspec import Raw

from tests.builders import tool_result
from tests.shaping.result.results import members, reading

TEXT = Copy("text", blocks=(0,))


def places(value: dict[str, Any], kind: Kind = "auto") -> tuple[Any, tuple[Copy, ...]]:
    located = reading(value, kind)
    return plain(located.document.cell[0]), located.frame.copies


def test_lone_surrogates_do_not_keep_a_text_from_mirroring_structured_content() -> None:
    structured = '{"a":"\ufffd"}'.encode()  # replaced with the line
    text = json.dumps({"type": "text", "text": r'{"a": "\ud800"}'})
    value = {"content": Raw(f"[{text}]".encode()), "structuredContent": Raw(structured)}
    located = locate(value, "auto")

    assert located is not None
    assert located.frame.copies == (Copy("structured"), TEXT)


@pytest.mark.parametrize(
    "value",
    [
        {"content": []},
        {"content": [{"type": "image", "data": "", "mimeType": "image/png"}]},
        {"content": [{"type": "resource", "resource": {"uri": "a", "blob": "AA=="}}]},
        {"content": [{"type": "text"}, {"type": "text", "text": 5}, {"text": "no type"}, 7, None]},
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
