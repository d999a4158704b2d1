"""The search of `grep` in structure: without it, a view can cut a text, not search it.

All matches are counted, and each number is named for what it counts. A view shows the first hits,
each with text around its match, and counts the others by place (`first_hits`). The path of a hit in
structure is a view, as are `more`, which shows what is around it in a long text, and `view` of the
row that it lies in: an element of an array, or a member of a map. Before them are the members whose
name has a match, if they are few, or have a value that few have.
"""

import re
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import cache
from itertools import accumulate, compress, islice
from operator import getitem
from typing import Any

from msgspec import Raw
from msgspec.structs import astuple

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.names import nameable, spelled
from mcp_abridge.document.rows import Spelling, row_type
from mcp_abridge.document.tree import encode, level, loads, rows
from mcp_abridge.query.hits import COUNTED, FIRST, LISTED, PLACES, Hits
from mcp_abridge.query.lines import SNIPPET, around, marked, window
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.query.places import (
    FEW,
    HOLDERS,
    RECORD,
    Member,
    Owners,
    PathKey,
    general_path,
    identity_of,
    members,
    names_row,
    path_of,
    text_of,
)

_NEAR = 10  # lines shown on either side of a match in a text inside of structure
_FREQUENT = 20  # texts of which half have a match, so that each is searched by itself
_BATCH = 1000  # texts that are searched together
_WORDS = re.compile(r"(?:\(\?m\))?((?:[^\\^$.?*+()\[\]{}]|\\[$.?*+()\[\]{}])+)")
"""A pattern without signs but `|`, and those that a backslash stands before."""


_Hit = tuple[str, dict[str, Any]]
"""A hit, behind the path of the values at its place in all rows."""

Trail = tuple[Any, PathKey] | None
"""Where a value is: the place of the object or array that it is in, and its name or index there."""


def in_structure(value: Any, pattern: Pattern, fuel: Fuel, others: frozenset[type]) -> Hits:
    """Return the strings inside a value with a match, and the names of members, with how many.

    Values of the types `others` are searched too, as they are written.
    """
    if isinstance(value, list) and value and type(value[0]) is Raw:
        hits = _in_rows(value, pattern, fuel, others)
        if hits is not None:
            return hits
        value = _with_possible_rows(value, pattern, fuel)
    texts, places, names = _contents(value, fuel, others)
    fuel.burn(len(texts) + len(names))
    indexes = [*islice(with_match(texts, pattern, fuel), COUNTED)]
    matching = {names[index] for index in with_match(names, pattern, fuel)}
    names_with_match = members(value, matching, fuel) if matching else {}
    owners, at, rest = Owners(value, fuel), list[_Hit](), Counter[str]()
    first = [(texts[index], _keys(places[index])) for index in indexes[:LISTED]]
    of_pairs = _names_of_pairs(value, first)
    for number, (text, keys) in enumerate(first):
        path, more = general_path(value, keys), of_pairs.get(number)
        if more == "":
            rest[path] += 1
            continue
        hit = _hit(text, keys, pattern, fuel, owners)
        at.append((path, {**hit, "more": more} if more else hit))
    fuel.burn(4 * len(indexes))
    with_hits = {place for place, _ in at}
    for index in indexes[LISTED:]:
        path = general_path(value, keys := _keys(places[index]))
        if path in with_hits or len(with_hits) > PLACES:
            rest[path] += 1
        else:
            with_hits.add(path)
            at.append((path, _hit(texts[index], keys, pattern, fuel, owners)))
    return _hits(pattern, len(indexes), at, names_with_match, rest, owners)


def _names_of_pairs(value: Any, hits: Sequence[tuple[str, list[PathKey]]]) -> dict[int, str]:
    """Return the numbers of hits that name the value beside them, in most rows: a tag, a header.

    The first of a name has the view of that value in all rows, the others have none.

    >>> rows = [{"id": n, "tags": [{"key": "zone", "value": n % 3}]} for n in range(9)]
    >>> _names_of_pairs(rows, [("zone", [n, "tags", 0, "key"]) for n in range(9)])[0]
    "[?tags[?key=='zone']].{id: id, zone: tags[?key=='zone'].value | [0]}"
    """
    groups: dict[tuple[Any, ...], list[int]] = {}
    for number, (text, keys) in enumerate(hits):
        row, *inner = [at for at, key in enumerate(keys) if isinstance(key, int)] or [0]
        if inner == [len(keys) - 2] and inner[0] > row + 1 and nameable(text):
            place = (*keys[:row],), (*keys[row + 1 : -2],), keys[-1], text
            groups.setdefault(place, []).append(number)
    views: dict[int, str] = {}
    for (above, inner, name, text), numbers in groups.items():
        keys = hits[numbers[0]][1]
        *_, array, row = accumulate(keys[: len(above) + 1], getitem, initial=value)
        *_, pair = accumulate(keys[len(above) + 1 : -1], getitem, initial=row)
        plain = (each for each, part in pair.items() if not isinstance(part, dict | list))
        beside = [spelled(each) for each in plain if each.lower() in HOLDERS and each != name]
        once = len({hits[number][1][len(above)] for number in numbers}) == len(numbers) > FEW
        if once and 2 * len(numbers) > len(array) and len(pair) == 2 and beside:
            one = f"{path_of([*inner])}[?{spelled(name)}=='{text}']"
            cells = [f"{spelled(path)}: {path}" for path in identity_of(row)]
            cells.append(f"{spelled(text)}: {one}.{beside[0]} | [0]")
            view = f"{path_of([*above])}[?{one}].{{{', '.join(cells)}}}".removeprefix("@")
            views |= dict.fromkeys(numbers, "") | {numbers[0]: view}
    return views


