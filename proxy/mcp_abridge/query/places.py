"""The places of values: their paths, the rows that they lie in, and the members of some names.

Without it a search would say that a word is there, and not of which row it is.
"""

import re
from collections import Counter
from collections.abc import Sequence
from functools import reduce
from itertools import chain, islice
from operator import getitem
from typing import Any

from msgspec import Struct

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.names import spelled
from mcp_abridge.document.rows import Spelling
from mcp_abridge.document.tree import Number, encode
from mcp_abridge.query.shapes import side_by_side

RECORD = 60  # members; an object with more is a map
_SEVERAL = 8  # members of a map whose members are objects alike
_ROW = 40_000  # bytes of a row; of a longer one, the row inside of it counts
SMALL = 2500  # bytes of the rows that are shown whole beside a few hits
_IDENTITY = 80  # characters of a text that says which row it is
FEW = 6  # hits beside which their rows are shown
_RARE = 3  # members of a value that are shown
_STATES = 5  # different values that are counted
_STATE = 40  # characters of such a value
_KEYS = ("id", "key", "number", "iid", "uuid", "sha", "code", "slug", "ref")
_NAMES = (
    *("name", "title", "subject", "summary", "label", "login", "path", "filename", "message"),
    "url",
)
_VALUES = ("value", "amount", "status")
HOLDERS = ("display_value", "value", "text", "rendered", "content")
"""Names of values that are called by what is around them, or beside."""
# Last words of names: `tracking_code`, `displayName`.
_OWN = (("number", "code"), (*_NAMES[:5], "description"))
_RANKS = {"number": 0, "key": 0, "iid": 0, "url": 2}  # what a person types comes first
_OF_PERSON = ("firstname", "lastname", "givenname", "familyname", "surname")
_LAST_WORD = re.compile(r"(?:[A-Z]?[a-z]+|[A-Z]+)\Z")

PathKey = str | int


class Member(Struct):
    """The members of one name at one place of all rows: how many, the first ones, their values.

    `values` has for each how many have it, and the places of the first ones; None if they are many.
    """

    count: int = 0
    first: list[list[PathKey]] = []
    values: dict[str, tuple[int, list[list[PathKey]]]] | None = {}

    def add(self, value: Any, first: list[list[PathKey]], number: int = 1) -> None:
        """Add a `number` of members of the same value, and the places of the `first` ones."""
        self.count += number
        if len(self.first) < FEW:
            self.first += first
        if self.values is None:
            return
        text = "" if isinstance(value, dict | list) else text_of(value)
        count, earlier = self.values.get(text) or (0, [])
        self.values[text] = count + number, (earlier + first)[:_RARE]
        if not 0 < len(text) <= _STATE or len(self.values) > _STATES:
            self.values = None

    def add_all(self, values: list[Any], rows: Sequence[int], name: str) -> None:
        """Add the members of some rows, which are no objects or arrays."""
        if self.values is None and len(self.first) >= FEW:
            self.count += len(values)
            return
        texts = [*map(text_of, values)]
        for text, count in Counter(texts).items():
            enough = len(self.first) >= FEW and (
                self.values is None or len(self.values.get(text, (0, []))[1]) >= _RARE
            )
            same = () if enough else zip(rows, texts, strict=True)
            at = (row for row, each in same if each == text)
            self.add(text, [[row, name] for row in islice(at, FEW)], count)

    def described(self, path: str) -> dict[str, Any]:
        """Return the path and the number; of few different values, how many there are of each."""
        values = {text: count for text, (count, _) in (self.values or {}).items()}
        few = 2 * len(values) <= self.count
        return {"path": path, "count": self.count} | ({"values": values} if values and few else {})

    @property
    def rare(self) -> list[list[PathKey]]:
        """Where all members are if they are few, else those with a value that few have."""
        if self.count <= FEW:
            return self.first
        return [
            place
            for count, first in (self.values or {}).values()
            if count <= _RARE
            for place in first
        ]


