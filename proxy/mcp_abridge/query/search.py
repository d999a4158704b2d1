"""The search of `grep` in a text or in structure: without it, a view can cut a text, not search it.

All matches are counted, and each number is named for what it counts. A view shows the first hits,
each with text around its match, and counts the others by place (`first_hits`). The path of a hit in
structure is a view, as are `more`, which shows what is around it in a long text, and `view` of the
row that it lies in: an element of an array, or a member of a map.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, compress, islice
from operator import attrgetter
from typing import Any

from msgspec import Raw

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.names import spelled
from mcp_abridge.document.tree import Number, encode, level, loads, row_type, rows
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.query.places import (
    RECORD,
    Member,
    PathKey,
    Rows,
    general_path,
    members,
    names_row,
    path_of,
    row_of,
    text_of,
)

FIRST = 20  # hits that a view shows
LISTED = 1000
"""The hits that are described, for `grep('x').lines[20:40]`."""

_FEW = 6  # hits beside which their rows are shown
_COUNTED = 100_000  # matches; a search goes no further
_LINE = 240  # characters of a line that is shown whole
_SNIPPET = 160  # characters around a match in a longer one
_NEAR = 10  # lines shown on either side of a match in a text inside of structure
_WINDOW = 2000  # characters around a match in a long line
_BATCH = 1000  # texts that are searched together
_PLACES = 8  # places by which the other hits are counted
_WORDS = re.compile(r"(?:\(\?m\))?([^\\^$.?*+()\[\]{}]+)")  # a pattern without other signs than |
_CHARACTERS = re.compile(r"(?:\(\?m\))?((?:[^\\^$.?*+()\[\]{}]|\\[$.?*+()\[\]{}])+)")
"""A pattern whose signs are | alone, and those that stand for themselves behind a backslash."""

_Hit = tuple[str, dict[str, Any]]
"""A hit, behind the path of the values at its place in all rows."""

Trail = tuple[Any, PathKey] | None
"""Where a value is: the place of the object or array that it is in, and its name or index there."""


class Hits(dict[str, Any]):
    """The result of a search; `listed` counts all hits of one whose first hits a view shows.

    `rows` are small ones in which a few hits lie, by the views that open them.
    """

    listed = 0
    rows: Rows | None = None

    @property
    def none(self) -> bool:
        """True if nothing was found."""
        return not (self.get("lines") or self.get("at") or self.get("names") or self.get("text"))

    @property
    def list_name(self) -> str:
        return "lines" if "lines" in self else "at"


def in_text(text: str, pattern: Pattern, context: int, fuel: Fuel) -> Hits:
    """Return the lines of a text with a match, and `context` lines around each."""
    matches, number, counted, visible_end = 0, 1, 0, -1
    numbers: list[int] = []  # of the lines with a match
    lines: list[dict[str, Any]] = []
    beyond: list[int] = []  # lines of matches that are not among the first hits
    for at, end in islice(pattern.spans(text, fuel), _COUNTED):
        matches += 1
        number += text.count("\n", counted, at)
        counted = at
        if not numbers or numbers[-1] != number:
            numbers.append(number)
            if len(lines) > FIRST or (len(lines) == FIRST and at >= visible_end):
                beyond.append(number)
        fuel.burn(2)
        if at < visible_end or len(lines) == LISTED:
            continue
        start, visible_end = _around(text, at, end)
        hit: dict[str, Any] = {"line": number}
        if context:
            start, visible_end = _lines_around(text, start, visible_end, context)
            hit["from"] = number - text.count("\n", start, at)
        hit["text"] = _marked(text, start, visible_end)
        if not context and hit["text"] != text[start:visible_end]:
            hit["more"] = _window(at)
        fuel.burn(8 + (visible_end - start) // 16)
        lines.append(hit)
    least = "_at_least" if matches == _COUNTED else ""
    result = Hits({f"matches{least}": matches, f"matched_lines{least}": len(numbers)})
    result["lines"] = lines
    if beyond:
        result["others"] = _by_lines(beyond)
    return result


def in_structure(value: Any, pattern: Pattern, fuel: Fuel, *, numbers: bool) -> Hits:
    """Return the strings inside a value with a match, and the names of members, with how many.

    `numbers`: those are searched too, as they are written.
    """
    if isinstance(value, list) and value and type(value[0]) is Raw:
        hits = _in_rows(value, pattern, fuel, numbers=numbers)
        if hits is not None:
            return hits
        value = _with_possible_rows(value, pattern, fuel)
    texts, places, names = _contents(value, fuel, numbers=numbers)
    fuel.burn(len(texts) + len(names))
    indexes = [*islice(with_match(texts, pattern, fuel), _COUNTED)]
    matching = {names[index] for index in with_match(names, pattern, fuel)}
    names_with_match = members(value, matching, fuel) if matching else []
    sizes, at, small = dict[int, int](), list[_Hit](), Rows()
    for index in indexes[:LISTED]:
        keys = _keys(places[index])
        hit = _hit(texts[index], keys, pattern, fuel) | row_of(value, keys, sizes, fuel, small)
        at.append((general_path(value, keys), hit))
    fuel.burn(4 * len(indexes))
    rest = Counter(general_path(value, _keys(places[index])) for index in indexes[LISTED:])
    return _hits(pattern, len(indexes), at, names_with_match, rest, small)


def _in_rows(value: list[Raw], pattern: Pattern, fuel: Fuel, *, numbers: bool) -> Hits | None:
    """Return the hits in rows of the same plain members; None for any other rows.

    Each member is searched in some rows at once, and no more of them are in memory.
    """
    first = level(value[0])
    if not isinstance(first, dict) or not 0 < len(first) <= RECORD or len(value) == 1:
        return None
    if any(memoryview(each)[0] in b"[{" for each in first.values()):
        return None
    kind, names = row_type(first, strict=True, kind=Any), [*first]
    paths = [f"[*].{spelled(name)}" for name in names]
    columns_with_match = {index: Member() for index in with_match(names, pattern, fuel)}
    opened, sizes, hits = dict[PathKey, Any](), dict[int, int](), list[_Hit]()
    small = Rows()
    searched = (str, int, float, Number) if numbers else (str,)
    count, rest = 0, Counter[str]()
    for places, encoded in _possible_rows(value, pattern, fuel):
        fuel.burn(len(encoded) >> 8)
        structs = rows(Raw(encoded), kind, spelled=numbers or bool(columns_with_match))
        matches = list[tuple[int, int, str]]()
        if structs is None or None in structs:
            return None
        for column in range(len(names)):
            cells = [*map(attrgetter(f"f{column}"), structs)]
            if column in columns_with_match:
                columns_with_match[column].add_all(cells, places, names[column])
            kinds = {*map(type, cells)}
            if not kinds.isdisjoint((dict, list)):
                return None
            if count < _COUNTED and not kinds.isdisjoint(searched):
                at = places
                if not kinds.issubset(searched):
                    mask = [type(cell) in searched for cell in cells]
                    at, cells = [*compress(at, mask)], [*compress(cells, mask)]
                texts = cells if kinds == {str} else [*map(text_of, cells)]
                indexes = with_match(texts, pattern, fuel)
                matches += [(at[index], column, texts[index]) for index in indexes]
        matches = sorted(matches)[: _COUNTED - count]
        for row, column, text in matches[: LISTED - len(hits)]:
            opened[row] = opened[row] if row in opened else loads(bytes(value[row]))
            keys: list[PathKey] = [row, names[column]]
            hit = _hit(text, keys, pattern, fuel) | row_of(opened, keys, sizes, fuel, small)
            hits.append((paths[column], hit))
        rest.update(paths[column] for _, column, _ in matches[max(LISTED - count, 0) :])
        count += len(matches)
    names_with_match = [each.described(paths[index]) for index, each in columns_with_match.items()]
    return _hits(pattern, count, hits, names_with_match, rest, small)


def _hits(
    pattern: Pattern,
    count: int,
    at: list[_Hit],
    names: list[dict[str, Any]],
    others: Counter[str],
    small: Rows,
) -> Hits:
    """Return the result of a search in structure: names of rows first, then whole words.

    `others` are the places of the hits that are not described.
    """
    if words := _WORDS.fullmatch(pattern.text):
        word = re.compile(rf"(?<!\w)(?:{words[1]})(?!\w)")
        at.sort(key=lambda pair: not word.search(pair[1]["text"]))
        names.sort(key=lambda each: not word.search(each["path"].rpartition(".")[2]))
    at.sort(key=lambda pair: not names_row(pair[1]))
    others += Counter(place for place, _ in at[FIRST:])
    least = "_at_least" if count == _COUNTED else ""
    result = Hits({f"matched_values{least}": count, "matched_names": len(names)})
    result["at"] = [hit for _, hit in at]
    result.rows = small if len(at) <= _FEW else None
    if names:
        result["names"] = names
    if others:
        most = others.most_common(_PLACES)
        rest = others.total() - sum(n for _, n in most)
        result["others"] = dict(most) | ({"elsewhere": rest} if rest else {})
    return result


def _with_possible_rows(value: list[Raw], pattern: Pattern, fuel: Fuel) -> list[Any]:
    """Return rows as plain values if they may have a match, null in place of the others."""
    rows: list[Any] = [None] * len(value)
    for places, encoded in _possible_rows(value, pattern, fuel):
        fuel.burn(len(encoded) >> 6)
        for place, row in zip(places, loads(encoded), strict=True):
            rows[place] = row
    return rows


def _possible_rows(
    value: list[Raw], pattern: Pattern, fuel: Fuel
) -> Iterator[tuple[Sequence[int], bytes]]:
    """Yield the indexes and the JSON of those of some rows at a time that may have a match.

    The JSON of a row has all its texts as they are but for escapes, between signs that are no part
    of a word: if a pattern without anchors does not match it, nothing in it has a match.
    """
    sought = pattern.without_anchors(r"|\\")
    for first in range(0, len(value), _BATCH):
        batch = value[first : first + _BATCH]
        places: Sequence[int] = range(first, first + len(batch))
        if sought is not None:
            ends = _ends(len(memoryview(row)) for row in batch)
            places = [first + at for at, _ in sought.in_parts(b"\n".join(batch), ends, fuel)]
        if 2 * len(places) > len(batch):
            sought = None  # most rows have to be searched anyway
        if places:
            yield places, encode([value[place] for place in places])


def first_hits(hits: Hits, before: str = "", room: int = 0) -> Hits:
    """Return the first hits, with views of the whole: `before` is the view that was searched.

    The rows of a few hits are shown whole, once each, if all takes at most `room` bytes.
    """
    if hits.rows and len(encode(hits)) + len(encode(hits.rows)) <= room:
        rows = hits.rows.copy()
        at = [
            hit | {"row": {"view": view} | rows.pop(view)}
            if "row" in hit and (view := hit["row"]["view"]) in rows
            else hit
            for hit in hits["at"]
        ]
        hits = Hits(hits, at=at)
    part = Hits(hits)
    part.listed = len(hits[hits.list_name])
    for name in {"lines", "at", "names"} & hits.keys():
        part[name] = [_within(hit, before) for hit in hits[name][:FIRST]]
    for name in {"ignoring_case", "text"} & hits.keys():
        part[name] = first_hits(hits[name], before, room)
    if "others" in hits:
        part["others"] = {
            place if place == "elsewhere" else _piped(before, place): count
            for place, count in hits["others"].items()
        }
    return part


def hits_of(value: Any) -> list[Any] | None:
    """Return the hits in the result of a search, None if `value` is none."""
    if isinstance(value, dict):
        if "matched_lines" in value or "matched_lines_at_least" in value:
            return list(value["lines"])
        if "matched_names" in value:
            return list(value["at"])
    return None


def _within(hit: dict[str, Any], before: str) -> dict[str, Any]:
    hit = {
        name: _piped(before, each) if name in ("path", "more") else each
        for name, each in hit.items()
    }
    if "row" in hit:
        hit["row"] = {**hit["row"], "view": _piped(before, hit["row"]["view"])}
    return hit


def _piped(before: str, view: str) -> str:
    if before:
        return f"{before} | {view}"
    return f"text{view}" if re.fullmatch(r"\[\d+:\d+\]", view) else view


def _around(text: str, at: int, match_end: int) -> tuple[int, int]:
    """Return the start and the end of the line at `at`; of the part around it if it is long."""
    start = text.rfind("\n", max(0, at - _LINE), at) + 1
    end = text.find("\n", at, at + _LINE)
    end = len(text) if end < 0 and at + _LINE >= len(text) else end
    if (start or at <= _LINE) and 0 <= end <= start + _LINE:
        return start, end
    first = max(start, at - max(_SNIPPET - (match_end - at), _SNIPPET // 3) // 2)
    last = first + _SNIPPET
    if 0 <= end < last:
        first, last = max(start, end - _SNIPPET), end
    return first, min(last, len(text))


def _marked(text: str, start: int, end: int) -> str:
    before = "…" if start and text[start - 1] != "\n" else ""
    after = "…" if end < len(text) and text[end] != "\n" else ""
    return f"{before}{text[start:end]}{after}"


def _lines_around(text: str, start: int, end: int, count: int) -> tuple[int, int]:
    for _ in range(count):
        start = _around(text, start - 1, start)[0] if start > 0 else 0
        end = _around(text, end + 1, end + 1)[1] if end + 1 < len(text) else end
    return start, end


def _window(at: int) -> str:
    start = max(0, at - _WINDOW // 2)
    return f"[{start}:{start + _WINDOW}]"


def _by_lines(numbers: list[int]) -> dict[str, int]:
    """Count lines by parts of the text, each named by the view that shows it.

    >>> _by_lines([40, 41, 230, 1000])
    {'lines(40, 160)': 2, 'lines(161, 281)': 1, 'lines(887, 1007)': 1}
    """
    first = numbers[0]
    size = max(-(-(numbers[-1] - first + 1) // _PLACES), 10)
    parts = Counter((number - first) // size for number in numbers)
    return {
        f"lines({first + part * size}, {first + (part + 1) * size - 1})": count
        for part, count in parts.items()
    }


def _hit(text: str, keys: list[PathKey], pattern: Pattern, fuel: Fuel) -> dict[str, Any]:
    """Describe the first match in a text inside of structure."""
    path = path_of(keys)
    if len(text) <= _SNIPPET:
        return {"path": path, "text": text}
    at, end = pattern.search(text, fuel).span()
    start, stop = _around(text, at, end)
    hit: dict[str, Any] = {"path": path}
    if "\n" in text:
        hit["line"] = line = text.count("\n", 0, at) + 1
        more = f"{path} | lines({max(line - _NEAR, 1)}, {line + _NEAR})"
    else:
        more = f"{path}{_window(at)}"
    return {**hit, "text": _marked(text, start, stop), "more": more}


def with_match(texts: list[str], pattern: Pattern, fuel: Fuel) -> Iterator[int]:
    """Yield the index of each text with a match; to search through many at once is quicker."""
    if plain := _CHARACTERS.fullmatch(pattern.text):
        parts = plain[1].replace("\\", "").split("|")
        fuel.burn(len(texts) * len(parts) >> 3)
        yield from sorted({i for part in parts for i, text in enumerate(texts) if part in text})
        return
    size = 1 if re.search(r"\\[Az]|\(\?\w*-", pattern.text) else _BATCH
    for first in range(0, len(texts), size):
        batch = texts[first : first + size]
        whole = "\n".join(batch)
        ends = _ends(map(len, batch if whole.isascii() else map(str.encode, batch)))
        for index, end in pattern.in_parts(whole.encode(), ends, fuel):
            if end >= ends()[index]:  # it goes on in the next text, and may hide a match
                rest = range(first + index, first + len(batch))
                yield from (each for each in rest if pattern.search(texts[each], fuel))
                break
            yield first + index


def _ends(lengths: Iterable[int]) -> Callable[[], list[int]]:
    """Return a function that gives where parts end that are joined by one character each."""
    return cache(lambda: [*accumulate(length + 1 for length in lengths)])


def _contents(value: Any, fuel: Fuel, *, numbers: bool) -> tuple[list[str], list[Trail], list[str]]:
    """Return the strings inside a value with their places, and the names of members once each."""
    texts, places, names = list[str](), list[Trail](), dict[str, None]()

    def walk(items: Iterable[tuple[PathKey, Any]], place: Trail) -> None:
        for key, item in items:
            kind = type(item)
            if kind is str:
                texts.append(item)
            elif kind is dict:
                fuel.burn(1)
                names.update(dict.fromkeys(item))
                walk(item.items(), (place, key))
                continue
            elif kind is list:
                walk(enumerate(item), (place, key))
                continue
            elif numbers and kind is not bool and item is not None:
                texts.append(text_of(item))
            else:
                continue
            places.append((place, key))

    walk([("", value)], None)
    return texts, places, [*names]


def _keys(place: Trail) -> list[PathKey]:
    """Return the names and indexes that lead to a place from the value that was searched."""
    keys = []
    while place is not None:
        place, key = place
        keys.append(key)
    return keys[-2::-1]
