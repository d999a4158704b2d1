"""Messages that two readers parse differently, so that a call could bypass a rule."""

from collections.abc import Iterable
from typing import Any

import msgspec
from msgspec import Raw

from proxy.document.message import members
from proxy.document.surrogates import replace_lone
from proxy.document.tree import compact, encode, uncollected
from proxy.errors import DocumentError


def called(message: dict[str, Any]) -> str | None:
    """Return the name of the tool that a decoded message calls, None if it calls none.

    >>> called({"method": "tools/call", "params": {"name": "a"}}), called({"method": "ping"})
    ('a', None)
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
    return _odd(message, "method", "params") or (
        isinstance(params, dict) and _odd(params, "name", "arguments")
    )


def _odd(held: Iterable[str], *names: str) -> bool:
    return any(name not in names and name.casefold() in names for name in held)


def _folded(held: dict[str, Any]) -> dict[str, Any]:
    return {name.casefold(): value for name, value in held.items()}


def may_call(raw: bytes) -> bool:
    """Return True if some reader may see a tool call in a message; fast, and False is certain.

    >>> may_call(rb'{"method":"tools/c\\u0061ll"}'), may_call(b'{"method":"ping"}')
    (True, False)
    """
    return b"call" in raw or b"\\u" in raw


def disguised(held: Raw, *names: str) -> bool:
    """Return True if an object spells one of `names` so that only some readers recognize it.

    >>> disguised(Raw(b'{"Method":"a"}'), "method"), disguised(Raw(b'{"method":"a"}'), "method")
    (True, False)
    """
    try:
        found = members(replace_lone(bytes(held)))
    except DocumentError:
        return False
    return _odd(found, *names)


def repeated(held: Raw) -> bool:
    """Return True if any object in a value, at any depth, repeats a member name.

    >>> repeated(Raw(b'{"a":{"b":1,"b":2}}')), repeated(Raw(b'{"a":{"b":1},"b":2}'))
    (True, False)
    """
    import json

    twice = False

    def note(pairs: list[tuple[str, Any]]) -> None:
        nonlocal twice
        twice = twice or len(dict(pairs)) < len(pairs)

    try:
        with uncollected():
            # Numbers stay texts: Python limits the digits of an int.
            json.loads(bytes(held), object_pairs_hook=note, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return True  # other readers may succeed
    return twice


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
    return disguised(params, "name", "arguments") or doubled(params)


def doubled(held: Raw) -> bool:
    """Return True if an object's own members may repeat a name, however it is escaped.

    >>> doubled(Raw(b'{"a":1, "a":2}')), doubled(Raw(b'{"a":{"b":1,"b":2}}'))
    (True, False)
    """
    try:
        raw = replace_lone(bytes(held))
        if len(raw) == _written(members(raw)):
            return False
        written = compact(raw)
        return len(written) != len(encode(members(Raw(written))))
    except (DocumentError, msgspec.DecodeError):
        return False


def _written(held: dict[str, Raw]) -> int:
    """Return the length of an object without white space, each name spelled as `encode` does."""
    names = sum(len(encode(name)) for name in held)
    values = sum(len(memoryview(value)) for value in held.values())
    # Each member has a colon and a comma or closing brace; then the opening brace.
    return names + values + 2 * len(held) + 1
