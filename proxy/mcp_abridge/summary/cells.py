"""Reads the cells of some columns from the rows that are shown, and what else these rows have.

Invariant: each member of an opened object is in a cell, or its path is in `left_out`.
"""

from collections.abc import Collection
from itertools import chain
from typing import Any

from msgspec import Raw, Struct

from mcp_abridge.document.tree import each_object, level, text
from mcp_abridge.summary.all_rows import Names
from mcp_abridge.summary.columns import EACH, Pair, Path, Step, names_of

Cells = list[Raw | None]
Tree = dict[Step, Any]
"""Paths as a tree: the steps that follow each step."""


class Reading(Struct):
    """`cells` are the values of columns in each row, None where there is none.

    `left_out` are the paths of members that no column has whole, in the order of the rows.
    """

    cells: dict[Path, Cells] = {}
    left_out: dict[Names, None] = {}


def tree_of(paths: Collection[Path]) -> Tree:
    """Return paths as a tree."""
    tree: Tree = {}
    for path in paths:
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    return tree


def read(rows: list[Raw], paths: Collection[Path]) -> Reading:
    """Return the cells of the columns at `paths`, and what the rows have beside them.

    >>> rows = [Raw(b'{"id": 1, "tags": [{"t": "a"}, {"t": "b"}], "x": {"y": 2, "z": 3}}')]
    >>> reading = read(rows, [("id",), ("tags", EACH, "t"), ("x", "y")])
    >>> [bytes(cells[0]) for cells in reading.cells.values()], [*reading.left_out]
    ([b'1', b'["a","b"]', b'2'], [('tags',), ('x', 'z')])
    """
    reading = Reading()
    _walk(reading, tree_of(paths), [*rows], (), inside=False)
    return reading


def members_of(values: Cells) -> list[dict[str, Raw]]:
    """Return the members of each value; of any other than an object, none."""
    present = [Raw(b"null") if value is None else value for value in values]
    opened = each_object(present)
    if opened is None:
        opened = [level(each) if memoryview(each)[0] == 0x7B else None for each in present]
    return [each or {} for each in opened]


def elements_of(value: Raw | None) -> list[Raw]:
    """Return the elements of an array; none of any other value."""
    return [] if value is None or memoryview(value)[0] != 0x5B else level(value)


def _walk(reading: Reading, tree: Tree, values: Cells, at: Path, *, inside: bool) -> None:
    """Add the cells of all columns in `tree` below `at`; `inside` of an array, nothing else."""
    if not tree:
        reading.cells[at] = values
        return
    names = [step for step in tree if isinstance(step, str)]
    if names:
        opened = members_of(values)
        if not inside:
            _note(reading, values, opened, at, names)
        for name in names:
            below = [members.get(name) for members in opened]
            _walk(reading, tree[name], below, (*at, name), inside=inside)
    for step in tree:
        if isinstance(step, str):
            continue
        if not inside:
            reading.left_out[names_of(at)] = None
        arrays = [*map(elements_of, values)]
        if step is EACH:
            _each(reading, tree[step], arrays, values, at)
        else:
            below = [_element(array, step) for array in arrays]
            _walk(reading, tree[step], below, (*at, step), inside=True)


def _note(
    reading: Reading, values: Cells, opened: list[dict[str, Raw]], at: Path, names: list[str]
) -> None:
    for name in dict.fromkeys(chain.from_iterable(opened)):
        if name not in names:
            reading.left_out[(*names_of(at), name)] = None
    for value, members in zip(values, opened, strict=True):
        if not members and value is not None and bytes(memoryview(value)[:4]) not in _EMPTY:
            reading.left_out[names_of(at)] = None


_EMPTY = (b"null", b"{}")


def _element(array: list[Raw], step: Step) -> Raw | None:
    if isinstance(step, int):
        return array[step] if step < len(array) else None
    assert isinstance(step, Pair)
    return next((each for each in array if _is(each, step)), None)


def _is(element: Raw, pair: Pair) -> bool:
    members = level(element) if memoryview(element)[0] == 0x7B else {}
    return pair.name in members and text(members[pair.name]) == pair.key


def _each(reading: Reading, tree: Tree, arrays: list[list[Raw]], values: Cells, at: Path) -> None:
    """Add columns of the elements of arrays: a cell has the values of all elements of its row."""
    inner = Reading()
    path = (*at, EACH)
    _walk(inner, tree, [*chain.from_iterable(arrays)], path, inside=True)
    for column, cells in inner.cells.items():
        flat = EACH in column[len(path) :]
        folded_cells, start = list[Raw | None](), 0
        for array, value in zip(arrays, values, strict=True):
            part = [each for each in cells[start : start + len(array)] if each is not None]
            start += len(array)
            content = [bytes(each)[1:-1] if flat else bytes(each) for each in part]
            contents = b",".join(each for each in content if each)
            folded_cells.append(None if value is None else Raw(b"[%b]" % contents))
        reading.cells[column] = folded_cells
