"""Writes an array of objects with the same members as a table: each name once, lossless."""

from typing import Any, ClassVar

from msgspec.structs import astuple

from mcp_abridge.document.paths import ROOT, Path
from mcp_abridge.document.rows import row_type
from mcp_abridge.document.tree import Pieces, Slot, Value, opened, rows
from mcp_abridge.query.call import Call
from mcp_abridge.transforms.base import Transform, arrays


class Table(Transform, frozen=True):
    """Turn the array of objects at `at` into `{columns, rows}`, if all have the same members.

    `columns` are the names in the order of the first object, and every row has its values in that
    order. Any other array, or an empty one, stays unchanged.

    >>> from mcp_abridge.document.tree import Document
    >>> document = Document.read(b'{"items": [{"id": 1, "n": 1.0}, {"n": null, "id": 2}]}')
    >>> Table(Path.parse("items"))(document.root, Call("list"))
    >>> document.encode()
    b'{"items":{"columns":["id","n"],"rows":[[1,1.0],[2,null]]}}'
    """

    name: ClassVar[str] = "table"
    shorthand: ClassVar[str | None] = "at"
    works_on_pages: ClassVar[bool] = True
    retypes: ClassVar[bool] = True

    at: Path = ROOT
    """The array of like objects."""

    def __call__(self, root: Slot, call: Call) -> None:
        for slot, unopened, value in arrays(root, self.at, call):
            table = _table(unopened, value)
            if table is not None:
                slot.set(table)
            elif value:
                call.missing.append(str(self.at) or "[]")


def _table(unopened: Value, value: list[Value]) -> dict[str, Any] | None:
    first = None if isinstance(value, Pieces) or not value else opened(value[0])
    if not isinstance(first, dict) or not first:
        return None
    columns, structs = list(first), rows(unopened, row_type(first, strict=True))
    if structs is not None:
        tuples = [() if row is None else astuple(row) for row in structs]
    else:
        tuples = [
            tuple(row.get(name) for name in columns)
            if isinstance(row, dict) and row.keys() == first.keys()
            else ()
            for row in map(opened, value)
        ]
    return {"columns": columns, "rows": [[*row] for row in tuples]} if all(tuples) else None
