"""Rows of what has another shape: the nodes of a tree, and arrays that stand side by side.

Without them nobody could count, filter or list what lies at any depth of folders, replies or a
plan, since an expression goes down as many levels as it spells; nor see which hour was the warmest
in a forecast whose times are one array, and its temperatures another.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice
from typing import Any

from msgspec import Raw

from mcp_abridge.document.names import nameable, spelled
from mcp_abridge.document.tree import Value, opened

_SAMPLE = 200  # elements that are looked through for a tree
_OBJECTS = re.compile(rb"\[\s*\{")  # the beginning of an array of objects


def nodes(top: Value, name: str) -> Iterator[dict[str, Any]]:
    """Yield all objects of a tree, level by level, each with the number of those right below it.

    `top` is an array of them, or the one at the top; `name` is the member of an object that has
    those below it. `depth` counts the levels above an object, `at` is its place, as views spell it.

    >>> tree = [{"n": "a", "inner": [{"n": "b"}]}, {"n": "c"}]
    >>> [*nodes(tree, "inner")][1:]
    [{'depth': 0, 'at': '[1]', 'n': 'c'}, {'depth': 1, 'at': '[0].inner[0]', 'n': 'b'}]
    """
    depth, step = 0, f".{spelled(name)}"
    level = [("@", top)]
    if isinstance(top, list):
        level = [(f"[{index}]", each) for index, each in enumerate(top)]
    while level:
        below = list[tuple[str, Any]]()
        for at, element in level:
            members = opened(element)
            if not isinstance(members, dict):
                continue
            inner = opened(members.get(name))
            if isinstance(inner, list):
                below += ((f"{at}{step}[{index}]", each) for index, each in enumerate(inner))
                members = {**members, name: len(inner)}
            yield {"depth": depth, "at": at, **members}
        depth, level = depth + 1, below


def tree_member(rows: Sequence[Raw]) -> str | None:
    """Return the member of objects that holds objects with the same member; None without one.

    >>> tree_member([Raw(b'{"a": [{"a": [{"b": 1}]}]}')])
    'a'
    >>> tree_member([Raw(b'{"a": [{"b": [{"b": 1}]}]}')])
    """
    some = (row for row in islice(rows, _SAMPLE) if _OBJECTS.search(memoryview(row)))
    for row in some:  # others need not be opened
        for name, inner in _arrays(row):
            below = chain.from_iterable(map(_arrays, islice(opened(inner), _SAMPLE)))
            if nameable(name) and any(each == name for each, _ in below):
                return name
    return None


def _arrays(value: Raw) -> Iterator[tuple[str, Raw]]:
    """Yield the members of an object that are arrays of objects."""
    members = opened(value) if memoryview(value)[0] == 0x7B else {}
    for name, member in members.items():
        if memoryview(member)[0] == 0x5B:
            first = next(iter(opened(member)), None)
            if first is not None and memoryview(first)[0] == 0x7B:
                yield name, member


def is_array(value: Value) -> bool:
    """Return True for an array, opened or not."""
    return memoryview(value)[0] == 0x5B if type(value) is Raw else isinstance(value, list)


def side_by_side(value: Value) -> dict[str, list[Value]] | None:
    """Return the arrays of an object that has nothing else, all of one length; None of others.

    One has to be of numbers: lists of names may be as long as each other by chance.

    >>> rows_of(side_by_side({"day": ["Mo", "Tu"], "rain": [0, 3.5]}))
    [{'day': 'Mo', 'rain': 0}, {'day': 'Tu', 'rain': 3.5}]
    >>> side_by_side({"from": ["a", "b"], "to": ["c", "d"]}), side_by_side({"n": [1, 2]})
    (None, None)
    """
    columns = dict[str, list[Value]]()
    count = 0
    # Members called `rows` are found by that name themselves.
    if not isinstance(value, dict) or "rows" in value or not all(map(is_array, value.values())):
        return None
    for name, each in value.items():
        column = opened(each)
        if len(column) != (count or len(column)):
            return None
        columns[name], count = column, len(column)
    heads = [opened(column[0]) for column in columns.values()] if count else []
    # Numbers that are unopened keep their spelling.
    numbers = any(isinstance(each, int | float | Raw) and type(each) is not bool for each in heads)
    if len(columns) < 2 or not numbers or any(isinstance(each, dict | list) for each in heads):
        return None
    return columns


def rows_of(columns: dict[str, list[Value]]) -> list[dict[str, Value]]:
    """Return the rows of arrays side by side."""
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]
