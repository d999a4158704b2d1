"""What stands around a document: blocks, texts and sizes, found again without the document."""

import json
from typing import Any

import pytest
from msgspec import Raw

from proxy.document.tree import Document, encode
from proxy.errors import DocumentError
from proxy.ruleset.clients import Shows
from proxy.shaping.result.frame import (
    Copy,
    Frame,
    VisibleSize,
    as_text,
    content_of,
    notice_block,
    other_texts,
    text_of,
    with_other_texts,
    with_text,
    without_blocks,
)
from proxy.shaping.result.write import write
from proxy.transforms.base import Notice
from tests.given import document, said
from tests.result.given import TEXT, reading


def test_blocks_of_a_type_are_dropped_and_counted_and_the_document_is_found_again() -> None:
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    found = reading({"content": [image, {"type": "text", "text": "[1]"}, image]})

    frame, dropped = without_blocks(found.frame, ("image", "text"))

    assert dropped == {"image": 2}
    assert [json.loads(bytes(block)) for block in frame.blocks] == [{"type": "text", "text": "[1]"}]
    assert frame.copies == (TEXT,)


def test_texts_beside_the_document_are_shortened_and_the_document_is_found_again() -> None:
    found = reading(said("first", '{"a":1}', "second"))
    notice = Notice("_abridged", 1)

    frame = with_other_texts(found.frame, {0: "f"}, [notice])

    assert other_texts(found.frame) == {0: "first", 2: "second"}
    assert [json.loads(bytes(block))["text"] for block in frame.blocks] == [
        "f",
        '{"_abridged":1}',
        '{"a":1}',
    ]
    assert frame.copies == (Copy("text", blocks=(2,)),)


def test_a_frame_as_text_has_a_block_for_a_document_that_was_structured_alone() -> None:
    both = as_text(reading(document({"a": 1}, structured=True)).frame)
    alone = as_text(reading({"content": [], "structuredContent": {"a": 1}}).frame)

    for frame in (both, alone):
        assert "structuredContent" not in frame.members
        assert frame.copies == (TEXT,)
        assert len(frame.blocks) == 1


def test_a_frame_comes_back_from_its_bytes_without_the_document() -> None:
    found = reading({**document({"a": "x" * 1000}, structured=True), "_meta": {"n": 1.50}})

    raw = found.frame.encode()
    frame = Frame.decode(raw)

    assert len(raw) < 400
    assert frame.copies == found.frame.copies
    again, _ = write(frame, Document.read(b'{"a":1}'), [])
    assert json.loads(encode(again)) == {
        **document({"a": 1}, structured=True),
        "_meta": {"n": 1.50},
    }


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
    assert text_of(notice_block(Notice("pagination", {"total": 9}))) == '{"pagination":{"total":9}}'
    assert text_of(notice_block(Notice("pagination", {"total": 9}, bare=True))) == '{"total":9}'


KINDS: tuple[Shows, ...] = ("structured", "text", "both", "either")


def test_visible_bytes_are_counted_for_each_kind_of_client() -> None:
    shown = reading(said("ä" * 4, "c", structuredContent={"a": 1})).size

    assert shown == VisibleSize(7, 9)
    assert [shown.to(kind) for kind in KINDS] == [7, 9, 16, 9]
    assert shown.most == 9


def test_without_structured_content_every_client_shows_the_text() -> None:
    shown = reading(said("abc")).size

    assert [shown.to(kind) for kind in KINDS] == [3, 3, 3, 3]
