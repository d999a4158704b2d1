"""Compare a value with the expected value, and list the differences."""

import json
from collections.abc import Iterator
from typing import Any

from proxy.document.tree import encode

_ABSENT: Any = object()
_LONGEST = 200


def same(expected: Any, found: Any) -> bool:
    """Return True if two plain values are equal: numbers by value, keys in any order.

    >>> same({"a": 1, "b": 2}, {"b": 2.0, "a": 1}), same(1, True), same([1], [1, 2])
    (True, False, False)
    """
    return next(differences(expected, found), None) is None


def differences(expected: Any, found: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each place at which `found` differs from `expected`; `path` is its place.

    >>> for line in differences({"a": [1, 2], "b": 3}, {"a": [1], "c": None}):
    ...     print(line)
    a[1]: expected 2, found nothing
    b: expected 3, found nothing
    c: expected nothing, found null
    """
    if isinstance(expected, dict) and isinstance(found, dict):
        for name in (*expected, *(name for name in found if name not in expected)):
            inner = f"{path}.{_name(name)}" if path else _name(name)
<<<<<<< HEAD
            yield from differences(expected.get(name, _ABSENT), actual.get(name, _ABSENT), inner)
    elif isinstance(expected, list) and isinstance(actual, list):
        pairs = zip_longest(expected, actual, fillvalue=_ABSENT)
        for index, (element, actual_element) in enumerate(pairs):
            yield from differences(element, actual_element, f"{path}[{index}]")
    # JSON's true is not its 1, though Python's is.
    elif isinstance(expected, bool) is not isinstance(actual, bool) or expected != actual:
        where = f"{path}: " if path else ""
        yield f"{where}expected {abbreviated(expected)}, found {abbreviated(actual)}"
=======
            yield from differences(expected.get(name, _ABSENT), found.get(name, _ABSENT), inner)
    elif isinstance(expected, list) and isinstance(found, list):
        for at in range(max(len(expected), len(found))):
            left = expected[at] if at < len(expected) else _ABSENT
            right = found[at] if at < len(found) else _ABSENT
            yield from differences(left, right, f"{path}[{at}]")
    elif not _equal(expected, found):
        yield f"{f'{path}: ' if path else ''}expected {shown(expected)}, found {shown(found)}"
>>>>>>> main


def abbreviated(value: Any) -> str:
    """Return a value as JSON, shortened if it is long.

    >>> abbreviated([1, "a"]), len(abbreviated("x" * 1000))
    ('[1,"a"]', 214)
    """
    if value is _ABSENT:
        return "nothing"
    try:
        said = encode(value).decode()
    except UnicodeEncodeError:
        said = json.dumps(value)
    if len(said) <= _LONGEST:
        return said
    return f"{said[:_LONGEST]}… ({len(said)} chars)"


def _equal(expected: Any, found: Any) -> bool:
    # JSON's true is not its 1, though Python's is.
    if isinstance(expected, bool) or isinstance(found, bool):
        return expected is found
    return bool(expected == found)


def _name(name: str) -> str:
    return name if name and not set(name) & set('."[]* ') else f'"{name}"'
