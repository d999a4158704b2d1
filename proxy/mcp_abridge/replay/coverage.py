"""Marks of what a model reads of an answer: without them, only sizes say what a rule leaves out.

The shown answer is compared with the server's, not traced through the steps: so it holds for every
step, Python beside a rule file, too. Both are taken apart into records, the elements of their
arrays; each shown record belongs to that of the server with which it has the most values in common.
A leaf is shown if its value stands in such a record, under its name or under another that a rule
gave it. Of a text, the lines are compared.
"""

from collections import deque
from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Literal

from msgspec import Struct

from mcp_abridge.document.tree import encode

Mark = Literal["s", "c", "o"]
"""Of a leaf: shown, cut short, left out."""

_Twin = tuple[str, str, str | bytes]

_MANY = 200  # records that are compared with one that is shown
_CUT = "…"  # stands where a text goes on
_KEY, _VALUE = "key", "value"  # the columns of an object that is shown as rows
_LONG = 4  # characters of a text that tells where it comes from, of a number too


class _Leaf(Struct):
    index: int
    path: str
    value: Any


class _Record(Struct):
    """An element of an array, or the root: its leaves, and the arrays of records in it by path.

    `where` are the names on the way to its array, `array` is the number of that; `same` is what is
    the same in all rows of a table.
    """

    where: str
    array: int = -1
    same: dict[str, Any] = {}
    leaves: list[_Leaf] = []
    inner: dict[str, list["_Record"]] = {}


class _Rows(list[Any]):
    """The rows of a table, as objects, and what is the `same` in all rows of its array."""

    same: Mapping[str, Any] = {}


class _Records:
    """A value taken apart: its records, outer ones first, and its leaves in the value's order."""

    def __init__(self, value: Any) -> None:
        self.count = self._arrays = 0
        self.root = _Record("")
        self.every = [self.root]
        self._read(value, "", self.root)

    def _read(self, value: Any, path: str, record: _Record) -> None:
        if isinstance(value, dict) and value:
            for name, member in value.items():
                self._read(member, f"{path}.{name}" if path else name, record)
        elif isinstance(value, list) and value:
            self._read_array(value, path, record)
        else:
            record.leaves.append(_Leaf(self.count, path, value))
            self.count += 1

    def _read_array(self, values: list[Any], path: str, record: _Record) -> None:
        where = f"{record.where}.{path}" if record.where else path
        same = dict(values.same) if isinstance(values, _Rows) else {}
        array, self._arrays = self._arrays, self._arrays + 1
        for element in values:
            if isinstance(element, dict | list) and element:
                inner = _Record(where, array, same)
                record.inner.setdefault(path, []).append(inner)
                self.every.append(inner)
                pairs = element.items() if isinstance(element, dict) else enumerate(element)
                for name, member in pairs:
                    self._read(member, str(name), inner)
            else:
                self._read(element, f"{path}[]", record)


def _expanded(value: Any) -> Any:
    """Return a shown value with its tables as the arrays or objects that they are in brief."""
    if isinstance(value, list):
        return [_expanded(each) for each in value]
    if not isinstance(value, dict):
        return value
    columns, rows, own = (value.get(name) for name in ("columns", "rows", "same"))
    if not isinstance(columns, list) or not isinstance(rows, list):
        return {name: _expanded(each) for name, each in value.items()}
    own = own if isinstance(own, dict) else {}
    pairs = (zip(map(str, columns), row, strict=False) for row in rows if isinstance(row, list))
    objects = _Rows(_expanded({**own, **dict(each)}) for each in pairs)
    objects.same = own
    if not all(_KEY in each for each in objects):
        return objects
    return {
        f"{each[_KEY]}{name.removeprefix(_VALUE)}": cell
        for each in objects
        for name, cell in each.items()
        if name != _KEY
    }


