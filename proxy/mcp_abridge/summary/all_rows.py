"""Reads single members of all rows of an array: what is stated of all rows must hold for each.

A sample may miss the one row that failed. One pass reads the members asked for and skips the others
unread: 15 ms for 10 MB.
"""

from collections import Counter
from collections.abc import Collection, Iterator, Sequence
from itertools import chain, islice, repeat
from operator import attrgetter, mul, sub
from typing import Any, overload

from msgspec import UNSET, Raw, Struct

from mcp_abridge.document.names import LONGEST_LABEL
from mcp_abridge.document.rows import each_object, each_row, row_type, rows_in
from mcp_abridge.document.tree import ARRAY, OBJECT, encode, head, text
from mcp_abridge.summary.columns import (
    EACH,
    Column,
    ColumnPath,
    are_lines,
    columns_of,
    elements_of,
    expression,
    head_of,
    members_of,
    sample_of,
    spelling,
)

Names = tuple[str, ...]
"""The names that lead to a member of a row."""

NOTHING = (b"null", b'""')  # it is not said that all rows have nothing
_NULL = Raw(b"null")
_BATCH = 1024  # rows that are read at a time
_VALUES = 8  # different values that are counted
_RARE = 20  # those of which a few rows have one
_STATES = 3  # columns whose values are counted, though none is rare
_PLACES = 5  # rows that have a rare value, which are named
_NO_JSON = b"\0"  # what stands in no JSON
_AROUND, _BETWEEN = b"\0%b\0", b"\0\0"


def columns_in(rows: Sequence[Raw]) -> list[Column]:
    """Return the columns of a sample of rows; an array that has several elements in any is whole.

    Else `[delete, create]` would count as `delete`, if each array of the sample has one element.
    """
    columns = columns_of(sample_of(rows))
    steps: dict[Names, set[Any]] = {}
    for path in (each.path for each in columns if not each.plain and isinstance(each.path[0], str)):
        steps.setdefault(head_of(path), set()).add(path[len(head_of(path))])
    cells = cells_of(rows, [path for path, some in steps.items() if some == {0}])
    several = {path for path, some in cells.items() if any(map(_has_several, some))}
    return [_whole(each) if head_of(each.path) in several else each for each in columns]


def _has_several(array: bytes) -> bool:
    return b"," in array and len(each := elements_of(Raw(array))) > 1 and not are_lines([each])


def _whole(column: Column) -> Column:
    """Return a column of the first elements as one of arrays, or of a member of each element."""
    head = head_of(column.path)
    rest = column.path[len(head) + 1 :]
    path: ColumnPath = (*head, EACH, *rest) if rest else head
    cells = [None if cell is None else b"[%b]" % cell for cell in column.cells]
    return Column(path, cells, column.position)


def cells_of(rows: Sequence[Raw], paths: Collection[Names]) -> dict[Names, list[bytes]]:
    """Return the value at each path in each row; null if there is none.

    >>> cells_of([Raw(b'{"a": {"b": 1}}'), Raw(b'{"a": 2}')], [("a", "b")])
    {('a', 'b'): [b'1', b'null']}
    """
    cells = {path: list[bytes]() for path in paths}
    for _, path, whole in _in_batches(rows, paths):
        cells[path] += _spellings(whole)
    return cells


def _in_batches(
    rows: Sequence[Raw], paths: Collection[Names]
) -> Iterator[tuple[int, Names, bytes]]:
    """Yield the position of some rows, and the values at a path in them; see `_joined`."""
    if not paths:  # arrays of numbers or texts have no members
        return
    if isinstance(rows, Unnested):
        for path, every in rows.cells(paths):
            for at in range(0, len(rows), _BATCH):
                yield at, path, _joined(every[at : at + _BATCH])
        return
    reader = _Reader.of(paths)
    for first in range(0, len(rows), _BATCH):
        batch = rows[first : first + _BATCH]
        whole = each_row(batch, reader.kind)
        members = _one_by_one(batch, paths) if whole is None else reader.members(whole)
        for path, values in members:
            yield first, path, _joined(values)


