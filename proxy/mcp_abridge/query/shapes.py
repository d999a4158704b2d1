"""Rows of what has another shape: the nodes of a tree, and arrays that stand side by side.

Without them nobody could count, filter or list what lies at any depth of folders, replies or a
plan, since an expression goes down as many levels as it spells; nor see which hour was the warmest
in a forecast whose times are one array, and its temperatures another.
"""

import re
from collections.abc import Iterator, Sequence
from itertools import chain, islice, repeat, zip_longest
from typing import Any

from msgspec import Raw

from mcp_abridge.document.names import nameable, spelled
from mcp_abridge.document.rows import members_in
from mcp_abridge.document.tree import Value, encode, opened, to_text
from mcp_abridge.query.heads import names_columns

_BATCH = 1024  # values that are looked at together
_SAMPLE = 200  # elements that are looked through for a tree, rows for what a head stands above
_FEWEST = 3  # rows below a head
_DEEPEST = 8  # objects and arrays around a member that is looked for
_LONG = 8  # elements of arrays that are as long as each other, with other members beside them
_BESIDE = 40  # members of such an object
RECORDS = "records"
OF_ANY_ARRAY = ("rows", "columns", "length")
"""Names by which an array gives itself, those in its elements, and how many these are."""
_ROWS = re.compile(rb'\[\s*(?:\[|\{\s*"\w+"\s*:\s*\[\s*\{)')  # arrays, perhaps each as in `f[].v`
_HEADS = re.compile("(?i)col|field|head|manifest|meta|schema|names|rowtype")
_OBJECTS = re.compile(rb"\[\s*\{")  # the beginning of an array of objects


def nodes(top: Value, name: str) -> Iterator[dict[str, Any]]:
    """Yield all objects of a tree, level by level, each with the number of those right below it.

    `top` is an array of them, or of such arrays, or the one at the top; `name` is the member of an
    object that has those below it. `depth` counts the levels above an object, `at` is its place, as
    views spell it.

    >>> tree = [{"n": "a", "inner": [{"n": "b"}]}, {"n": "c"}]
    >>> [*nodes(tree, "inner")][1:]
    [{'depth': 0, 'at': '[1]', 'n': 'c'}, {'depth': 1, 'at': '[0].inner[0]', 'n': 'b'}]
    """
    depth, step = 0, f".{spelled(name)}"
    level = [*elements("", top)] if isinstance(top, list) else [("@", top)]
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


def elements(at: str, array: list[Value]) -> Iterator[tuple[str, Value]]:
    """Yield the elements of an array, and of the arrays in it, with their places."""
    for index, each in enumerate(array):
        inner = opened(each) if is_array(each) else None
        place = f"{at}[{index}]"
        yield from ((place, each),) if inner is None else elements(place, inner)


def tree_member(rows: Sequence[Raw], own: str = "") -> str | None:
    """Return the member of objects that holds objects with the same member; None without one.

    So does one that is called as the array of the objects itself, by its `own` name.

    >>> tree_member([Raw(b'{"a": [{"a": [{"b": 1}]}]}')])
    'a'
    >>> tree_member([Raw(b'{"a": [{"b": [{"b": 1}]}]}')])
    >>> tree_member([Raw(b'{"panels": [{"id": 1}, {"id": 2}]}')], "panels")
    'panels'
    """
    spelling = encode(own)
    for row in islice(rows, _SAMPLE):
        content = bytes(row)
        count = content.count(b"[") if content[:1] == b"{" else 0
        if count > 1:
            count = len([*islice(_OBJECTS.finditer(content), 2)])
        if count < 2 and not (count and own and _may_hold(content, spelling)):
            continue  # it need not be opened
        members: dict[str, Raw] = opened(row)
        for name, inner in members.items():
            if not (_OBJECTS.match(inner) and nameable(name)):
                continue
            if name == own:
                return name
            if _may_hold(bytes(inner), encode(name)):
                [below] = members_in([inner], name)
                if any(map(_OBJECTS.match, filter(None, below[:_SAMPLE]))):
                    return name
    return None


def _may_hold(json: bytes, name: bytes) -> bool:
    """Return False if a name that needs no escapes, and has none, is not in JSON."""
    # One byte is found ten times as fast as two.
    escapes = b"\\" in json and (b"\\u" in json or b"\\/" in json)
    return escapes or name in json


