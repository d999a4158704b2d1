"""Messages that two readers may read in two ways, so that a call could get around a rule."""

from typing import Any

import msgspec
from msgspec import Raw

from proxy.document import compact, encode
from proxy.errors import DocumentError
from proxy.message import members


def called(message: dict[str, Any]) -> str | None:
    """Return the tool that a decoded message calls.

    >>> called({"method": "tools/call", "params": {"name": "a"}}), called({"method": "ping"})
    ('a', None)
    """
    params = message.get("params") if message.get("method") == "tools/call" else None
    tool = params.get("name") if isinstance(params, dict) else None
    return tool if isinstance(tool, str) else None


def ambiguous(params: Raw) -> bool:
    """Say whether another reader of a call could see another tool or other arguments in it.

    Of a name that stands there twice some take the first; some do not tell `Name` from `name`.

    >>> ambiguous(Raw(b'{"name":"a","Name":"b"}')), ambiguous(Raw(b'{"name":"a"}'))
    (True, False)
    """
    try:
        names = [name.lower() for name in members(params)]
    except DocumentError:
        return True  # what we cannot read others may
    return max(names.count("name"), names.count("arguments")) > 1 or doubled(params)


def doubled(held: Raw) -> bool:
    """Say whether members of an object may have the same name, however it is spelled.

    >>> doubled(Raw(b'{"a":1, "a":2}')), doubled(Raw(b'{"a":{"b":1,"b":2}}'))
    (True, False)
    """
    try:
        written = compact(bytes(held))
        return len(written) != len(encode(members(Raw(written))))
    except (DocumentError, msgspec.DecodeError):
        return False
