"""Statements of a look at a document that are not so for the whole of it.

As the docstring of AbridgeStep has it: values that are after are whole, unless a mark in them says
that they were cut; `same` holds for all rows; what is left out is counted under its path.
"""

import json
import math
import re
from collections import Counter
from collections.abc import Iterator
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from tests.looks.oracle import dumps, search
from tests.looks.reading import Look
from tests.looks.shapes import in_rows
from tests.omissions import below, check_notes, check_text, left_out, unpaired

_SHORTEST = 24  # characters of a text that may be cut
_NAME = re.compile(r'"(?:[^"\\]|\\.)*"|[^.]+')
_POSITION = re.compile(r"\[\d*\]")
_WITHOUT = re.compile(
    r"(\d+) of \d+(\+?) columns(?: in \d+ arrays)?, without (.+?)(?: and (\d+) more)?(?:;|$)"
)
_PARTS = re.compile(r"parts of ([^,;]+?)(?=,|;|$| and \d+ more)")


class Falsehood(Struct, frozen=True):
    """A statement that is not so: its kind, where it stands, and what it says."""

    kind: str
    path: str
    claim: str

    def __str__(self) -> str:
        return f"{self.kind}: {self.path}: {self.claim}"


def falsehoods(source: Any, look: Look, *, lossy: bool = False) -> Iterator[Falsehood]:
    """Yield what `look` says of `source`, the value or the text that it was made of, falsely."""
    if look.whole == source:
        return
    if isinstance(source, str):
        yield from _of_text(source, look)
        return
    notes = {name: note for name, note in look.notes.items() if name != "more"}
    if "_abridged_of_server" in f"{look.value!r}{notes}":
        source = with_marks(source)
    source, notes = in_rows(source, look.notes)
    look = replace(look, notes=notes)
    walk = _Walk(look.notes, lossy)
    walk.value(source, look.value, "")
    walk.stated(source)
    yield from walk.findings
    if not walk.findings:
        look = replace(look, value=_as_texts(look.value)) if lossy else look
        yield from _amounts(source, look)


def _of_text(source: str, look: Look) -> Iterator[Falsehood]:
    if look.text == source:
        return
    try:
        check_text(source, look.text, look.notes)
    except (AssertionError, KeyError) as error:
        yield Falsehood("text", "text", f"{error} {look.notes}")
    numbers = re.findall(r"(?<![\d:])\d+(?=[,\s]|$)", look.notes.get("text", "").partition(":")[2])
    for number in map(int, numbers):
        if not 1 <= number <= source.count("\n") + 1:
            yield Falsehood("text", "text", f"there is no line {number}")


def _amounts(source: Any, look: Look) -> Iterator[Falsehood]:
    if " columns" in str(look.notes.get("others")):
        return  # of which array is not said
    at = "items" if isinstance(source, list) else ""
    value = look.value
    if isinstance(source, list) and isinstance(value, dict) and value.keys() == {"items"}:
        value = value["items"]
    try:
        check_notes(left_out(source, value, at, notes=look.notes), look.notes)
    except Exception as error:  # any of them is a sum that is not right
        several = re.search(r" columns in \d+ arrays", str(look.notes))
        if several or (isinstance(error, AssertionError) and _same_path_twice(look.notes)):
            return  # arrays of one path in different forms
        kind = "remark" if "@.more" in look.notes and "more" not in value else "amounts"
        yield Falsehood(kind, "@", f"{error!r} in {look.notes}")


def _same_path_twice(notes: dict[str, Any]) -> bool:
    """Return True if arrays in arrays of rows are cut, as in a tree."""
    briefs = [name for name, note in notes.items() if " columns" in str(note)]
    return any(each.startswith(f"{name}.") for each in notes for name in briefs)


def with_marks(value: Any) -> Any:
    """Mark the server's own members `_abridged`, as an answer does that is cut."""
    if isinstance(value, list):
        return [*map(with_marks, value)]
    if not isinstance(value, dict):
        return value
    own = re.compile("_abridged(?:_of_server)*")
    return {
        f"{name}_of_server" if own.fullmatch(name) else name: with_marks(each)
        for name, each in value.items()
    }