def marks(source: Any, texts: Iterable[Any]) -> str:
    """Return a Mark for each leaf of a value, in order; an empty array or object is a leaf.

    `texts` are the documents and texts that a model reads. A `source` that is a text has a Mark for
    each of its lines.

    >>> marks({"a": 1, "b": [{"n": "x"}, {"n": "y"}], "c": {}}, [{"b": [{"n": "y"}]}])
    'ooso'
    >>> marks("one\\ntwo\\nthree", ["one\\nth…"])
    'soc'
    """
    if isinstance(source, str):
        lines = "\n".join(text for each in texts for text in _texts(each))
        return _of_lines(source.split("\n"), lines.split("\n"))
    coverage = _Coverage(_Records(source))
    for each in texts:
        if isinstance(each, str):
            coverage.take_text(each)
        else:
            coverage.take(each)
    return "".join(coverage.marks)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict | list):
        for each in value.values() if isinstance(value, dict) else value:
            yield from _texts(each)


def _of_lines(lines: list[str], lines_read: list[str]) -> str:
    """Compare in order: a line counts once for each time that it is shown."""
    signs: list[Mark] = ["o"] * len(lines)
    places: dict[str, list[int]] = {}
    for index, line in enumerate(lines):
        places.setdefault(line.rstrip("\r"), []).append(index)
    after = 0
    for line in lines_read:
        later = [each for each in places.get(line, ()) if each >= after][:1]
        if later:
            signs[later[0]], after = "s", later[0] + 1
        elif _CUT in line and (start := line.partition(_CUT)[0]):
            for index in range(after, len(lines)):
                if lines[index].startswith(start):
                    signs[index], after = "c", index + 1
                    break
    return "".join(signs)


