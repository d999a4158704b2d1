"""Reads the cells of some columns from the rows that are shown, and what else these rows have.

Invariant: each member of an opened object is in a cell, or its path is in `left_out`.
"""

from bisect import bisect
from collections.abc import Collection, Iterator, Sequence
from itertools import accumulate, chain, islice
from typing import Any

from msgspec import Raw, Struct

from mcp_abridge.document.rows import members_in
from mcp_abridge.document.tree import ARRAY, head, text
from mcp_abridge.summary.all_rows import Names, cells_of
from mcp_abridge.summary.columns import (
    EACH,
    NULL,
    ColumnPath,
    ColumnStep,
    Pair,
    elements_of,
    head_of,
    members_of,
    names_of,
    paired,
)

_SHOWN = 1000  # bytes of the values of a row in arrays, at most

Cells = list[Raw | None]
Tree = dict[ColumnStep, Any]
"""Paths as a tree: the steps that follow each step."""


class Level(Struct):
    """The members of the values at one path, in each row, and all their names; `others`: a value
    is no object."""

    rows: list[dict[str, Raw]]
    names: dict[str, None]
    others: bool


class Opened(Struct):
    """The values at each path, in each row, and the levels below them; the cells of columns in
    arrays, and in which rows an element of an array on the way has no value.

    They are those of so many rows at either end.
    """

    first: int = 0
    last: int = 0
    levels: dict[ColumnPath, Level] = {}
    cells: dict[ColumnPath, Cells] = {}
    gaps: dict[ColumnPath, list[bool]] = {}

    def of(self, first: int, last: int) -> "Opened":
        """Return the values of so many rows at either end, as far as they are opened."""
        if first > self.first or last != self.last:
            return Opened(first, last)

        def some(each: list[Any]) -> list[Any]:
            return [*each[:first], *each[len(each) - last :]]

        if first == self.first:
            return self
        cells = {path: some(each) for path, each in self.cells.items()}
        levels = {path: _level(cells[path], some(e.rows)) for path, e in self.levels.items()}
        gaps = {path: some(each) for path, each in self.gaps.items()}
        return Opened(first, last, levels, cells, gaps)


class Reading(Struct):
    """`cells` are the values of columns in each row, None if there is none.

    `left_out` are the paths of members that no column has whole, in the order of the rows.
    """

    opened: Opened
    cells: dict[ColumnPath, Cells] = {}
    left_out: dict[Names, None] = {}


def tree_of(paths: Collection[ColumnPath]) -> Tree:
    """Return paths as a tree."""
    tree: Tree = {}
    for path in paths:
        node = tree
        for step in path:
            node = node.setdefault(step, {})
    return tree


def read(
    rows: Sequence[Raw], paths: Collection[ColumnPath], opened: Opened | None = None
) -> Reading:
    """Return the cells of the columns at `paths`, and what the rows have beside them.

    `opened` is what earlier readings of the same rows have opened.

    >>> rows = [Raw(b'{"id": 1, "tags": [{"t": "a", "u": 1}, {"t": "b"}], "x": {"y": 2, "z": 3}}')]
    >>> reading = read(rows, [("id",), ("tags", EACH, "t"), ("x", "y")])
    >>> [bytes(cells[0]) for cells in reading.cells.values()], [*reading.left_out]
    ([b'1', b'["a","b"]', b'2'], [('tags',), ('x', 'z')])
    """
    reading = Reading(Opened() if opened is None else opened)
    reading.opened.cells[()] = [*rows]
    _walk(reading, tree_of(paths), reading.opened.cells[()], ())
    return reading


def values_of(rows: Sequence[Raw], path: ColumnPath) -> list[bytes]:
    """Return the value of one column in each row, null if there is none."""
    names = () if isinstance(path[0], Pair) else head_of(path)
    values = [*map(Raw, cells_of(rows, [names])[names])] if names else [*rows]
    cells = _column(values, path[len(names) :])[0] if len(names) < len(path) else values
    return [bytes(each or NULL) for each in cells]


