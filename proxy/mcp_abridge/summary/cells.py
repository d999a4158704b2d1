"""Reads the cells of some columns from the rows that are shown, and what else these rows have.

Invariant: each member of an opened object is in a cell, or its path is in `left_out`.
"""

from collections.abc import Collection, Iterator
from itertools import chain
from typing import Any

from msgspec import Raw, Struct

from mcp_abridge.document.tree import level, text
from mcp_abridge.summary.all_rows import Names
from mcp_abridge.summary.columns import (
    EACH,
    NULL,
    ColumnPath,
    ColumnStep,
    Pair,
    array_of,
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
    arrays. `arrays` are the values and the rest of the path from which these are read."""

    levels: dict[ColumnPath, Level] = {}
    cells: dict[ColumnPath, Cells] = {}
    arrays: dict[ColumnPath, tuple[Cells, ColumnPath]] = {}

    def has_gap(self, path: ColumnPath) -> bool:
        """Return True if an element of the last array on a path has no value there.

        Columns go on in arrays of objects alone, by a name.
        """
        values, rest = self.arrays[path]
        end = len(array_of(rest))
        array, rest, inner = path[: len(path) - len(rest) + end], rest[:end], rest[end:]
        if array not in self.levels:
            self.levels[array] = _level([part for each in values for part in _below(each, rest)])
        name = names_of(inner)[0]
        parts = (members.get(name) for members in self.levels[array].rows)
        return any(next(_below(part, inner[1:]), NULL) == NULL for part in parts)


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


def read(rows: list[Raw], paths: Collection[ColumnPath], opened: Opened | None = None) -> Reading:
    """Return the cells of the columns at `paths`, and what the rows have beside them.

    `opened` is what earlier readings of the same rows have opened.

    >>> rows = [Raw(b'{"id": 1, "tags": [{"t": "a", "u": 1}, {"t": "b"}], "x": {"y": 2, "z": 3}}')]
    >>> reading = read(rows, [("id",), ("tags", EACH, "t"), ("x", "y")])
    >>> [bytes(cells[0]) for cells in reading.cells.values()], [*reading.left_out]
    ([b'1', b'["a","b"]', b'2'], [('tags',), ('x', 'z')])
    """
    reading = Reading(Opened() if opened is None else opened)
    _walk(reading, tree_of(paths), [*rows], ())
    return reading


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
                opened.arrays[path] = values, rest
                opened.cells[path] = [_cell(each, rest) for each in values]
            reading.cells[path] = [*opened.cells[path]]


def _is_told(value: Raw, paths: list[ColumnPath]) -> bool:
    """Return True if a value is an array whose elements, or all their members, are at `paths`."""
    if memoryview(value)[0] != 0x5B or max(map(len, paths)) > 2:
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


def _level(values: Cells) -> Level:
    members = members_of(values)
    others = any(
        not each and value is not None and bytes(memoryview(value)[:4]) not in _EMPTY
        for each, value in zip(members, values, strict=True)
    )
    return Level(members, dict.fromkeys(chain.from_iterable(members)), others)


def _paths(tree: Tree, at: ColumnPath = ()) -> Iterator[ColumnPath]:
    for step, further in tree.items():
        yield from _paths(further, (*at, step)) if further else [(*at, step)]


def _cell(value: Raw | None, path: ColumnPath) -> Raw | None:
    """Return the value at a path in an array, or an array of the first values if it has several.

    More of them than are shown: of a tree of files, all elements would be opened for a few names.
    """
    start = path.index(EACH) if EACH in path else len(path)
    value = next(_below(value, path[:start]), None)
    if start == len(path):
        return value
    if value is None or memoryview(value)[0] != 0x5B:
        return None
    parts, size = list[Raw](), 0
    for part in _below(value, path[start:]):
        if part == NULL:
            continue
        parts.append(part)
        if size > _SHOWN:
            break
        size += len(memoryview(part))
    return Raw(b"[%b]" % b",".join(parts))


def _below(value: Raw | None, path: ColumnPath) -> Iterator[Raw]:
    if value is None:
        return
    if not path:
        yield value
        return
    step, rest = path[0], path[1:]
    if isinstance(step, str):
        if memoryview(value)[0] == 0x7B:
            yield from _below(level(value).get(step), rest)
    elif isinstance(step, Pair):
        element = paired(members_of(elements_of(value)), step) or {}
        yield from _below(element.get(names_of(rest)[0]), rest[1:])
    else:
        elements = elements_of(value)
        for each in elements[step:][:1] if isinstance(step, int) else elements:
            yield from _below(each, rest)


_EMPTY = (b"null", b"{}")