class _Coverage:
    """The marks of a server's answer, which grow with each document and text that is shown."""

    def __init__(self, source: _Records) -> None:
        self._source = source
        self.marks: list[Mark] = ["o"] * source.count
        self._used: set[int] = set()  # records
        self._with: dict[Any, list[int]] = {}  # by value: the records that have it
        self._indexes: dict[int, dict[_Twin, deque[_Leaf]]] = {}
        for number, record in enumerate(source.every):
            for key in {_key(leaf.value) for leaf in record.leaves}:
                self._with.setdefault(key, []).append(number)

    def take(self, document: Any) -> None:
        piece, arrays = _Records(_expanded(document)), dict[int, dict[str, Any]]()
        self._mark(piece.root, self._source.root)
        for record in piece.every[1:]:
            number = self._owner(record)
            if number is not None:
                self._used.add(number)
                owner = self._source.every[number]
                self._mark(record, owner)
                arrays[owner.array] = record.same
        for record in self._source.every[1:]:
            for path, value in arrays.get(record.array, {}).items():
                for leaf in self._at(record, path):
                    self._note(leaf, value)
        for leaf in piece.root.leaves:
            # Beside an answer with structuredContent: what is the same in all rows of an array.
            prefix, _, path = leaf.path.partition(".same.")
            if path and prefix.startswith("_"):
                for each in self._at(self._source.root, path):
                    self._note(each, leaf.value)

    def take_text(self, text: str) -> None:
        """Mark what a text has that is no document, such as the beginning of one: in order."""
        at = 0
        leaves = (leaf for record in self._source.every for leaf in record.leaves)
        for leaf in sorted(leaves, key=lambda each: each.index):
            name = encode(_last(leaf.path).removesuffix("[]")).decode()
            spelled = encode(leaf.value).decode()
            place = text.find(name, at)
            rest = text[place + len(name) :][: len(spelled) + _LONG].lstrip(": ")
            if place >= 0 and rest.startswith(spelled):
                self.marks[leaf.index], at = "s", place + len(name)
            elif _tells(leaf.value) and (place := text.find(spelled.strip('"'), at)) >= 0:
                self.marks[leaf.index], at = "s", place + 1

    def _owner(self, piece: _Record) -> int | None:
        """Return the number of the record that a shown one belongs to; None if no value tells."""
        having = [self._with.get(_key(leaf.value), []) for leaf in piece.leaves]
        every = self._source.every
        numbers = min(filter(None, having), key=len, default=[])
        if not numbers:
            numbers = [n for n, record in enumerate(every) if record.where == piece.where]
        best, rank = None, (0, False, False)
        for count, number in enumerate(numbers):
            if number == 0 or (number in self._used and best is not None and count > _MANY):
                continue
            record = every[number]
            fitting = sum(self._twin(record, leaf) is not None for leaf in piece.leaves)
            here = fitting, record.where == piece.where, number not in self._used
            if fitting and here > rank:
                best, rank = number, here
                if fitting == len(piece.leaves) and here[1] and here[2]:
                    break
        return best

    def _mark(self, piece: _Record, record: _Record) -> None:
        for leaf in piece.leaves:
            if "[" in leaf.path and not leaf.path.endswith("[]"):
                for each in self._at(record, leaf.path):
                    self._note(each, leaf.value)
            elif (own := self._twin(record, leaf)) is not None:
                self._note(own, leaf.value)

    def _note(self, leaf: _Leaf, value: Any) -> None:
        if _key(leaf.value) == _key(value):
            self.marks[leaf.index] = "s"
        elif _begins(leaf.value, value) and self.marks[leaf.index] == "o":
            self.marks[leaf.index] = "c"

    def _twin(self, record: _Record, piece: _Leaf) -> _Leaf | None:
        """Return the leaf of a record that a shown one stands for, by its path, name or value."""
        index = self._index(record)
        for leaves in filter(None, map(index.get, _twins(piece))):
            # The first of equal ones that is not marked yet; at the end the last one again.
            while len(leaves) > 1 and self.marks[leaves[0].index] != "o":
                leaves.popleft()
            return leaves[0]
        cut = isinstance(piece.value, str) and _CUT in piece.value
        leaves_cut = (leaf for leaf in record.leaves if cut and _begins(leaf.value, piece.value))
        return next((leaf for leaf in leaves_cut if _last(leaf.path) == _last(piece.path)), None)

    def _index(self, record: _Record) -> dict[_Twin, deque[_Leaf]]:
        index = self._indexes.setdefault(id(record), {})
        for leaf in record.leaves if not index else ():
            for key in _twins(leaf):
                index.setdefault(key, deque()).append(leaf)
        return index

    def _at(self, record: _Record, path: str) -> Iterator[_Leaf]:
        """Yield the leaves at a path with indexes: `labels[0].name`, `jobs[].id`, `tags[0]`."""
        head, bracket, rest = path.partition("[")
        if not bracket:
            yield from (leaf for leaf in record.leaves if leaf.path == path)
            return
        index, _, tail = rest.partition("]")
        inner: list[Any] = record.inner.get(head, [])
        leaves = [leaf for leaf in record.leaves if leaf.path == f"{head}[]"]
        if index.isdigit():
            inner, leaves = (
                [each[int(index)]] if len(each) > int(index) else [] for each in (inner, leaves)
            )
        if not tail:
            yield from leaves
        for each in inner:
            yield from self._at(each, tail.removeprefix("."))


def _twins(leaf: _Leaf) -> list[_Twin]:
    """Return by what another leaf is the same: path and value, name and value, or value alone."""
    key = _key(leaf.value)
    alone = [("", "", key)] if _tells(leaf.value) else []
    return [("path", leaf.path, key), ("name", _last(leaf.path), key), *alone]


def _last(path: str) -> str:
    return path.rpartition(".")[2]


def _key(value: Any) -> str | bytes:
    return value if isinstance(value, str) else encode(value)


def _tells(value: Any) -> bool:
    """Return True if a value alone tells where it comes from, whatever its name is now."""
    return not isinstance(value, bool | list | dict | None) and len(str(value)) >= _LONG


def _begins(whole: Any, piece: Any) -> bool:
    if not isinstance(whole, str) or not isinstance(piece, str) or _CUT not in piece:
        return False
    return bool(start := piece.partition(_CUT)[0]) and whole.startswith(start)
