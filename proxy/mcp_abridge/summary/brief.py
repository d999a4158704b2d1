"""Shows all rows of an array in a few columns each; a few rows in full seldom hold the answer.

Rows are objects that share most of their members. Their columns are their members, and the members
of the objects inside (`user.login`). Columns of most worth come first: names such as id, title and
state, then short values; long texts show their first characters, and heavy columns are left out.

Work is bounded by the bytes to write, not by the array: columns are chosen from a sample. What is
said to be the same in all rows is compared in all of them (`all_rows`).
"""

import re
from collections.abc import Iterator, Sequence
from functools import cached_property
from itertools import chain
from typing import Any

from msgspec import Raw, Struct

from mcp_abridge.document.paths import spelled
from mcp_abridge.document.tree import each_object, encode, encode_lines, text
from mcp_abridge.summary.all_rows import cells_of
from mcp_abridge.summary.columns import (
    LITTLE,
    Names,
    RowColumn,
    columns_of,
    in_order_of_time,
    members_of,
)
from mcp_abridge.summary.excerpt import NOTE_END

_FEWEST = 3  # rows; fewer are shown as other arrays are
_LEAST_ROW = 5  # bytes of a row and its comma
_CLIPS = (60, 120, 250, 500, 1000)  # characters shown of a long text, if all rows fit
_HUGE = 400  # bytes of a value that is no text in a single row, if most are much smaller
_CORE = 2  # columns that all rows must show
_NARROW = 80  # bytes of a row if not all rows fit
_TRIES = 12  # at a selection of columns that fits
_PART = 64  # rows that are written at once

_NULL = Raw(b"null")
_MEMBER = re.compile(r"[A-Za-z_]\w{0,39}(?:\.[A-Za-z_]\w{0,39})*", re.ASCII)

_Clip = tuple[int, Names, int, int]
"""A text that is cut: its row, its column, the characters shown, and those of the whole."""

_Cells = list[Raw | None]

_Levels = dict[Names, list[dict[str, Raw]]]
"""The objects inside of rows that were opened, by path: one for each row."""


Example = tuple[str, str]
"""A view, and what it does."""


class Brief(Struct):
    """An array of rows in brief: `value` as JSON, and the amounts that it leaves out.

    `first` and `last` count the rows shown from either end. `columns` is the number of columns
    shown, `omitted` are the paths of the others, the largest first. `clips` are the texts that are
    cut: the row's position, the column, the characters shown, and all. `loss` is in bytes of the
    rows shown. `following` selects the lightest columns left out; `examples` are views of all rows.
    """

    value: bytes
    first: int
    last: int
    columns: int
    omitted: list[Names]
    clips: list[_Clip]
    loss: int
    following: str
    examples: tuple[Example, ...]


class _Misfit(Exception):
    """A column is too large in some row."""

    def __init__(self, column: RowColumn | None) -> None:
        self.column = column  # None if these are no rows after all


