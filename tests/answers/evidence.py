"""Checks whether the evidence of a question stands in what a model has read.

Answers are read as far as they are JSON, whole or in parts, and taken apart into units: a row (an
element of an array, a line of a table, a member of a map) with what its surroundings say of it, or
a line of a text. Values stand together if one unit has all of them.
"""

import json
import re
from collections import defaultdict
from collections.abc import Iterable, Iterator
from typing import Any

from msgspec import Struct

from tests.answers.question import Alone, Atom, Question, Row

_ALONE = 1000  # characters of an answer that is about one thing
_ROW = 8000  # characters of a row; of a longer one, its parts are units
_MAP = 30  # members; an object with more is a map, and each member a row
_INTRO = 300  # characters of a text that belongs to what is inside of the same object
_NEAR = 300  # characters between values in a longer text, if the question does not say
_WORD = re.compile(r"\w+")
_ONE_ROW = re.compile(r'"view": ?"(?:.*(?:\[\d+\]|\.\\"[^"]*\\")|(?:max|min)_by\([^()]*\))"\}$')
_OPENING = re.compile(r'\{(?=\s*["}])|\[(?=\s*(?:[\[{"\d\]-]|true|false|null))')
_NAME = re.compile(r'"([^"\\]*)"\s*:\s*$')
_DECODER = json.JSONDecoder(parse_float=str, parse_int=str)


class Unit(Struct, frozen=True):
    """Text whose values stand together, and what the objects around it say."""

    text: str
    around: str = ""


class Evidence:
    """The evidence of a question; `stands_with` is told of each answer, and joins them."""

    def __init__(self, question: Question) -> None:
        self._missing = [list(atoms) for atoms in question.evidence]
        self._parts: dict[str, str] = defaultdict(str)

    def stands_with(self, text: str, request: str = "") -> bool:
        """Return True if the evidence stands with this answer to `request` and those before."""
        if not text:
            return False
        page = _Page(text, request)
        self._missing = [
            [atom for atom in atoms if not (page.has(atom) or self._joins(page, atom))]
            for atoms in self._missing
        ]
        return not all(self._missing)

    def _joins(self, page: "_Page", atom: Atom) -> bool:
        """Return True if the parts of a row that this answer and those before had are the row."""
        if isinstance(atom, Alone) or not atom.key:
            return False
        self._parts[atom.key] += page.parts(atom.key)
        return all(stands_in(each, self._parts[atom.key]) for each in (*atom.answer, *atom.context))


class _Page:
    """One answer, taken apart; units are found by the words in them."""

    def __init__(self, text: str, request: str) -> None:
        self._text, self._request = text, request
        self._opens_row = bool(_ONE_ROW.search(request))
        self._units: dict[str, list[Unit]] = defaultdict(list)
        self._documents = list(documents(text))
        for unit in self._taken_apart():
            for word in set(_WORD.findall(unit.text)):
                self._units[word].append(unit)

    def _taken_apart(self) -> Iterator[Unit]:
        for document in self._documents:
            if isinstance(document, str):
                yield from map(Unit, document.split("\n"))
            else:
                yield from units(document)
                if self._opens_row and isinstance(document, dict):
                    yield from _row(document.get("view"), "")

    def has(self, atom: Row | Alone) -> bool:
        if isinstance(atom, Alone):
            text = self._text if len(self._text) <= _ALONE else _head(self._text)
            return all(stands_in(each, text) for each in atom.values)
        # Of the values, one stands in the unit itself, the others may stand around it.
        words = {max(_WORD.findall(each), key=len) for each in atom.answer}
        candidates = sorted((self._units.get(word, []) for word in words), key=len)
        if any(self._has_all(atom, unit) for rarest in candidates for unit in rarest):
            return True
        return bool(atom.near) and any(
            self._near(atom, text) for text in (self._text, *long_texts(self._documents))
        )

    def parts(self, key: str) -> str:
        word = max(_WORD.findall(key), key=len)
        units = [unit for unit in self._units.get(word, ()) if stands_in(key, unit.text)]
        return "".join(f"{unit.text}\n{unit.around}\n" for unit in units if len(unit.text) <= _ROW)

    def _has_all(self, row: Row, unit: Unit) -> bool:
        if len(unit.text) > _ROW:
            return self._near(row, unit.text, unit.around)
        whole = f"{unit.text}\n{unit.around}"
        return all(stands_in(each, whole) for each in row.answer) and self._in_context(row, whole)

    def _near(self, row: Row, text: str, around: str = "") -> bool:
        near = row.near or _NEAR
        for start in _positions(row.answer[0], text):
            window = text[max(start - near, 0) : start + len(row.answer[0]) + near]
            whole = f"{window}\n{around}"
            if all(stands_in(each, whole) for each in row.answer) and self._in_context(row, whole):
                return True
        return False

    def _in_context(self, row: Row, whole: str) -> bool:
        return all(stands_in(each, whole) or stands_in(each, self._request) for each in row.context)


def stands_in(value: str, text: str) -> bool:
    """Return True if a value stands in a text as a whole: 7 is not in 17, 7.5 or v7."""
    return next(_positions(value, text), -1) >= 0


