"""A server that requests of one caller share: whose each of its messages is.

Clients number their requests alike, so each has an id and a progress token of the proxy's own at
its server. None is used twice, so a late response cannot be taken for that of another request. A
message that belongs to no request goes to the latest open one; without tokens, whose callers cannot
be told apart, only if no other is open.
"""

import asyncio
from collections.abc import Callable, Iterable

import msgspec
from msgspec import Raw, Struct

from mcp_abridge.document import message
from mcp_abridge.session.guards import cancellation
from mcp_abridge.session.own_requests import QueryIds
from mcp_abridge.transports.aio import threaded
from mcp_abridge.transports.correlation import Correlation, correlate
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.sidecar.command.child import HASTY, ChildServer, unread

_MOST_BEHIND = 16 << 20  # bytes that may wait for one client that reads slowly
_LARGE = 4096  # bytes up to which a line is always checked for a second message
_DISCONNECTED = "the client closed the stream"
_GAVE_WAY = "the server made room for that of another caller; subscribe again"
_SILENT = 1.0  # seconds without a message after a request, from which other servers are preferred


class PooledRequest(Struct, eq=False):
    """One request in progress, and the server's messages to it so far.

    `key` is the client's id and `token` its progress token, as message.id_keys; `own_key` and
    `own_token` are those at the server. `cut` is called if the client reads too slowly. A request
    that `lasts` is a subscription. `awaited` are the ids that the server has yet to answer: its
    own, or that of the proxy's query. `forwarded`: the server was sent the request itself. `over`
    is why no more messages follow, an empty text after a normal end.
    """

    key: bytes
    token: bytes | None
    cut: Callable[[], None]
    lasts: bool = False
    own_key: bytes = b""
    own_token: bytes = b""
    awaited: set[bytes] = set()
    forwarded: bool = False
    over: str | None = None
    messages: asyncio.Queue[bytes | None] = msgspec.field(default_factory=asyncio.Queue)
    size: int = 0

    def restored(self, raw: bytes) -> bytes:
        """Return a message of the server with the client's id and progress token."""
        if not self.forwarded:
            return raw
        if self.token is not None:
            raw = raw.replace(self.own_token, self.token)
        return raw.replace(self.own_key, self.key)

    def add(self, raw: bytes) -> None:
        # The first message is accepted whatever its size.
        if self.size > _MOST_BEHIND:
            self.cut()
            return
        self.messages.put_nowait(raw)
        self.size += len(raw)

    def finish(self, reason: str = "") -> None:
        if self.over is None:
            self.over = reason
            self.messages.put_nowait(None)

    async def next(self, seconds: float | None = None) -> bytes | None:
        """Wait for the next message; None at the end. Raises TimeoutError after some seconds."""
        async with asyncio.timeout(seconds):
            raw = await self.messages.get()
        self.size -= len(raw or b"")
        return raw


