from hypothesis import given
from hypothesis import strategies as st

from proxy.document.measure import (
    chars_that_fit,
    encoded_size,
    size,
    writeback_at,
)
from proxy.document.paths import Path
from proxy.document.tree import Document, encode
from proxy.transforms.parse import Parse
from tests.documents import TEXTS, call, values


@given(values())
def test_a_document_weighs_what_it_is_written_in(raw: bytes) -> None:
    document = Document.read(raw)
    assert size(document) == encoded_size(document.cell[0]) == len(document.encode())


def test_a_text_read_as_structure_weighs_what_it_is_written_back_in() -> None:
    document = Document.read(b'{"content": "<<[1, {\\"a\\": 2}]", "n": 1}')
    content = Path.parse("content")
    from proxy.document.patterns import Pattern

    Parse(as_="json", at=content, after=Pattern("<<"))(document.root, call())
    document.root.child("content").open().append("x")
    expected = size(document)
    assert writeback_at(document, Path.parse("content.a")) is document.closers[0]
    assert writeback_at(document, Path.parse("n")) is None
    document.close()
    assert document.encode() == b'{"content":"<<[1,{\\"a\\":2},\\"x\\"]","n":1}'
    assert expected == len(document.encode())


@given(TEXTS, st.integers(-5, 1000))
def test_as_many_characters_fit_as_there_is_room_for(text: str, room: int) -> None:
    count = chars_that_fit(text, room)
    assert len(encode(text[:count])) - 2 <= max(room, 0)
    if count < len(text):
        assert len(encode(text[: count + 1])) - 2 > room