def text_of(item: Any) -> str:
    """Return a text itself, any other value as JSON."""
    if type(item) is Number:
        return item.spelling
    if type(item) is str:
        return item
    return str(item) if type(item) in (int, Spelling) else encode(item).decode()


def members(value: Any, names: set[str], fuel: Fuel) -> dict[str, Member]:
    """Return the members of these names by the paths of their places."""
    places: dict[str, Member] = {}
    keys: list[PathKey] = []

    def walk(value: Any, path: str) -> None:
        if isinstance(value, dict):
            fuel.burn(1 + (len(value) >> 3))
            for name, member in value.items():
                if name in names:
                    place = f"{path}.{spelled(name)}".removeprefix(".")
                    places.setdefault(place, Member()).add(member, [[*keys, name]])
                below(name, member, path + step(value, name))
        else:
            for index, element in enumerate(value):
                below(index, element, f"{path}[*]")

    def below(key: PathKey, value: Any, path: str) -> None:
        if isinstance(value, dict | list):
            keys.append(key)
            walk(value, path)
            keys.pop()

    walk(value, "")
    return places


Rows = dict[str, tuple[str, dict[str, Any]]]
"""For the path of a hit, the `row` or the `part` of it that is small, with its view."""


class Owners:
    """The rows in a value: a hit says in which it lies.

    `small` has those of the first hits, each itself if it is small, else its largest part that is.
    """

    def __init__(self, value: Any, fuel: Fuel) -> None:
        self.small: Rows = {}
        self._value, self._fuel = value, fuel
        self._sizes: dict[int, int] = {}
        self._trees: dict[tuple[int, str], bool] = {}
        self._columns: dict[int, dict[str, list[Any]] | None] = {}
        self._hits = 0

    def of(self, keys: list[PathKey]) -> dict[str, Any]:
        """Return the row that a hit lies in, with what says which row it is.

        The only element of an array is one if nothing in it is.
        """
        row, depth, value = None, 0, self._value
        for position, key in enumerate(keys[:-1], 1):
            repeated, lone = isinstance(key, int) or _is_map(value), len(value) == 1
            value = value[key]
            if repeated and isinstance(value, dict) and not (lone and row is not None):
                row, depth = value, position
                if not lone and self._size(row) <= _ROW:
                    break
        within = {}
        if (around := self._nodes(keys)) and around[-1][0] > depth:
            depth, row = around.pop()
            within = _names_around(around)
        self._hits += 1
        record = self._side_by_side(keys)
        if row is None and record is None:
            return self._array(keys, value) if keys[:-1] else {}
        if self._hits <= FEW:
            small = {} if row is None else _small_part(row, self._size(row), keys, depth)
            self.small |= small or _small_record(keys, record, "row" if row is None else "part")
        if row is None:
            return {"row": _record_view(keys) | identity_of(record or {})}
        inside = reduce(getitem, keys[:-1], self._value)
        beside = {} if inside is row else _value_beside(inside, keys[-1])
        return beside | {"row": {"view": path_of(keys[:depth]), **identity_of(row), **within}}

    def _nodes(self, keys: list[PathKey]) -> list[tuple[int, dict[str, Any]]]:
        """Return the objects of a tree that a hit lies in, one in another, each with its depth."""
        objects, name, value = list[tuple[int, dict[str, Any]]](), "", self._value
        for depth, (own, key, below) in enumerate(
            zip(["", *keys], keys, keys[1:], strict=False), 1
        ):
            array, value = value, value[key]
            if not (isinstance(key, int) and isinstance(value, dict)):
                continue
            inner = not name and len(keys) > depth + 2 and isinstance(keys[depth + 1], int)
            if inner and isinstance(below, str):
                name = below if own == below or self._holds_trees(array, below) else ""
            if name and (not objects or own == name):
                objects.append((depth, value))
        return objects

    def _holds_trees(self, array: list[Any], name: str) -> bool:
        """Return True if an array below one of its elements has elements with one as well."""
        key = id(array), name
        if key not in self._trees:
            self._fuel.burn(len(array))
            inner = chain.from_iterable(_array_in(each, name) for each in array)
            self._trees[key] = any(_array_in(each, name) for each in inner)
        return self._trees[key]

    def _side_by_side(self, keys: list[PathKey]) -> dict[str, Any] | None:
        """Return the row that a hit lies in of arrays side by side, None if it is in none such."""
        index = keys[-1]
        if not (len(keys) > 1 and isinstance(keys[-2], str) and isinstance(index, int)):
            return None
        value = self._value
        for key in keys[:-2]:
            value = value[key]
        if id(value) not in self._columns:
            self._columns[id(value)] = side_by_side(value)
        columns = self._columns[id(value)]
        self._fuel.burn(1 + (len(columns or ()) >> 3))
        return columns and {name: cells[index] for name, cells in columns.items()}

    def _array(self, keys: list[PathKey], row: Any) -> dict[str, Any]:
        """Return the row of a hit that is an array itself, as those of a table may be."""
        if not all(isinstance(key, int) for key in keys[-2:]):
            return {}
        view = {"view": path_of(keys[:-1])}
        cells = {f"[{index}]": cell for index, cell in enumerate(row[:RECORD])}
        if self._hits <= FEW and len(row) <= RECORD and self._size(row) <= SMALL:
            self.small[path_of(keys)] = "row", view | cells
        short = (each for each in cells.items() if isinstance(each[1], str | int | float))
        return {"row": view | {name: _short(cell) for name, cell in islice(short, 2)}}

    def member(self, keys: list[PathKey]) -> dict[str, Any]:
        """Return a member, with its value if that is short, and the row that it lies in."""
        value = self._value
        for key in keys:
            value = value[key]
        short = len(encode(value)) <= _IDENTITY
        return {"path": path_of(keys)} | ({"value": value} if short else {}) | self.of(keys)

    def _size(self, row: Any) -> int:
        if id(row) not in self._sizes:
            self._sizes[id(row)] = size = len(encode(row))
            self._fuel.burn(size >> 6)
        return self._sizes[id(row)]