def _joined(values: Sequence[Any]) -> bytes:
    """Return the bytes of values, each between two signs: one is counted at once, in all of them.

    Cut from there, they also take half the time that they take one by one.
    """
    try:
        return _AROUND % _BETWEEN.join(values)
    except TypeError:
        return _AROUND % _BETWEEN.join([_NULL if e is UNSET else e for e in values])


def _spellings(whole: bytes) -> list[bytes]:
    return whole[1:-1].split(_BETWEEN)


def _places(whole: bytes, value: bytes) -> Iterator[int]:
    at = -1
    while (at := whole.find(_AROUND % value, at + 1)) >= 0:
        yield whole.count(_NO_JSON, 0, at) // 2


def _heads(paths: Collection[Names]) -> dict[str, list[Names]]:
    heads: dict[str, list[Names]] = {}
    for path in paths:
        heads.setdefault(path[0], []).extend([path[1:]] if len(path) > 1 else [])
    return heads


class _Reader(Struct):
    """The Struct type of rows, and for each of its fields that is one too, the reader of that."""

    kind: type[Struct] | None
    inner: "dict[str, _Reader | None]"

    @classmethod
    def of(cls, paths: Collection[Names]) -> "_Reader":
        inner = {name: cls.of(rest) if rest else None for name, rest in _heads(paths).items()}
        kinds = {name: reader.kind for name, reader in inner.items() if reader is not None}
        return cls(row_type(inner, kinds), inner)

    def members(self, rows: list[Any], outer: Names = ()) -> Iterator[tuple[Names, list[Any]]]:
        for position, (name, reader) in enumerate(self.inner.items()):
            member = attrgetter(f"f{position}")
            try:
                values = [*map(member, rows)]
            except AttributeError:  # not all are objects
                values = [member(row) if isinstance(row, Struct) else UNSET for row in rows]
            if reader is None:
                yield (*outer, name), values
            else:
                yield from reader.members(values, (*outer, name))


def _one_by_one(
    rows: Sequence[Raw], paths: Collection[Names], outer: Names = ()
) -> Iterator[tuple[Names, list[Raw]]]:
    """Do the same for rows of different kinds, more slowly."""
    opened = [(each_object([row]) or [None])[0] or {} for row in rows]
    for name, rest in _heads(paths).items():
        values = [members.get(name, _NULL) for members in opened]
        if rest:
            yield from _one_by_one(values, rest, (*outer, name))
        else:
            yield (*outer, name), values


class Unnested(Sequence[Raw]):
    """The elements of an array in each row, each with what is around it in the place of the array.

    Without it, what is around would be written and read once for each of them. `place` is the view
    of the rows.

    >>> rows = Unnested([Raw(b'{"a":1,"b":[{"c":2},{"c":3}]}')], "b", "jobs")
    >>> bytes(rows[1]), cells_of(rows, [("a",), ("b", "c")])
    (b'{"a":1,"b":{"c":3}}', {('a',): [b'1', b'1'], ('b', 'c'): [b'2', b'3']})
    """

    def __init__(self, rows: list[Raw], name: str, place: str) -> None:
        self.rows, self.name, self.place, self._members = rows, name, place, members_of(rows)
        self._arrays = [each.get(name, _NULL) for each in self._members]
        opened = [*map(elements_of, self._arrays)]
        self._sizes, self._elements = [*map(len, opened)], [*chain.from_iterable(opened)]
        self._owners = self._for_each([*range(len(opened))])
        self._around: dict[int, list[bytes]] = {}  # of rows that are written

    def _for_each(self, values: list[Any]) -> list[Any]:
        return [*chain.from_iterable(map(repeat, values, self._sizes))]

    def __len__(self) -> int:
        return len(self._elements)

    @overload
    def __getitem__(self, at: int) -> Raw: ...
    @overload
    def __getitem__(self, at: slice) -> list[Raw]: ...
    def __getitem__(self, at: int | slice) -> Raw | list[Raw]:
        if isinstance(at, slice):
            return [self[each] for each in range(*at.indices(len(self)))]
        row = self._owners[at]
        if row not in self._around:
            with_hole = self._members[row] | {self.name: Raw(_NO_JSON)}
            self._around[row] = encode(with_hole).split(_NO_JSON)
        before, after = self._around[row]
        return Raw(b"%b%b%b" % (before, self._elements[at], after))

    def are_objects(self, most: int) -> bool:
        """Return True if all elements are objects, and all rows have no more than `most` bytes.

        Instead of an array, a row may have null.
        """
        around = map(sub, map(len, self.rows), map(len, self._arrays))
        size: int = sum(map(mul, around, self._sizes)) + sum(map(len, self._elements))
        heads, outer = {*map(head, self._elements)}, {*map(head, self._arrays)}
        return size <= most and heads <= {OBJECT} and outer <= {ARRAY, head(_NULL)}

    def cells(self, paths: Collection[Names]) -> Iterator[tuple[Names, list[bytes]]]:
        """Yield the values at each path in all rows."""
        for name, rests in _heads(paths).items():
            own = name == self.name
            values = self._elements if own else [m.get(name, _NULL) for m in self._members]
            reader = _Reader.of(rests)
            read = rows_in(self._arrays, reader.kind) if own and rests else None
            if read is None:
                cells = cells_of(values, rests)
            else:
                every = [*chain.from_iterable(read)]
                cells = {path: _spellings(_joined(e)) for path, e in reader.members(every)}
            if (name,) in paths:
                cells[()] = [*map(bytes, values)]
            for rest, each in cells.items():
                yield (name, *rest), each if own else self._for_each(each)


