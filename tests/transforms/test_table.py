import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.document.paths import Path
from proxy.document.surrogates import replace_lone
from proxy.document.tree import Document, Pieces, compact
from proxy.transforms.table import Table
from tests.documents import SCALARS, SURROGATES, call, shaped, values
from tests.fitting import assert_reshaped, fits, fitting, where

ITEMS = Path.parse("items")

# A document, and what comes of its items.
CASES: dict[str, tuple[str, str]] = {
    "each name stands once, in the order of the first object": (
        '{"items": [{"b": 1.0, "a": null}, {"a": "\\/", "b": {"x": 1}}], "n": 2}',
        '{"items":{"columns":["b","a"],"rows":[[1.0,null],[{"x":1},"\\/"]]},"n":2}',
    ),
    "one object is a table too": (
        '{"items": [{"a": 1}]}',
        '{"items":{"columns":["a"],"rows":[[1]]}}',
    ),
    "the last of equal names counts": (
        '{"items": [{"a": 1, "a": 2}, {"a": 3}]}',
        '{"items":{"columns":["a"],"rows":[[2],[3]]}}',
    ),
    "an empty array stays": ('{"items": []}', '{"items":[]}'),
    "null stays": ('{"items": null}', '{"items":null}'),
}


@pytest.mark.parametrize(("before", "after"), CASES.values(), ids=CASES)
@pytest.mark.parametrize("read", ["unopened", "opened"])
def test_an_array_of_like_objects_becomes_a_table(before: str, after: str, read: str) -> None:
    document, told = Document.read(before.encode()), call()
    if read == "opened":
        for child in document.root.children():
            for element in child.children():
                list(element.children())
    Table(ITEMS)(document.root, told)
    assert document.encode().decode() == after
    assert told.missing == []


def test_a_root_array_becomes_a_table() -> None:
    assert shaped(b'[{"a": 1}, {"a": 2}]', Table()) == b'{"columns":["a"],"rows":[[1],[2]]}'


UNLIKE = [
    '[{"a": 1}, {"b": 1}]',
    '[{"a": 1}, {"a": 1, "b": 2}]',
    '[{"a": 1, "b": 2}, {"a": 1}]',
    '[{"a": 1}, null]',
    '[null, {"a": 1}]',
    '[{"a": 1}, [1]]',
    "[1, 2]",
    "[{}, {}]",
    '{"a": 1}',
    '"text"',
]


@pytest.mark.parametrize("items", UNLIKE)
def test_anything_else_is_noted_and_left_alone(items: str) -> None:
    before, told = f'{{"items": {items}}}'.encode(), call()
    assert shaped(before, Table(ITEMS), at=told) == compact(before)
    assert told.missing == ["items"]


def test_lines_are_no_table() -> None:
    document, told = Document(Pieces(["a", "b"])), call()
    Table()(document.root, told)
    assert document.cell[0] == ["a", "b"]
    assert told.missing == ["[]"]


VALUES = values(SCALARS | st.sampled_from(SURROGATES), leaves=20)


@given(st.lists(st.tuples(VALUES, VALUES), min_size=1, max_size=4), st.booleans())
def test_a_table_loses_nothing_and_spells_all_as_it_came(
    found: list[tuple[bytes, bytes]], opened: bool
) -> None:
    objects = b", ".join(b'{"a": %s, "b": %s}' % row for row in found)
    rows = b", ".join(b"[%s, %s]" % row for row in found)
    document = Document.read(b'{"items": [%s]}' % objects)
    if opened:
        list(next(document.root.children()).children())
    Table(ITEMS)(document.root, call())
    after = b'{"items": {"columns": ["a", "b"], "rows": [%s]}}' % rows
    assert document.encode() == compact(replace_lone(after))


@given(fitting(), st.data())
def test_what_becomes_a_table_fits_its_schema(pair: tuple[Any, Any], data: st.DataObject) -> None:
    schema, document = pair
    assert_reshaped(Table(data.draw(where(document))), schema, document)


def test_the_schema_admits_the_array_and_the_table() -> None:
    items = {"type": "array", "items": {"type": "object"}, "minItems": 1}
    reshaped = Table(ITEMS).reshape({"type": "object", "properties": {"items": items}})
    assert reshaped is not None
    for document, valid in [
        ('{"items": [{}]}', True),
        ('{"items": {"columns": ["a"], "rows": [[1]]}}', True),
        ('{"items": []}', False),
        ('{"items": {"columns": ["a"]}}', False),
        ('{"items": {"columns": [1], "rows": []}}', False),
    ]:
        assert fits(json.loads(document), reshaped) is valid
