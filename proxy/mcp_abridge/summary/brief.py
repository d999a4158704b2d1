"""Shows all rows of an array in a few columns each; a few rows in full seldom hold the answer.

Rows are objects that share most of their members. Columns come in the order of `roles`: what names
a row always stays, with a state or a value, long texts by their beginning; if even these do not fit
for all rows, fewer rows are shown. What is the same in all rows costs nothing, and rare values are
counted (`all_rows`).

Work is bounded by the bytes to write, not by the array, but for the few members that are read in
all rows.
"""

from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from functools import cached_property, partial
from itertools import chain
from operator import is_not
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_abridge.document.names import label, spelled
from mcp_abridge.document.tree import encode, encode_lines, text
from mcp_abridge.summary import roles
from mcp_abridge.summary.all_rows import NOTHING, Facts, Names, Unnested, columns_in, facts_of
from mcp_abridge.summary.cells import read, tree_of
from mcp_abridge.summary.columns import (
    EACH,
    Column,
    ColumnPath,
    Pair,
    array_of,
    elements_of,
    head_of,
    in_tables_alone,
    members_of,
    names_of,
)
from mcp_abridge.summary.cuts import MARK, NOTE_END
from mcp_abridge.summary.examples import Example, clock_of, examples, in_turn, repeats
from mcp_abridge.summary.layout import CLIPS, LARGE, MANY, Layout
from mcp_abridge.summary.lookout import Lookout
from mcp_abridge.summary.objects import Objects
from mcp_abridge.summary.place import UNSHOWN, last_name
from mcp_abridge.summary.sought import sought_at

_FEWEST = 3  # rows; fewer are shown as other arrays are
_USED = 4  # of the room, a part that rows fill if not all of them fit: else the next one is huge
_HUGE = 400  # bytes of a value that is no text in a single row
_TYPICAL = 5  # columns that are probably shown
_TRIES = 8  # at columns that fit
_WORDS = 100  # characters of the columns in the view of what is missing
_WHOLE = 2000  # bytes of a row that is shown whole if a filter finds few
_MAYBE_RARE = 6  # columns that tell a state: all are counted if few rows have one of its values
_CONSTANTS = 60  # columns that may be the same in all rows
_CUT = Raw('"…"'.encode())
_EMPTY = (b"null", b"[]", b"{}")
_MARK = len(MARK.encode())  # a text that is no longer than what is shown and this stays whole

_Clip = tuple[int, ColumnPath, int, int, list[int]]
"""Texts of a column that are cut: the row of the first, the column, the characters shown of each,
those of the first before the cut, and those of each whole."""


class Brief(Struct):
    """An array of rows in brief: `value` as JSON, and the amounts that it leaves out.

    `first` and `last` count the rows shown from either end. `columns` is the number of columns
    shown, `omitted` are the paths of the others, the most telling first, with those at the
    end of which parts are shown; rows that are not shown may have more. `clips` are the texts that
    are cut, by column. `loss` is in bytes of the rows shown. `following` selects what is missing;
    `examples` are views of all rows. `names` are the expressions of the columns in `value`; if it
    `has_name`, one names the rows, and not what is inside of them. `facts` are the statements on
    all rows, by the place of each member, if `value` is no table, which has them itself.
    """

    value: bytes
    first: int
    last: int
    columns: int
    omitted: tuple[str, ...]
    clips: list[_Clip]
    loss: int
    following: str
    names: frozenset[str]
    has_name: bool
    examples: tuple[Example, ...] = ()
    facts: dict[str, dict[str, Any]] = {}