def is_array(value: Value) -> bool:
    """Return True for an array, opened or not."""
    return memoryview(value)[0] == 0x5B if type(value) is Raw else isinstance(value, list)


def is_text(value: Value) -> bool:
    """Return True for a text, opened or not."""
    return memoryview(value)[0] == 0x22 if type(value) is Raw else isinstance(value, str)


def has_arrays(values: list[Value]) -> bool:
    """Return True if one of the values is an array.

    >>> has_arrays([Raw(b"1"), Raw(b'"[2]"')]), has_arrays([Raw(b"1"), Raw(b"[2]")])
    (False, True)
    """
    for first in range(0, len(values), _BATCH):
        batch = values[first : first + _BATCH]
        try:
            # One look at many unopened values: JSON has no NUL, and most have no bracket at all.
            whole = b"\0".join((b"", *batch))
            some = b"[" in whole and b"\0[" in whole
        except TypeError:
            some = any(map(is_array, batch))
        if some:
            return True
    return False


def inner_place(value: Value, name: str) -> str | None:
    """Return the place further inside of an object, or its arrays, that has a member of this name.

    >>> inner_place({"_source": Raw(b'{"http": {"bytes": 3}}')}, "bytes")
    '_source.http.bytes'
    >>> inner_place({"tags": Raw(b'[{"label": "x"}]'), "label": 1}, "label")
    'tags[].label'
    """
    level = [("", value)]
    for _ in range(_DEEPEST):
        below = list[tuple[str, Value]]()
        for at, each in level:
            inner = opened(each)
            if isinstance(inner, list):
                below += ((f"{at}[]", element) for element in inner[:1])
            elif isinstance(inner, dict):
                if at and name in inner:
                    return f"{at}.{spelled(name)}"
                pairs = ((key, member) for key, member in inner.items() if nameable(key))
                below += ((f"{at}.{spelled(key)}".lstrip("."), member) for key, member in pairs)
        level = below[:_SAMPLE]
    return None


def side_by_side(value: Value) -> dict[str, list[Value]] | None:
    """Return the arrays of an object, all of one length, of which one has numbers; else None.

    Lists of names may be as long as each other by chance, and short ones if plain members stand
    beside them.

    >>> rows_of(side_by_side({"day": ["Mo", "Tu"], "rain": [0, 3.5]}))
    [{'day': 'Mo', 'rain': 0}, {'day': 'Tu', 'rain': 3.5}]
    >>> side_by_side({"from": ["a", "b"], "to": ["c", "d"]}), side_by_side({"n": [1, 2]})
    (None, None)
    >>> side_by_side({"from": [], "to": [1, 2]})
    >>> side_by_side({"s": "ok", "t": [1, 2], "v": [3, 4]})
    >>> [*side_by_side({"s": "ok", "t": [*range(9)], "v": [*range(9)]})]
    ['t', 'v']
    """
    columns = dict[str, list[Value]]()
    # Members called `rows` are found by that name themselves.
    if not isinstance(value, dict) or len(value) < 2 or "rows" in value:
        return None
    arrays = {name: each for name, each in value.items() if is_array(each)}
    if 1 < len(arrays) < len(value):  # `Messages: []` beside times and values
        arrays = {name: each for name, each in arrays.items() if opened(each)}
    alone = len(arrays) == len(value)
    if len(arrays) < 2 or not (alone or len(value) <= _BESIDE):
        return None
    for name, each in arrays.items():
        columns[name] = column = opened(each)
        if len(column) < (1 if alone else _LONG) or len(column) != len(
            next(iter(columns.values()))
        ):
            return None
    heads = [opened(column[0]) for column in columns.values()]
    # Numbers that are unopened keep their spelling.
    numbers = any(isinstance(each, int | float | Raw) and type(each) is not bool for each in heads)
    if not numbers or any(isinstance(each, dict | list) for each in heads):
        return None
    return columns


def rows_of(columns: dict[str, list[Value]]) -> list[dict[str, Value]]:
    """Return the rows of arrays side by side."""
    return [dict(zip(columns, cells, strict=True)) for cells in zip(*columns.values(), strict=True)]


