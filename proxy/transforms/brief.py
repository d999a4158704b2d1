"""Shows all rows of an array in a few columns each; a few rows in full seldom hold the answer.

Rows are objects that share most of their members. Their columns are their members, and the members
of the objects inside (`user.login`). Columns of most worth come first: names such as id, title and
state, then short values; long texts show their first characters, and heavy columns are left out.

Work is bounded by the bytes to write, not by the array: columns are chosen from a sample.
"""

import re
from functools import cached_property
from typing import Any

from msgspec import Raw, Struct

from proxy.document.paths import spelled
from proxy.document.tree import encode, level, text
from proxy.transforms.columns import (
    LITTLE,
    Names,
    RowColumn,
    columns_of,
    in_order_of_time,
    members_of,
)
from proxy.transforms.excerpt import NOTE_END

_FEWEST = 3  # rows; fewer are shown as other arrays are
_LEAST_ROW = 5  # bytes of a row and its comma
_CLIPS = (60, 120, 250, 500, 1000)  # characters shown of a long text, if all rows fit
_HUGE = 400  # bytes of a value that is no text in a single row, if most are much smaller
_CORE = 2  # columns that all rows must show
_NARROW = 80  # bytes of a row if not all rows fit
_TRIES = 12  # at a selection of columns that fits

_MEMBER = re.compile(r"[A-Za-z_][\w.]*")

_Clips = list[tuple[Names, int, int]]
"""The texts of a row that are cut: the column, the characters shown, and those of the whole."""

_Levels = dict[Names, dict[str, Raw]]
"""The objects inside of a row that were opened, by path."""


Example = tuple[str, str]
"""A view, and what it does."""


class Brief(Struct):
    """An array of rows in brief: `value` as JSON, and the amounts that it leaves out.

    `first` and `last` count the rows shown from either end. `columns` is the number of columns
    shown, `omitted` are the paths of the others, the largest first. `clips` are the texts that are
    cut: the row's position, the column, the characters shown, and all. `loss` is in bytes of the
    rows shown. `following` selects the lightest columns left out; `condition` filters the rows.
    `category` is a column with few different values, `quantity` one with numbers; "" if there is
    none.
    """

    value: bytes
    first: int
    last: int
    columns: int
    omitted: list[Names]
    clips: list[tuple[int, Names, int, int]]
    loss: int
    following: str
    condition: str
    category: str
    quantity: str

    def examples(self, place: str) -> tuple[Example, ...]:
        """Return questions on all rows, in their own names; the rows are at `place`."""
        array = place or "@"
        examples = []
        if self.condition:
            examples.append((place + self.condition, "filters"))
            examples.append((f"count_by({array}, &{self.category})", "counts"))
        if self.quantity:
            examples.append((f"max_by({array}, &{self.quantity})", "finds the greatest"))
        return tuple(examples)


class _Misfit(Exception):
    """A column varies although it is constant in the sample, or is too large in some row."""

    def __init__(self, column: RowColumn | None) -> None:
        self.column = column  # None if these are no rows after all


