"""One stream of a session of the handshake era: what is said on it, and who is connected to it.

A stream belongs to one POST, or is the one that GET opens. It outlives its connection: whoever
comes back with the id of the last event gets what followed. Invariant: a client that does not read
holds up its own session only, and that not for ever.
"""

import asyncio
from collections import deque
from collections.abc import Iterable

from aiohttp import web

from proxy.transports.http import sse
from proxy.transports.http.sse import Event
from proxy.transports.sidecar.command.event_store import StoredEvent
from proxy.transports.sidecar.response_writer import ResponseWriter, unframed
from proxy.transports.sidecar.route import AccessRecord

RETRY = 1000
"""Milliseconds after which a client is to come back."""

PING = 15.0
"""Seconds of silence after which a comment is written, for those between us and the client."""

_MOST_BEHIND = 8 << 20  # bytes that may wait for a client that is slow to read
_STUCK = 30.0  # seconds without a byte read after which such a connection is ended
_MOST_KEPT = 1000  # events that wait for a client that is not connected
_MOST_KEPT_BYTES = 16 << 20
SILENCE = Event(b": \n\n", None)
"""What breaks silence and means nothing."""


class EventStream:
    """What goes to the client in answer to one POST, or on its GET stream.

    `ids` are the requests that it will answer, `tokens` those under which they hear of their
    progress. `carries` says that it may hold more than responses, `keeps` that what nobody is
    connected for waits here: what is said on the stream of a POST is in the history. `named` says
    that events have ids.
    """

    def __init__(
        self,
        number: int,
        ids: Iterable[bytes] = (),
        tokens: Iterable[bytes] = (),
        *,
        carries: bool = True,
        keeps: bool = False,
        named: bool = True,
    ) -> None:
        self.number = number
        self.ids = set(ids)
        self.tokens = tuple(tokens)
        self.carries = carries
        self.over = False
        self.received = 0
        """Bytes of the server's responses to it, before they were shaped."""
        self.lost = 0
        """How many events that waited here were given up."""
        self._keeps = keeps
        self._heard = False  # by nobody so far: what waits is for the first who comes
        self._named = named
        self._hurried = False
        self._waiting: deque[StoredEvent] = deque()
        self._size = 0
        self._moved = asyncio.Event()
        self._connection: _Connection | None = None

    @property
    def connected(self) -> bool:
        """True while a client is there."""
        return self._connection is not None

    def put(self, said: StoredEvent) -> None:
        """Say something, as soon as there is somebody to hear it."""
        if self._connection is None and self._heard and not self._keeps:
            return
        self._waiting.append(said)
        self._size += len(said.data)
        if self._connection is not None:
            self._connection.news.set()
            return
        while len(self._waiting) > _MOST_KEPT or self._size > _MOST_KEPT_BYTES:
            self._size -= len(self._waiting.popleft().data)
            self.lost += 1

    def replay(self, said: Iterable[StoredEvent]) -> None:
        """Say this next, in place of all that waits: a client comes back."""
        self._waiting = deque(said)
        self._size = sum(len(each.data) for each in self._waiting)

    def finish(self) -> None:
        """Record that all is said."""
        self.over = True
        self._moved.set()
        if self._connection is not None:
            self._connection.news.set()

    def hurry(self) -> None:
        """Hold nobody up any more: the end is near."""
        self._hurried = True
        self._moved.set()

    async def room(self) -> None:
        """Wait while a client that is connected is far behind; one that reads nothing is let go."""
        while self._connection is not None and self._size > _MOST_BEHIND and not self._hurried:
            connection, behind = self._connection, self._connection.behind
            self._moved.clear()
            try:
                async with asyncio.timeout(_STUCK):
                    await self._moved.wait()
            except TimeoutError:
                if connection is self._connection and connection.behind >= behind:
                    connection.abort()
                    self._leave(connection)

    async def serve(
        self,
        request: web.BaseRequest,
        answer: ResponseWriter,
        asked: AccessRecord,
        *,
        pings: bool,
        first: Iterable[Event] = (),
    ) -> web.StreamResponse:
        """Say everything to a client, until all is said or it goes, or comes back elsewhere.

        `first` goes before anything else. Where `pings` is true, a comment breaks long silence.
        """
        connection = _Connection(request)
        earlier, self._connection = self._connection, connection
        if earlier is not None:
            earlier.news.set()
        try:
            await answer.begin()
            for event in first:
                await answer.put(event)
            response = await answer.end(await self._tell(connection, answer, pings=pings))
        finally:
            asked.sent, asked.received = answer.sent, self.received
            self._leave(connection)
        return response

    async def _tell(
        self, connection: "_Connection", answer: ResponseWriter, *, pings: bool
    ) -> Event | None:
        """Say what there is, but for the very last, which is returned: it ends the answer."""
        while self._connection is connection:
            while self._waiting and self._connection is connection:
                said = self._waiting.popleft()
                self._size -= len(said.data)
                if self.over and not self._waiting:
                    self._moved.set()
                    return self._event(said)
                await answer.put(self._event(said))
                self._moved.set()
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

    def _event(self, said: StoredEvent) -> Event:
        id = said.id if self._named else None
        if said.data:
            return unframed(said.data, id)
        # No name: who does not know this kind of event may still know what to do with any data.
        raw = sse.written(b"", event=None, id=id, retry=RETRY)
        return Event(raw, b"", id, None, RETRY)

    def _leave(self, connection: "_Connection") -> None:
        if self._connection is not connection:
            return
        self._connection = None
        self._heard = True
        if not self._keeps:
            self._waiting.clear()
            self._size = 0
        self._moved.set()


class _Connection:
    """A client that hears a stream."""

    def __init__(self, request: web.BaseRequest) -> None:
        self._transport = request.transport
        self.news = asyncio.Event()

    @property
    def behind(self) -> int:
        """How many bytes wait to be sent."""
        transport = self._transport
        size = getattr(transport, "get_write_buffer_size", None)
        return 0 if size is None else int(size())

    def abort(self) -> None:
        """End it, whatever it has not read."""
        if self._transport is not None:
            self._transport.abort()
