"""The functions with which a model asks a result: search, overview, lines, counts by a member.

Without them, a view can cut a text but not search it, and cannot count. They work in views, and in
the expressions of rules. Each applies to the value before it: `items[0].body | grep('fail')`.
"""

import re
from bisect import bisect_right
from collections.abc import Iterable, Iterator
from io import StringIO
from itertools import accumulate, islice
from typing import Any

from jmespath.functions import signature

from mcp_abridge.document.fuel import Fuel, characters, charge
from mcp_abridge.document.paths import spelled
from mcp_abridge.document.tree import encode
from mcp_abridge.errors import Refusal
from mcp_abridge.query.amounts import Amounts
from mcp_abridge.query.headings import headings
from mcp_abridge.query.patterns import Pattern

_AROUND = 300  # characters of a line, or of a string, that are shown around a hit
_SNIPPET = 120  # characters around a hit in a member of an object
_MOST_HITS = 1000  # hits that are described
_MOST_COUNTED = 2500  # hits; a search goes no further
_MOST_CONTEXT = 50  # lines before and after a hit
_HEADINGS = 200  # headings of an outline
_BATCH = 1000  # texts that are searched together
_PATTERNS = 16  # compiled patterns that are kept
_COMPILED = 100  # units to compile a pattern
_SAMPLE = 200  # elements of an array that an outline reads
_RECORD = 60  # members; of an object with more, a map, the names are searched, too

Key = str | int
Place = tuple[Any, Key] | None
"""Where a value is: the place of the object or array that it is in, and its name or index there."""
Texts = tuple[list[str], list[Place], list[Key]]
"""Texts, the places of the objects and arrays that they are in, and their keys there."""


class Questions(Amounts):
    """The functions beside those of JMESPath; `current` is the value that a call is applied to."""

    current: Any = None
    _fuel: Fuel
    _patterns: dict[str, Pattern] | None = None

    @signature({"types": ["string", "number"], "variadic": True})
    def _func_grep(self, pattern: Any, context: Any = 0, *_: Any) -> Any:
        if isinstance(context, str):
            raise Refusal("grep('pattern', 3): 3 lines of context; (?i) before it ignores case")
        around, pattern = min(max(int(context), 0), _MOST_CONTEXT), str(pattern)
        remaining, value = self._fuel.remaining, self.current
        # Numbers are searched too if the pattern may fit one.
        texts = _texts(value, numbers=re.search(r"\d|\\d", pattern) is not None)

        def search(flags: str) -> dict[str, Any]:
            compiled = self._pattern(f"(?{flags}){pattern}")
            if isinstance(value, str):
                return _lines_with(value, compiled, around, self._fuel)
            return _strings_with(texts, compiled, self._fuel)

        result = search("m")
        if result["hits"] or 3 * self._fuel.remaining < 2 * remaining:
            return result
        other = search("im")
        return {**result, "ignoring_case": other} if other["hits"] else result

    @signature({"types": ["number"]})
    def _func_head(self, count: Any) -> Any:
        return self._part("head", 1, int(count))

    @signature({"types": ["number"]})
    def _func_tail(self, count: Any) -> Any:
        return self._part("tail", -int(count), None if count > 0 else 0)

    @signature({"types": ["number"]}, {"types": ["number"]})
    def _func_lines(self, first: Any, last: Any) -> Any:
        return self._part("lines", int(first), int(last))

    def _part(self, name: str, first: int, last: int | None) -> Any:
        """Return a range of lines or elements; a negative `first` counts from the end."""
        value = self.current
        if isinstance(value, dict) and "hits" in value:  # of a search
            value = value.get("lines") or value.get("at") or []
        if isinstance(value, list):
            self._fuel.burn(len(value))
            parts: Any = value
        elif isinstance(value, str):
            self._fuel.burn(characters(value) + value.count("\n") * 4)
            parts = list(StringIO(value, newline="\n"))
        else:
            raise Refusal(f"{name}() applies to a text or an array, not to {_kind(value)}")
        start = max(len(parts) + first, 0) if first < 0 else max(first, 1) - 1
        parts = parts[start : None if last is None else max(last, 0)]
        return parts if isinstance(value, list) else "".join(parts)

    @signature()
    def _func_outline(self) -> Any:
        charge(self.current, self._fuel)
        if isinstance(self.current, str):
            return _headings(self.current, self._fuel)
        return dict(_members(self.current))

    @signature({"types": []}, {"types": ["string"]})
    def _func_matches(self, text: Any, pattern: str) -> bool:
        """Return True if a text has a match of a regular expression; False if it is no text."""
        if not isinstance(text, str):
            return False
        return self._pattern(pattern).search(text, self._fuel) is not None

    def _pattern(self, text: str) -> Pattern:
        """Return a compiled pattern; a few are kept, since `matches` asks each element."""
        if self._patterns is None or len(self._patterns) > _PATTERNS:
            self._patterns = {}
        if text not in self._patterns:
            self._fuel.burn(_COMPILED + len(text))
            self._patterns[text] = Pattern(text, modest=True)
        return self._patterns[text]

    # A value of another kind does not match: it is noted by `Kinds`, for a remark.
    @signature({"types": []}, {"types": []})
    def _func_contains(self, value: Any, part: Any) -> bool:
        holds = isinstance(value, list) or (isinstance(value, str) and isinstance(part, str))
        return holds and part in value

    @signature({"types": []}, {"types": ["string"]})
    def _func_starts_with(self, text: Any, part: str) -> bool:
        return isinstance(text, str) and text.startswith(part)

    @signature({"types": []}, {"types": ["string"]})
    def _func_ends_with(self, text: Any, part: str) -> bool:
        return isinstance(text, str) and text.endswith(part)

    @signature({"types": ["object"]})
    def _func_entries(self, value: dict[str, Any]) -> list[dict[str, Any]]:
        self._fuel.burn(len(value))
        return [{"key": name, "value": member} for name, member in value.items()]

    @signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_count_by(self, array: list[Any], by: Any) -> dict[str, int]:
        counts = {key: len(elements) for key, elements in self._func_group_by(array, by).items()}
        return dict(sorted(counts.items(), key=lambda item: -item[1]))

    @signature({"types": ["array"]}, {"types": ["expref"]})
    def _func_group_by(self, array: list[Any], by: Any) -> dict[str, list[Any]]:
        groups: dict[str, list[Any]] = {}
        for element, name in zip(array, self._groups(array, by), strict=True):
            groups.setdefault(name, []).append(element)
        return groups

    @signature({"types": ["array"]})
    def _func_unique(self, array: list[Any]) -> list[Any]:
        charge(array, self._fuel, 2)
        first: dict[bytes, Any] = {}
        for element in array:
            first.setdefault(encode(element), element)
        return [*first.values()]