def _in_rows(
    value: list[Raw], pattern: Pattern, fuel: Fuel, others: frozenset[type]
) -> Hits | None:
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
    owners, hits = Owners(_Opened(value), fuel), list[_Hit]()
    searched = {str, *others}
    count, rest, keys = 0, Counter[str](), list[PathKey]()
    for places, encoded in _possible_rows(value, pattern, fuel):
        fuel.burn(len(encoded) >> 8)
        spelled_too = Spelling if int in others or columns_with_match else None
        structs: Any = rows(Raw(encoded), kind, spelled_too)
        by_column = list[tuple[int, Sequence[int], list[str], list[int]]]()
        if structs is None or None in structs:
            return None
        for column, cells in enumerate(map(list, zip(*map(astuple, structs), strict=True))):
            if column in columns_with_match:
                columns_with_match[column].add_all(cells, places, names[column])
            kinds = {*map(type, cells)}
            if not kinds.isdisjoint((dict, list)):
                return None
            if count < COUNTED and not kinds.isdisjoint(searched):
                at = places
                if not kinds.issubset(searched):
                    mask = [type(cell) in searched for cell in cells]
                    at, cells = [*compress(at, mask)], [*compress(cells, mask)]
                texts = cells if kinds == {str} else [*map(text_of, cells)]
                by_column.append((column, at, texts, [*with_match(texts, pattern, fuel)]))
        number = sum(len(indexes) for *_, indexes in by_column)
        if len(hits) >= LISTED and count + number < COUNTED:
            with_hits = {place for place, _ in hits}
            for column, at, texts, indexes in by_column:
                path = paths[column]
                if indexes and path not in with_hits and len(with_hits) <= PLACES:
                    first, *indexes = indexes
                    keys = [at[first], names[column]]
                    hits.append((path, _hit(texts[first], keys, pattern, fuel, owners)))
                rest[path] += len(indexes)
            count += number
            continue
        matches = sorted(
            (at[index], column, texts[index])
            for column, at, texts, indexes in by_column
            for index in indexes
        )[: COUNTED - count]
        for row, column, text in matches[: max(LISTED - len(hits), 0)]:
            keys = [row, names[column]]
            hits.append((paths[column], _hit(text, keys, pattern, fuel, owners)))
        rest.update(paths[column] for _, column, _ in matches[max(LISTED - count, 0) :])
        count += len(matches)
        if count == COUNTED and not columns_with_match:
            break
    names_with_match = {paths[index]: each for index, each in columns_with_match.items()}
    return _hits(pattern, count, hits, names_with_match, rest, owners)


class _Opened(dict[PathKey, Any]):
    """Rows by their indexes, each opened if it is asked for."""

    def __init__(self, rows: list[Raw]) -> None:
        super().__init__()
        self._rows = rows

    def __missing__(self, row: int) -> Any:
        opened = self[row] = loads(bytes(self._rows[row]))
        return opened


def _hits(
    pattern: Pattern,
    count: int,
    at: list[_Hit],
    names: dict[str, Member],
    others: Counter[str],
    owners: Owners,
) -> Hits:
    """Return the result of a search in structure: names of rows first, then whole words.

    `others` are the places of the hits that are not described.
    """
    if words := _WORDS.fullmatch(pattern.text):
        word = re.compile(rf"(?<!\w)(?:{words[1]})(?!\w)")
        at.sort(key=lambda pair: not word.search(pair[1]["text"]))
        paths = sorted(names, key=lambda path: not word.search(path.rpartition(".")[2]))
        names = {path: names[path] for path in paths}
    at.sort(key=lambda pair: not names_row(pair[1]))
    rare, listed = list[dict[str, Any]](), list[dict[str, Any]]()
    for path, each in names.items():
        few = each.rare[: FEW - len(rare)]
        rare += map(owners.member, few)
        if len(few) < each.count:
            listed.append(each.described(path))
    at = _of_each_place(at, FIRST - len(rare))
    others += Counter(place for place, _ in at[FIRST - len(rare) :])
    least = "_at_least" if count == COUNTED else ""
    result = Hits({f"matched_values{least}": count, "matched_names": len(names)})
    result["at"] = rare + [hit for _, hit in at]
    result.described = len(at) + len(names)
    result.rows = owners.small if len(result["at"]) <= FEW else None
    if listed:
        result["names"] = listed
    if others:
        most = others.most_common(PLACES)
        rest = others.total() - sum(n for _, n in most)
        result["others"] = dict(most) | ({"elsewhere": rest} if rest else {})
    return result


