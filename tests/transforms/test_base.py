"""The parts that transforms share, and what all of them keep to."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.document.surrogates import replace_lone
from proxy.document.tree import Document, Pieces, compact
from proxy.transforms.base import Transform
from tests.documents import SCALARS, SURROGATES, call, shaped, values
from tests.given import rule


def made(text: str) -> Transform:
    [step] = rule(f"response: [{{{text}}}]").pipeline
    return step


VALUES = values(SCALARS | st.sampled_from(SURROGATES), leaves=20)

# A step, the document before with three values (1, 2 and 3), and after it.
SPELLED: list[tuple[str, str, str]] = [
    ("drop: [a.y, y]", '{"a": [{"x": 1, "\\u0079": 3}], "b": 2, "y": 3}',
     '{"a": [{"x": 1}], "b": 2}'),
    ("drop: ['a[].y', y]", '{"a": [{"x": 1, "y": 3}], "b": 2, "y": 3}',
     '{"a": [{"x": 1}], "b": 2}'),
    ("keep: [b, a.x]", '{"a": [{"x": 1, "y": 3}], "b": 2, "c": 3}', '{"b": 2, "a": [{"x": 1}]}'),
    ("keep: [b, '**.x']", '{"a": [{"x": 1, "y": 3}], "b": 2, "c": 3}', '{"b": 2, "a": [{"x": 1}]}'),
    ("elide: {at: a, first: 1, last: 1}", '{"a": [1, 3, 2], "b": 2}',
     '{"a": [1, 2], "b": 2, "_elided": {"a": "first @ and last @ of #"}}'),
    ("filter: {at: i, where: id == 'x'}",
     '{"i": [{"id": "x", "v": 1}, {"id": "y", "v": 3}], "v": 2}',
     '{"i": [{"id": "x", "v": 1}], "v": 2}'),
    ("filter: {at: i, field: id, prefix: x}",
     '{"i": [{"id": "x", "v": 1}, {"id": "y", "v": 3}], "v": 2}',
     '{"i": [{"id": "x", "v": 1}], "v": 2}'),
    ("filter: {at: i, field: id, glob: y, invert: true}",
     '{"i": [{"id": "x", "v": 1}, {"id": "y", "v": 3}], "v": 2}',
     '{"i": [{"id": "x", "v": 1}], "v": 2}'),
    ("project: {at: r, fields: [{c: b.c}, a]}", '{"r": [{"a": 1, "y": 3, "b": {"c": 2}}], "z": 3}',
     '{"r": [{"c": 2, "a": 1}], "z": 3}'),
    ("project: {at: 'r[]', fields: [{c: b.c}, a]}",
     '{"r": [{"a": 1, "y": 3, "b": {"c": 2}}], "z": 3}', '{"r": [{"c": 2, "a": 1}], "z": 3}'),
    ("rename: {b: n}", '[{"a": 1, "b": 2}]', '[{"a": 1, "n": 2}]'),
    ("sort: {at: i, by: n}", '{"i": [{"n": "b", "v": 1}, {"n": "a", "v": 2}], "v": 1}',
     '{"i": [{"n": "a", "v": 2}, {"n": "b", "v": 1}], "v": 1}'),
]  # fmt: skip


@pytest.mark.parametrize(("text", "before", "after"), SPELLED)
@given(VALUES, VALUES, VALUES)
def test_values_that_stay_keep_their_spelling(
    text: str, before: str, after: str, one: bytes, other: bytes, gone: bytes
) -> None:
    def filled(template: str) -> bytes:
        parts = {"1": one, "2": other, "3": gone, "@": b"1", "#": b"3"}
        return b"".join(parts.get(sign, sign.encode()) for sign in template)

    assert shaped(filled(before), made(text)) == compact(replace_lone(filled(after)))


ARRAYS = [
    "elide: {at: items}",
    "filter: {at: items, prefix: a}",
    "sort: {at: items}",
    "table: items",
]


@pytest.mark.parametrize("text", ARRAYS)
@pytest.mark.parametrize(
    ("before", "missing"),
    [
        ('{"items": {"a": 1}}', ["items"]),
        ('{"rows": []}', ["items"]),
        ('{"items": null}', []),
        ('{"items": []}', []),
        ("{}", []),
        ("[]", []),
    ],
)
def test_a_value_that_is_no_array_is_noted_and_stays(
    text: str, before: str, missing: list[str]
) -> None:
    asked = call()
    assert shaped(before.encode(), made(text), at=asked) == compact(before.encode())
    assert asked.missing == missing


@pytest.mark.parametrize("text", ["elide: {}", "filter: {prefix: a}", "sort: {}", "table: {}"])
def test_a_document_that_is_no_array_is_noted(text: str) -> None:
    asked = call()
    assert shaped(b'{"a":1}', made(text), at=asked) == b'{"a":1}'
    assert asked.missing == ["[]"]


@pytest.mark.parametrize(
    ("text", "lines"),
    [("filter: {match: ^a}", ["a 3", "a 1"]), ("sort: {}", ["a 1", "a 3", "b 2"])],
)
def test_lines_stay_lines(text: str, lines: list[str]) -> None:
    document = Document(Pieces(["a 3", "b 2", "a 1"]))
    made(text)(document.root, call())
    assert isinstance(document.cell[0], Pieces)
    assert document.cell[0] == lines