def _positions(value: str, text: str) -> Iterator[int]:
    start = text.find(value)
    while start >= 0:
        end = start + len(value)
        before, after = text[start - 1 : start], text[end : end + 2]
        part = value[0].isalnum() and (before.isalnum() or before in ("_", "."))
        goes_on = (
            after[:1].isalnum() or after[:1] == "_" or (after[:1] == "." and after[1:].isdigit())
        )
        if not part and not (value[-1].isalnum() and goes_on):
            yield start
        start = text.find(value, start + 1)


def documents(text: str) -> Iterator[Any]:
    """Read JSON wherever it stands in a text, whole or the parts of it that are; then the rest.

    >>> list(documents('Two:\\n[{"a": 1}, {"b": 2}, {"c"'))
    [{'a': '1'}, {'b': '2'}, 'Two:\\n[, , {"c"']
    >>> list(documents('{"a": {"b": 1}, "c"'))
    [{'a': {'b': '1'}}, '{"a": , "c"']
    """
    rest, start, position = [], 0, 0
    while match := _OPENING.search(text, position):
        try:
            value, position = _DECODER.raw_decode(text, match.start())
        except (ValueError, RecursionError):
            position = match.end()
            continue
        if not any(True for _ in _scalars(value)):
            continue
        before = text[start : match.start()]
        rest.append(before)
        start = position
        name = _NAME.search(before)
        yield {name[1]: value} if name else value
    yield "".join([*rest, text[start:]])


def units(value: Any, around: str = "") -> Iterator[Unit]:
    """Take a document apart into rows; each has what the objects around it say."""
    if not around and _without_rows(value):
        yield Unit(" ".join(_scalars(value)))
    if isinstance(value, list):
        yield from _elements(value, around)
    elif isinstance(value, dict) and len(value) > _MAP:
        for name, member in value.items():
            yield from _row({name: member}, around)
    elif isinstance(value, dict):
        yield from _members(value, around)
    elif isinstance(value, str):
        yield from _lines(value, around)


def _elements(elements: list[Any], around: str) -> Iterator[Unit]:
    if _of_containers(elements):
        for element in elements:
            yield from _row(element, around)
    else:
        whole = " ".join(_scalars(elements))
        if len(whole) <= _ROW:
            yield Unit(whole, around)
        for element in elements:
            yield from units(element, around)


def _row(value: Any, around: str) -> Iterator[Unit]:
    whole = " ".join(_scalars(value))
    if len(whole) <= _ROW:
        yield Unit(whole, around)
    elif isinstance(value, dict):
        yield from _members(value, around)
    else:
        yield from units(value, around)


def _members(members: dict[str, Any], around: str) -> Iterator[Unit]:
    own = [
        " ".join(_scalars({name: member}))
        for name, member in members.items()
        if not isinstance(member, dict | list) and not _long(member)
    ]
    table = any(isinstance(each, list) and _of_containers(each) for each in members.values())
    nested = [
        " ".join(_scalars(member))
        for member in members.values()
        if isinstance(member, dict | list) and not _of_containers(_values(member))
        if (isinstance(member, list) or table) and len(member) <= _MAP
    ]
    if own:
        yield Unit("\n".join(own), around)
    inner = "\n".join([around, *own, *nested])
    for name, member in members.items():
        if isinstance(member, dict | list) or _long(member):
            yield from units(member, f"{inner}\n{name}")


def _lines(text: str, around: str) -> Iterator[Unit]:
    if text[:1] in ("{", "["):
        for document in documents(text):
            if not isinstance(document, str):
                yield from units(document, around)
    for line in text.split("\n"):
        yield Unit(line, around)


def _head(text: str) -> str:
    """Return the head of a text, before its rows: a short beginning, and scalars beside them."""
    match = _OPENING.search(text)
    if match is None:
        return text[:_INTRO].partition("\n")[0]
    try:
        value, end = _DECODER.raw_decode(text, match.start())
    except (ValueError, RecursionError):
        return ""
    if len(text) - end > _ALONE:
        return ""
    return "\n".join([text[: match.start()][:_INTRO], *_beside(value)])


def _beside(value: Any) -> Iterator[str]:
    """Name the scalars that stand in no array, text or map."""
    if isinstance(value, dict) and len(value) <= _MAP:
        for member in value.values():
            yield from _beside(member)
    elif not isinstance(value, dict | list) and not _long(value):
        yield from _scalars(value)


def long_texts(value: Any) -> Iterator[str]:
    """Name the texts in a document in which values may stand apart from each other."""
    if _long(value):
        yield value
    elif isinstance(value, dict | list):
        for each in _values(value):
            yield from long_texts(each)


def _values(value: dict[str, Any] | list[Any]) -> Iterable[Any]:
    return value.values() if isinstance(value, dict) else value


def _of_containers(values: Iterable[Any]) -> bool:
    return any(isinstance(each, dict | list) for each in values)


def _long(value: Any) -> bool:
    return isinstance(value, str) and (len(value) > _INTRO or "\n" in value)


def _without_rows(value: Any) -> bool:
    if not isinstance(value, dict | list):
        return not _long(value)
    several = isinstance(value, list) and len(value) > 1 and _of_containers(value)
    return not several and len(value) <= _MAP and all(map(_without_rows, _values(value)))


def _scalars(value: Any) -> Iterator[str]:
    if isinstance(value, dict):
        for name, member in value.items():
            yield name
            yield from _scalars(member)
    elif isinstance(value, list):
        for member in value:
            yield from _scalars(member)
    elif isinstance(value, str):
        yield value
    else:
        yield {True: "true", False: "false"}.get(value, "null")
