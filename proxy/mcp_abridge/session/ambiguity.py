"""Messages that two readers parse differently, so that a call could bypass a rule."""

import json
from collections.abc import Iterable
from typing import Any

from mcp_abridge.document.message import Message, string_at
from mcp_abridge.session.inflight import PendingRequest
from mcp_abridge.session.outputs import Outputs
from mcp_abridge.session.state import SessionState

_REASON = "the call is ambiguous: its name or its arguments are given twice"


def ambiguous(raw: bytes) -> bool:
    """Return True if another reader could see another call in a message.

    Some take the first value of a repeated name; some ignore the case of names.
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
        message = json.loads(text, object_pairs_hook=members, parse_int=str, parse_float=str)
    except (ValueError, RecursionError):
        return True
    params = message.get("params")
    return (
        repeats
        or _differs(message, "method", "params")
        or (isinstance(params, dict) and _differs(params, "name", "arguments"))
    )


def refuse(state: SessionState, envelope: Message, exchange: bytes) -> Outputs:
    """Refuse such a message, whose envelope is one reading of it."""
    tool = string_at(envelope.params, "name") or ""
    state.log(f"{tool or 'a message'}: refused: {_REASON}")
    if envelope.key is None or envelope.responds:
        return ()
    return state.refuse(PendingRequest(exchange, envelope.key, "tools/call", tool), _REASON)


def _differs(names: Iterable[str], *expected: str) -> bool:
    return any(name not in expected and name.casefold() in expected for name in names)
