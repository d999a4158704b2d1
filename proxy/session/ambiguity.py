"""Messages that two readers parse differently, so that a call could bypass a rule."""

import json
from collections.abc import Iterable
from typing import Any


def tool_called(message: dict[str, Any]) -> str | None:
    """Return the name of the tool that a decoded message calls, None if it calls none.

    >>> tool_called({"method": "tools/call", "params": {"name": "a"}})
    'a'
    """
    message = _folded(message)
    params = message.get("params") if message.get("method") == "tools/call" else None
    tool = _folded(params).get("name") if isinstance(params, dict) else None
    return tool if isinstance(tool, str) else None


def ambiguous(raw: bytes) -> bool:
    """Return True if another reader could see another call in a message, or in a batch.

    Some readers take the first value of a repeated name; some ignore the case of names. Others may
    read what cannot be read here.

    >>> ambiguous(b'{"method":"a","params":{"b":[{"c":1,"c":2}]}}'), ambiguous(b'{"Method":"a"}')
    (True, True)
    >>> ambiguous(b'{"method":"a","params":{"name":"b","arguments":{"A":1,"a":1}}}')
    False
    """
    repeats = False

    def members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
        nonlocal repeats
        members = dict(pairs)
        repeats = repeats or len(members) < len(pairs)
        return members

    try:
        # Numbers stay texts: Python limits the digits of an int.
        text = raw.decode("utf-8", "replace")
        value = json.loads(text, object_pairs_hook=members, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return True
    elements = value if isinstance(value, list) else [value]
    return repeats or any(_has_other_case(each) for each in elements)


def _has_other_case(message: Any) -> bool:
    """Return True if readers that ignore the case of names read a message differently."""
    if not isinstance(message, dict):
        return False
    params = _folded(message).get("params")
    return _differs(message, "method", "params") or (
        isinstance(params, dict) and _differs(params, "name", "arguments")
    )


def _differs(names: Iterable[str], *expected: str) -> bool:
    return any(name not in expected and name.casefold() in expected for name in names)


def _folded(message: dict[str, Any]) -> dict[str, Any]:
    return {name.casefold(): value for name, value in message.items()}
