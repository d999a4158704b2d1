"""Messages that two readers parse differently, so that a call could bypass a rule."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw

from proxy.document.message import members
from proxy.document.surrogates import replace_lone
from proxy.document.tree import compact, encode, uncollected
from proxy.errors import DocumentError


def tool_called(message: dict[str, Any]) -> str | None:
    """Return the name of the tool that a decoded message calls, None if it calls none.

    >>> tool_called({"method": "tools/call", "params": {"name": "a"}})
    'a'
    """
    message = _folded(message)
    params = message.get("params") if message.get("method") == "tools/call" else None
    tool = _folded(params).get("name") if isinstance(params, dict) else None
    return tool if isinstance(tool, str) else None


def differs(message: dict[str, Any]) -> bool:
    """Return True if readers that ignore the case of names read a decoded message differently.

    >>> differs({"Method": "a"}), differs({"params": {"NAME": "a"}}), differs({"method": "a"})
    (True, True, False)
    """
    params = _folded(message).get("params")
    return _has_other_case(message, "method", "params") or (
        isinstance(params, dict) and _has_other_case(params, "name", "arguments")
    )


def _has_other_case(names: Iterable[str], *expected: str) -> bool:
    return any(name not in expected and name.casefold() in expected for name in names)


def _folded(message: dict[str, Any]) -> dict[str, Any]:
    return {name.casefold(): value for name, value in message.items()}


def disguised(object: Raw, *names: str) -> bool:
    """Return True if an object spells one of `names` so that only some readers recognize it.

    >>> disguised(Raw(b'{"Method":"a"}'), "method"), disguised(Raw(b'{"method":"a"}'), "method")
    (True, False)
    """
    try:
        return _has_other_case(members(replace_lone(bytes(object))), *names)
    except DocumentError:
        return False


def repeats_a_name(value: Raw) -> bool:
    """Return True if any object in a value, at any depth, repeats a member name.

    >>> repeats_a_name(Raw(b'{"a":{"b":1,"b":2}}')), repeats_a_name(Raw(b'{"a":{"b":1},"b":2}'))
    (True, False)
    """
    import json

    repeats = False

    def check(pairs: list[tuple[str, Any]]) -> None:
        nonlocal repeats
        repeats = repeats or len(dict(pairs)) < len(pairs)

    try:
        with uncollected():
            # Numbers stay texts: Python limits the digits of an int.
            json.loads(bytes(value), object_pairs_hook=check, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return True  # other readers may succeed
    return repeats


def ambiguous(params: Raw) -> bool:
    """Return True if another reader could see another tool or other arguments in a call.

    Some readers take the first value of a repeated name; some ignore the case of names.

    >>> ambiguous(Raw(b'{"name":"a","Name":"b"}')), ambiguous(Raw(b'{"name":"a"}'))
    (True, False)
    """
    try:
        members(params)
    except DocumentError:
        return True  # other readers may succeed
    return disguised(params, "name", "arguments") or has_twin_members(params)


def has_twin_members(object: Raw) -> bool:
    """Return True if an object's own members may repeat a name, however it is escaped.

    >>> has_twin_members(Raw(b'{"a":1, "a":2}')), has_twin_members(Raw(b'{"a":{"b":1,"b":2}}'))
    (True, False)
    """
    try:
        raw = replace_lone(bytes(object))
        if len(raw) == _compact_size(members(raw)):
            return False
        packed = compact(raw)
        return len(packed) != len(encode(members(Raw(packed))))
    except (DocumentError, msgspec.DecodeError):
        return False


def _compact_size(object: dict[str, Raw]) -> int:
    """Return the length of an object without white space, each name spelled as `encode` does."""
    names = sum(len(encode(name)) for name in object)
    values = sum(len(memoryview(value)) for value in object.values())
    # Each member has a colon and a comma or closing brace; then the opening brace.
    return names + values + 2 * len(object) + 1