def brief(
    rows: Sequence[Raw],
    room: int,
    place: str,
    lookout: Lookout,
    *,
    table: bool,
) -> Brief | None:
    """Return `rows` in at most `room` bytes; None if they are no rows, or hardly any would fit.

    `place` is the view expression of their array. As a `table`, `{same, counts, columns, rows}`,
    each name stands once; else the rows are objects with fewer members, and what is told of all
    rows has to stand elsewhere, in the same room.
    """
    array = last_name(place) or lookout.tool
    in_order = partial(roles.in_order, sought=lookout.sought, ordered=lookout.ordered, array=array)
    every = in_order(columns_in(rows) if len(rows) >= _FEWEST else [])
    # An object has no place for the value beside a name, or for a last element.
    columns = [each for each in every if table or not in_tables_alone(each.path)]
    if len(columns) < len(every):
        columns, every = in_order(columns), sorted(every, key=lambda each: each.rank)
    if not columns:
        return None
    beside = not table and UNSHOWN not in place
    quotable = columns if table else [each for each in columns if each.nameable]  # in a notice
    facts = _facts(quotable, rows, room // 8) if table or beside else Facts()
    stated = facts.statements(f"{place or 'items'}[]." if beside else "")
    size = sum(len(encode(members)) + 12 for members in stated.values())
    rest = room - size - 40
    facts_paths = facts.paths
    open_columns = [each for each in columns if each.path not in facts_paths]
    sample = b'","'.join(chain.from_iterable(each.values for each in open_columns[:_TYPICAL]))
    rest = rest * len(sample) // max(lookout.cost(sample), 1)
    layout = Layout(open_columns, len(rows), rest, table)
    for _ in range(_TRIES):
        if not layout.picks:
            return None
        page = _Page(layout, facts, rows, lookout, table)
        if page.misaligned:
            layout.leave_out(page.misaligned)
            continue
        if () in page.reading.left_out:
            return None  # a row is no object
        if len(page.value) <= room - (0 if table else size):
            unused = page.count < len(rows) and len(page.value) < room // _USED
            if page.count < _FEWEST or unused:
                return None
            rows_in_brief = page.brief(columns, max(lookout.bound * 3 // 4, room))
            examples = page.examples(every, place, lookout.lone)
            return replace(rows_in_brief, examples=examples, facts={} if table else stated)
        layout.shrink(len(page.value) - room)
    return None


def _facts(columns: list[Column], rows: Sequence[Raw], room: int) -> Facts:
    """Read the members that seem to be the same in all rows, and those that tell a state."""
    plain = [each for each in columns if each.plain]
    but = int(len(rows) >= MANY)  # the one row that is unlike the others may be in the sample
    alike = (each for each in plain if each.size <= LARGE and len({*each.cells}) <= 1 + but)
    most = ((each, *Counter(each.cells).most_common(1)[0]) for each in alike)
    constant = [(each, cell or b"null") for each, cell, n in most if n >= len(each.cells) - but]
    constant.sort(key=lambda pair: (pair[1] in NOTHING, len(pair[0].path)))
    values = {column.names: cell for column, cell in constant[:_CONSTANTS]}
    clock, many = clock_of(columns), len(rows) >= MANY
    states = [e.names for e in plain if many and e.role == roles.STATE and not repeats(rows, e)]
    times = clock.names if clock and clock.plain else ()
    return facts_of(rows, values, states[:_MAYBE_RARE], times, room)


def examples_of(rows: list[Raw], place: str, *, inside: bool) -> tuple[str, tuple[Example, ...]]:
    """Return views of rows that are not shown in brief, or of all rows `inside` of others.

    The name of the column for which one reads them comes first.
    """
    columns = roles.in_order(columns_in(rows)) if rows else []
    facts = _facts(columns, rows, _WHOLE) if columns and inside else Facts()
    name = columns[0].name if columns else ""
    return name, tuple(examples(rows, columns, columns, place, facts, small=False))


class _Page:
    """The rows and columns of a layout, as they are written."""

    def __init__(
        self, layout: Layout, facts: Facts, rows: Sequence[Raw], lookout: Lookout, table: bool
    ) -> None:
        self.columns, self._facts, self._rows = layout.columns, facts, rows
        self.whole = layout.whole
        self._sought, self._table = lookout.sought, table
        timely = not self.whole and any(map(roles.in_order_of_time, self.columns))
        self.last = int(timely and 1 < layout.rows < len(rows))
        self.count = max(layout.rows, 0)
        first = rows[: self.count - self.last]
        self.rows = [*first, *rows[len(rows) - self.last :]] if self.last else first
        paths = [*(each.path for each in self.columns), *facts.paths]
        layout.opened = layout.opened.of(self.count - self.last, self.last)
        self.reading = read(self.rows, paths, layout.opened)
        self.misaligned = [*self._misaligned()] if table else []
        self.clips: list[_Clip] = []
        self._whole_sizes: dict[ColumnPath, float] = {}  # the average bytes of cells before the cut
        self._cut(layout.picks)
        self.value = self._as_table() if table else self._as_objects()

    def _misaligned(self) -> Iterator[Column]:
        """Yield columns of an array in the rows that beside the first one would say what is not so.

        Elements that lack a member have no value in its column: the others would move up.
        """
        gaps, first = self.reading.opened.gaps, dict[ColumnPath, ColumnPath]()
        for column in self.columns:
            if EACH in column.path:
                beside = first.setdefault(array_of(column.path), column.path)
                if beside != column.path and any(gaps[beside] + gaps[column.path]):
                    yield column

    def _cut(self, clips: dict[ColumnPath, int]) -> None:
        times = {each.path for each in self.columns if each.role == roles.TIME}
        for path, clip in clips.items():
            single = all(isinstance(step, str) for step in path)
            if not (self._table or single):
                continue  # an array stays one
            cells = self.reading.cells[path]
            whole, long, parts = [*cells], dict[int, str](), list[str]()
            for row, cell in enumerate(cells):
                if cell is None or len(cell) <= clip + 2:
                    continue
                content = text(cell)
                if content is None:
                    cells[row] = self._shortened(path, cell, clip)
                elif len(content) > clip + _MARK and not content.endswith(NOTE_END):
                    long[row] = content
                    parts.append(self._clipped(content, clip))
            for row, part in zip(long, encode_lines(parts), strict=True):
                cells[row] = Raw(part)
            if any(map(is_not, cells, whole)):
                self._whole_sizes[path] = sum(map(len, filter(None, whole))) / len(whole)
            if path not in times:  # whose ends are zones and fractions
                self._tell_apart(cells, whole, clip)
            if long and not (single or isinstance(path[0], Pair)):
                self.reading.left_out[head_of(path)] = None
            elif long:
                first = next(iter(long))
                start = (text(cells[first]) or "").find(MARK)
                self.clips.append((first, path, clip, start, [*map(len, long.values())]))

    def _tell_apart(self, cells: list[Raw | None], whole: list[Raw | None], clip: int) -> None:
        """Show both ends of texts that are cut alike, if the ends tell them apart.

        What the call looks for stays in sight.
        """
        alike = defaultdict[bytes, list[int]](list)
        for row, (cell, before) in enumerate(zip(cells, whole, strict=True)):
            if cell is not before:
                alike[bytes(cell or b"")].append(row)
        head = clip // 3
        for group in alike.values():
            contents = [(row, text(whole[row])) for row in group if len(group) > 1]
            texts = {
                row: each for row, each in contents if each and not sought_at(each, self._sought)
            }
            ends = {content[head - clip :] for content in texts.values()}
            for row, content in texts.items() if 2 * len(ends) > len(texts) > 1 else ():
                cells[row] = Raw(encode(f"{content[:head]}…{content[head - clip :]}"))

    def _clipped(self, content: str, clip: int) -> str:
        start = max(sought_at(content, self._sought) - clip // 3, 0)
        start = min(start, len(content) - clip)
        part = content[start : start + clip]
        mark = "…" if start + clip < len(content) else ""
        return f"{'…' if start else ''}{part}{mark}"

    def _shortened(self, path: ColumnPath, cell: Raw, clip: int) -> Raw | None:
        """Return fewer elements of an array that a column is about; any other large value goes."""
        if EACH in path and self._table:
            parts, room, elements = list[Raw](), clip, elements_of(cell)
            for part in elements:
                size, most = len(part), max(room, CLIPS[0])
                if size > most and (content := text(part)) is not None and len(content) > most:
                    part = Raw(encode(f"{content[:most]}…"))
                    size = len(bytes(part))
                room -= size
                parts.append(part)
                if room <= 0:
                    break
            if parts != elements:
                self.reading.left_out[head_of(path)] = None
            mark = [] if len(parts) == len(elements) else [_CUT]
            return Raw(b"[%b]" % b",".join(parts + mark))
        if len(cell) <= max(_HUGE, 2 * clip):
            return cell
        self.reading.left_out[head_of(path)] = None
        return _CUT if self._table else None

    def _as_table(self) -> bytes:
        columns = sorted(self.columns, key=_place_in_row)
        cells = [self.reading.cells[each.path] for each in columns]
        beside = {path[0] for path in self._facts.paths}
        for row, some in enumerate(zip(*cells, strict=True)):
            if not any(some) and _members(self.rows[row]) - beside:
                cells[0][row] = _CUT  # of another kind, and not empty
        content = b",".join(encode_lines([*zip(*cells, strict=True)]))
        head = {**self._facts.statements(), "columns": [each.name for each in columns]}
        return encode({**head, "rows": Raw(b"[%b]" % content)})

    def _as_objects(self) -> bytes:
        columns = sorted(self.columns, key=lambda each: each.position)
        objects = Objects(self.reading)
        rows = objects.rows(tree_of([each.path for each in columns]), [*self.rows])
        opened = {each.path[:length] for each in columns for length in range(len(each.path))}
        arrays = objects.arrays - objects.whole
        plain = (path for path in opened - arrays if len(names_of(path)) == len(path))
        for path in plain:  # other values than objects there stay as they are
            self.reading.left_out.pop(names_of(path), None)
        self.reading.left_out |= dict.fromkeys(map(names_of, arrays))
        return encode(rows)

    def brief(self, columns: list[Column], room: int) -> Brief:
        left_out = self.reading.left_out
        visible = {*map(head_of, (each.path for each in self.columns))} | self._facts.paths
        for column in columns:  # which may stand in other rows alone
            if not any(each in left_out or each in visible for each in _beginnings(column.path)):
                left_out[head_of(column.path)] = None
        cells = self.reading.cells.items()
        filled = (path for path, some in cells if any(each not in (None, _CUT) for each in some))
        opened = {each for path in filled for each in _beginnings(path)}
        ranks: dict[Names, float] = {}
        for column in columns:
            for length in range(1, len(column.names) + 1):
                ranks.setdefault(column.names[:length], column.rank)
        omitted = sorted(left_out, key=lambda at: (at in opened, ranks.get(at, len(columns))))
        return Brief(
            value=self.value,
            first=self.count - self.last,
            last=self.last,
            columns=len(visible - left_out.keys()),
            omitted=tuple(
                "parts of " * (each in opened) + ".".join(map(label, each)) for each in omitted
            ),
            clips=self.clips,
            loss=self._size - len(self.value),
            following=self._following(columns, room),
            names=frozenset(each.name for each in self.columns),
            has_name=any(map(roles.names_rows, self.columns)),
        )

    def examples(self, columns: list[Column], place: str, lone: set[str]) -> tuple[Example, ...]:
        visible = sorted(self.columns, key=_place_in_row)
        small = self._size <= _WHOLE * len(self.rows)
        own = examples(self._rows, columns, visible, place, self._facts, small=small, lone=lone)
        if not isinstance(rows := self._rows, Unnested):
            return tuple(own)
        return in_turn(own, examples_of(rows.rows, rows.place, inside=False)[1])

    @cached_property
    def _size(self) -> int:
        return sum(map(len, self.rows))

    def _following(self, columns: list[Column], room: int) -> str:
        """Return the rest of a view that shows what is missing: the next rows, or more columns."""
        present = {each.path for each in self.columns}
        total = len(self._rows)
        picks = sorted(self.columns, key=_place_in_row)
        if not self.whole and self.count < total:
            start = self.count - self.last
            more = max(room * self.count // (len(self.value) * 2), start)
            return f"[{start}:{min(start + more, total)}]{_selection(picks)}"
        cut = self._whole_sizes
        handle = next((each for each in picks if each.path not in cut and each.nameable), None)
        picks, width, words = ([] if handle is None else [handle]), 12.0, 0
        beside = present | self._facts.paths
        missing = [each for each in columns if each.path not in beside and each.values]
        telling = [each for each in missing if len({*each.cells}) > 1]
        long = sorted(self.columns, key=lambda each: each.role != roles.NAME)
        long = [each for each in long if each.path in cut]
        for each in (*long, *telling) or missing:
            wider = width + cut.get(each.path, each.size) + len(each.name) + 4
            words += len(each.name) + 2
            if len(picks) > 1 and (wider * total > room or words > _WORDS):
                break
            if each.nameable:
                picks.append(each)
                width = wider
        selection = _selection(picks) if len(picks) > 1 or handle is None else ""
        if not selection:
            return ""
        rows = "*" if width * total <= room else f"0:{max(int(room / width), 1)}"
        return f"[{rows}]{selection}"


def _beginnings(path: ColumnPath) -> Iterator[Names]:
    head = head_of(path)
    return (head[:length] for length in range(1, len(head) + 1))


def _members(row: Raw) -> set[str]:
    """Return the names of the members of a row that are not empty; of a row of pairs, none."""
    return {name for name, value in members_of([row])[0].items() if bytes(value) not in _EMPTY}


def _place_in_row(column: Column) -> tuple[bool, float]:
    return column.role != roles.KEY, column.rank


def _selection(columns: list[Column]) -> str:
    if not columns or not all(each.nameable for each in columns):
        return ""
    names = [each.name for each in columns]
    if all(each.plain and each.path == (*map(spelled, each.names),) for each in columns):
        return f".{{{', '.join(names)}}}"
    return f".[{', '.join(names)}]"