def _as_texts(value: Any) -> Any:
    """Return the cells of CSV as they are written there."""
    if isinstance(value, list):
        return [*map(_as_texts, value)]
    if isinstance(value, dict):
        return {name: _as_texts(each) for name, each in value.items()}
    return "" if value is None else str(value)


class _Walk:
    def __init__(self, notes: dict[str, Any], lossy: bool) -> None:
        self.findings: list[Falsehood] = []
        self._notes, self._lossy = notes, lossy

    def _wrong(self, kind: str, path: str, claim: object) -> None:
        self.findings.append(Falsehood(kind, path or "@", f"{claim!s:.300}"))

    def value(self, source: Any, after: Any, path: str) -> None:
        if isinstance(source, list) and isinstance(after, list) and after[-1:] == ["…"]:
            source, after = source[: len(after) - 1], after[:-1]  # says itself that there are more
        if not path and isinstance(source, list):
            wrapped = isinstance(after, dict) and "items" in after
            after, path = after["items"] if wrapped else after, "items"
        if _is_table(after) and not (isinstance(source, dict) and source.keys() >= after.keys()):
            self._table(source, after, path)
        elif isinstance(source, dict) and isinstance(after, dict):
            self._members(source, after, path)
        elif isinstance(source, list) and isinstance(after, list):
            self._elements(source, after, path)
        else:
            self._cell(source, after, path)

    def _members(self, source: dict[str, Any], after: dict[str, Any], path: str) -> None:
        if source and not after and not self._in_brief(path):
            self._wrong("empty", path, f"{{}} of {len(source)} members")
        for name, each in after.items():
            at = below(path, name)
            if name not in source:
                self._wrong("cell", at, f"{each!r} of no such member")
            else:
                self.value(source[name], each, at)

    def _elements(self, source: list[Any], after: list[Any], path: str) -> None:
        if source and not after:
            self._wrong("empty", path, f"[] of {len(source)} elements")
        self._aligned(source, after, path, lambda one, other: self.value(one, other, f"{path}[]"))
        if {*map(type, source)} == {dict} and len(after) > 2:
            visible = {name for each in after if isinstance(each, dict) for name in each}
            if self._note(path).count("columns"):
                self._columns(source, len(after), visible, path)

    def _table(self, source: Any, after: dict[str, Any], path: str) -> None:
        rows = source
        if isinstance(source, dict):
            rows = [{"key": name, "value": value} for name, value in source.items()]
        if not isinstance(rows, list):
            self._wrong("cell", path, f"a table of {source!r:.80}")
            return
        self._stated(rows, after.get("same", {}), after.get("counts", {}), path)
        names = after["columns"]
        source = rows
        rows, after = unpaired(rows, after)
        columns = after["columns"]
        visible = {*columns, *after.get("same", {}), *after.get("counts", {})}
        without = self._without(rows, {_names(name)[0] for name in visible}, path)
        if without and " in " not in without[0].partition(",")[0]:  # several arrays
            for claim in _of_columns(rows, after, without):
                self._wrong("columns", path, f"{without[0]}, but {claim}")

        def check(one: Any, cells: list[Any]) -> None:
            if len(cells) != len(names):
                self._wrong("cell", path, f"{len(cells)} cells in {len(names)} columns")
            if _is_other(one, names, cells) and {*_members(one)} - {*after.get("same", {})}:
                return
            for name, cell in zip(names, cells, strict=False):
                self.value(search(name, one), cell, f"{path}[].{name}")

        self._aligned(source, after["rows"], path, check)
        self._columns(rows, len(after["rows"]), {_names(name)[0] for name in visible}, path)

    def stated(self, source: Any) -> None:
        """Hold what the notes say of all rows of an array against them."""
        for word in ("same", "counts"):
            for name, fact in self._notes.get(word, {}).items():
                array, _, column = name.partition("[].")
                at_top = isinstance(source, list) and array == "items"
                rows = source if at_top else search(array, source)
                facts: dict[str, Any] = {"same": {}, "counts": {}, word: {column: fact}}
                self._stated(rows, facts["same"], facts["counts"], array)

    def _stated(
        self, rows: list[Any], same: dict[str, Any], counts: dict[str, Any], path: str
    ) -> None:
        for name, value in same.items():
            for number, row in enumerate(rows):
                cell = search(name, row)
                if self._text(cell) != self._text(value):
                    claim = f"{name}: {value!r}, but {cell!r:.80} in [{number}]"
                    self._wrong("same", path, claim)
                    break
        for name, claims in counts.items():
            cells = [self._spelled(search(name, row)) for row in rows]
            numbers = Counter(cells)
            for value, claim in claims.items():
                spelling = self._spelled(value)
                number, at = numbers.pop(spelling, 0), " at " in str(claim)
                places = (f"[{n}]" for n, cell in enumerate(cells) if cell == spelling and at)
                right = str(number) + f" at {', '.join(places)}" * at
                if str(claim) != right:
                    self._wrong("counts", path, f"{name}: {value}: {claim}, where {right} is right")
            if numbers:
                self._wrong("counts", path, f"{name}: {claims} without {numbers}")

    def _spelled(self, cell: Any) -> str:
        """Return a value as its count names it."""
        text = cell if isinstance(cell, str) else dumps(cell)
        return text if not self._lossy or text != "null" else ""

    def _in_brief(self, path: str) -> bool:
        """Return True if a value is a row, of which a note says what is left out or the same."""
        array = path.removesuffix("[]")
        notes = (self._note(array), self._notes.get("others"))
        return array != path and (" columns" in str([*notes]) or bool(self._stated_columns(array)))

    def _note(self, path: str) -> str:
        """Return the note on a path; of a member that is called as a note is, it begins with @."""
        note = self._notes.get(f"@.{path}", self._notes.get(path or "@"))
        return note if isinstance(note, str) else ""

    def _stated_columns(self, path: str) -> list[str]:
        """Return the columns of the array at `path` of which the notes speak for all rows."""
        stated = [*self._notes.get("same", {}), *self._notes.get("counts", {})]
        parts = (_POSITION.sub("", name.replace("[].", " ", 1)).partition(" ") for name in stated)
        return [column for array, _, column in parts if array == _POSITION.sub("", path)]

    def _without(self, rows: list[Any], visible: set[str], path: str) -> re.Match[str] | None:
        """Return the note at `path` on columns, if these rows have one of them that is not shown.

        Otherwise it is about other arrays at that path.
        """
        without = _WITHOUT.search(self._note(path))
        listed = {_names(name)[0] for name in _listed(without)} - visible
        here = any(_in(name, listed) for row in rows if isinstance(row, dict) for name in row)
        return without if here else None

    def _columns(self, rows: list[Any], count: int, visible: set[str], path: str) -> None:
        """Hold the members of the rows that are shown to be visible or listed."""
        rows = rows[: count - (count < len(rows))]
        visible = visible | {_names(column)[0] for column in self._stated_columns(path)}
        every = dict.fromkeys(name for row in rows if isinstance(row, dict) for name in row)
        without = _WITHOUT.search(self._note(path))
        summed = without is None and "columns" in str(self._notes.get("others"))
        if summed or self._in_parts(path):
            return  # said of others, or of rows around these
        listed = {_names(name)[0] for name in _listed(without)}
        more = int(without[4] or 0) if without else 0
        rest = [name for name in every if name not in visible and not _in(name, listed)]
        if len(rest) > more:
            self._wrong("columns", path, f"{rest} are not said to be left out")

    def _in_parts(self, path: str) -> bool:
        """Return True if an array stands in rows of which parts of that member are shown."""
        for array, note in self._notes.items():
            for column in _PARTS.findall(str(note)):
                if f"{path}.".startswith(f"{array.removeprefix('@.')}.{column}."):
                    return True
        return False

    def _aligned(self, source: list[Any], after: list[Any], path: str, check: Any) -> None:
        """Hold what is shown against the first elements, or the first ones and the last."""
        if len(after) > len(source):
            self._wrong("amounts", path, f"{len(after)} of {len(source)}")
            return
        ways = [source[: len(after)]]
        if 0 < len(after) < len(source):
            ways.append([*source[: len(after) - 1], source[-1]])
        before = len(self.findings)
        results: list[list[Falsehood]] = []
        for way in ways:
            for one, other in zip(way, after, strict=True):
                check(one, other)
            results.append(self.findings[before:])
            del self.findings[before:]
        self.findings += sorted(results, key=len)[0]

    def _text(self, value: Any) -> Any:
        if self._lossy and not isinstance(value, str):
            return "" if value is None else str(value)
        return value

    def _cell(self, source: Any, after: Any, path: str) -> None:
        if source == after and isinstance(source, bool) == isinstance(after, bool):
            return
        if after == "…" and isinstance(source, list | dict):
            return  # counted as left out
        spells = self._lossy and isinstance(source, str) and not isinstance(after, str)
        if spells and (self._text(after) == source or _number(source) == after):
            return
        if after in (None, "") and source not in (None, ""):
            self._wrong("empty", path, f"{after!r} of {source!r:.80}")
        elif not (isinstance(source, str) and isinstance(after, str) and is_cut(source, after)):
            self._wrong("cell", path, f"{after!r:.80} of {source!r:.80}")


