import json

import msgspec
from hypothesis import given
from hypothesis import strategies as st

from proxy.document.measure import (
    TextFrame,
    chars_that_fit,
    encoded_size,
    exceeds,
    size,
    writeback_at,
)
from proxy.document.paths import Path
from proxy.document.tree import Document, Pieces, encode, row_type
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


def test_lines_end_as_the_text_did_and_with_more_to_come_as_lines_do() -> None:
    lines = Pieces(["a", "b"])
    assert TextFrame(before="<", after=">", separator="\n").text(lines) == "<a\nb>"
    assert TextFrame(separator="\n", ended=True).text(lines) == "a\nb\n"
    assert TextFrame(separator="\n").text(lines, more=True) == "a\nb\n"
    assert TextFrame(separator="\n", ended=True).text(Pieces()) == ""
    assert TextFrame(separator="\n").text([{"a": 1}, "b"]) == '{"a":1}\nb'


@given(TEXTS, st.integers(-5, 1000))
def test_as_many_characters_fit_as_there_is_room_for(text: str, room: int) -> None:
    count = chars_that_fit(text, room)
    assert len(encode(text[:count])) - 2 <= max(room, 0)
    if count < len(text):
        assert len(encode(text[: count + 1])) - 2 > room


@given(values(), st.integers(0, 2000))
def test_outgrowing_is_a_matter_of_written_bytes(raw: bytes, most: int) -> None:
    value = json.loads(raw)
    if not exceeds(value, most):
        # Never more than by escapes, wide characters and digits.
        assert len(json.dumps(value, separators=(",", ":"))) <= 12 * most + 400


def test_parts_that_stand_in_many_places_count_in_each() -> None:
    value: list[object] = ["x"]
    for _ in range(60):
        value = [value, value]
    assert exceeds(value, 1_000_000)
    assert not exceeds([["x"] * 10], 100)
    assert exceeds([["x"] * 10], 20)


def test_the_members_of_rows_count_too() -> None:
    rows = [msgspec.json.decode(b'{"id": "xxxxxxxx"}', type=row_type(["id", "gone"]))] * 10
    assert exceeds(rows, 100)
    assert not exceeds(rows, 1000)
