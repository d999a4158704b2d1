"""A session of the handshake era (up to 2025-11-25): one client with a server of its own.

Invariants: a message goes to exactly one stream; a client that disconnects ends only its
connection; each request is answered once, whatever happens to the server.
"""

import asyncio
import re

from aiohttp import web

from mcp_abridge.document import message
from mcp_abridge.document.message import string_at
from mcp_abridge.session.inflight import ID_IN_USE
from mcp_abridge.transports.aio import Tasks, give_way
from mcp_abridge.transports.correlation import (
    Correlation,
    correlate,
    negotiated_version,
    progress_token,
)
from mcp_abridge.transports.driver import Driver, Routed
from mcp_abridge.transports.http.headers import SESSION, VERSION
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.sidecar.caller import digest
from mcp_abridge.transports.sidecar.command.child import HASTY, ORDERLY, ChildServer, unread
from mcp_abridge.transports.sidecar.command.streams import EventStore, EventStream
from mcp_abridge.transports.sidecar.refusal import INVALID, RequestRefused, unavailable
from mcp_abridge.transports.sidecar.request import PostedBody
from mcp_abridge.transports.sidecar.response_writer import ResponseWriter
from mcp_abridge.transports.sidecar.route import AccessRecord, Request

PRIMED = "2025-11-25"
"""The first protocol version whose clients know an event without data."""

_EVENT_ID = re.compile(r"(\d{1,18})-(\d{1,18})")
_REMEMBERED = 1000  # streams that a client may still want to resume
_MOST_ASKED = 1000  # requests that wait for their answers, including those of disconnected clients