def is_cut(source: str, after: str) -> bool:
    """Return True if a text is shown in part, and says so where it was cut."""
    if re.fullmatch(r"\[.+ left out\]", after):
        return True
    for mark in re.finditer("…", after):
        first, last = after[: mark.start()], after[mark.end() :]
        if source.startswith(first) and source.endswith(last):
            return bool(first) and _SHORTEST < len(source) > len(first) + len(last)
    return False


def _number(text: str) -> float:
    try:
        return float(text)
    except ValueError:
        return math.nan


def _is_table(value: Any) -> bool:
    parts = {"same", "counts"}
    return isinstance(value, dict) and value.keys() | parts == parts | {"columns", "rows"}


def _is_other(row: Any, names: list[str], cells: list[Any]) -> bool:
    """Return True if a row is said to be of another kind: it has none of the columns."""
    others = all(search(name, row) is None for name in names)
    return others and cells[:1] == ["…"] and not any(cells[1:])


def _members(row: Any) -> Iterator[str]:
    return (name for name, value in row.items() if value is not None)


def _names(column: str) -> list[str]:
    return [*map(name_in, _NAME.findall(_POSITION.sub("", column)))] or [""]


def _of_columns(rows: list[Any], after: dict[str, Any], without: re.Match[str]) -> Iterator[str]:
    """Yield what is not so in the note on the columns of a table."""
    counts = after.get("counts", {}).items()
    complete = (name for name, each in counts if str(each).count(" at [") == len(each) - 1)
    every = (*after["columns"], *after.get("same", {}), *complete)
    whole = {name.partition("[")[0] for name in every} - _listed(without)
    if int(without[1]) != len(whole) and not without[4]:
        yield f"{whole} are shown"
    filled = {
        name.partition("[")[0]
        for name, *cells in zip(after["columns"], *after["rows"], strict=True)
        if not {*map(str, cells)} <= {"None", "…"}
    }
    if both := filled.intersection(without[3].split(", ")):
        yield f"parts of {both} are shown"
    if (len(after["rows"]) < len(rows)) != bool(without[2]):
        yield f"{len(after['rows'])} of {len(rows)} rows are shown"


def _listed(without: re.Match[str] | None) -> set[str]:
    return {each.removeprefix("parts of ") for each in without[3].split(", ")} if without else set()


def _in(name: str, listed: set[str]) -> bool:
    """Return True if a name is listed; one that is long or not printable is listed in part."""
    cut = (each.partition("…")[0] for each in listed if "…" in each)
    return name in listed or name.startswith((*cut,))


def name_in(name: str) -> str:
    return str(json.loads(name)) if name[:1] == '"' else name
