"""Rows made of what has another shape: a tree, or arrays side by side.

Without it, a tree is cut to its first branch, and a forecast to some of its temperatures and none
of their times. The view that makes the same rows is their place.
"""

from collections import Counter
from collections.abc import Sequence
from functools import reduce
from itertools import chain
from typing import Any

from msgspec import Raw

from mcp_abridge.document.names import nameable, spelled
from mcp_abridge.document.rows import arrays_in
from mcp_abridge.document.tree import ARRAY, OBJECT, encode, head, level
from mcp_abridge.query import shapes
from mcp_abridge.query.shapes import nodes, rows_of, side_by_side, tree_member
from mcp_abridge.summary.all_rows import Unnested, columns_in
from mcp_abridge.summary.columns import (
    CELLS,
    elements_of,
    may_be_pairs,
    members_of,
    pairs_in,
    sample_of,
)
from mcp_abridge.summary.place import Place, last_name, member_place
from mcp_abridge.summary.roles import in_order, names_rows

LARGEST = 1 << 19  # bytes of what is made rows: all of it is opened
_ROOM = 1000  # bytes with which there is room to say that rows are of another place
_MOST = 4 * LARGEST  # bytes of rows with what is around them, which is there for each
_TELLING = 4  # columns among which a name has to be
_SEVERAL = 8  # members that are a map if they are alike
_GROUPS = 5  # arrays that are those of a map if their elements are alike
_PAIR = 2  # members of a name with a value
INNER = 4  # rows inside of each of others that these are there for, on average
_NEARLY_ALL = 0.8  # of the bytes, if there are fewer


def inner_rows(rows: Sequence[Raw], size: int, place: str) -> tuple[list[Raw], str]:
    """Return the rows of an array that takes most of the bytes of others, and their place.

    Arrays of names with values are none. No rows if there is no such array.
    """
    name = _of_most_bytes(rows, size)
    if name is None:
        return [], ""
    return [*chain.from_iterable(arrays_in(rows, name))], f"{place}[].{spelled(name)}[]"


def _of_most_bytes(rows: Sequence[Raw], size: int) -> str | None:
    """Return the name of that array."""
    sample = sample_of(rows) if len(rows) > 1 and size <= LARGEST else []
    outer = members_of(sample) if any(b"[" in bytes(row) for row in sample) else []
    sizes = Counter[str]()
    for members in outer:
        sizes.update(dict(zip(members, map(len, members.values()), strict=True)))
    for name, bytes_of in sizes.most_common(1):
        arrays = [elements_of(members.get(name)) for members in outer]
        some = [*chain.from_iterable(arrays)]
        share = bytes_of / sum(sizes.values())
        enough = share > (1 / 2 if len(some) >= INNER * len(outer) else _NEARLY_ALL)
        several = len(some) > len(outer) and nameable(name)
        several = several and not _are_cells(outer, arrays, len(rows))
        if enough and several and not _are_pairs(arrays):
            return name
    return None


def _are_cells(rows: list[dict[str, Raw]], arrays: list[list[Raw]], count: int) -> bool:
    """Return True of what a row alone is made of, as of a sheet: as many cells in most rows."""
    lengths = [*map(len, arrays)]
    most = max(lengths, default=0)
    several = 1 < most <= CELLS and most < count and len(rows) <= 2 * lengths.count(most)
    return several and all(len(row) <= 1 for row in rows)


def _is_pair(members: dict[str, Raw]) -> bool:
    """Return True of a name with a plain value."""
    return len(members) + any(head(each) == OBJECT for each in members.values()) <= _PAIR


def _are_pairs(arrays: list[list[Raw]]) -> bool:
    """Return True of names with values, alone or with more beside them, such as a type."""
    some = members_of([*chain.from_iterable(arrays)][:: len(arrays)])
    present = [members_of(array) for array in arrays if array] if may_be_pairs(arrays) else []
    return any(map(_is_pair, some)) or bool(pairs_in(present, len(present))[0])


def in_rows(value: Any, at: Place, room: int, least: int) -> tuple[Sequence[Raw], Place, bytes]:
    """Return the rows of an opened array or object, their place, and the members beside them.

    No rows of any other shape. Those members are JSON that goes on with the rows.
    """
    path, place = at
    ample = room >= _ROOM
    if isinstance(value, list):
        name = tree_member(value, last_name(place))
        if name is not None:
            of = f"&{spelled(name)}"
            at = f"nodes({path or '@'}, {of})", f"nodes({place or '@'}, {of})"
            return [Raw(encode(node)) for node in nodes(value, name)], at, b""
        name = _of_most_bytes(value, 0) if ample and len(value) >= least else None
        if name is not None and not _have_name(value) and (rows := _with_outer(value, name, place)):
            unnest = f"unnest({{}}, &{spelled(name)})".format
            return rows, (unnest(path or "@"), unnest(place or "@")), b""
    elif (arrays := side_by_side(value)) is not None:
        at = f"{path}.rows".lstrip("."), f"{place}.rows".lstrip(".")
        others = ((encode(n), each) for n, each in value.items() if n not in arrays)
        beside = b"".join(b"%b:%b," % each for each in others)
        return [Raw(encode(row)) for row in rows_of(arrays)], at, beside
    elif ample and isinstance(value, dict) and (rows := _in_groups(value)):
        unnest = "unnest(entries({}), &value)".format
        return rows, (unnest(path or "@"), unnest(place or "@")), b""
    return [], at, b""


def _have_name(rows: list[Raw]) -> bool:
    """Return True if rows have a name that does not lie in an array."""
    return any(map(names_rows, in_order(columns_in(rows))[:_TELLING]))


def _with_outer(rows: list[Raw], name: str, place: str) -> Sequence[Raw]:
    """Return the objects in an array of each row with what is around it, as `unnest` has them."""
    unnested = Unnested(rows, name, place)
    return unnested if unnested.are_objects(_MOST) else []


def _in_groups(value: dict[str, Raw]) -> list[Raw]:
    """Return the rows of an object of arrays of like objects, by day or by file, with their names.

    They are what the function `unnest` of views makes of its entries.
    """
    if len(value) < _GROUPS or any(head(each) != ARRAY for each in value.values()):
        return []
    arrays = {encode(name): elements_of(array) for name, array in value.items()}
    if not alike([array[0] for array in arrays.values() if array], _GROUPS):
        return []
    pairs = ((name, row) for name, array in arrays.items() for row in array)
    return [Raw(b'{"key":%b,"value":%b}' % (name, row)) for name, row in pairs]


def named_rows(
    value: dict[str, Raw], size: int, at: Place
) -> tuple[Place, list[Raw], Place] | None:
    """Return the rows of arrays whose columns have names: the place of these, and that of rows."""
    pair = shapes.named_rows(value) if size <= LARGEST else None
    if pair is None:
        return None
    rows = [Raw(encode(row)) for row in pair[1]]
    return reduce(member_place, pair[0], at), rows, member_place(at, shapes.RECORDS)


def alike(members: list[Raw], least: int = _SEVERAL) -> bool:
    """Return True of objects that have the same members, as those of a map of records do."""
    if len(members) < least or any(head(each) != OBJECT for each in members):
        return False
    first, *others = (level(each).keys() for each in (members[0], members[1], members[-1]))
    return all(2 * len(first & each) > len(first | each) for each in others)
