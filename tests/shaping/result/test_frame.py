"""What stands around a document: it is found again, dropped or shortened without it."""

import json

from proxy.document.tree import Document, encode
from proxy.shaping.result.frame import Copy, Frame, as_text, beside, shortened, without
from proxy.shaping.result.write import write
from proxy.transforms.base import Notice
from tests.given import document, said
from tests.result.given import TEXT, reading


def test_blocks_of_a_type_are_dropped_and_counted_and_the_document_is_found_again() -> None:
    image = {"type": "image", "data": "AA==", "mimeType": "image/png"}
    found = reading({"content": [image, {"type": "text", "text": "[1]"}, image]})

    frame, dropped = without(found.frame, ("image", "text"))

    assert dropped == {"image": 2}
    assert [json.loads(bytes(block)) for block in frame.blocks] == [{"type": "text", "text": "[1]"}]
    assert frame.copies == (TEXT,)


def test_texts_beside_the_document_are_shortened_and_the_document_is_found_again() -> None:
    found = reading(said("first", '{"a":1}', "second"))
    notice = Notice("_abridged", 1)

    frame = shortened(found.frame, {0: "f"}, [notice])

    assert beside(found.frame) == {0: "first", 2: "second"}
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