def _walk(reading: Reading, tree: Tree, values: Cells, at: ColumnPath) -> None:
    """Add the cells of all columns in `tree` below `at`."""
    if not tree:
        reading.cells[at] = [*values]
        return
    opened = reading.opened
    names = [step for step in tree if isinstance(step, str)]
    if names:
        level = opened.levels.get(at)
        if level is None:
            level = opened.levels[at] = _level(values)
        others = [name for name in level.names if name not in names]
        reading.left_out |= {(*names_of(at), name): None for name in others}
        if level.others:
            reading.left_out[names_of(at)] = None
        for name in names:
            path = (*at, name)
            if path not in opened.cells:
                opened.cells[path] = [members.get(name) for members in level.rows]
            _walk(reading, tree[name], opened.cells[path], path)
    if len(names) < len(tree):
        rests = [path for path in _paths(tree) if not isinstance(path[0], str)]
        if not at:
            reading.left_out |= dict.fromkeys(_keys_beside(values, tree))
        elif not all(_is_told(each, rests) for each in values if each not in (None, NULL)):
            reading.left_out[names_of(at)] = None
        for rest in rests:
            path = (*at, *rest)
            if path not in opened.cells:
                opened.cells[path], opened.gaps[path] = _column(values, rest)
            reading.cells[path] = [*opened.cells[path]]


def _is_told(value: Raw, paths: list[ColumnPath]) -> bool:
    """Return True if a value is an array whose elements, or all their members, are at `paths`."""
    if head(value) != ARRAY or max(map(len, paths)) > 2:
        return False
    for place, members in enumerate(members_of(elements_of(value))):
        rests = {path[1:] for path in paths if path[0] in (EACH, place)}
        if () not in rests and not {(name,) for name in members or ("",)} <= rests:
            return False
    return True


def _keys_beside(values: Cells, tree: Tree) -> Iterator[Names]:
    """Yield the names in rows of pairs that no column has whole; () if a row is none."""
    pairs = [step for step in tree if isinstance(step, Pair)]
    yield from (head_of(path) for path in _paths(tree) if len(path) > 2)
    keys = {pair.key for pair in pairs}
    for value in values:
        elements = members_of(elements_of(value))
        if not elements:
            yield ()
        for each in elements:
            key = text(each.get(pairs[0].name))
            if key not in keys:
                yield () if key is None else (key,)


def _level(values: Cells, members: list[dict[str, Raw]] | None = None) -> Level:
    members = members_of(values) if members is None else members
    others = any(
        not each and value is not None and bytes(memoryview(value)[:4]) not in _EMPTY
        for each, value in zip(members, values, strict=True)
    )
    return Level(members, dict.fromkeys(chain.from_iterable(members)), others)


def _paths(tree: Tree, at: ColumnPath = ()) -> Iterator[ColumnPath]:
    for step, further in tree.items():
        yield from _paths(further, (*at, step)) if further else [(*at, step)]


def _column(values: Sequence[Raw | None], path: ColumnPath) -> tuple[Cells, list[bool]]:
    """Return the value at a path in each array, or an array of the first values if it has several.

    More of them than are shown. Beside them stands in which an element on the way has no value.
    """
    start = path.index(EACH) if EACH in path else len(path)
    cells = [each for [each] in _below(values, path[:start])]
    gaps = [False] * len(cells)
    for row, parts in enumerate(_below(cells, path[start:]) if start < len(path) else ()):
        some = [each for each in parts if each is not None and each != NULL]
        gaps[row] = len(some) < len(parts)
        content = b",".join(some)
        if len(content) > _SHOWN:
            sizes = [*accumulate(map(len, some), initial=0)]
            content = b",".join(some[: 1 + bisect(sizes, _SHOWN)])
        is_array = (value := cells[row]) is not None and head(value) == ARRAY
        cells[row] = Raw(b"[%b]" % content) if is_array else None
    return cells, gaps


def _below(values: Sequence[Raw | None], path: ColumnPath) -> list[Sequence[Raw | None]]:
    """Return the values at a path in each value, None for one that is absent."""
    if not path:
        return [[each] for each in values]
    arrays: list[Sequence[Raw | None]]
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        return _below([each.get(step) for each in members_of(values)], rest)
    if step is EACH and rest and isinstance(name := rest[0], str):
        rest = rest[1:]
        arrays = [*members_in(values, name)]
    else:
        arrays = [*map(elements_of, values)]
    if isinstance(step, Pair):
        elements = (paired(members_of(array), step) or {} for array in arrays)
        return _below([each.get(names_of(rest)[0]) for each in elements], rest[1:])
    if isinstance(step, int):
        return _below([a[step] if len(a) > max(step, 0) else None for a in arrays], rest)
    if not rest:
        return arrays
    parts = iter(_below([*chain.from_iterable(arrays)], rest))
    return [[*chain.from_iterable(islice(parts, len(array)))] for array in arrays]


_EMPTY = (b"null", b"{}")
