"""Lists how a value differs from the expected one: numbers by value, keys in any order."""

import json
from collections.abc import Iterator
from itertools import zip_longest
from typing import Any

from mcp_abridge.document.tree import encode

_ABSENT: Any = object()
_MAX_CHARS = 200


def differences(expected: Any, actual: Any, path: str = "") -> Iterator[str]:
    """Yield a line for each path at which `actual` differs from `expected`; `path` is their own."""
    if isinstance(expected, dict) and isinstance(actual, dict):
        for name in dict.fromkeys((*expected, *actual)):
            inner = f"{path}.{_name(name)}" if path else _name(name)
            yield from differences(expected.get(name, _ABSENT), actual.get(name, _ABSENT), inner)
    elif isinstance(expected, list) and isinstance(actual, list):
        for index, pair in enumerate(zip_longest(expected, actual, fillvalue=_ABSENT)):
            yield from differences(*pair, f"{path}[{index}]")
    # JSON's true is not its 1, though Python's is.
    elif isinstance(expected, bool) is not isinstance(actual, bool) or expected != actual:
        where = f"{path}: " if path else ""
        yield f"{where}expected {abbreviated(expected)}, found {abbreviated(actual)}"


def abbreviated(value: Any) -> str:
    """Return a value as JSON, shortened if it is long.

    >>> abbreviated([1, "a"]), len(abbreviated("x" * 1000))
    ('[1,"a"]', 214)
    """
    if value is _ABSENT:
        return "nothing"
    text = to_json(value).decode()
    return text if len(text) <= _MAX_CHARS else f"{text[:_MAX_CHARS]}… ({len(text)} chars)"


def to_json(value: Any) -> bytes:
    """Return a plain value as JSON; lone surrogates, which YAML allows, as escapes.

    >>> to_json({"a": "\\ud800"})
    b'{"a":"\\\\ud800"}'
    """
    try:
        return encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def _name(name: str) -> str:
    return name if name and not set(name) & set('."[]* ') else f'"{name}"'
