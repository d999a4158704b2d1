"""One stream of a session of the handshake era: its events and its connection.

A stream belongs to one POST, or is the one that GET opens. It outlives its connection: a client
that reconnects with the id of the last event gets the events that followed. Invariant: a client
that does not read delays its own session only, and only for a limited time.
"""

import asyncio
from collections import deque
from collections.abc import Iterable

from aiohttp import web

from proxy.transports.http import sse
from proxy.transports.http.sse import Event
from proxy.transports.sidecar.command.event_store import StoredEvent
from proxy.transports.sidecar.response_writer import ResponseWriter, message_event
from proxy.transports.sidecar.route import AccessRecord

RETRY = 1000
"""Milliseconds after which a client is to reconnect."""

PING = 15.0
"""Seconds of silence after which a comment is written, for intermediaries."""

_MOST_BEHIND = 8 << 20  # bytes that may wait for a client that reads slowly
_STUCK = 30.0  # seconds without a byte read after which such a connection is ended
_MOST_KEPT = 1000  # events that wait for a client that is not connected
_MOST_KEPT_BYTES = 16 << 20
SILENCE = Event(b": \n\n", None)
"""A comment that breaks the silence and has no meaning."""


class EventStream:
    """The messages for the client in answer to one POST, or on its GET stream.

    `ids` are the requests that it will answer, `tokens` their progress tokens. `carries` means that
    it may hold more than responses. `keeps` means that its events wait here while no client is
    connected: those of a POST's stream are in the event store. `with_ids`: the events have ids.
    """

    def __init__(
        self,
        number: int,
        ids: Iterable[bytes] = (),
        tokens: Iterable[bytes] = (),
        *,
        carries: bool = True,
        keeps: bool = False,
        with_ids: bool = True,
    ) -> None:
        self.number = number
        self.ids = set(ids)
        self.tokens = tuple(tokens)
        self.carries = carries
        self.over = False
        self.received = 0
        """Bytes of the server's responses to it, before they were shaped."""
        self.dropped = 0
        """How many waiting events were dropped."""
        self._keeps = keeps
        self._was_connected = False  # before the first connection, events wait for it
        self._with_ids = with_ids
        self._hurried = False
        self._waiting: deque[StoredEvent] = deque()
        self._size = 0
        self._change = asyncio.Event()
        self._connection: _Connection | None = None

    @property
    def connected(self) -> bool:
        """True while a client is connected."""
        return self._connection is not None

    def add(self, event: StoredEvent) -> None:
        """Add an event, to be sent as soon as a client is connected."""
        if self._connection is None and self._was_connected and not self._keeps:
            return
        self._waiting.append(event)
        self._size += len(event.data)
        if self._connection is not None:
            self._connection.news.set()
            return
        while len(self._waiting) > _MOST_KEPT or self._size > _MOST_KEPT_BYTES:
            self._size -= len(self._waiting.popleft().data)
            self.dropped += 1

    def replay(self, events: Iterable[StoredEvent]) -> None:
        """Replace all waiting events by these: a client has reconnected."""
        self._waiting = deque(events)
        self._size = sum(len(each.data) for each in self._waiting)

    def finish(self) -> None:
        """Record that no more events follow."""
        self.over = True
        self._change.set()
        if self._connection is not None:
            self._connection.news.set()

    def hurry(self) -> None:
        """Stop waiting for slow clients: the end is near."""
        self._hurried = True
        self._change.set()

    async def room(self) -> None:
        """Wait while a connected client is far behind; disconnect one that reads nothing."""
        while self._connection is not None and self._size > _MOST_BEHIND and not self._hurried:
            connection, behind = self._connection, self._connection.behind
            self._change.clear()
            try:
                async with asyncio.timeout(_STUCK):
                    await self._change.wait()
            except TimeoutError:
                if connection is self._connection and connection.behind >= behind:
                    connection.abort()
                    self._leave(connection)

    async def serve(
        self,
        request: web.BaseRequest,
        answer: ResponseWriter,
        record: AccessRecord,
        *,
        pings: bool,
        leading: Iterable[Event] = (),
    ) -> web.StreamResponse:
        """Send all events to a client, until the stream ends, or the client leaves or reconnects.

        `leading` are sent before all others. If `pings` is true, a comment breaks long silence.
        """
        connection = _Connection(request)
        earlier, self._connection = self._connection, connection
        if earlier is not None:
            earlier.news.set()
        try:
            await answer.begin()
            for event in leading:
                await answer.add(event)
            response = await answer.end(await self._tell(connection, answer, pings=pings))
        finally:
            record.bytes_sent, record.bytes_received = answer.bytes_sent, self.received
            self._leave(connection)
        return response

    async def _tell(
        self, connection: "_Connection", answer: ResponseWriter, *, pings: bool
    ) -> Event | None:
        """Send the events except the very last, which is returned: it ends the answer."""
        while self._connection is connection:
            while self._waiting and self._connection is connection:
                event = self._waiting.popleft()
                self._size -= len(event.data)
                if self.over and not self._waiting:
                    self._change.set()
                    return self._event(event)
                await answer.add(self._event(event))
                self._change.set()
            if self.over:
                return None
            connection.news.clear()
            try:
                async with asyncio.timeout(PING):
                    await connection.news.wait()
            except TimeoutError:
                if pings or answer.started:
                    await answer.keep_alive(SILENCE)
        return None

    def _event(self, event: StoredEvent) -> Event:
        id = event.id if self._with_ids else None
        if event.data:
            return message_event(event.data, id)
        # No event name: a client that does not know this kind of event may still accept any data.
        raw = sse.encode_event(b"", event=None, id=id, retry=RETRY)
        return Event(raw, b"", id, None, RETRY)

    def _leave(self, connection: "_Connection") -> None:
        if self._connection is not connection:
            return
        self._connection = None
        self._was_connected = True
        if not self._keeps:
            self._waiting.clear()
            self._size = 0
        self._change.set()


class _Connection:
    """The connection of a client that reads a stream."""

    def __init__(self, request: web.BaseRequest) -> None:
        self._transport = request.transport
        self.news = asyncio.Event()

    @property
    def behind(self) -> int:
        """The number of bytes that wait to be sent."""
        transport = self._transport
        size = getattr(transport, "get_write_buffer_size", None)
        return 0 if size is None else int(size())

    def abort(self) -> None:
        """Close it, whatever the client has not read."""
        if self._transport is not None:
            self._transport.abort()
