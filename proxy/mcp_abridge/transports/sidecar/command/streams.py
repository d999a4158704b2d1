"""The streams of sessions of the handshake era: their events and their connections.

A stream outlives its connection: a client that reconnects gets all events that followed its last.
Invariant: a client that does not read delays its own session only, and for a limited time.
"""

import asyncio
from itertools import count

from aiohttp import web
from msgspec import Struct, field

from mcp_abridge.session.inflight import Bounded
from mcp_abridge.transports.http import sse
from mcp_abridge.transports.http.sse import Event
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.sidecar.response_writer import ResponseWriter, message_event
from mcp_abridge.transports.sidecar.route import Request

RETRY = 1000
"""Milliseconds after which a client is to reconnect."""

PING = 15.0
"""Seconds of silence after which a comment is written, for intermediaries."""

_MOST_BEHIND = 8 << 20  # bytes that may wait for a client that reads slowly
_STUCK = 30.0  # seconds without a byte read after which such a connection is ended
_OVERHEAD = 200  # bytes that an event costs besides its data


class EventStore(Bounded[tuple[int, int], bytes]):
    """The events of the streams of all sessions, by stream and number."""

    def __init__(self, *, number: int = 100_000, size: int = 256 << 20) -> None:
        super().__init__(number, size, lambda _, data: len(data) + _OVERHEAD)
        self.streams = count(1)
        """The numbers of further streams."""


class EventStream(Struct, eq=False):
    """The messages for the client in answer to one POST, or on its GET stream.

    `tokens` are the progress tokens of its requests. `carries` means that it may hold more than
    responses.
    """

    store: EventStore
    log: Log
    tokens: frozenset[bytes] = frozenset()
    carries: bool = True
    over: bool = False
    received: int = 0
    """Bytes of the server's responses to it, before they were shaped."""
    number: int = 0
    _hurried: bool = False
    _closed: bool = False
    _count: int = 0  # events so far
    _position: int = 0  # the number of the last event that was sent
    _behind: int = 0  # bytes of those that follow
    _news: asyncio.Event = field(default_factory=asyncio.Event)  # for the connection
    _progress: asyncio.Event = field(default_factory=asyncio.Event)  # for those who wait for room
    _request: Request | None = None

    def __post_init__(self) -> None:
        self.number = next(self.store.streams)

    @property
    def connected(self) -> bool:
        return self._request is not None

    def add(self, data: bytes) -> None:
        """Add an event, to be sent as soon as a client is connected; without data, only an id."""
        self._count += 1
        self.store.add((self.number, self._count), data)
        self._behind += len(data)
        self._news.set()

    def resume(self, position: int) -> bool:
        """Continue behind the event of this number; return False if one of the next is lost."""
        if not 1 <= position <= self._count:
            return False
        following = self._after(position)
        if len(following) < self._count - position:
            return False
        self._position, self._behind = position, sum(map(len, following))
        return True

    def _after(self, position: int) -> list[bytes]:
        numbers = range(position + 1, self._count + 1)
        following = (self.store.get((self.number, number)) for number in numbers)
        return [data for data in following if data is not None]

    def finish(self) -> None:
        self.over = True
        self._progress.set()
        self._news.set()

    def close(self) -> None:
        self._closed = True
        self.finish()
        if not self.connected:
            self._drop()

    def _drop(self) -> None:
        for number in range(1, self._count + 1):
            self.store.drop((self.number, number))

    def hurry(self) -> None:
        """Stop waiting for slow clients: the end is near."""
        self._hurried = True
        self._progress.set()

    async def room(self) -> None:
        """Wait while a connected client is far behind; disconnect one that reads nothing."""
        while self._request is not None and self._behind > _MOST_BEHIND and not self._hurried:
            request, unread = self._request, _unread(self._request)
            self._progress.clear()
            try:
                async with asyncio.timeout(_STUCK):
                    await self._progress.wait()
            except TimeoutError:
                if request is self._request and _unread(request) >= unread:
                    request.cut()
                    self._leave(request)

    async def serve(
        self, request: Request, answer: ResponseWriter, *, pings: bool
    ) -> web.StreamResponse:
        """Send all events until the stream ends, or the client leaves or returns.

        If `pings` is true, a comment breaks long silence.
        """
        self._request = request
        self._news.set()  # for an earlier connection, which ends
        try:
            # The server gets a request before the client gets anything, so that both work at once.
            await asyncio.sleep(0)
            await answer.begin()
            response = await answer.end(await self._tell(request, answer, pings=pings))
        finally:
            request.record.bytes_received = self.received
            self._leave(request)
        return response

    async def _tell(self, request: Request, answer: ResponseWriter, *, pings: bool) -> Event | None:
        """Send the events except the very last, which is returned: it ends the answer."""
        while self._request is request:
            if self._position < self._count:
                event = self._next()
                self._progress.set()
                if self.over and self._position == self._count:
                    return event
                if event is not None:
                    await answer.add(event)
                continue
            if self.over:
                return None
            self._news.clear()
            try:
                async with asyncio.timeout(PING):
                    await self._news.wait()
            except TimeoutError:
                if pings or answer.started:
                    await answer.keep_alive()
        return None

    def _next(self) -> Event | None:
        data, before = None, self._position
        while data is None and self._position < self._count:
            self._position += 1
            data = self.store.get((self.number, self._position))
        self._behind -= len(data or b"")
        if data is None or self._position > before + 1:
            self.log.warning("messages were dropped: nobody has opened a stream for them")
            self._behind = sum(map(len, self._after(self._position)))
        if data is None:
            return None
        id = f"{self.number}-{self._position}"
        if data:
            return message_event(data, id)
        # No event name: a client that does not know this kind of event may still accept any data.
        raw = sse.encode_event(b"", event=None, id=id, retry=RETRY)
        return Event(raw, b"", id, None, RETRY)

    def _leave(self, request: Request) -> None:
        if self._request is request:
            self._request = None
            self._progress.set()
            if self._closed:
                self._drop()


def _unread(request: web.BaseRequest) -> int:
    size = getattr(request.transport, "get_write_buffer_size", None)
    return 0 if size is None else int(size())