class Facts(Struct):
    """Statements on all rows at once: members that are the same in all, and counts of others.

    `same` has the value at each path. `counts` has the number of rows for each value, the most
    frequent first; of a value that few rows have, with their positions (`1 at [900]`). `complete`
    are the paths of which all values but the first have positions, so that every row is told.
    `endings` are those of all values at the path of the clock: of times, their zones.
    """

    same: dict[Names, Raw] = {}
    counts: dict[Names, dict[str, int | str]] = {}
    complete: set[Names] = set()
    endings: set[bytes] = set()

    @property
    def paths(self) -> set[Names]:
        """The paths whose value in each row is told."""
        return {*self.same, *self.complete}

    def tells_places(self, path: Names) -> bool:
        """Return True if few rows have a value at a path, and it is told which."""
        return any(isinstance(each, str) for each in self.counts.get(path, {}).values())

    def statements(self, before: str = "") -> dict[str, dict[str, Any]]:
        """Return `same` and `counts` by the names of the columns, each with `before` before it."""
        kinds: dict[str, dict[Names, Any]] = {"same": self.same, "counts": self.counts}
        return {
            word: {before + expression(path): value for path, value in members.items()}
            for word, members in kinds.items()
            if members
        }


def facts_of(
    rows: Sequence[Raw],
    constant: dict[Names, bytes],
    states: list[Names],
    clock: Names,
    room: int,
) -> Facts:
    """Read what can be told of all rows in `room` bytes; `constant` are equal in a sample of them.

    Of each of `states`, and of what is not the same in all rows after all, the few different values
    are counted; what is the same gets half of the room that these leave. The times at the path of
    the `clock`, if it has one, are read on the way.
    """
    constant = {path: value for path, value in constant.items() if _short(Raw(value))}
    counted = {path: _Counts(Counter(), {}) for path in (*states, *constant)}
    facts = Facts()
    for first, path, whole in _in_batches(rows, dict.fromkeys(filter(None, (*counted, clock)))):
        if path in counted:
            counted[path].add(first, whole)
        if path == clock:
            facts.endings |= _endings(whole)
    odd = [path for path in constant if len(counted[path].counts) > 1]
    # The one row that is unlike the others tells more than what is the same in all.
    few = [path for path in odd if len(rows) - max(counted[path].counts.values()) <= _PLACES]
    rare = [path for path in states if counted[path].rare(len(rows))]
    partitions = set[tuple[object, ...]]()
    for path in dict.fromkeys((*few, *rare, *states[:_STATES], *odd)):
        groups = path[:-1], *counted[path].groups()
        partition: tuple[object, ...] = counted[path].gap(len(rows)) or groups
        if partition in partitions and len(path) > 1:
            continue
        partitions.add(partition)
        counts, complete = counted[path].listing(len(rows))
        size = _size(path, encode(counts))
        if len(counted[path].counts) > 1 and counts and size <= room:
            facts.counts[path] = counts
            facts.complete |= {path} if complete else set()
            room -= size
    same_room = room // 2
    for path in dict.fromkeys((*states, *constant)):
        if len(counted[path].counts) == 1:
            [value] = counted[path].counts
            size = _size(path, value)
            if size <= same_room and value not in NOTHING and _short(Raw(value)):
                facts.same[path] = Raw(value)
                same_room -= size
    return facts


