"""Rows of what is shown as such and has another shape: a tree, or arrays side by side.

Without them the oracle would take a row for a cell that is not so.
"""

import json
import re
from collections.abc import Iterator
from itertools import takewhile, zip_longest
from typing import Any

_WHOLE = re.compile(r"(\d+) of \1")
_NODES_IN_VIEW = re.compile(r"nodes\(([^,()]+), &([^()]+?)\)")
_NODES = re.compile(r"nodes\((.+), &(.+)\)(.*)")
_ROWS = r"unnest\((?:entries\()?([^()]+?)\)?, &([^()]+?)\)"
_UNNESTED = re.compile(rf"{_ROWS}(.*)")
_UNNESTED_IN_VIEW = re.compile(rf"{_ROWS}\[(?:\*|\d+:\d+)\]")


def nodes(top: Any, name: str) -> list[dict[str, Any]]:
    """Return the objects of a tree, level by level, each with its depth and its place."""
    levels = ([*_level(top, name, depth, depth)] for depth in range(100))
    return [row for level in takewhile(bool, levels) for row in level]


def _level(top: Any, name: str, levels: int, depth: int, at: str = "") -> Iterator[dict[str, Any]]:
    """Yield the objects so many `levels` below `top`."""
    elements = [(f"{at}[{n}]", each) for n, each in enumerate(top)]
    for place, each in elements if isinstance(top, list) else [(at or "@", top)]:
        inner = each.get(name) if isinstance(each, dict) else None
        if levels and isinstance(inner, list):
            yield from _level(inner, name, levels - 1, depth, f"{place}.{_spelled(name)}")
        elif not levels and isinstance(each, dict):
            count = {name: len(inner)} if isinstance(inner, list) else {}
            yield {"depth": depth, "at": place, **each, **count}


def _spelled(name: str) -> str:
    return name if name.isascii() and name.isidentifier() else json.dumps(name)


def columns_of(value: Any) -> list[dict[str, Any]] | None:
    """Return the rows of an object of nothing but arrays of one length, one of them of numbers."""
    columns = [*value.values()] if isinstance(value, dict) else []
    if len(columns) < 2 or not all(isinstance(each, list) and each for each in columns):
        return None
    heads = [each[0] for each in columns]
    numbers = any(isinstance(each, int | float) and not isinstance(each, bool) for each in heads)
    plain = not any(isinstance(each, list | dict) for each in heads)
    if len({*map(len, columns)}) > 1 or not (plain and numbers):
        return None
    return [dict(zip(value, row, strict=True)) for row in zip(*columns, strict=True)]


def records_of(value: Any) -> tuple[str, list[dict[str, Any]]] | None:
    """Return the rows of arrays, and their member: their names stand beside them, or first."""
    for member, rows in value.items():
        if not (isinstance(rows, list) and rows and all(isinstance(row, list) for row in rows)):
            continue
        columns = value.get("columns")
        beside = columns if isinstance(columns, list) else []
        names: list[Any] = [each.get("name") for each in beside if isinstance(each, dict)]
        if len(names) < 2:
            names, *rows = rows
        texts = len(names) > 1 and all(isinstance(name, str) for name in names)
        if texts and max(map(len, rows), default=1000) <= len(names):
            return member, [dict(zip_longest(names, row)) for row in rows]
    return None


def with_rows(value: Any) -> Any:
    """Return a document in which arrays side by side have `rows` beside them, as views have it."""
    if isinstance(value, list):
        return [*map(with_rows, value)]
    if not isinstance(value, dict):
        return value
    rows = None if "rows" in value else columns_of(value)
    records = None if "records" in value else records_of(value)
    more = {"rows": rows, "records": None if records is None else records[1]}
    return {name: with_rows(each) for name, each in value.items()} | {
        name: each for name, each in more.items() if each is not None
    }


