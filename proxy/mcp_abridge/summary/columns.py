"""The columns of an array of objects, as a sample of its rows has them, and what each is worth.

Columns are the members of the rows, and the members of the objects inside (`user.login`). Names
such as id, title and state come first, then short values, then long ones.
"""

import re
from collections.abc import Iterable
from typing import Any

from msgspec import Raw, Struct

from mcp_abridge.document.paths import nameable, spelled
from mcp_abridge.document.tree import encode, level, objects, text

_SAMPLE = 16  # rows from which the columns are chosen, or a few more
_INNER = 30  # members; an object with more inside of a row is one value
_DEEPEST = 3  # names of a column's path
_ALIKE = 0.4  # the share of all columns that a row has on average
_SHORT = 30  # bytes of a value that names, counts or dates something
_FAIR = 100  # bytes of a value that is shown whole although it is no text
LITTLE = 5  # the worth of long values: only if all rows fit

_WORTH = re.findall(
    r"\w+",
    "id key number name title path file line state status phase type kind level severity error"
    " message reason time timestamp date version email login symbol code",
)
_TIMES = frozenset(("time", "timestamp", "date", "at", "ts", "created", "updated", "day"))
_NO_QUANTITIES = _TIMES | set(_WORTH) | {"column", "index", "page", "pid", "port", "row", "year"}
_PLAIN = re.compile(rb'"[A-Za-z0-9 _-]{1,20}"')
_NUMBER = re.compile(rb"-?[0-9]+(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?|null")
_WORD = re.compile(r"[A-Z]?[a-z]+|[A-Z]+(?![a-z])|[0-9]+")

Names = tuple[str, ...]
"""The names that lead to a member of a row."""


class RowColumn(Struct):
    """A member of the rows, at a path of names, as a sample of the rows has it.

    `size` is the average of a row in bytes; `values` are the different values in the sample.
    """

    path: Names
    position: int
    size: float = 0
    textual: bool = True
    values: list[bytes] = []
    constant: bool = False
    each: str = ""  # of a digest: the member of the elements that it shows

    @property
    def name(self) -> str:
        name = ".".join(map(spelled, self.path))
        return f"{name}[].{spelled(self.each)}" if self.each else name

    @property
    def nameable(self) -> bool:
        return all(map(nameable, (*self.path, self.each)))

    @property
    def constant_size(self) -> int:
        """The bytes of a constant that stands once for all rows."""
        return len(self.name) + len(self.values[0]) + 4

    @property
    def words(self) -> list[str]:
        return [word.lower() for word in _WORD.findall(self.path[-1])]

    @property
    def is_link(self) -> bool:
        return self.values[0].startswith((b'"http:', b'"https:'))

    @property
    def groups(self) -> set[bytes]:
        """The plain values, if they are so few that rows can be counted by them."""
        values = {value for value in self.values if _PLAIN.fullmatch(value)}
        return values if 1 < len(values) <= len(self.values) // 2 else set()

    @property
    def is_quantity(self) -> bool:
        if self.each or self.constant or not self.words or self.words[-1] in _NO_QUANTITIES:
            return False
        return {b"null"} != {*self.values} and all(map(_NUMBER.fullmatch, self.values))

    @property
    def worth(self) -> tuple[float, ...]:
        """A key that sorts columns, those first that tell most about a row."""
        if self.each:
            return (LITTLE - 1, self.position)
        name, depth = self.path[-1].lower(), len(self.path) - 1
        if name in _WORTH and (self.textual or self.size <= _SHORT):
            return (2 * depth, _WORTH.index(name))
        if self.is_link:
            return (LITTLE + 2, depth, self.size)
        if self.size <= _SHORT:
            # An id beside the row's own names tells a model little, if anything.
            last = "".join(self.words[-1:])
            rank = 3 if last == "id" else 1 if last in _WORTH else 2
            return (rank + depth, len(_WORTH), self.position)
        heavy = not self.textual and self.size > _FAIR
        return (LITTLE + heavy, depth, self.size)

    def holds(self, path: Names) -> bool:
        return not self.each and self.path[: len(path)] == path

    def cost(self, clip: int, table: bool) -> float:
        size = min(self.size, clip + 5) if self.textual else self.size
        return size + (1 if table else len(self.path[-1]) + 4)


