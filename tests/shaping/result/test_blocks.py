"""The text in a block of `content`, and another in its place."""

from typing import Any

import pytest
from msgspec import Raw

from proxy.document.tree import encode
from proxy.errors import DocumentError
from proxy.shaping.result.blocks import content_of, of_notice, text_of, with_text
from proxy.transforms.base import Notice


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "text", "text": "a"}, "a"),
        ({"type": "resource", "resource": {"uri": "file:///a", "text": "b"}}, "b"),
        ({"type": "resource", "resource": {"uri": "file:///a", "blob": "AA=="}}, None),
        ({"type": "image", "data": "AA==", "mimeType": "image/png"}, None),
        ({"type": "text", "text": 5}, None),
        ({"text": "no type"}, None),
        (7, None),
    ],
)
def test_a_text_block_and_a_text_resource_have_a_text(block: Any, text: str | None) -> None:
    raw = Raw(encode(block))
    assert text_of(raw) == text
    if text is not None:
        assert text_of(with_text(raw, "other")) == "other"


def test_another_text_leaves_the_rest_of_a_block_as_it_came() -> None:
    block = Raw(b'{"type": "text", "annotations": {"priority": 1.0}, "text": "a"}')
    assert bytes(with_text(block, "b")) == (
        b'{"type":"text","annotations":{"priority": 1.0},"text":"b"}'
    )


def test_content_that_is_no_array_is_no_content() -> None:
    assert content_of({}) == ([], {})
    with pytest.raises(DocumentError, match="content: "):
        content_of({"content": Raw(b"5")})


def test_a_bare_notice_stands_without_its_name() -> None:
    assert text_of(of_notice(Notice("pagination", {"total": 9}))) == '{"pagination":{"total":9}}'
    assert text_of(of_notice(Notice("pagination", {"total": 9}, bare=True))) == '{"total":9}'