def _array_in(value: Any, name: str) -> list[Any]:
    """Return the array that an object has by a name; an empty one of any other value."""
    inner = value.get(name) if isinstance(value, dict) else None
    return inner if isinstance(inner, list) else []


def _names_around(nodes: list[tuple[int, dict[str, Any]]]) -> dict[str, str]:
    """Return the names of the objects of a tree that another one lies in, if that is short."""
    identities = [identity_of(node) for _, node in nodes]
    names = [
        next((str(value) for path, value in each.items() if _last_word(path) in _NAMES), "")
        for each in identities
    ]
    where = " / ".join(names)
    return {"in": where} if names and all(names) and len(where) <= _IDENTITY else {}


def _value_beside(pair: Any, name: PathKey) -> dict[str, Any]:
    """Return the value that stands beside the name which a hit is: of a nutrient, of a header."""
    plain = isinstance(pair, dict) and len(pair) <= RECORD and name not in HOLDERS
    names = pair if plain else ()
    own = next((each for each in names if each.lower() in _VALUES and each != name), None)
    value = None if own is None else pair[own]
    return {"value": _short(value)} if isinstance(value, str | int | float) else {}


def _small_part(row: Any, size: int, keys: list[PathKey], depth: int) -> Rows:
    """Return the row of a hit if it is small, else the largest object in it that is."""
    name, part = "row", row
    while size > SMALL and depth < len(keys) - 1:
        name, part, depth = "part", part[keys[depth]], depth + 1
        size = len(encode(part)) if isinstance(part, dict) and len(part) > 1 else SMALL + 1
    if size > SMALL or "view" in part:
        return {}
    members = {spelled(each): member for each, member in part.items()}
    return {path_of(keys): (name, {"view": path_of(keys[:depth]), **members})}


def _record_view(keys: list[PathKey]) -> dict[str, Any]:
    """Return the view of the row that a hit lies in of arrays side by side."""
    return {"view": path_of([*keys[:-2], "rows", keys[-1]])}


