import json
from typing import Any

from hypothesis import given
from hypothesis import strategies as st

from proxy.document.paths import Path
from proxy.document.surrogates import replace_lone
from proxy.document.tree import Document, Pieces, compact
from proxy.transforms.table import Table
from tests.documents import SCALARS, SURROGATES, call, values
from tests.fitting import assert_reshaped, fits, fitting, where

ITEMS = Path.parse("items")


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
