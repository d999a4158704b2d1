"""The proxy's own query to a server before a call: its request and its result."""

from os import urandom
from typing import Any

from msgspec import Raw

from proxy.document import message
from proxy.document.message import Message, members
from proxy.document.tree import ABSENT, encode, piecemeal, text, uncollected
from proxy.errors import DocumentError
from proxy.ruleset.guard import Query, QueryResult
from proxy.shaping.result.locate import read as read_result
from proxy.shaping.result.parse import complete, failed

_PROGRESS = "progressToken"


class Ids:
    """The ids of a session's queries: no client can choose one, since clients never see them.

    >>> ids = Ids()
    >>> first, second = ids.new(), ids.new()
    >>> first != second, ids.hold(first), ids.hold(b'"abridge-1"'), Ids().hold(first)
    (True, True, False, False)
    """

    __slots__ = ("_begin", "_count")

    def __init__(self) -> None:
        self._begin = b""
        self._count = 0

    @property
    def used(self) -> bool:
        """True if an id was issued."""
        return bool(self._begin)

    def new(self) -> bytes:
        """Return an unused id, as JSON."""
        self._begin = self._begin or f'"abridge-{urandom(12).hex()}-'.encode()
        self._count += 1
        return b'%s%d"' % (self._begin, self._count)

    def hold(self, id: bytes) -> bool:
        """Return True if `id` was issued here."""
        return self.used and id.startswith(self._begin)

    def within(self, raw: bytes) -> bool:
        """Return True if a line that cannot be parsed contains an id issued here."""
        return self.used and self._begin in raw


def request(id: bytes, ask: Query, call: Raw) -> bytes:
    """Return the line of a query; `call` are the params of the held call."""
    params: dict[str, Any] = {"name": ask.tool, "arguments": ask.arguments}
    meta = members(call).get("_meta")
    if meta is not None:
        # The stateless protocol requires it of every request. The progress is not the call's.
        own = members(meta)
        own.pop(_PROGRESS, None)
        params["_meta"] = own
    return encode({"jsonrpc": "2.0", "id": Raw(id), "method": "tools/call", "params": params})


def cancellation(id: bytes, reason: str | None = None) -> bytes:
    """Return the notification that cancels a request at the server."""
    params: dict[str, Any] = {"requestId": Raw(id)}
    if reason is not None:
        params["reason"] = reason
    return encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def heard(raw: bytes) -> QueryResult:
    """Return the result `found` in a response; never raises."""
    try:
        return found(raw)
    except Exception as error:  # too deep, too large, ...
        return QueryResult(failure=f"the answer cannot be read: {type(error).__name__}: {error}")


def found(raw: bytes) -> QueryResult:
    """Return the document of a response's result, or the reason why there is none.

    >>> found(b'{"jsonrpc":"2.0","id":1,"result":{"content":[{"type":"text","text":"[1]"}]}}')
    QueryResult(document=[1], failure=None)
    >>> found(b'{"jsonrpc":"2.0","id":1,"error":{"code":-32602,"message":"Unknown tool: a"}}')
    QueryResult(document=None, failure='Unknown tool: a')
    """
    try:
        read = message.read(raw)
        if not isinstance(read, Message) or read.result is ABSENT or read.error is not ABSENT:
            said = message.string_at(Raw(raw), "error", "message")
            return QueryResult(failure=said or "the answer is an error")
        held = members(read.result)
        if not complete(held):
            return QueryResult(failure="the server wants to know something first")
        reading = read_result(held, "auto")
        document = None if reading is None else reading.document
        said = None if document is None else text(document.cell[0])
        if failed(held):
            words = said if said is not None or document is None else document.encode().decode()
            return QueryResult(failure=words or "the answer is an error")
        if document is None:
            return QueryResult(failure="the answer has no document")
        if said is not None:
            return QueryResult(said)
        with uncollected():
            return QueryResult(piecemeal(Raw(encode(document.cell[0]))))
    except DocumentError as cause:
        return QueryResult(failure=f"the answer cannot be read: {cause}")