def _endings(whole: bytes) -> set[bytes]:
    """Return the last two bytes of each value; they are often the same."""
    ending = whole[1 : whole.index(_NO_JSON, 1)][-2:]
    alike = 2 * whole.count(ending + _NO_JSON) == whole.count(_NO_JSON)
    return {ending} if alike else {each[-2:] for each in _spellings(whole)}


def _size(path: Names, value: bytes) -> int:
    return len(encode(".".join(path))) + len(value) + 2


def _short(value: Raw) -> bool:
    content = text(value)
    spelled = bytes(value).decode() if content is None else content
    structured = content is None and ("{" in spelled or spelled == "[]")
    return not structured and len(spelled) <= LONGEST_LABEL and spelled.isprintable()


class _Counts(Struct):
    """How many rows have each value of a member, and where those are that few rows have.

    A member with too many different values is not counted further.
    """

    counts: Counter[bytes]
    places: dict[bytes, list[int]]

    def add(self, first: int, whole: bytes) -> None:
        """Add the values of some rows, the first of which has the position `first`."""
        if len(self.counts) > _RARE:
            return
        some = self.counts or (whole[1 : whole.index(_NO_JSON, 1)],)
        tally = {each: whole.count(_AROUND % each) for each in some}
        if 2 * sum(tally.values()) < whole.count(_NO_JSON):
            tally = Counter(_spellings(whole))
        for value, count in tally.items():
            if len(self.counts) > _RARE:
                return
            if count and self.counts[value] <= _PLACES:
                at = (first + place for place in _places(whole, value))
                self.places.setdefault(value, []).extend(islice(at, _PLACES + 1))
            self.counts[value] += count

    def rare(self, total: int) -> set[bytes]:
        """Return the values that few of all rows have; none if there are too many values."""
        counts = self.counts
        few = {each for each, n in counts.items() if n <= _PLACES and 20 * n <= total}
        return few if len(few) <= _VALUES and len(counts) <= _RARE else set()

    def gap(self, total: int) -> tuple[int, ...]:
        """Return the few rows that have no value, if all others have the same.

        Rows of another kind have none of many members.
        """
        single = len(self.counts) == 2 and b"null" in self.rare(total)
        return tuple(self.places[b"null"]) if single else ()

    def groups(self) -> list[tuple[int, ...]]:
        """Return each group of rows with one value by its size and its first places.

        Those of a state and of its colour are the same.
        """
        return sorted((n, *self.places[value]) for value, n in self.counts.items())

    def listing(self, total: int) -> tuple[dict[str, int | str], bool]:
        """Return the values, the most frequent first; with positions if few of all rows have one.

        True beside it if only the first has none.
        """
        counts, rare = self.counts, self.rare(total)
        most = _RARE if rare else _VALUES
        names = {value: spelling(Raw(value)) for value in counts} if len(counts) <= most else {}
        if len({*names.values()}) < len(counts) or not all(_short(Raw(value)) for value in counts):
            return {}, False
        [(first, _), *others] = sorted(counts.items(), key=lambda item: -item[1])
        listed: dict[str, int | str] = {names[first]: counts[first]}
        for value, count in others:
            at = ", ".join(f"[{place}]" for place in self.places[value])
            listed[names[value]] = f"{count} at {at}" if value in rare else count
        return listed, len(rare) == len(others)
