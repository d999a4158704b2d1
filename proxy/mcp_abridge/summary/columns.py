"""The columns of an array of objects: what lies in its rows, opened to the first scalar or text.

Without it a row whose title lies at `properties.Name.title[0].plain_text` has no title. A sample of
the rows says which columns there are; each has an expression that views take.
"""

from collections import Counter
from collections.abc import Iterable, Sequence
from functools import cached_property
from itertools import chain

from msgspec import Raw, Struct

from mcp_abridge.document.paths import nameable, spelled
from mcp_abridge.document.tree import level, text

_SAMPLE = 16  # rows from which the columns are chosen, or a few more
_DEEPEST = 12  # steps of a column's path
_MOST = 300  # columns that are opened; what is inside of others stays one value
_MEMBERS = 40  # of an object in all rows together; of more, those that a quarter of the rows has
_ELEMENTS = 4  # of an array in a row, from which its columns are chosen; half as many in each
_POINT = 3  # plain values of an array that has as many in each row: they are opened by position
_KEYS = 60  # different names in arrays of names with values


class Pair(Struct, frozen=True):
    """The element whose member `name` is `key`, of an array of names with values."""

    name: str
    key: str


EACH = None
Step = str | int | None | Pair
"""A member, an element by its position, each element, or the one with a name."""

Path = tuple[Step, ...]
"""The steps from a row to a column."""


def expression(path: Path) -> str:
    """Return the view of a column in a row.

    >>> expression(("labels", EACH, "name")), expression(("tags", Pair("Key", "Env"), "Value"))
    ('labels[].name', "tags[?Key=='Env'].Value | [0]")
    """
    spelling = ""
    for step in path:
        if isinstance(step, str):
            spelling += f".{spelled(step)}" if spelling else spelled(step)
        elif isinstance(step, Pair):
            spelling += f"[?{spelled(step.name)}=='{step.key}']"
        else:
            spelling += "[]" if step is EACH else f"[{step}]"
    return f"{spelling} | [0]" if any(isinstance(step, Pair) for step in path) else spelling


def names_of(path: Path) -> tuple[str, ...]:
    """Return the names on a path, without the steps into arrays."""
    return tuple(step for step in path if isinstance(step, str))


class Column(Struct, dict=True, eq=False):
    """A column as a sample of the rows has it: `cells` has a value for each, null as None.

    `role` and `rank` are what `roles` makes of it; the smallest rank is chosen first.
    """

    path: Path
    cells: list[bytes | None]
    position: int = 0
    role: str = ""
    rank: float = 0.0

    @cached_property
    def name(self) -> str:
        return expression(self.path)

    @cached_property
    def plain(self) -> bool:
        """No array lies on the way."""
        return all(isinstance(step, str) for step in self.path)

    @cached_property
    def nameable(self) -> bool:
        return all(map(nameable, names_of(self.path)))

    @cached_property
    def values(self) -> list[bytes]:
        return [cell for cell in self.cells if cell is not None]

    @cached_property
    def textual(self) -> bool:
        return all(value[0] == 0x22 for value in self.values)

    @cached_property
    def size(self) -> float:
        """The average bytes of a cell."""
        return sum(self._sizes) / len(self.cells)

    @cached_property
    def _sizes(self) -> list[int]:
        return [4 if cell is None else len(cell) for cell in self.cells]

    def width(self, clip: int) -> float:
        """The average bytes of a cell if texts show `clip` characters."""
        if max(self._sizes) <= clip + 5 or not (self.textual or EACH in self.path):
            return self.size
        return sum(min(size, clip + 5) for size in self._sizes) / len(self.cells)