def brief(rows: list[Raw], room: int, place: str, *, table: bool) -> Brief | None:
    """Return `rows` in at most `room` bytes; None if they are no rows, or hardly any would fit.

    `place` is the view expression of their array. As a `table`, `{same, columns, rows}`, each name
    stands once, and so does a value that all rows have; else the rows are objects with fewer
    members.
    """
    columns = columns_of(rows[: room // _LEAST_ROW]) if len(rows) >= _FEWEST else []
    constants = [column for column in columns if column.constant]
    cells = cells_of(rows, [column.path for column in constants])
    for column in constants:
        equal = b",".join(column.values[:1] * len(rows))
        column.constant = encode(cells[column.path]) == b"[%b]" % equal
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
            fitting.remove(error.column)
            continue
        count = len(lines.contents)
        if count == len(rows) or not selection.whole:
            return selection.brief(columns, rows, lines, room, place) if count >= _FEWEST else None
        target -= target // 12
    return None


def _choose(
    columns: list[RowColumn], count: int, target: int, table: bool, *, whole: bool
) -> "_Selection | None":
    """Choose the columns with which `count` rows take about `target` bytes.

    If the two best columns do not fit, or `whole` is False, fewer rows are shown, with a few
    columns. None without columns.
    """
    same = _same(columns, target // 10) if table else []
    varied = [column for column in columns if (not column.constant if table else not column.each)]
    rest = target - 40 - 3 * count - sum(column.constant_size for column in same)
    picks: list[RowColumn] = []
    for column in varied if whole else ():
        cost = column.cost(_CLIPS[0], table) * count + len(column.name) + 3
        if cost <= rest:
            picks.append(column)
            rest -= int(cost)
    if picks and picks[:_CORE] == varied[:_CORE]:
        paths = {column.path for column in picks if not column.each}
        picks = [column for column in picks if not (column.each and column.path in paths)]
        widths = {clip: sum(column.cost(clip, table) for column in picks) for clip in _CLIPS}
        spare = widths[_CLIPS[0]] + rest // count
        clip = max(clip for clip in _CLIPS if widths[clip] <= spare)
        return _Selection(picks, same, table, clip, whole=True)
    picks, width = [], 0.0
    for column in varied:
        width += column.cost(_CLIPS[0], table)
        if not picks or (width <= _NARROW and column.worth[0] < LITTLE):
            picks.append(column)
    return _Selection(picks, same, table, _CLIPS[0], whole=False) if picks else None


def _same(columns: list[RowColumn], room: int) -> list[RowColumn]:
    picks = []
    for column in columns:
        if column.constant and column.constant_size <= room:
            picks.append(column)
            room -= column.constant_size
    return picks


class _Lines(Struct):
    contents: list[bytes] = []
    clips: list[_Clip] = []
    levels: _Levels = {}

    def add(self, other: "_Lines", count: int) -> None:
        before = len(self.contents)
        self.contents += other.contents[:count]
        self.clips += [(before + clip[0], *clip[1:]) for clip in other.clips if clip[0] < count]
        for path, members in other.levels.items():
            self.levels.setdefault(path, []).extend(members[:count])


class _Selection(Struct, dict=True):
    columns: list[RowColumn]
    same: list[RowColumn]
    table: bool
    clip: int
    whole: bool  # all rows are to fit
    last: int = 0

    @cached_property
    def objects(self) -> list[Names]:
        paths = [column.path for column in (*self.columns, *self.same)]
        return sorted({path[:length] for path in paths for length in range(len(path))}, key=len)

    def lines(self, rows: list[Raw], room: int) -> _Lines:
        """Return as many rows as fit, and of a time series the last one. Raises _Misfit."""
        rest = room - len(self.value([]))
        lines, tail = _Lines(), _Lines()
        if not self.whole and any(map(in_order_of_time, self.columns)):
            tail = self._part(rows[-1:])
            rows, self.last = rows[:-1], 1
            rest -= len(tail.contents[0]) + 1
        for part in self._parts(rows):
            count = len(part.contents)
            rest -= sum(map(len, part.contents)) + count
            while rest < 0 and count:
                count -= 1
                rest += len(part.contents[count]) + 1
            lines.add(part, count)
            if count < len(part.contents):
                break
        lines.add(tail, 1)
        return lines

    def value(self, contents: list[bytes]) -> bytes:
        content = b"[%b]" % b",".join(contents)
        if not self.table:
            return content
        members: dict[str, Any] = {"columns": [column.name for column in self.columns]}
        if self.same:
            same = {column.name: Raw(column.values[0]) for column in self.same}
            members = {"same": same, **members}
        return encode({**members, "rows": Raw(content)})

    def _parts(self, rows: list[Raw]) -> Iterator[_Lines]:
        for start in range(0, len(rows), _PART):
            part = rows[start : start + _PART]
            try:
                yield self._part(part)
            except _Misfit:
                # Maybe not all of them fit: what counts is the first row that is reached.
                yield from (self._part([row]) for row in part)

    def _part(self, rows: list[Raw]) -> _Lines:
        levels = self._levels(rows)
        clips: list[_Clip] = []
        columns = [self._column(column, _cells(column, levels), clips) for column in self.columns]
        if self.table:
            return _Lines(encode_lines([*zip(*columns, strict=True)]), clips, levels)
        pairs = sorted(zip(self.columns, columns, strict=True), key=lambda pair: pair[0].position)
        cells = {column.path: values for column, values in pairs}
        return _Lines(encode_lines(_as_objects(cells, levels)), clips, levels)

    def _levels(self, rows: list[Raw]) -> _Levels:
        """Open the objects of rows that columns lie in. Raises _Misfit for any other value."""
        levels: _Levels = {}
        for path in self.objects:
            values = [each.get(path[-1], _NULL) for each in levels[path[:-1]]] if path else rows
            members = each_object(values)
            if members is None or (not path and None in members):
                raise _Misfit(None)
            levels[path] = [each or {} for each in members]
        return levels

    def _column(self, column: RowColumn, cells: _Cells, clips: list[_Clip]) -> _Cells:
        """Return the cells of a column, long texts cut. Raises _Misfit for another long value."""
        if column.each:
            cells = [None if cell is None else members_of(cell, column.each) for cell in cells]
        most = self.clip + 2
        sizes = map(len, map(memoryview, filter(None, cells)))  # type: ignore[arg-type]
        if max(sizes, default=0) <= most:
            return cells
        for row, cell in enumerate(cells):
            if cell is None or (size := len(memoryview(cell))) <= most:
                continue
            content = text(cell)
            if content is None and size > max(_HUGE, 8 * column.size):
                raise _Misfit(column)
            if content and len(content) > self.clip and not content.endswith(NOTE_END):
                clips.append((row, column.path, self.clip, len(content)))
                cells[row] = Raw(encode(content[: self.clip] + "…"))
        return cells

    def brief(
        self, columns: list[RowColumn], rows: list[Raw], lines: _Lines, room: int, place: str
    ) -> Brief:
        visible = [column.path for column in (*self.columns, *self.same) if not column.each]
        opened = {path[:length] for path in visible for length in range(1, len(path) + 1)}
        levels = lines.levels.items()
        names = {(*path, name) for path, members in levels for name in set().union(*members)}
        names -= opened
        inside = {name: [column for column in columns if column.holds(name)] for name in names}
        sizes = {name: sum(column.size for column in inside[name]) for name in names}
        links = {name for name in names if all(column.is_link for column in inside[name])}
        value = self.value(lines.contents)
        count = len(lines.contents)
        first = count - self.last
        visible_rows = chain(rows[:first], rows[len(rows) - self.last :])
        return Brief(
            value=value,
            first=first,
            last=self.last,
            columns=len(visible),
            omitted=sorted(names, key=lambda name: (-sizes[name], name)),
            clips=lines.clips,
            loss=sum(len(memoryview(row)) for row in visible_rows) - len(value),
            following=self._following(sizes, links, count, room) if self.whole else "",
            examples=tuple(self._examples(columns, place)),
        )

    def _following(
        self, sizes: dict[Names, float], links: set[Names], count: int, room: int
    ) -> str:
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

    def _examples(self, columns: list[RowColumn], place: str) -> Iterator[Example]:
        columns = [column for column in columns if column.nameable]
        own = [column for column in self.columns if column.nameable]
        category = next((column for column in own if column.groups), None)
        if category is not None:
            value = min(category.groups).decode().replace('"', "'")
            names = ", ".join(each.name for each in own[:2])
            yield f"{place}[?{category.name}=={value}].[{names}]", "filters"
            yield f"count_by({place or '@'}, &{category.name})", "counts"
        quantity = next((column.name for column in columns if column.is_quantity), "")
        if quantity:
            yield f"max_by({place or '@'}, &{quantity})", "finds the greatest"


def _cells(column: RowColumn, levels: _Levels) -> _Cells:
    name = column.path[-1]
    return [members.get(name) for members in levels[column.path[:-1]]]


def _as_objects(
    cells: dict[Names, _Cells], levels: _Levels, outer: Names = ()
) -> list[dict[str, Any]]:
    """Return rows as objects; an inner object that is null or empty in a row stays as it is.

    `cells` are the columns in the objects at the path `outer`.
    """
    members: dict[str, Sequence[Any]] = {}
    for path, values in cells.items():
        inner, name = path[: len(outer) + 1], path[len(outer)]
        if path == inner:
            members[name] = values
        elif name not in members:
            within = {path: cells[path] for path in cells if path[: len(inner)] == inner}
            rows = zip(
                _as_objects(within, levels, inner), levels[inner], levels[outer], strict=True
            )
            members[name] = [each if opened else above.get(name) for each, opened, above in rows]
    names = [*members]
    return [
        {names[at]: cell for at, cell in enumerate(row) if cell is not None}
        for row in zip(*members.values(), strict=True)
    ]
