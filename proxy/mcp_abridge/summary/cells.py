"""Reads the cells of some columns from the rows that are shown, and what else these rows have.

Invariant: each member of an opened object is in a cell, or its path is in `left_out`.
"""

from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any

from msgspec import Raw, Struct

from mcp_abridge.summary.all_rows import Names
from mcp_abridge.summary.columns import (
    EACH,
    Pair,
    Path,
    Step,
    elements_of,
    members_of,
    names_of,
    paired,
)

Cells = list[Raw | None]
Tree = dict[Step, Any]
"""Paths as a tree: the steps that follow each step."""


class Opened(Struct):
    """The members of the values at each path, in each row, and the cells of columns in arrays."""

    members: dict[Path, list[dict[str, Raw]]] = {}
    cells: dict[Path, Cells] = {}


class Reading(Struct):
    """`cells` are the values of columns in each row, None where there is none.

    `left_out` are the paths of members that no column has whole, in the order of the rows.
    """

    opened: Opened
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


def read(rows: list[Raw], paths: Collection[Path], opened: Opened | None = None) -> Reading:
    """Return the cells of the columns at `paths`, and what the rows have beside them.

    `opened` is what earlier readings of the same rows have opened.

    >>> rows = [Raw(b'{"id": 1, "tags": [{"t": "a"}, {"t": "b"}], "x": {"y": 2, "z": 3}}')]
    >>> reading = read(rows, [("id",), ("tags", EACH, "t"), ("x", "y")])
    >>> [bytes(cells[0]) for cells in reading.cells.values()], [*reading.left_out]
    ([b'1', b'["a","b"]', b'2'], [('tags',), ('x', 'z')])
    """
    reading = Reading(Opened() if opened is None else opened)
    _walk(reading, tree_of(paths), [*rows], (), inside=False)
    return reading


def _walk(reading: Reading, tree: Tree, values: Cells, at: Path, *, inside: bool) -> None:
    """Add the cells of all columns in `tree` below `at`; `inside` of an array, nothing else."""
    if not tree:
        reading.cells[at] = values
        return
    names = [step for step in tree if isinstance(step, str)]
    if names:
        opened = members_of(values) if inside else reading.opened.members.get(at)
        if opened is None:
            opened = reading.opened.members[at] = members_of(values)
        if not inside:
            _note(reading, values, opened, at, names)
        for name in names:
            below = [members.get(name) for members in opened]
            _walk(reading, tree[name], below, (*at, name), inside=inside)
    if len(names) < len(tree):
        if not inside:
            reading.left_out[names_of(at)] = None
        _elements(reading, tree, values, at)


def _paths(tree: Tree, at: Path) -> Iterator[Path]:
    for step, further in tree.items():
        yield from _paths(further, (*at, step)) if further else [(*at, step)]


def _elements(reading: Reading, tree: Tree, values: Cells, at: Path) -> None:
    """Add the cells of columns in arrays, as they were read before or now."""
    earlier = reading.opened.cells
    paths = [path for path in _paths(tree, at) if not isinstance(path[len(at)], str)]
    if not earlier.keys() >= {*paths}:
        inner = Reading(Opened())
        _walk_elements(inner, tree, values, at)
        earlier |= inner.cells
    reading.cells |= {path: [*earlier[path]] for path in paths}


def _walk_elements(reading: Reading, tree: Tree, values: Cells, at: Path) -> None:
    arrays = [*map(elements_of, values)]
    opened = [*map(members_of, arrays)] if any(isinstance(step, Pair) for step in tree) else []
    for step, further in tree.items():
        if step is EACH:
            _each(reading, further, arrays, values, at)
        elif isinstance(step, int):
            below = [array[step] if step < len(array) else None for array in arrays]
            _walk(reading, further, below, (*at, step), inside=True)
        elif isinstance(step, Pair):
            elements = [paired(row, step) or {} for row in opened]
            for name, rest in further.items():
                below = [each.get(name) for each in elements]
                _walk(reading, rest, below, (*at, step, name), inside=True)


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
_NOTHING = (None, Raw(b"null"))  # in an array, as views have it


def _each(reading: Reading, tree: Tree, arrays: list[list[Raw]], values: Cells, at: Path) -> None:
    """Add columns of the elements of arrays: a cell has the values of all elements of its row."""
    inner = Reading(Opened())
    path = (*at, EACH)
    _walk(inner, tree, [*chain.from_iterable(arrays)], path, inside=True)
    for column, cells in inner.cells.items():
        flat = EACH in column[len(path) :]
        folded_cells, start = list[Raw | None](), 0
        for array, value in zip(arrays, values, strict=True):
            part = [each for each in cells[start : start + len(array)] if each not in _NOTHING]
            start += len(array)
            content = [bytes(each)[1:-1] if flat else bytes(each) for each in part]
            contents = b",".join(each for each in content if each)
            is_array = value is not None and memoryview(value)[0] == 0x5B
            folded_cells.append(Raw(b"[%b]" % contents) if is_array else None)
        reading.cells[column] = folded_cells
