"""The open request that a message of the server belongs to, as far as the message states it."""

from collections.abc import Callable

from msgspec import Raw, Struct

from mcp_abridge.document import message
from mcp_abridge.document.message import Message, id_key, string_at, value_at
from mcp_abridge.document.tree import ABSENT
from mcp_abridge.errors import DocumentError
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.stdio.pipes import LongLine

_LARGE = 4096  # bytes from which a response is identified by its head and tail, if certain
_BEGINS = b'{"jsonrpc"'  # the start of a message that follows noise on the same line

_NULL = b"null"

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


class Correlation(Struct, frozen=True):
    """The request that a message of the server belongs to; keys are `message.id_key`s.

    `answers` is the id of a response; `token` and `subscription` are those of a notification;
    `cancels` is the id of the request that a notification cancels.
    """

    answers: bytes | None = None
    token: bytes | None = None
    subscription: bytes | None = None
    cancels: bytes | None = None


def correlate(raw: bytes, *, glued: bool = True) -> Correlation:
    """Return the correlation of `raw`; empty if it states none. Noise may be `glued` before it.

    >>> correlate(b'{"jsonrpc":"2.0","id":7,"result":{}}').answers
    b'7'
    >>> correlate(b'{"method":"notifications/progress","params":{"progressToken":"a"}}').token
    b'"a"'
    """
    if len(raw) > _LARGE:
        key = message.responds_to(raw)
        if key is not None:
            return Correlation(answers=key)
    try:
        read = message.read(raw)
    except DocumentError:
        at = raw.find(_BEGINS, 1) if glued else -1
        if at > 0:
            return correlate(raw[at:], glued=False)
        return Correlation(answers=message.responds_to(raw))
    if not isinstance(read, Message):
        return Correlation()
    if read.responds:
        return Correlation(answers=read.key)
    if read.id is not ABSENT or read.params is ABSENT:
        return Correlation()
    if read.verb == "notifications/progress":
        return Correlation(token=_key(read.params, message.PROGRESS_TOKEN))
    if read.verb == "notifications/cancelled":
        return Correlation(cancels=_key(read.params, "requestId"))
    return Correlation(subscription=_key(read.params, "_meta", SUBSCRIPTION))


def progress_token(request: Message) -> bytes | None:
    """Return the progress token of a request as an id_key; None if it has none."""
    return _key(request.params, "_meta", message.PROGRESS_TOKEN)


def answered_ids(raw: bytes) -> list[bytes]:
    """Return the ids of the responses in a message; b"null" for a response without an id.

    >>> answered_ids(b'[{"id":1,"result":{}},{"method":"x"},{"error":{"code":1,"message":""}}]')
    [b'1', b'null']
    """
    key = message.responds_to(raw)
    if key is not None:
        return [key]
    return [each.key or _NULL for each in message.messages(raw) if each.responds]


def refuses(raw: bytes, key: bytes) -> bool:
    """Return True for a JSON-RPC error about the request with this id, or without an id."""
    contents = message.messages(raw)
    if len(contents) != 1 or contents[0].key not in (key, None, _NULL):
        return False
    # Other formats have an `error` too, of another meaning (OAuth, RFC 6749 section 5.2).
    code = bytes(value_at(contents[0].error, "code"))
    return code.lstrip(b"-").isdigit() and b'"jsonrpc"' in raw


def negotiated_version(raw: bytes) -> str | None:
    """Return the protocol version that the response to `initialize` names."""
    for each in message.messages(raw):
        return string_at(each.result, "protocolVersion")
    return None


def error_for_long_line(
    line: LongLine, limit: int, log: Log, awaits: Callable[[bytes], bool]
) -> list[bytes]:
    """Return an error response in place of a response that was discarded, none for other lines.

    Each such line is examined when it is found to be too long and, since some servers write the id
    last, when it has ended.
    """
    reason = _drop_reason(line.size, limit, " from the server")
    if line.state == "too long":
        log.warning(reason)
    key = message.response_key(line.start, line.end)
    return [message.error(key, message.PROXY_ERROR, reason)] if key and awaits(key) else []


def refusal_of_long_line(line: LongLine, limit: int, log: Log) -> list[bytes]:
    """Return an error response to a request that was discarded, once it has ended."""
    if line.state == "too long":
        return []
    reason = _drop_reason(line.size, limit)
    log.warning(f"from the client: {reason}")
    id = message.request_id(line.start, line.end)
    return [] if id is None else [message.error(id, message.PROXY_ERROR, reason)]


def _drop_reason(size: int, limit: int, source: str = "") -> str:
    """Return the reason for dropping a message: it is over the limit, or memory is too small.

    >>> _drop_reason(30, 20, " from the server")
    'a message of 30 bytes from the server is over the limit of 20 bytes'
    >>> _drop_reason(30, 200)
    'there is no memory for a message of 30 bytes'
    """
    what = f"a message of {size} bytes{source}"
    if size > limit:
        return f"{what} is over the limit of {limit} bytes"
    return f"there is no memory for {what}"


def _key(raw: Raw, *names: str) -> bytes | None:
    return id_key(bytes(value_at(raw, *names))) or None
