"""Rows that are decoded by the members that an expression reads, all in one go.

Without it, a condition on 16 MB of rows decodes each of them by itself, with all its members: one
to two seconds of a processor, and a gigabyte.
"""

from collections.abc import Collection
from operator import attrgetter
from typing import Any

from msgspec import UNSET, Raw

from mcp_abridge.document import tree
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.tree import Value, opened
from mcp_abridge.query.patterns import names_read

Node = dict[str, Any]

_MANY = 64  # rows from which that is worth a type of its own
_FIRST = 20  # rows of which one must have a member: else it may be a slip, which needs all names
_NULL = b"null"


def narrow(base: list[Value], nodes: Collection[Node], fuel: Fuel) -> list[Any] | None:
    """Return rows as plain objects with just the members that expressions over them read.

    None if these may read others, or if `base` is not many unopened objects and nulls.
    """
    names = _names(base, nodes)
    whole = None if names is None else _as_array(base, fuel)
    return None if names is None or whole is None else tree.objects_of(whole, names)


def columns(base: list[Value], node: Node, fuel: Fuel) -> list[Value] | None:
    """Return the values of an expression over rows if it is a member, or an array of members.

    None for any other expression, and for other rows.
    """
    alone = node["type"] == "field"
    fields = [node] if alone else node["children"] if node["type"] == "multi_select_list" else ()
    if not fields or any(field["type"] != "field" for field in fields):
        return None
    names = _names(base, fields)
    whole = None if names is None else _as_array(base, fuel)
    if names is None or whole is None or (kind := tree.row_type(names)) is None:
        return None
    rows = tree.rows(Raw(whole), kind)
    if rows is None:
        return None
    fuel.burn(len(rows) * (2 + 4 * len(fields)))  # a value takes some 64 bytes in memory
    places = [attrgetter(f"f{names.index(field['value'])}") for field in fields]
    lists = [[_value(place(row)) for row in rows if row is not None] for place in places]
    if alone:
        return [value for value in lists[0] if value is not None]
    return [[*values] for values in zip(*lists, strict=True)]


def restored(result: Any, rows: list[Any], base: list[Value]) -> Any:
    """Return a row, rows or groups of rows with those of `base` in place of narrow ones."""
    whole = dict(zip(map(id, rows), base, strict=True))

    def change(value: Any) -> Any:
        if id(value) in whole:
            return whole[id(value)]
        if isinstance(value, list):
            return [*map(change, value)]
        return {name: change(group) for name, group in value.items()} if value else value

    return change(result)


def _names(base: list[Value], nodes: Collection[Node]) -> tuple[str, ...] | None:
    if len(base) < _MANY:
        return None
    parts = [names_read(node) for node in nodes]
    names = dict.fromkeys(name for part in parts for name in part or ())
    first = [row for row in map(opened, base[:_FIRST]) if isinstance(row, dict)]
    there = all(any(name in row for row in first) for name in names)
    return tuple(names) if there and None not in parts else None


def _as_array(base: list[Value], fuel: Fuel) -> bytes | None:
    try:
        whole = b"[%b]" % b",".join(base)
    except TypeError:  # some are no longer as they came
        return None
    fuel.burn(len(whole) >> 9)
    return whole


def _value(value: Value) -> Value:
    return None if value is UNSET or bytes(value) == _NULL else value
