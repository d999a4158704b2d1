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
    NULL,
    Pair,
    Path,
    Step,
    elements_of,
    members_of,
    names_of,
    paired,
)

_SHOWN = 1000  # bytes of the values of a row in arrays, at most

Cells = list[Raw | None]
Tree = dict[Step, Any]
"""Paths as a tree: the steps that follow each step."""


class Opened(Struct):
    """The members of the values at each path, in each row, and the cells of columns in arrays.

    `count` is the number of rows.
    """

    count: int
    members: dict[Path, list[dict[str, Raw]]] = {}
    cells: dict[Path, Cells] = {}

    def ends(self, first: int, last: int) -> "Opened":
        """Return the same of the first rows and the last ones alone."""

        def of(values: list[Any]) -> list[Any]:
            return values[:first] + values[len(values) - last :]

        members = {path: of(values) for path, values in self.members.items()}
        cells = {path: of(values) for path, values in self.cells.items()}
        return Opened(first + last, members, cells)


class Reading(Struct):
    """`cells` are the values of columns in each row, None if there is none.

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
    reading = Reading(opened or Opened(len(rows)))
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
    new = [path for path in paths if path not in earlier]
    deep = [path for path in new if path.count(EACH) - at.count(EACH) > 1 and not _has_pairs(path)]
    earlier |= {path: [_first(each, path[len(at) :]) for each in values] for path in deep}
    if len(new) > len(deep):
        inner = Reading(Opened(len(values)))
        flat = tree_of([path[len(at) :] for path in paths if path not in deep])
        _walk_elements(inner, flat, values, at)
        earlier |= inner.cells
    reading.cells |= {path: [*earlier[path]] for path in paths}


def _has_pairs(path: Path) -> bool:
    return any(isinstance(step, Pair) for step in path)


def _first(value: Raw | None, path: Path) -> Raw | None:
    """Return the first values at a path through several arrays: more of them than are shown.

    Without it, all elements of a tree of files are opened for the few names of a row.
    """
    if value is None or memoryview(value)[0] != 0x5B:
        return None
    parts, size = list[bytes](), 0
    for part in _below(value, path):
        parts.append(part)
        if size > _SHOWN:
            break
        size += len(part)
    return Raw(b"[%b]" % b",".join(parts))


def _below(value: Raw | None, path: Path) -> Iterator[bytes]:
    if value is None or value == NULL:
        return
    if not path:
        yield bytes(value)
    elif isinstance(step := path[0], str):
        yield from _below(members_of([value])[0].get(step), path[1:])
    else:
        elements = elements_of(value)
        for each in elements[step : step + 1] if isinstance(step, int) else elements:
            yield from _below(each, path[1:])


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
_NOTHING = (None, NULL)  # in an array, as views have it


def _each(reading: Reading, tree: Tree, arrays: list[list[Raw]], values: Cells, at: Path) -> None:
    """Add columns of the elements of arrays: a cell has the values of all elements of its row."""
    inner = Reading(Opened(0))
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