def _of_each_place(at: list[_Hit], first: int) -> list[_Hit]:
    """Return hits in an order in which the first ones are of all places, if these are so few.

    Of 34 hits of one place and one of another, that one would be only a number.
    """
    firsts = {place: index for index, (place, _) in reversed([*enumerate(at)])}
    order = [*dict.fromkeys([*sorted(firsts.values()), *range(len(at))])]
    return [at[index] for index in (*sorted(order[:first]), *sorted(order[first:]))]


def _with_possible_rows(value: list[Raw], pattern: Pattern, fuel: Fuel) -> list[Any]:
    """Return rows as plain values if they may have a match, nothing in place of the others."""
    rows: list[Any] = [()] * len(value)
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
    words = [word.encode() for word in _words(pattern)]
    sought = pattern.without_anchors(r"|\\")
    for first in range(0, len(value), _BATCH):
        batch = value[first : first + _BATCH]
        places: Sequence[int] = range(first, first + len(batch))
        whole = b"\n".join(batch) if sought is not None else b""
        if sought is not None and words:
            fuel.burn(len(batch) * len(words) >> 3)
            present = [word for word in (*words, b"\\") if word in whole]
            parts = map(bytes, batch if present else ())
            places = [first + at for at in _holding(present, [*parts])]
        elif sought is not None:
            ends = _ends(len(memoryview(row)) for row in batch)
            places = [first + at for at, _ in sought.in_parts(whole, ends, fuel)]
        if 4 * len(places) > len(batch):
            sought = None  # many rows have to be searched anyway
        if places:
            yield places, encode([value[place] for place in places])


def _hit(
    text: str, keys: list[PathKey], pattern: Pattern, fuel: Fuel, owners: Owners
) -> dict[str, Any]:
    """Describe the first match in a text inside of structure, and the row that it lies in."""
    path, row = path_of(keys), owners.of(keys)
    if len(text) <= SNIPPET:
        return {"path": path, "text": text} | row
    at, end = pattern.search(text, fuel).span()
    start, stop = around(text, at, end)
    hit: dict[str, Any] = {"path": path}
    if "\n" in text:
        hit["line"] = line = text.count("\n", 0, at) + 1
        more = f"{path} | lines({max(line - _NEAR, 1)}, {line + _NEAR})"
    else:
        more = f"{path}{window(at)}"
    return {**hit, "text": marked(text, start, stop), "more": more} | row


def with_match(texts: list[str], pattern: Pattern, fuel: Fuel) -> Iterator[int]:
    """Yield the index of each text with a match; to search through many at once is quicker."""
    if words := _words(pattern):
        fuel.burn(len(texts) * len(words) >> 3)
        yield from _holding(words, texts)
        return
    size = 1 if re.search(r"\\[Az]|\(\?\w*-", pattern.text) else _BATCH
    for first in range(0, len(texts), size):
        batch = texts[first : first + size]
        whole = "\n".join(batch)
        ends = _ends(map(len, batch if whole.isascii() else map(str.encode, batch)))
        for count, (index, end) in enumerate(pattern.in_parts(whole.encode(), ends, fuel)):
            # It goes on in the next text, and may hide a match, or most texts have one.
            if end >= ends()[index] or index < 2 * count > _FREQUENT:
                yield from (first + index + at for at in pattern.in_each(batch[index:], fuel))
                break
            yield first + index


def _words(pattern: Pattern) -> list[str]:
    """Return the words of which a match of a pattern is one; none if it has other signs."""
    words = _WORDS.fullmatch(pattern.text)
    return words[1].replace("\\", "").split("|") if words else []


def _holding(words: list[Any], texts: Sequence[Any]) -> list[int]:
    return sorted({index for word in words for index, text in enumerate(texts) if word in text})


def _ends(lengths: Iterable[int]) -> Callable[[], list[int]]:
    """Return a function that gives the ends of parts that one character each joins."""
    return cache(lambda: [*accumulate(length + 1 for length in lengths)])


def _contents(
    value: Any, fuel: Fuel, others: frozenset[type]
) -> tuple[list[str], list[Trail], list[str]]:
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
            elif kind in others:
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