def columns_of(rows: list[Raw], closed: frozenset[Names] = frozenset()) -> list[RowColumn]:
    """Return the columns of a sample of the rows, those of most worth first; none if not alike.

    `closed` are the paths of objects that differ so much that each is one value.
    """
    values: dict[Names, list[bytes]] = {}
    sample = rows[:: max(len(rows) // _SAMPLE, 1)]
    for row in sample:
        members = level(row)
        if not isinstance(members, dict):
            return []
        _gather(values, members, closed)
    columns = {
        path: RowColumn(
            path,
            position,
            size=sum(map(len, each)) / len(sample),
            textual=all(value[0] == 0x22 or value == b"null" for value in each),
            values=each,
        )
        for position, (path, each) in enumerate(values.items())
    }
    objects = {path[:length] for path in columns for length in range(1, len(path))}
    # A null among objects is no column of its own: their columns are null.
    nulls = {path for path in objects & columns.keys() if set(columns[path].values) == {b"null"}}
    columns = {path: column for path, column in columns.items() if path not in nulls}
    unlike = {path for path in objects if path in columns or not _alike(columns, path)}
    if unlike:
        return columns_of(rows, closed | unlike)
    if not _alike(columns, ()):
        return []
    for column in columns.values():
        always = len(column.values) == len(sample)
        column.constant = always and len(set(column.values)) == 1 and column.size <= _FAIR
    digests = [each for column in columns.values() if (each := _digest_of(column)) is not None]
    return sorted([*columns.values(), *digests], key=lambda column: column.worth)


def _digest_of(column: RowColumn) -> RowColumn | None:
    """Return the names in a heavy column of arrays of objects, such as `labels[].name`."""
    if column.size <= _FAIR or not any(value.startswith(b"[{") for value in column.values):
        return None
    elements = level(Raw(next(value for value in column.values if value.startswith(b"[{"))))
    first = level(elements[0])
    names = [name for name in _WORTH if name in first]
    if not names:
        return None
    name = next((each for each in names if text(first[each]) is not None), names[0])
    values = [bytes(members_of(Raw(value), name)) for value in column.values]
    size = sum(map(len, values)) * column.size / sum(map(len, column.values))
    digest = RowColumn(column.path, column.position, size, textual=False, values=values, each=name)
    return digest if size <= _FAIR else None


def members_of(array: Raw, name: str) -> Raw:
    """Return an array with one member of each element; null if the element has none."""
    elements: Iterable[Any] | None = objects(array)  # all at once, if there is nothing else in it
    if elements is None:
        elements = level(array)
        if not isinstance(elements, list):
            return Raw(b"null")
        elements = map(level, elements)
    return Raw(encode([each.get(name) if isinstance(each, dict) else None for each in elements]))


def _alike(columns: dict[Names, RowColumn], parent: Names) -> bool:
    inner = [column for path, column in columns.items() if path[: len(parent)] == parent]
    most = max((len(column.values) for column in inner), default=0)
    return sum(len(column.values) for column in inner) >= _ALIKE * most * len(inner)


def _gather(
    values: dict[Names, list[bytes]],
    members: dict[str, Raw],
    closed: frozenset[Names],
    prefix: Names = (),
) -> None:
    for name, value in members.items():
        path, content = (*prefix, name), bytes(value)
        opens = content[0] == 0x7B and len(path) < _DEEPEST and path not in closed
        inner = level(value) if opens else None
        if inner and len(inner) <= _INNER:
            _gather(values, inner, closed, path)
        else:
            values.setdefault(path, []).append(content)


def in_order_of_time(column: RowColumn) -> bool:
    """Return True if the column holds times in their order, as in a log or a time series."""
    if _TIMES.isdisjoint(column.words[-1:]):
        return False
    values = [(len(value), value) if value[:1] != b'"' else (0, value) for value in column.values]
    return len(set(values)) > 1 and values in (sorted(values), sorted(values, reverse=True))