def brief(rows: list[Raw], room: int, *, table: bool) -> Brief | None:
    """Return `rows` in at most `room` bytes; None if they are no rows, or hardly any would fit.

    As a `table`, `{same, columns, rows}`, each name stands once, and so does a value that all rows
    have; else the rows are objects with fewer members.
    """
    columns = columns_of(rows[: room // _LEAST_ROW]) if len(rows) >= _FEWEST else []
    fitting, target = list(columns), room
    for attempt in range(_TRIES):
        selection = _choose(fitting, len(rows), target, table, whole=attempt < _TRIES - 1)
        if selection is None:
            return None
        try:
            lines = selection.lines(rows, room)
        except _Misfit as error:
            if error.column is None:
                return None
            if not error.column.constant:
                fitting.remove(error.column)
            error.column.constant = False
            continue
        if len(lines) == len(rows) or not selection.whole:
            return selection.brief(columns, lines, room) if len(lines) >= _FEWEST else None
        target -= target // 12
    return None


def _choose(
    columns: list[RowColumn], count: int, target: int, table: bool, *, whole: bool
) -> "_Selection | None":
    """Choose the columns with which `count` rows take about `target` bytes.

    If the two of most worth do not fit, or not `whole`, fewer rows have some more. None if there
    are none.
    """
    same = _same(columns, target // 10) if table else []
    varied = [column for column in columns if (not column.constant if table else not column.each)]
    rest = target - 40 - 3 * count - sum(len(c.name) + len(c.values[0]) + 4 for c in same)
    picks: list[RowColumn] = []
    for column in varied if whole else ():
        cost = column.cost(_CLIPS[0], table) * count + len(column.name) + 3
        if cost <= rest:
            picks.append(column)
            rest -= int(cost)
    if picks and picks[:_CORE] == varied[:_CORE]:
        paths = {column.path for column in picks if not column.each}
        picks = [column for column in picks if not (column.each and column.path in paths)]
        clip = _longest_clip(picks, rest // count, table)
        return _Selection(picks, same, table, clip, whole=True)
    picks, width = [], 0.0
    for column in varied:
        width += column.cost(_CLIPS[0], table)
        if not picks or (width <= _NARROW and column.worth[0] < LITTLE):
            picks.append(column)
    return _Selection(picks, same, table, _CLIPS[0], whole=False) if picks else None


def _same(columns: list[RowColumn], room: int) -> list[RowColumn]:
    """Return the constant columns that take at most `room` bytes, those of most worth first."""
    picks = []
    for column in columns:
        cost = len(column.name) + len(column.values[0]) + 4
        if column.constant and cost <= room:
            picks.append(column)
            room -= cost
    return picks


def _longest_clip(columns: list[RowColumn], rest: int, table: bool) -> int:
    """Return the characters to show of long texts, if `rest` bytes of each row are left."""
    least = sum(column.cost(_CLIPS[0], table) for column in columns)
    fitting = (c for c in _CLIPS if sum(each.cost(c, table) for each in columns) - least <= rest)
    return max(fitting)


class _Line(Struct):
    """One row as it is written, and the amounts that it leaves out."""

    content: bytes
    source_size: int
    clips: _Clips
    members: set[tuple[Names, tuple[str, ...]]]  # the names of each object that was opened


class _Selection(Struct, dict=True):
    """The columns with which rows are written."""

    columns: list[RowColumn]
    same: list[RowColumn]
    table: bool
    clip: int
    whole: bool  # all rows are to fit
    last: int = 0

    @cached_property
    def objects(self) -> list[Names]:
        """The paths of the objects that the columns lie in, the outer ones first."""
        paths = [column.path for column in (*self.columns, *self.same)]
        return sorted({path[:length] for path in paths for length in range(len(path))}, key=len)

    def lines(self, rows: list[Raw], room: int) -> list[_Line]:
        """Return as many rows as fit; of a log or time series, the last one at the end.

        Raises _Misfit.
        """
        rest = room - len(self.value([]))
        tail: list[_Line] = []
        if not self.whole and any(map(in_order_of_time, self.columns)):
            tail = [self._line(rows[-1])]
            rows, self.last = rows[:-1], 1
            rest -= len(tail[0].content) + 1
        lines = []
        for row in rows:
            line = self._line(row)
            rest -= len(line.content) + 1
            if rest < 0:
                break
            lines.append(line)
        return lines + tail

    def value(self, lines: list[_Line]) -> bytes:
        """Return the array as it is written."""
        content = b"[%b]" % b",".join(line.content for line in lines)
        if not self.table:
            return content
        members: dict[str, Any] = {"columns": [column.name for column in self.columns]}
        if self.same:
            same = {column.name: Raw(column.values[0]) for column in self.same}
            members = {"same": same, **members}
        return encode({**members, "rows": Raw(content)})

    def _line(self, row: Raw) -> _Line:
        levels = self._levels(row)
        for column in self.same:
            cell = levels[column.path[:-1]].get(column.path[-1])
            if cell is None or bytes(cell) != column.values[0]:
                raise _Misfit(column)
        clips: _Clips = []
        cells = [
            self._cell(column, levels[column.path[:-1]].get(column.path[-1]), clips)
            for column in self.columns
        ]
        content = self._table_row(cells) if self.table else self._object(cells, levels)
        members = {(path, tuple(inner)) for path, inner in levels.items()}
        return _Line(content, len(memoryview(row)), clips, members)

    def _levels(self, row: Raw) -> _Levels:
        """Open the objects of a row that columns lie in. Raises _Misfit for any other value."""
        levels: _Levels = {}
        for path in self.objects:
            value = row if not path else levels[path[:-1]].get(path[-1])
            members = None if value is None else level(value)
            if not isinstance(members, dict) and (members is not None or not path):
                raise _Misfit(None)
            levels[path] = members or {}
        return levels

    def _cell(self, column: RowColumn, cell: Raw | None, clips: _Clips) -> Raw | None:
        if cell is not None and column.each:
            cell = members_of(cell, column.each)
        if cell is None or (size := len(memoryview(cell))) <= self.clip + 2:
            return cell
        content = text(cell)
        if content is None and size > max(_HUGE, 8 * column.size):
            raise _Misfit(column)
        if content is None or len(content) <= self.clip or content.endswith(NOTE_END):
            return cell
        clips.append((column.path, self.clip, len(content)))
        return Raw(encode(content[: self.clip] + "…"))

    @staticmethod
    def _table_row(cells: list[Raw | None]) -> bytes:
        return b"[%b]" % b",".join(b"null" if cell is None else bytes(cell) for cell in cells)

    def _object(self, cells: list[Raw | None], levels: _Levels) -> bytes:
        members: dict[str, Any] = {}
        for column, cell in sorted(zip(self.columns, cells, strict=True), key=_position):
            if cell is not None or len(column.path) > 1:
                _put(members, column.path, cell, levels)
        return encode(members)

    def brief(self, columns: list[RowColumn], lines: list[_Line], room: int) -> Brief:
        """Return the array in brief, with all that is left out of these lines."""
        visible = [column.path for column in (*self.columns, *self.same) if not column.each]
        opened = {path[:length] for path in visible for length in range(1, len(path) + 1)}
        objects = set().union(*(line.members for line in lines))
        names = {(*path, name) for path, members in objects for name in members} - opened
        inside = {name: [column for column in columns if column.holds(name)] for name in names}
        sizes = {name: sum(column.size for column in inside[name]) for name in names}
        links = {name for name in names if all(column.is_link for column in inside[name])}
        value = self.value(lines)
        category = next((column for column in self.columns if column.groups), None)
        return Brief(
            value=value,
            first=len(lines) - self.last,
            last=self.last,
            columns=len(visible),
            omitted=sorted(names, key=lambda name: (-sizes[name], name)),
            clips=[(index, *clip) for index, line in enumerate(lines) for clip in line.clips],
            loss=sum(line.source_size for line in lines) - len(value),
            following=self._following(sizes, links, len(lines), room) if self.whole else "",
            condition=self._condition(category),
            category="" if category is None else category.name,
            quantity=next((column.name for column in columns if column.is_quantity), ""),
        )

    def _following(
        self, sizes: dict[Names, float], links: set[Names], count: int, room: int
    ) -> str:
        """Return the selection of as many columns left out as fit, the lightest first."""
        names = [column.name for column in self.columns[:1]]
        width = sum(column.size + 4 for column in self.columns[:1])
        for path in sorted(sizes, key=lambda path: (path in links, sizes[path], path)):
            width += sizes[path] + 2
            if len(names) > 1 and width * count > room:
                break
            names.append(".".join(map(spelled, path)))
        if not all(_MEMBER.fullmatch(name) for name in names):
            return ""
        rows = "*" if width * count <= room else f"0:{max(int(room / width), 1)}"
        return f"[{rows}].{{{', '.join(names)}}}"

    def _condition(self, category: RowColumn | None) -> str:
        """Return a filter for the rows of a category; empty if there is none."""
        if category is None:
            return ""
        value = min(category.groups).decode().replace('"', "'")
        names = [each.name for each in self.columns[:2]]
        return f"[?{category.name}=={value}].[{', '.join(names)}]"


def _put(members: dict[str, Any], path: Names, cell: Raw | None, levels: _Levels) -> None:
    """Store a cell at a path; of objects that are null or empty in this row, these themselves."""
    for length in range(1, len(path)):
        outer, name = levels[path[: length - 1]], path[length - 1]
        if not levels[path[:length]]:
            if name in outer:
                members[name] = outer[name]
            return
        members = members.setdefault(name, {})
    if cell is not None:
        members[path[-1]] = cell


def _position(pair: tuple[RowColumn, Raw | None]) -> int:
    return pair[0].position
