"""Fallbacks for messages on which the session itself failed: each request gets one answer.

Invariant: a response that a rule withholds stays withheld, and no call is sent unchecked.
"""

from collections.abc import Callable, Sequence
from contextlib import suppress

from proxy.document import message
from proxy.document.message import Message
from proxy.document.tree import ABSENT
from proxy.errors import DocumentError, RuleErrors, raised
from proxy.session.ambiguity import may_call
from proxy.session.inflight import InFlight, PendingRequest, SuspendedCalls
from proxy.session.outputs import Forward, Output, Reply


def said_of(error: Exception) -> str:
    """Return the message for the client about a failure of the proxy.

    >>> said_of(KeyError("a"))
    "the proxy failed on a message: KeyError: 'a'"
    """
    if isinstance(error, RuleErrors):
        return error.brief
    return f"the proxy failed on a message: {raised(error)}"


def failed(error: Exception, mark: int, waiting: SuspendedCalls, log: Callable[[str], None]) -> str:
    """Drop the calls suspended since `mark`, log the failure, and return the message about it."""
    waiting.forget_since(mark)
    said = said_of(error)
    if not isinstance(error, RuleErrors):
        with suppress(Exception):  # it may be the log that failed
            log(said)
    return said


def gave_up(pending: PendingRequest, inflight: InFlight, said: str) -> bytes:
    """Return the error response to a call on which the proxy failed, and forget the call."""
    inflight.retire(pending.exchange + pending.id)
    return pending.failed(said)


def of_client(raw: bytes, exchange: bytes, inflight: InFlight, said: str) -> tuple[Output, ...]:
    """Answer every request in a client's message; drop anything else that may be a call."""
    try:
        read = message.read(raw)
    except DocumentError:
        id = message.request_id(raw[:512], raw[-512:])
        return () if id is None else (Reply(message.error(id, -1, said)),)
    single = isinstance(read, Message)
    outputs: list[Output] = []
    for each in (read,) if isinstance(read, Message) else map(_element, read):
        if each is not None and each.method is not ABSENT and each.key not in (None, b"null"):
            inflight.retire(exchange + (each.key or b""))
            outputs.append(Reply(message.error(each.id, -1, said)))
        elif single and not may_call(raw):
            outputs.append(Forward(raw))
    return tuple(outputs)


def _element(raw: bytes) -> Message | None:
    try:
        read = message.read(bytes(raw))
    except DocumentError:
        return None
    return read if isinstance(read, Message) else None


def in_place_of(raw: bytes, said: str, *, answers: bool) -> bytes | None:
    """Return the error that answers a request or, with `answers`, replaces a response.

    None for any other message. For drivers whose session could not identify the request.
    """
    try:
        read = message.read(raw)
    except Exception:
        return None
    if not isinstance(read, Message) or read.id is ABSENT or read.responds != answers:
        return None
    return message.error(read.id, -1, said)


def of_server(
    raw: bytes, taken: Sequence[PendingRequest], said: str, *, closed: bool
) -> tuple[Output, ...]:
    """Forward a server's message, unless it is a response that must be withheld.

    `taken` are the requests that it answers; outputs are relative to the server. `closed`: a list
    of tools must not reach the client unedited.
    """
    if not any(_withheld(pending, closed=closed) for pending in taken):
        return (Forward(raw),)
    return tuple(Forward((pending.held or pending).failed(said)) for pending in taken)


def _withheld(pending: PendingRequest, *, closed: bool) -> bool:
    withholds = pending.rule is not None and pending.rule.failure_policy.withholds
    return withholds or pending.held is not None or (closed and pending.method == "tools/list")