def named_rows(value: Value) -> tuple[tuple[str, ...], list[dict[str, Value]]] | None:
    """Return the rows of an array of arrays whose columns have names, and the members to it.

    The names stand beside it, or are its first row. None of any other value, if a row has more
    cells, and if one has fewer than the names beside it.

    >>> named_rows({"cols": [{"id": "a"}, {"id": "b"}], "data": [[1, 2], [3, 4]]})
    (('data',), [{'a': 1, 'b': 2}, {'a': 3, 'b': 4}])
    >>> named_rows({"schema": {"fields": ["a", "b"]}, "rows": [{"f": [{"v": 1}, {"v": 2}]}]})
    (('rows',), [{'a': 1, 'b': 2}])
    >>> named_rows({"values": [["Name", "Qty"], ["x", 1], ["y"], ["z", 3]]})[1][1:]
    [{'Name': 'y', 'Qty': None}, {'Name': 'z', 'Qty': 3}]
    """
    if not isinstance(value, dict) or RECORDS in value:
        return None
    beside = [*_names_beside(value)]
    for path, array in _arrays_of_rows(value, inside=bool(beside)):
        rows = [*map(_cells, opened(array))]
        widths, head = {*map(len, rows)}, _texts(rows[0])
        names = next((some for some in beside if {len(some)} == widths), None)
        if names is None and len(path) == 1 and _names_the_others(head, rows[1:]):
            names = head
        if names is not None:
            cells = (islice(chain(row, repeat(None)), len(names)) for row in rows[head == names :])
            return path, [dict(zip(names, row, strict=True)) for row in cells]
    return None


def elsewhere(root: Value, name: str) -> str:
    """Return the place of a name that no element of an array has, as the end of a sentence."""
    if isinstance(root, dict) and name in root:
        return f"; that of the whole is $.{spelled(name)}"
    _, rows = named_rows(root) or ((), [{}])
    by_name = f"; the rows by their names: {RECORDS}[*].{spelled(name)}"
    return by_name if name in rows[0] else ""


def _arrays_of_rows(
    value: dict[str, Value], *, inside: bool
) -> Iterator[tuple[tuple[str, ...], Value]]:
    """Yield members that may be rows, with their names; `inside`: then those of inner objects."""
    yield from (((name,), each) for name, each in value.items() if _has_rows(each))
    for name, each in value.items() if inside else ():
        members = opened(each)
        for inner, array in members.items() if isinstance(members, dict) else ():
            if _has_rows(array):
                yield (name, inner), array


def _names_the_others(head: list[str], rows: list[list[Value]]) -> bool:
    """Return True if the first row has the names of the columns of the others."""
    some = [_texts(row) for row in rows[:_SAMPLE]]
    if len(some) < _FEWEST or max(map(len, rows)) > len(head):
        return False
    columns = zip_longest(head, *some, fillvalue="")
    return names_columns(head, [cells for _, *cells in columns])


def _texts(cells: list[Value]) -> list[str]:
    """Return cells as texts; null is an empty one."""
    return ["" if each == "null" else each for each in map(to_text, cells)]


def _has_rows(value: Value) -> bool:
    if type(value) is Raw:
        return _ROWS.match(memoryview(value)) is not None
    return isinstance(value, list) and bool(value) and bool(_cells(value[0]))


def _cells(row: Value) -> list[Value]:
    cells = opened(row)
    if isinstance(cells, dict):
        cells = opened(_only(cells))
        return [*map(_only, cells)] if isinstance(cells, list) else []
    return cells if isinstance(cells, list) else []


def _only(value: Value) -> Value:
    """Return the value of an object's single member; null of any other value."""
    members = opened(value)
    single = isinstance(members, dict) and len(members) == 1
    return next(iter(members.values())) if single else None


def _names_beside(value: dict[str, Value]) -> Iterator[list[str]]:
    """Yield the names in arrays of names, or of objects that have one each."""
    for member, each in value.items():
        inner = opened(each) if _HEADS.search(member) else None
        if isinstance(inner, dict):
            yield from _names_beside(inner)
        elif isinstance(inner, list):
            elements = [*map(opened, inner)]
            rows = [element for element in elements if isinstance(element, dict)]
            lists = [[opened(row.get(name)) for row in rows] for name in (rows[0] if rows else ())]
            for names in lists if len(rows) == len(elements) else [elements]:
                if all(isinstance(name, str) for name in names) and len({*names}) == len(names) > 1:
                    yield names
                    break


def made_rows(value: Value, name: str) -> list[dict[str, Value]] | None:
    """Return the rows that an object has by a name which is none of its own members."""
    if name == RECORDS:
        pair = named_rows(value)
        return None if pair is None else pair[1]
    arrays = side_by_side(value) if name == "rows" else None
    return None if arrays is None else rows_of(arrays)