def _lines_with(text: str, pattern: Pattern, context: int, fuel: Fuel) -> dict[str, Any]:
    hits, number, counted, visible_end = 0, 1, 0, -1
    lines: list[dict[str, Any]] = []
    for at, _ in islice(pattern.spans(text, fuel), _MOST_COUNTED):
        hits += 1
        if at < visible_end or len(lines) == _MOST_HITS:
            continue
        number += text.count("\n", counted, at)
        counted = at
        start, visible_end = _line_around(text, at)
        before, after = start, visible_end
        for _ in range(context):
            before = _line_around(text, before - 1)[0] if before > 0 else 0
            after = _line_around(text, after + 1)[1] if after < len(text) else after
        fuel.burn(8 + (after - before) // 16)
        first = number - text.count("\n", before, at)
        lines.append({"line": first, "offset": before, "text": text[before:after]})
        visible_end = after
    return _described(hits, "lines", lines)


def _line_around(text: str, at: int) -> tuple[int, int]:
    """Return the start and the end of the line at `at`; of the part around it if it is long."""
    start = text.rfind("\n", max(0, at - _AROUND), at) + 1
    if not start:
        start = max(0, at - _AROUND)
    end = text.find("\n", at, at + _AROUND)
    if end < 0:
        end = min(len(text), at + _AROUND)
    if end - start > _AROUND:
        start = max(start, at - _AROUND // 2)
        end = min(end, start + _AROUND)
    return start, end


def _strings_with(texts: Texts, pattern: Pattern, fuel: Fuel) -> dict[str, Any]:
    contents, places, keys = texts
    fuel.burn(len(contents))
    hits = [*islice(_with_match(contents, pattern, fuel), _MOST_COUNTED)]
    entries = []
    for index in hits[:_MOST_HITS]:
        text = contents[index]
        start = pattern.search(text, fuel).start() if len(text) > _SNIPPET else 0
        path = _path(places[index], keys[index])
        entries.append({"path": path, "text": _snippet(text, start)})
    return _described(len(hits), "at", entries)


def _described(hits: int, name: str, entries: list[Any]) -> dict[str, Any]:
    result: dict[str, Any] = {"hits": hits, name: entries}
    if len(entries) == _MOST_HITS or hits == _MOST_COUNTED:
        most = f"at most {_MOST_HITS} are listed, and {_MOST_COUNTED} counted"
        result["more"] = f"{most}; use a narrower pattern"
    return result


def _with_match(texts: list[str], pattern: Pattern, fuel: Fuel) -> Iterator[int]:
    """Yield the index of each text with a match; to search through many at once is quicker."""
    size = 1 if re.search(r"\\[Az]", pattern.text) else _BATCH
    for first in range(0, len(texts), size):
        batch = texts[first : first + size]
        whole = "\n".join(batch).encode()
        at, ends = 0, list[int]()
        while at <= len(whole) and (match := pattern.search(whole, fuel, at)) is not None:
            ends = ends or [*accumulate(len(text.encode()) + 1 for text in batch)]
            index = bisect_right(ends, match.start())
            if match.end() >= ends[index]:  # it goes on in the next text, and may hide a match
                rest = range(first + index, first + len(batch))
                yield from (each for each in rest if pattern.search(texts[each], fuel))
                break
            yield first + index
            at = ends[index]


def _texts(value: Any, *, numbers: bool) -> Texts:
    """Return the strings inside a value, the names in maps, and the numbers as they are written."""
    texts, places, keys = list[str](), list[Place](), list[Key]()

    def walk(items: Iterable[tuple[Key, Any]], place: Place) -> None:
        for key, item in items:
            kind = type(item)
            if kind is str:
                texts.append(item)
            elif kind is dict:
                walk(_by_name(item), (place, key))
                continue
            elif kind is list:
                walk(enumerate(item), (place, key))
                continue
            elif numbers and kind is not bool and item is not None:
                texts.append(str(item) if kind is int else encode(item).decode())
            else:
                continue
            places.append(place)
            keys.append(key)

    walk([("", value)], None)
    return texts, places, keys


def _by_name(members: dict[str, Any]) -> Iterable[tuple[str, Any]]:
    if len(members) <= _RECORD:
        return members.items()
    return ((name, part) for name, member in members.items() for part in (name, member))


def _path(place: Place, key: Key) -> str:
    """Return as JMESPath where the value of a key is."""
    path = ""
    while place is not None:
        path = (f"[{key}]" if isinstance(key, int) else f".{spelled(key)}") + path
        place, key = place
    return path.removeprefix(".") or "@"


def _snippet(text: str, at: int) -> str:
    start = max(0, min(at - _SNIPPET // 3, len(text) - _SNIPPET))
    part = text[start : start + _SNIPPET]
    return f"{'…' * (start > 0)}{part}{'…' * (start + _SNIPPET < len(text))}"


def _headings(text: str, fuel: Fuel) -> dict[str, Any]:
    listed = [
        {"line": heading.line, "text": heading.text}
        for heading in islice(headings(text, fuel), _HEADINGS)
    ]
    lines = text.count("\n") + (not text.endswith("\n"))
    return {"text": f"{lines} lines, {len(text)} characters", "headings": listed}


def _members(value: Any) -> Iterator[tuple[str, str]]:
    """Yield the paths inside a value to two levels, each with its kind and size."""
    yield "@", _kind(value)
    waiting = [("", value, 2)]
    while waiting:
        path, item, levels = waiting.pop(0)
        inside: list[tuple[str, list[Any], str]] = []
        if isinstance(item, dict):
            for name, member in islice(item.items(), _SAMPLE):
                inside.append((_member_path(path, name), [member], ""))
        elif isinstance(item, list):
            rows = [row for row in item[:_SAMPLE] if isinstance(row, dict)]
            names = dict.fromkeys(name for row in rows for name in row)
            for name in islice(names, _SAMPLE):
                values = [row[name] for row in rows if name in row]
                rare = f"; in {len(values)} of {len(rows)}" if len(values) < len(rows) else ""
                inside.append((_member_path(f"{path}[]", name), values, rare))
        for member_path, values, rare in inside:
            largest = max(values, key=_weight)
            yield member_path, _kind(largest) + rare
            if levels > 1 and isinstance(largest, dict | list):
                waiting.append((member_path, largest, levels - 1))


def _member_path(path: str, name: str) -> str:
    return f"{path}.{spelled(name)}" if path else spelled(name)


def _weight(value: Any) -> int:
    return len(value) if isinstance(value, str | list | dict) else 0


def _kind(value: Any) -> str:
    if isinstance(value, str):
        return f"text of {len(value)}"
    if isinstance(value, dict | list):
        kind = "object" if isinstance(value, dict) else "array"
        return f"{kind} of {len(value)}, {len(encode(value))} bytes"
    if value is None:
        return "null"
    return "boolean" if isinstance(value, bool) else "number"