def in_rows(source: Any, notes: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Return a document with rows in place of what the notes say is shown as such, and the notes.

    These name the place of the rows then, as of any other array.
    """
    trees, series, renamed = dict[str, str](), set[str](), dict[str, Any]()
    top = "items" if isinstance(source, list) else ""
    more = str(notes.get("more")) if "others" in notes else ""  # which tells of it then
    for path in _series(source, top):
        before = f"{path}.rows" if path else "rows"
        if any(_parts(note, before) for note in notes) or f"{before}[" in more:
            series.add(path)
    for place, name in _NODES_IN_VIEW.findall(more):
        trees[top if place == "@" else re.sub(r"\[\d+\]", "", place)] = name.strip('"')
    unnested = {"" if at == "@" else at: name for at, name in _UNNESTED_IN_VIEW.findall(more)}
    for path, member in _records(source, ""):
        before, arrays = (f"{path}.{name}".lstrip(".") for name in ("records", _spelled(member)))
        if any(_parts(note, before) for note in notes) or f"{before}[" in more:
            source = _with_records(source, path)
            notes = {
                arrays + note.removeprefix(before) if _parts(note, before) else note: text
                for note, text in notes.items()
            }
    for note, text in notes.items():
        if tree := _NODES.fullmatch(note):
            trees[tree[1]], note = tree[2].strip('"'), tree[1] + tree[3]
        if of := _UNNESTED.fullmatch(note):
            unnested["" if of[1] == "@" else of[1]] = of[2]
            note = ("items" if of[1] == "@" else of[1]) + of[3]
        for path in series:
            before = f"{path}.rows" if path else "rows"
            if _parts(note, before):
                note = (path or "items") + note.removeprefix(before)
        if not _WHOLE.fullmatch(str(text)):
            renamed[note] = text
    return _replaced(_unnested(source, unnested, ""), trees, series, top), renamed


def _unnested(value: Any, names: dict[str, str], path: str) -> Any:
    """Return a document with rows in place of arrays, and of objects of arrays, of them."""
    if path in names:
        name = names[path].strip('"')
        entries = (
            [{"key": key, name: rows} for key, rows in value.items()]
            if isinstance(value, dict)
            else value
        )
        return [each | {name: row} for each in entries for row in each.get(name) or ()]
    if not isinstance(value, dict):
        return value
    inner = zip(value, _inner(value, path), strict=True)
    return {name: _unnested(each, names, at) for name, (at, each) in inner}


def _records(value: Any, path: str) -> Iterator[tuple[str, str]]:
    records = records_of(value) if isinstance(value, dict) and "records" not in value else None
    if records is not None:
        yield path, records[0]
    elif isinstance(value, dict):
        for at, each in _inner(value, path):
            yield from _records(each, at)


def _with_records(value: Any, path: str) -> Any:
    """Return a document with objects in place of the arrays of an object at a path."""
    name, _, rest = path.partition(".")
    if not path and (records := records_of(value)) is not None:
        return value | dict([records])
    return {**value, name: _with_records(value[name], rest)}


def _parts(note: str, path: str) -> bool:
    return note == path or note.startswith(f"{path}.")


def _series(value: Any, path: str) -> Iterator[str]:
    if isinstance(value, dict) and "rows" not in value and columns_of(value) is not None:
        yield path
    for at, each in _inner(value, path):
        yield from _series(each, at)


def _inner(value: Any, path: str) -> Iterator[tuple[str, Any]]:
    if isinstance(value, list):
        yield from ((f"{path}[]" if isinstance(each, list) else path, each) for each in value)
    elif isinstance(value, dict):
        outer = re.sub(r"(?<=[^[])(\[\])+$", "", path)
        for name, each in value.items():
            yield f"{outer}.{_spelled(name)}" if outer else _spelled(name), each


def _replaced(value: Any, trees: dict[str, str], series: set[str], path: str) -> Any:
    if path in trees and isinstance(value, list):
        return nodes(value, trees[path])
    if path in series and (rows := columns_of(value)) is not None:
        return rows
    inner = [_replaced(each, trees, series, at) for at, each in _inner(value, path)]
    if isinstance(value, dict):
        return dict(zip(value, inner, strict=True))
    return inner if isinstance(value, list) else value