def _small_record(keys: list[PathKey], record: dict[str, Any] | None, name: str) -> Rows:
    """Return the row that a hit lies in of arrays side by side, if it is small."""
    if record is None or "view" in record or len(encode(record)) > SMALL:
        return {}
    members = {spelled(each): cell for each, cell in record.items()}
    return {path_of(keys): (name, _record_view(keys) | members)}


def names_row(hit: dict[str, Any]) -> bool:
    """Return True if a hit lies in the name of its row: others only speak of that."""
    row = hit.get("row")
    if row is None:
        return False
    names = (name for name in row if name.rpartition(".")[2].lower() in _NAMES)
    return any(hit["path"] == f"{row['view']}.{name}" for name in names)


def _is_map(value: dict[str, Any]) -> bool:
    """Return True of many members, and of several objects that begin alike."""
    heads = [next(iter(each), "") for each in value.values() if isinstance(each, dict) and each]
    return len(value) > RECORD or (len(heads) == len(value) >= _SEVERAL and len({*heads}) == 1)


def identity_of(row: dict[str, Any]) -> dict[str, Any]:
    """Return the members that say which row it is: its key and its name, or its first ones.

    >>> identity_of({"size": 3, "metadata": {"name": "web"}, "id": 7})
    {'id': 7, 'metadata.name': 'web'}
    >>> identity_of({"id": 880028903, "url": "https://x.example/7", "number": 7, "title": "Crash"})
    {'number': 7, 'title': 'Crash'}
    >>> identity_of({"made": {"value": 1}, "number": {"value": "INC7"}, "shortDescription": "Lost"})
    {'number.value': 'INC7', 'shortDescription': 'Lost'}
    >>> identity_of({"id": 7, "first_name": "Ada", "last_name": "Moreau", "title": "Engineer"})
    {'id': 7, 'first_name': 'Ada', 'last_name': 'Moreau'}
    """
    inner = [
        (f"{spelled(name)}.{spelled(part)}", name if part in HOLDERS else part, value)
        for name, member in islice(row.items(), RECORD)
        if isinstance(member, dict)
        for part, value in islice(member.items(), RECORD)
    ]
    outer = [(spelled(name), name, value) for name, value in islice(row.items(), RECORD)]
    short = [
        (path, name, _short(value))
        for path, name, value in (*outer, *inner)
        if (isinstance(value, str) and value) or isinstance(value, int | float)
    ]
    telling = list[tuple[str, str, Any]]()
    for names, words in zip((_KEYS, _NAMES), _OWN, strict=True):
        fit = [each for each in short if each[1].lower() in names]
        person = [each for each in short if each[0].lower().replace("_", "") in _OF_PERSON]
        if names is _NAMES and len(person) > 1:
            telling += person
            break
        fit = fit or [each for each in short if _last_word(each[1]) in words]
        telling += [min(fit, key=_rank)] if fit else []
    return {path: value for path, _, value in telling or short[:2] if path != "view"}


def _rank(member: tuple[str, str, Any]) -> tuple[bool, int, bool]:
    path, name, value = member
    return "." in path, _RANKS.get(name, 1), _is_long(value)


def _last_word(name: str) -> str:
    word = _LAST_WORD.search(name)
    return word[0].lower() if word else ""


def _is_long(value: Any) -> bool:
    return isinstance(value, str) and len(value) > _IDENTITY


def _short(value: Any) -> Any:
    return f"{value[:_IDENTITY]}…" if _is_long(value) else value


def path_of(keys: list[PathKey]) -> str:
    """Return the path of the value of these keys, as JMESPath."""
    path = "".join(f"[{key}]" if isinstance(key, int) else f".{spelled(key)}" for key in keys)
    return path.removeprefix(".") or "@"


def general_path(value: Any, keys: list[PathKey]) -> str:
    """Return the path of the values at the same place of all rows, as JMESPath."""
    path = ""
    for key in keys:
        path += "[*]" if isinstance(key, int) else step(value, key)
        value = value[key]
    return path.removeprefix(".") or "@"


def step(value: dict[str, Any], name: str) -> str:
    """Return the step to a member: of a map, to any of them."""
    return f".{spelled(name)}" if len(value) <= RECORD else ".*"