class PooledServer:
    """One server of a caller and its open requests; `ids` are for these.

    `change` is set whenever it may have become idle.
    """

    def __init__(
        self, child: ChildServer, caller: str, log: Log, ids: QueryIds, change: asyncio.Event
    ) -> None:
        self.child = child
        self.caller = caller
        self.leaving = False
        """True if it accepts no more requests."""
        self._log = log
        self._ids = ids
        self._change = change
        self._loop = asyncio.get_running_loop()
        self.last_used = self._loop.time()
        self._silent_since: float | None = None
        self._open: dict[PooledRequest, None] = {}
        # By the ids and progress tokens that the server knows.
        self._requests: dict[bytes, PooledRequest] = {}
        self._noise: list[bytes] = []  # recent output that is no message
        self._end: asyncio.Task[None] | None = None
        self.reading = self._loop.create_task(self._read())

    @property
    def idle(self) -> bool:
        return not self._open

    @property
    def load(self) -> int:
        """The number of its open requests without the subscriptions, which only listen."""
        return sum(not each.lasts for each in self._open)

    @property
    def silent(self) -> bool:
        """True if it owes an answer and has sent nothing for a while, as one that was stopped."""
        since = self._silent_since
        return since is not None and self._loop.time() - since > _SILENT

    @property
    def listened_to(self) -> bool:
        return any(each.lasts for each in self._open)

    @property
    def accepts(self) -> bool:
        return not (self.leaving or self.child.deaf or self.child.code is not None)

    def open(self, request: PooledRequest) -> None:
        """Add a request; `send` sends it."""
        request.own_key, request.own_token = self._ids.new(), self._ids.new()
        self._open[request] = None

    def send(self, request: PooledRequest, lines: Iterable[bytes]) -> None:
        """Send a request, queries of the proxy before it, or cancellations of either."""
        self.child.post([self._renamed(request, line) for line in lines])
        if self._silent_since is None and request.awaited and not request.lasts:
            self._silent_since = self._loop.time()

    def cancel(self, request: PooledRequest) -> None:
        self.child.post([cancellation(key, _DISCONNECTED) for key in request.awaited])
        self._close(request)

    def finish(self) -> None:
        """Accept no more requests, and end the server once it owes no answer.

        Subscriptions end with it: they have no end of their own.
        """
        self.leaving = True
        if self.load or self._end is not None:
            return
        self._end = self._loop.create_task(self.child.end())
        for request in tuple(self._open):
            self.cancel(request)
            request.finish(_GAVE_WAY)

    def _renamed(self, request: PooledRequest, line: bytes) -> bytes:
        cancels = correlate(line).cancels
        if cancels is not None:
            own = request.own_key if cancels == request.key else cancels
            request.awaited.discard(own)
            self._requests.pop(own, None)
            return _with_member(line, own, "params", "requestId")
        own = message.envelope(line).key or b""
        if own == request.key:
            own, request.forwarded = request.own_key, True
            line = _with_member(line, own, "id")
            if request.token is not None:
                self._requests[request.own_token] = request
                line = _with_member(
                    line, request.own_token, "params", "_meta", message.PROGRESS_TOKEN
                )
        request.awaited.add(own)
        self._requests[own] = request
        return line

    def _close(self, request: PooledRequest) -> None:
        for key in (*request.awaited, request.own_token):
            self._requests.pop(key, None)
        request.awaited.clear()
        self._open.pop(request, None)
        self.last_used = self._loop.time()
        if self.leaving:
            self.finish()
        self._change.set()

    async def _read(self) -> None:
        reason = ""
        try:
            async for line in self.child.messages(self._requests.__contains__):
                self._silent_since = None
                for raw in self._messages(line):
                    self._on_message(raw)
                    if self._noise:
                        # Blocks while the proxy's own stderr is not read.
                        await threaded(self._log.noise, self._noise.pop())
        except Exception as error:  # after any error, no client may wait for ever
            reason = unread(error)
        self.leaving = True
        await self.child.end(HASTY)
        self._change.set()
        if self._open:
            reason = reason or self.child.cause
            self._log.error(f"{reason}; requests answered with an error: {len(self._open)}")
        for request in tuple(self._open):
            self._close(request)
            request.finish(reason)

    def _messages(self, line: bytes) -> list[bytes]:
        """Separate messages on the same line: each may be of another request.

        One that broke off before another is replaced by an error.
        """
        is_checked = len(line) <= _LARGE or message.may_hold_another(line)
        end = message.end_of_first(line) if is_checked else len(line)
        if end is None and message.answers(line[: message.ENDS]):
            rest = message.offset_after_noise(line)
            if rest is not None:
                return [*self._broken_off(line[:rest], line[rest:]), *self._messages(line[rest:])]
        if end not in (None, len(line)) and len(parts := message.texts(line)) > 1:
            return [each for part in parts for each in self._messages(part)]
        return message.elements(line) or [line]

    def _broken_off(self, half: bytes, rest: bytes) -> list[bytes]:
        text = message.BROKE_OFF.format(len(half))
        self._log.warning(text)
        key = message.response_key(half[: message.ENDS], b"")
        if key not in self._requests:
            # Its id would have followed: it is the only other request, if there is just one.
            answered = correlate(rest).answers
            keys = [each.own_key for each in self._open if each.own_key != answered]
            key = keys[0] if len(keys) == 1 else None
        return [] if key is None else [message.error(key, -1, text)]

    def _on_message(self, raw: bytes) -> None:
        correlation = correlate(raw)
        request = self._request_of(correlation, raw)
        if request is None:
            return
        request.add(request.restored(raw))
        if request.own_key in (correlation.answers, correlation.cancels):
            # A server that ends a subscription by itself sends a cancellation.
            self._close(request)
            request.finish()
        elif correlation.answers is not None:
            request.awaited.discard(correlation.answers)
            self._requests.pop(correlation.answers, None)

    def _request_of(self, correlation: Correlation, raw: bytes) -> PooledRequest | None:
        for key in (correlation.answers, correlation.subscription, correlation.cancels):
            if key is not None:
                return self._requests.get(key)
        if correlation.token is not None:
            return self._requests.get(correlation.token)
        if not message.envelope(raw).is_message:
            if raw.strip():  # an empty line is no output
                self._noise.append(raw)
        elif self._open and (self.caller or len(self._open) == 1):
            return next(reversed(self._open))
        else:
            self._log.debug("a message that belongs to no request was dropped")
        return None


def _with_member(raw: bytes, value: bytes, name: str, *names: str) -> bytes:
    """Return the object `raw` with `value` as its string or number at a chain of names.

    >>> _with_member(b'{"id": 1.0, "params": {"id": 2}}', b'"a"', "id")
    b'{"id":"a","params":{"id": 2}}'
    """
    if names:
        value = _with_member(bytes(message.members(raw)[name]), value, *names)
    return message.replaced(raw, **{name: Raw(value)})
