"""To whom of several open requests a message of the server belongs, as far as it says so itself."""

from collections.abc import Collection

from msgspec import Raw, Struct

from proxy.document import message
from proxy.document.message import Message, id_key, members
from proxy.document.tree import ABSENT
from proxy.errors import DocumentError
from proxy.transports.stdio.lines import LineDropped, LineTooLong

_LARGE = 4096  # bytes from which a response is known by its head and tail where that is certain
_ENDS = 512
_BEGINS = b'{"jsonrpc"'  # how a message looks behind noise on the same line

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class Correlation(Struct, frozen=True):
    """What a message of the server says of the request it belongs to; keys are `message.id_key`s.

    `answers` is the id of a response; `token` and `subscription` those of a notification;
    `cancels` the request that a notification says is over.
    """

    answers: bytes | None = None
    token: bytes | None = None
    subscription: bytes | None = None
    cancels: bytes | None = None
    failed: bool = False
    """True for a response that is an error."""


NOWHERE = Correlation()


def address(raw: bytes, *, glued: bool = True) -> Correlation:
    """Read to whom `raw` belongs; NOWHERE where it does not say. Noise before it may be `glued` on.

    >>> address(b'{"jsonrpc":"2.0","id":7,"result":{}}').answers
    b'7'
    >>> address(b'{"method":"notifications/progress","params":{"progressToken":"a"}}').token
    b'"a"'
    """
    if len(raw) > _LARGE:
        key = message.response_key(raw[:_ENDS], raw[-_ENDS:])
        if key is not None:
            return Correlation(answers=key, failed=not message.succeeds(raw[:_ENDS]))
    try:
        read = message.read(raw)
    except DocumentError:
        at = raw.find(_BEGINS, 1) if glued else -1
        if at > 0:
            return address(raw[at:], glued=False)
        return Correlation(answers=message.response_key(raw[:_ENDS], raw[-_ENDS:]))
    if not isinstance(read, Message):
        return NOWHERE
    if read.responds:
        return Correlation(answers=read.key, failed=read.error is not ABSENT)
    if read.id is not ABSENT or read.params is ABSENT:
        return NOWHERE
    try:
        params = members(read.params)
        if read.verb == "notifications/progress":
            return Correlation(token=_key(params.get("progressToken")))
        if read.verb == "notifications/cancelled":
            return Correlation(cancels=_key(params.get("requestId")))
        meta = members(params["_meta"]) if "_meta" in params else {}
        return Correlation(subscription=_key(meta.get(SUBSCRIPTION)))
    except DocumentError:
        return NOWHERE


def progress_token(request: Message) -> bytes | None:
    """Return the token under which a request wants to hear of its progress, as an id_key."""
    try:
        meta = members(members(request.params)["_meta"])
        return _key(meta.get("progressToken"))
    except (DocumentError, KeyError):
        return None


def elements(raw: bytes) -> list[bytes]:
    """Return the messages of a batch, or `raw` itself where it is none."""
    if raw[:1] != b"[":
        return [raw]
    try:
        read = message.read(raw)
    except DocumentError:
        return [raw]
    return [raw] if isinstance(read, Message) else [bytes(each) for each in read]


def said_of_long(
    event: LineTooLong | LineDropped, waiting: Collection[bytes], limit: int
) -> bytes | None:
    """Return an answer of the server's in place of one that was thrown away, where it was one.

    `waiting` are the ids of the requests that are open. Such a line is looked at twice: when it is
    found to be too long, and when it has ended; some servers write the id last.
    """
    key = message.response_key(event.start, b"" if isinstance(event, LineTooLong) else event.end)
    if key is None and isinstance(event, LineTooLong) and len(waiting) == 1:
        # Nothing else is awaited, so it is the answer to this.
        key = None if message.asks(event.start) else next(iter(waiting))
    if key is None or key not in waiting:
        return None
    return message.error(key, -1, message.thrown_away(event.size, limit, " from the server"))


def _key(raw: Raw | None) -> bytes | None:
    return None if raw is None else id_key(bytes(raw))