def sample_of(rows: Sequence[Raw]) -> list[Raw]:
    """Return rows from which the columns are chosen, the last one among them."""
    return [*rows[: -1 : max(len(rows) // _SAMPLE, 1)], rows[-1]]


def columns_of(rows: Sequence[Raw]) -> list[Column]:
    """Return the columns of a sample of rows in their order; none if these are no like objects."""
    opened = _Opened(len(rows))
    entries = [*enumerate(rows)]
    if any(memoryview(row)[0] != 0x7B for row in rows) or not opened.members((), entries, False):
        return []
    columns = [*opened.columns.values()]
    half = len(rows) / 2
    return columns if any(len(column.values) >= half for column in columns) else []


_Entries = list[tuple[int, Raw]]
"""Values, each with the number of its row; of an array, a row has several."""


class _Opened:
    def __init__(self, count: int) -> None:
        self.columns: dict[Path, Column] = {}
        self._count = count

    def _open(self, path: Path, entries: _Entries, each: bool) -> None:
        entries = [entry for entry in entries if memoryview(entry[1])[0] != 0x6E]
        kinds = {memoryview(raw)[0] for _, raw in entries}
        if len(path) < _DEEPEST and len(self.columns) < _MOST:
            if kinds == {0x7B} and self.members(path, entries, each):
                return
            if kinds == {0x5B} and self._elements(path, entries, each):
                return
        cells: list[bytes | None] = [None] * self._count
        if each:
            lists: dict[int, list[bytes]] = {}
            for row, raw in entries:
                lists.setdefault(row, []).append(bytes(raw))
            entries = [(row, Raw(b"[%b]" % b",".join(values))) for row, values in lists.items()]
        for row, raw in entries:
            cells[row] = bytes(raw)
        self.columns[path] = Column(path, cells, len(self.columns))

    def members(self, path: Path, entries: _Entries, each: bool) -> bool:
        opened = [(row, level(raw)) for row, raw in entries]
        counts = Counter(chain.from_iterable(members for _, members in opened))
        if len(counts) > _MEMBERS:
            most = max(counts.values())
            counts = Counter({name: n for name, n in counts.items() if 4 * n >= most and n > 1})
        for name in counts:
            inner = [(row, members[name]) for row, members in opened if name in members]
            self._open((*path, name), inner, each)
        return bool(counts)

    def _elements(self, path: Path, entries: _Entries, each: bool) -> bool:
        arrays = [(row, level(raw)) for row, raw in entries]
        elements = [(row, raw) for row, array in arrays for raw in array[: _ELEMENTS // (1 + each)]]
        kinds = {memoryview(raw)[0] for _, raw in elements}
        lengths = {len(array) for _, array in arrays}
        if kinds == {0x7B}:
            pairs = [] if each else _pairs([array[:_KEYS] for _, array in arrays])
            if pairs:
                self._pairs(path, arrays, pairs)
            elif lengths <= {0, 1}:
                self._open((*path, 0), elements, each)
            else:
                self._open((*path, EACH), elements, True)
            return True
        points = len(arrays) > 2 and len(lengths) == 1 and max(lengths) in range(2, _POINT + 1)
        if each or not points or not kinds.isdisjoint((0x7B, 0x5B)):
            return False
        for position in range(max(lengths)):
            inner = [(row, array[position]) for row, array in arrays]
            self._open((*path, position), inner, each)
        return True

    def _pairs(self, path: Path, arrays: list[tuple[int, list[Raw]]], keys: "list[Pair]") -> None:
        for pair in keys:
            entries = [(row, element) for row, array in arrays if (element := paired(array, pair))]
            inner = [(row, level(raw)) for row, raw in entries]
            value = next(name for name in inner[0][1] if name != pair.name)
            column = (*path, pair, value)
            self._open(column, [(row, members[value]) for row, members in inner], False)


def paired(array: Iterable[Raw], pair: Pair) -> Raw | None:
    """Return the element whose member `pair.name` is `pair.key`."""
    for raw in array:
        members = level(raw) if memoryview(raw)[0] == 0x7B else {}
        if pair.name in members and text(members[pair.name]) == pair.key:
            return raw
    return None


def _pairs(arrays: list[list[Raw]]) -> list[Pair]:
    """Return the names that rows share in arrays of a name and a value each, in any order.

    Those that stand several times in a row are none; nor are names that always have one value.
    """
    rows = [[level(raw) for raw in array] for array in arrays]
    elements = [*chain.from_iterable(rows)]
    if len(arrays) < 3 or len(elements) < 2 * len(arrays):
        return []
    names = [*elements[0]]
    if len(names) != 2 or any(each.keys() != elements[0].keys() for each in elements):
        return []
    for name, value in (names, names[::-1]):
        counts = Counter(chain.from_iterable({text(each[name]) for each in row} for row in rows))
        total = Counter(text(each[name]) for each in elements)
        shared = [
            key for key, n in counts.items() if 4 * n >= len(rows) and 5 * total[key] <= 6 * n
        ]
        different = {(bytes(each[name]), bytes(each[value])) for each in elements}
        telling = len(shared) > 1 and 4 * len(different) >= 5 * len(counts)
        if telling and 4 * sum(counts[key] for key in shared) >= len(elements):
            return [Pair(name, key) for key in shared[:_KEYS] if key and nameable(key)]
    return []
