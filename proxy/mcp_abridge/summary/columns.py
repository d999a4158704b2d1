"""The columns of an array of objects: what lies in its rows, opened to the first scalar or text.

Without it a row whose title lies at `properties.Name.title[0].plain_text` has no title. A sample of
the rows says which columns there are; each has an expression that views take.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain, islice
from operator import itemgetter
from typing import Any

from msgspec import Raw, Struct

from mcp_abridge.document.names import nameable, spelled
from mcp_abridge.document.rows import each_object
from mcp_abridge.document.tree import ARRAY, OBJECT, STRING, encode, head, level, text
from mcp_abridge.summary.forms import NUMBER

_SAMPLE = 16  # rows from which the columns are chosen, or a few more
_DEEPEST = 12  # steps of a column's path
_MOST = 300  # columns that are opened; what is inside of others stays one value
_NAMES_OF_KINDS = 6  # names of members, at most, though most rows have no value for them
_OF_THINGS = 0.8  # of the names, that an object has of things with the same members, at most
_MEMBERS = 40  # of an object in all rows together; of more, those that a quarter of the rows has
_ELEMENTS = 4  # of an array in a row, from which its columns are chosen; half as many in each
_POINT = 3  # plain values of an array that has as many in each row: they are opened by position
CELLS = 60  # objects that a row is made of, at most, as those of BigQuery or of a sheet
_MOSTLY = 0.9  # of the values of a column that are objects, which are opened
_KEYS = 60  # different names in arrays of names with values
_NAMES = ("name", "key", "label", "title", "field", "code", "id", "type")  # of a pair that has more
_CALLED = ({"key", "value"}, {"name", "value"})  # the members of what surely is a pair
STATE = "status"
_VALUES = ("display_value", "displayValue", "text", "content", "value", STATE)
_LINE_END = b'\\n"'
_NULL = b"null"
NULL = Raw(_NULL)
_HEAD = itemgetter(0)
LAST = -1


class Pair(Struct, frozen=True):
    """The element whose member `name` is `key`, of an array of names with values."""

    name: str
    key: str


EACH = None
ColumnStep = str | int | None | Pair
"""A member, an element by its position, each element, or the one with a name."""

ColumnPath = tuple[ColumnStep, ...]
"""The steps from a row to a column."""


def expression(path: ColumnPath) -> str:
    """Return the view of a column in a row; of a value beside a name, the first one.

    >>> expression(("labels", EACH, "name")), expression(("tags", Pair("Key", "Env"), "Value"))
    ('labels[].name', "tags[?Key=='Env'].Value | [0]")
    """
    spelling, before = "", None
    for step in path:
        if isinstance(step, str):
            spelling += f".{spelled(step)}" if spelling else spelled(step)
            spelling += " | [0]" * isinstance(before, Pair)
        elif isinstance(step, Pair):
            spelling += f"[?{spelled(step.name)}=='{step.key}']"
        else:
            spelling += "[]" if step is EACH else f"[{step}]"
        before = step
    return spelling


def names_of(path: ColumnPath) -> tuple[str, ...]:
    """Return the names on a path, without the steps into arrays."""
    return tuple([step for step in path if isinstance(step, str)])


def head_of(path: ColumnPath) -> tuple[str, ...]:
    """Return the names on a path up to the first array; of a row of pairs, the name there."""
    if isinstance(path[0], Pair):
        return (path[0].key,)
    names = list[str]()
    for step in path:
        if not isinstance(step, str):
            break
        names.append(step)
    return tuple(names)


def in_tables_alone(path: ColumnPath) -> bool:
    """Return True if an object has no place for a value: beside a name, or at the end."""
    return any(isinstance(step, Pair) or step == LAST for step in path)


def array_of(path: ColumnPath) -> ColumnPath:
    """Return the part of a path that ends with its last step into each element."""
    return path[: len(path) - path[::-1].index(EACH)]


class Column:
    """A column as a sample of the rows has it: `cells` has a value for each, null as None.

    `plain`: no array lies on the way, and the path has `names` alone. `size` is the average of the
    bytes of a cell, `longest` are those of the longest. `role`, `rank` and `worth` are what `roles`
    makes of it; the smallest rank is chosen first.
    """

    def __init__(self, path: ColumnPath, cells: list[bytes | None], position: int) -> None:
        self.path, self.cells, self.position = path, cells, position
        self.role, self.rank = "", 0.0
        self.worth: Any = None
        self.parts = 1.0  # times as large as they are here are the cells, in which all elements are
        self.values = [*filter(None, cells)]
        self.names = names_of(path)
        self.plain = len(self.names) == len(path)
        self.textual = {*map(_HEAD, self.values)} <= {0x22}
        self._sizes = [*map(len, self.values)]
        self.longest = max(self._sizes, default=0)
        self._widths: dict[int, float] = {}
        self._nulls = len(_NULL) * (len(cells) - len(self.values))
        self.size = (sum(self._sizes) + self._nulls) / len(cells)

    @cached_property
    def name(self) -> str:
        return expression(self.path)

    @cached_property
    def nameable(self) -> bool:
        return all(map(nameable, self.names))

    def width(self, clip: int) -> float:
        """The average bytes of a cell if texts show `clip` characters."""
        if clip not in self._widths:
            self._widths[clip] = self._width(clip + 5)
        return self._widths[clip]

    def _width(self, most: int) -> float:
        if not (self.textual or EACH in self.path) or self.longest * self.parts <= most:
            return self.size * self.parts
        sizes = (min(size * self.parts, most) for size in self._sizes)
        return (sum(sizes) + self._nulls) / len(self.cells)


def sample_of(rows: Sequence[Raw]) -> list[Raw]:
    """Return rows from which the columns are chosen, the last one among them."""
    return [*rows[: -1 : max(len(rows) // _SAMPLE, 1)], rows[-1]]


def columns_of(rows: list[Raw]) -> list[Column]:
    """Return the columns of a sample of rows in their order; none if these are no like objects."""
    opened, heads = _Opened(len(rows)), {*map(head, rows)}
    if not (
        (heads == {OBJECT} and opened.members((), rows, None))
        or (heads == {ARRAY} and opened.row_pairs(rows))
    ):
        return []
    columns = [*opened.columns.values()]
    half = len(rows) / 2
    return columns if any(len(column.values) >= half for column in columns) else []


def _kinds(spellings: list[bytes]) -> set[int]:
    """Return the first bytes of values that are not null; of objects, though one is none of them.

    A map of records may have the list of their ids beside them.
    """
    heads = bytes(map(_HEAD, spellings))
    objects, present = heads.count(0x7B), len(heads) - heads.count(0x6E)
    return {0x7B} if objects and objects >= _MOSTLY * present else {*heads} - {0x6E}


class _Opened:
    """The columns of a sample, found by opening its values level by level.

    `values` have one for each row, or one for each of `owners`: the rows of several elements.
    """

    def __init__(self, count: int) -> None:
        self.columns: dict[ColumnPath, Column] = {}
        self._count = count
        self._parts: dict[ColumnPath, float] = {}  # elements for each that is looked at

    def _open(self, path: ColumnPath, values: list[Raw], owners: list[int] | None) -> None:
        spellings = [*map(bytes, values)]
        kinds = _kinds(spellings)
        if len(path) < _DEEPEST and len(self.columns) < _MOST:
            if kinds == {0x7B} and self.members(path, values, owners):
                return
            if kinds == {0x5B} and self._elements(path, values, owners):
                return
        if owners is not None:
            cells = self._of_rows(spellings, owners)
        else:
            cells = [None if spelling == _NULL else spelling for spelling in spellings]
        self.columns[path] = column = Column(path, cells, len(self.columns))
        for end, times in self._parts.items() if owners is not None else ():
            column.parts *= times if path[: len(end)] == end else 1

    def _of_rows(self, spellings: list[bytes], owners: list[int]) -> list[bytes | None]:
        lists: dict[int, list[bytes]] = {}
        for row, spelling in zip(owners, spellings, strict=True):
            if spelling != _NULL:
                lists.setdefault(row, []).append(spelling)
        cells: list[bytes | None] = [None] * self._count
        for row, parts in lists.items():
            cells[row] = b"[%b]" % b",".join(parts)
        return cells

    def members(self, path: ColumnPath, values: list[Raw], owners: list[int] | None) -> bool:
        opened = members_of(values)
        names = dict.fromkeys(chain.from_iterable(opened))
        if path and len(names) > _NAMES_OF_KINDS and _is_index(opened, len(names)):
            return False
        if len(names) > _MEMBERS:
            counts = Counter(chain.from_iterable(opened))
            most = max(counts.values())
            names = dict.fromkeys(name for name, n in counts.items() if 4 * n >= most and n > 1)
        for name in names:
            self._open((*path, name), [each.get(name, NULL) for each in opened], owners)
        return bool(names)

    def row_pairs(self, rows: list[Raw]) -> bool:
        """Open rows that are arrays of names with values themselves."""
        arrays = [*map(elements_of, rows)]
        elements = chain.from_iterable(array[:_KEYS] for array in arrays)
        return {*map(head, elements)} == {OBJECT} and self._pairs((), arrays, len(rows))

    def _elements(self, path: ColumnPath, values: list[Raw], owners: list[int] | None) -> bool:
        arrays = [*map(elements_of, values)]
        present = [array for array, value in zip(arrays, values, strict=True) if value != NULL]
        some = [array[: _ELEMENTS if owners is None else _ELEMENTS // 2] for array in arrays]
        parts = sum(map(len, arrays)) / max(sum(map(len, some)), 1)
        kinds = {*map(head, chain.from_iterable(some))}
        if kinds == {OBJECT, STRING}:  # of objects among texts, their members
            some = [[each for each in array if head(each) == OBJECT] for array in some]
            kinds = {OBJECT}
        lengths = {*map(len, present)}
        equal = owners is None and len(present) > 2 and len(lengths) == 1
        single = owners is None and lengths <= {0, 1}
        if kinds == {OBJECT} and equal and max(lengths) in range(2, CELLS + 1):
            firsts = members_of(chain(present[0], *(array[:1] for array in present)))
            inside = {head(raw) for cell in firsts for raw in cell.values()}
            plain = inside.isdisjoint((OBJECT, ARRAY))
            if plain and len({*map(tuple, firsts)}) == 1 == len(firsts[0]):
                return self._by_position(path, arrays, max(lengths))
        if kinds == {OBJECT}:
            if owners is None and self._pairs(path, arrays, len(present)):
                return True
            if single:
                return self._by_position(path, arrays, 1)
            rows = range(self._count) if owners is None else owners
            step = 0 if lengths <= {0, 1} else EACH
            self._parts[*path, step] = parts
            of_elements = [row for row, array in zip(rows, some, strict=True) for _ in array]
            self._open((*path, step), [*chain.from_iterable(some)], of_elements)
            return True
        if kinds == {ARRAY} and owners is None and self._ends(path, arrays):
            return True
        points = equal and max(lengths) in range(2, _POINT + 1)
        plain = bool(kinds) and kinds.isdisjoint((OBJECT, ARRAY))
        if plain and not (points or single) and owners is None and are_lines(arrays):
            return self._by_position(path, arrays, 1)
        return plain and (points or single) and self._by_position(path, arrays, max(lengths))

    def _by_position(self, path: ColumnPath, arrays: list[list[Raw]], count: int) -> bool:
        for position in range(count):
            self._open((*path, position), [a[position] if a else NULL for a in arrays], None)
        return True

    def _ends(self, path: ColumnPath, arrays: list[list[Raw]]) -> bool:
        """Open the value of the first and of the last point of a time series in each row."""
        ends = {end: [elements_of(a[end]) if a else [] for a in arrays] for end in (LAST, 0)}
        points = [*filter(None, chain.from_iterable(ends.values()))]
        if any(len(each) < 2 or NUMBER.fullmatch(each[1]) is None for each in points):
            return False
        for end, some in ends.items():
            self._open((*path, end, 1), [each[1] if each else NULL for each in some], None)
        return bool(points)

    def _pairs(self, path: ColumnPath, arrays: list[list[Raw]], count: int) -> bool:
        opened = [*map(members_of, arrays)] if may_be_pairs(arrays) else []
        pairs, value = pairs_in([row[:_KEYS] for row in opened], count)
        for pair in pairs:
            elements = (paired(row, pair) or {} for row in opened)
            self._open((*path, pair, value), [each.get(value, NULL) for each in elements], None)
        return bool(pairs)


def are_lines(arrays: list[list[Raw]]) -> bool:
    """Return True of arrays of the lines of a text, as of a cell in a notebook."""
    inner = [line for array in arrays for line in array[:-1]]
    ended = sum(bytes(line).endswith(_LINE_END) for line in inner)
    return 2 * ended > len(inner) > 0


def _is_index(opened: list[dict[str, Raw]], names: int) -> bool:
    """Return True of objects whose names are no columns, but words or things with what is theirs.

    Most of them lack half of the names, or some if the things have the same members.
    """
    values = [raw for members in opened for raw in members.values()]
    filled = len(values) / (names * len([*filter(None, opened)]))
    kinds = {*map(head, values)}
    if kinds == {OBJECT} and filled <= _OF_THINGS:
        return len({*map(frozenset, map(level, values))}) == 1
    return kinds == {ARRAY} and filled <= 1 / 2


def members_of(values: Iterable[Raw | None]) -> list[dict[str, Raw]]:
    """Return the members of each value; of any other than an object, none."""
    present = [NULL if value is None else value for value in values]
    opened = each_object(present)
    if opened is None:
        opened = [level(each) if head(each) == OBJECT else None for each in present]
    return [each or {} for each in opened]


def elements_of(value: Raw | None) -> list[Raw]:
    """Return the elements of an array; none of any other value."""
    return [] if value is None or head(value) != ARRAY else level(value)


def spelling(value: Raw) -> str:
    """Return a short value as it names its count: a text as it is, null and numbers as JSON."""
    content = text(value)
    if content is not None:
        return content
    return (encode(elements) if (elements := elements_of(value)) else bytes(value)).decode()


def paired(array: Iterable[dict[str, Raw]], pair: Pair) -> dict[str, Raw] | None:
    """Return the element whose member `pair.name` is `pair.key`."""
    return next((each for each in array if text(each.get(pair.name)) == pair.key), None)


def may_be_pairs(arrays: Iterable[list[Raw]]) -> bool:
    """Return True if the first element of all may be a name with a value."""
    [first] = members_of(islice(chain.from_iterable(arrays), 1)) or [{}]
    return len(first) == 2 or any(each in first for each in _VALUES)


def pairs_in(rows: list[list[dict[str, Raw]]], count: int) -> tuple[list[Pair], str]:
    """Return the names that `count` rows share in arrays of names with values, in any order.

    Beside them stands the member that is their value. Elements of two members are such pairs
    whatever these are called; of more, if both are called as those of many services are. Names
    that stand several times in a row are none; nor are those that always have one value,
    but for a state: the one row that is not ready may not be in a sample.
    """
    elements = [*chain.from_iterable(rows)]
    names = [*elements[0]] if elements else []
    called_so = {each.lower() for each in names} in _CALLED
    fewest = 1 if called_so else 2
    if count < 3 or len(elements) < fewest * count:
        return [], ""
    if len(names) == 2:
        alike = all(each.keys() == {*names} for each in elements)
        ways = [(names[0], names[1]), (names[1], names[0])] if alike else []
    else:
        values = [each for each in _VALUES if each in names][:1]
        ways = [(each, value) for value in values for each in _NAMES]
        ways = [way for way in ways if all({*way} <= each.keys() for each in elements)]
    for name, value in ways:
        keys = (dict.fromkeys(text(each[name]) for each in row) for row in rows)
        counts = Counter(chain.from_iterable(keys))
        total = Counter(text(each[name]) for each in elements)
        shared = [key for key, n in counts.items() if 4 * n >= count and 5 * total[key] <= 6 * n]
        different = {(bytes(each[name]), bytes(each[value])) for each in elements}
        enough = len(shared) >= fewest and 4 * sum(counts[k] for k in shared) >= len(elements)
        if enough and (value == STATE or 4 * len(different) >= 5 * len(counts)):
            return [Pair(name, key) for key in shared[:_KEYS] if key and nameable(key)], value
    return [], ""