class ChildSession:
    """One session: its streams, the requests that wait, and its server."""

    def __init__(
        self,
        id: str,
        caller: str,
        child: ChildServer,
        driver: Driver,
        store: EventStore,
        log: Log,
    ) -> None:
        self.id = id
        self.caller = caller
        """The name of the token that began it, and that alone may use it."""
        self.driver = driver
        self.version: str | None = None
        """The protocol version that the server has agreed to."""
        self.over = False
        """True once its end has begun."""
        self._child = child
        self._store = store
        self._log = log
        self._loop = asyncio.get_running_loop()
        self._streams: dict[int, EventStream] = {}
        self._pending: dict[bytes, EventStream] = {}
        driver.late = self._route
        self._initialize: bytes | None = None
        self._tasks = Tasks()  # they go on if a client disconnects meanwhile
        self._cause: str | None = None
        self.last_used = self._loop.time()
        self._get = self._remember(EventStream(store, log))
        self.reading = self._loop.create_task(self._read())

    @property
    def connected(self) -> bool:
        return any(stream.connected for stream in self._streams.values())

    @property
    def pending(self) -> bool:
        return bool(self._pending)

    async def post(self, request: Request, read: PostedBody) -> web.StreamResponse:
        """Process one POST and answer it; raises RequestRefused."""
        self._touch()
        record = request.record
        record.client = self.driver.session.rules.peer.client or ""
        if read.ids and len(self._pending) >= _MOST_ASKED:
            text = f"{len(self._pending)} requests of this session have no answer yet"
            raise unavailable(text, 5)
        if set(read.ids) & self._pending.keys() or len(set(read.ids)) < len(read.ids):
            raise RequestRefused(400, INVALID, ID_IN_USE)
        if not read.ids:
            await asyncio.shield(self._tasks.spawn(self._enter(read.raw, record)))
            return web.Response(status=202)
        tokens = frozenset(filter(None, map(progress_token, read.messages)))
        stream = self._remember(
            EventStream(self._store, self._log, tokens, carries=read.accepts != "json")
        )
        self._pending |= dict.fromkeys(read.ids, stream)
        version = request.headers.get(VERSION, "")
        if read.initializes:
            assert read.first is not None
            version = string_at(read.first.params, "protocolVersion") or ""
            self._initialize = read.ids[0]
        if version >= PRIMED and stream.carries:
            stream.add(b"")
        answer = ResponseWriter(
            request,
            read.accepts_from_command,
            expected=len(read.ids),
            batch=read.batch,
            headers={SESSION: self.id},
        )
        self._tasks.spawn(self._enter(read.raw, record))
        try:
            return await stream.serve(request, answer, pings=read.keeps_alive)
        finally:
            self._touch()
            record.client = self.driver.session.rules.peer.client or ""
            if read.initializes and not answer.started:
                # The client never received the session's id.
                self._tasks.spawn(self.end("the client went away", HASTY))

    async def get(self, request: Request) -> web.StreamResponse:
        """Open the stream for messages of no request, or resume that of the client's last event.

        Raises RequestRefused.
        """
        self._touch()
        stream, last = self._get, request.headers.get("Last-Event-ID")
        if last is not None:
            match = _EVENT_ID.fullmatch(last)
            earlier = self._streams.get(int(match[1])) if match else None
            if match is None or earlier is None or not earlier.resume(int(match[2])):
                raise RequestRefused(400, INVALID, "what followed this event is not kept any more")
            stream = earlier
        elif stream.connected:
            raise RequestRefused(409, INVALID, "there is a stream of this session already")
        request.record.session = digest(self.id)
        request.record.client = self.driver.session.rules.peer.client or ""
        answer = ResponseWriter(request, "stream", headers={SESSION: self.id})
        if last is None and request.headers.get(VERSION, "") >= PRIMED:
            stream.add(b"")
        try:
            return await stream.serve(request, answer, pings=True)
        finally:
            self._touch()

    async def end(self, cause: str, pace: tuple[float, float] = ORDERLY) -> None:
        self.over = True
        if self._cause is None:
            self._cause = cause
        for stream in self._streams.values():
            stream.hurry()
            if stream not in self._pending.values():
                stream.finish()
        await self._child.end(pace)
        await asyncio.shield(self.reading)

    # Messages of the client

    async def _enter(self, raw: bytes, record: AccessRecord) -> None:
        line = message.one_line(raw.strip())
        routed = await self.driver.from_client(line, arrival=record)
        if not (routed.to_server or routed.queries):
            record.answered_by = "proxy"
        await self._route(routed)
        # The server need not answer cancelled requests, and their streams would stay open.
        for each in message.elements(raw) if b'"notifications/cancelled"' in raw else ():
            if (id := correlate(each).cancels) in self._pending:
                self._deliver(message.error(id, message.CANCELLED, "Request cancelled"))
        await self._child.ready()

    async def _route(self, routed: Routed) -> None:
        # At once: no client message about a call that was held may overtake the call.
        self._child.post(routed.all_to_server)
        for raw in routed.to_client:
            await give_way(len(raw))
            await self._deliver(raw).room()

    # Messages of the server

    async def _read(self) -> None:
        try:
            async for raw in self._child.messages(
                lambda id: id in self._pending or self.driver.session.awaits((id,))
            ):
                self._touch()
                if (id := correlate(raw).answers) in self._pending:
                    self._pending[id].received += len(raw)
                await self._route(await self.driver.from_server(raw))
        except Exception as error:  # after any error, no client may wait for ever
            self._cause = self._cause or unread(error)
            self._log.error(self._cause)
        await self._child.end(HASTY)
        self._on_end()

    def _on_end(self) -> None:
        self.over = True
        cause = self._cause or self._child.cause
        count = len(self._pending)
        for raw in self.driver.session.fail_pending(cause):
            self._deliver(raw)
        for id in list(self._pending):
            self._deliver(message.error(id, -1, cause))
        if self._cause is None and (count or self._child.code != 0):
            self._log.error(f"{cause}; requests answered with an error: {count}")
        for stream in self._streams.values():
            stream.close()
        self._tasks.cancel()
        self.driver.stop()

    # Streams

    def _remember(self, stream: EventStream) -> EventStream:
        self._streams[stream.number] = stream
        if len(self._streams) > _REMEMBERED:
            unused = (each for each in self._streams.values() if each.over and not each.connected)
            if (old := next(unused, None)) is not None:
                del self._streams[old.number]
                old.close()
        return stream

    def _deliver(self, raw: bytes) -> EventStream:
        stream = self._get
        for part in message.elements(raw) or [raw]:
            correlation = correlate(part)
            target = self._target(correlation)
            if target is not None:
                stream = target
                stream.add(part)
            self._on_response(part, correlation)
        return stream

    def _target(self, correlation: Correlation) -> EventStream | None:
        if correlation.answers in self._pending:
            return self._pending[correlation.answers]
        if correlation.answers not in (None, b"null"):
            self._log.debug("a response to no request that waits for one was dropped")
            return None
        waiting = (each for each in self._pending.values() if correlation.token in each.tokens)
        return next(waiting, None) or self._spare()

    def _spare(self) -> EventStream:
        task = {stream for stream in self._pending.values() if stream.carries}
        there = [stream for stream in task if stream.connected]
        if len(there) == 1:
            return there[0]
        if len(task) == 1 and not self._get.connected:
            return task.pop()
        return self._get

    def _on_response(self, raw: bytes, correlation: Correlation) -> None:
        if correlation.answers not in self._pending:
            return
        stream = self._pending.pop(correlation.answers)
        if correlation.answers == self._initialize:
            self.version = negotiated_version(raw)
            if message.fails(raw):
                self._tasks.spawn(self.end("the server has refused the session"))
        if stream not in self._pending.values():
            stream.tokens = frozenset()  # the stream may be remembered for long
            stream.finish()

    def _touch(self) -> None:
        self.last_used = self._loop.time()
