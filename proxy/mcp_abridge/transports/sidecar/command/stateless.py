"""Answer the requests of the stateless era (MCP 2026-07-28) with a few shared servers."""

from collections.abc import Callable, Iterable
from functools import partial

from aiohttp import web

from mcp_abridge.document import message
from mcp_abridge.document.message import LISTEN
from mcp_abridge.document.tree import ABSENT
from mcp_abridge.transports.aio import give_way
from mcp_abridge.transports.correlation import correlate, progress_token
from mcp_abridge.transports.driver import OVERDUE, in_time
from mcp_abridge.transports.http import headers
from mcp_abridge.transports.http.negotiation import Wanted
from mcp_abridge.transports.sidecar import header_checks
from mcp_abridge.transports.sidecar.command.pool import Pool, Start
from mcp_abridge.transports.sidecar.command.pooled_server import PooledRequest
from mcp_abridge.transports.sidecar.command.streams import PING
from mcp_abridge.transports.sidecar.refusal import FAILED, INVALID, RequestRefused
from mcp_abridge.transports.sidecar.request import PostedBody
from mcp_abridge.transports.sidecar.response_writer import ResponseWriter, message_event
from mcp_abridge.transports.sidecar.route import Request, Route, Services
from mcp_abridge.transports.sidecar.session_registry import RequestContext, SessionRegistry

_KEPT = 1000  # callers remembered at most; the least recently used is forgotten first

Send = Callable[[Iterable[bytes]], None]


class Stateless:
    """The stateless requests of a route whose upstream is a command."""

    def __init__(self, route: Route, shared: Services, start: Start) -> None:
        self.pool = Pool(start, shared.limits.children, shared.log)
        """The servers."""
        self._sessions = SessionRegistry(route, shared, _KEPT, shared.log.noise)
        self._parameters: headers.Parameters = {}

    async def post(self, request: Request, read: PostedBody) -> web.StreamResponse:
        """Answer one POST; raises RequestRefused."""
        header_checks.check(read, request.headers, self._parameters)
        if read.method == LISTEN and read.accepts == "json":
            raise RequestRefused(406, INVALID, "the answer is an event stream")
        if not read.ids:
            if read.first is not None and read.first.id is not ABSENT:
                raise RequestRefused(400, INVALID, "the method is no text")
            # No notification of one client may go to a server that all share.
            request.record.answered_by = "proxy"
            return web.Response(status=202)
        context = await self._sessions.context(request, read)
        try:
            return await _Exchange(self, context).answer()
        finally:
            context.drop()

    async def learn(self, context: RequestContext, raw: bytes) -> None:
        """Share the facts of a server's response with other requests and replicas."""
        if context.post.method == "tools/list":
            headers.learn(self._parameters, raw)
        await self._sessions.share(context)


class _Exchange:
    """One request and its answer."""

    def __init__(self, route: Stateless, context: RequestContext) -> None:
        self._route, self._context = route, context
        self._driver, self._record, self._read = context.driver, context.record, context.post
        self._key = context.post.ids[0]
        self._answer = self._writer(self._read.accepts_from_command)
        self._responded = False

    async def answer(self) -> web.StreamResponse:
        read = self._read
        slots = self._context.slots
        routed = await self._context.enter(message.one_line(read.raw.strip()))
        if not (routed.to_server or routed.queries):
            self._record.answered_by = "proxy"
            return await self._finish(routed.to_client)
        assert read.first is not None
        lasts = read.method == LISTEN
        cut = self._context.request.cut
        pooled = PooledRequest(self._key, progress_token(read.first), cut, lasts=lasts)
        server = await self._route.pool.open(pooled, self._record.token)
        send = partial(server.send, pooled)
        try:
            send(routed.all_to_server)
            self._driver.session.restart_deadlines(slots)
            await self._say(*routed.to_client)
            while pooled.awaited:
                async with in_time(self._driver, slots) as late:
                    if pooled.forwarded:
                        await server.child.ready()
                    await self._pass_on(pooled, send)
                for overdue in late:
                    send(overdue.all_to_server)
                    if not pooled.awaited:
                        self._record.answered_by, self._record.failure = "proxy", OVERDUE
                    await self._say(*overdue.to_client)
        finally:
            server.cancel(pooled)
        if not pooled.forwarded:
            self._record.answered_by = "proxy"
        lines: list[bytes] = []
        if pooled.over:
            self._record.failure = pooled.over
            lines = self._context.end(pooled.over)
        return await self._finish(lines, pooled.over or "the server gave no answer")

    async def _pass_on(self, pooled: PooledRequest, send: Send) -> None:
        """Pass messages on until the last, or until something else is sent: its time begins."""
        while True:
            try:
                raw = await pooled.next(PING)
            except TimeoutError:
                if self._read.keeps_alive or self._answer.started:
                    await self._answer.keep_alive()
                continue
            if raw is None:
                return
            if pooled.forwarded:
                self._record.bytes_received += len(raw)
            routed = await self._driver.from_server(raw, self._context.exchange)
            if pooled.forwarded:
                await self._route.learn(self._context, raw)
            send(routed.all_to_server)
            await self._say(*routed.to_client)
            if routed.all_to_server or not (pooled.awaited or pooled.forwarded):
                return

    async def _finish(self, lines: list[bytes], reason: str = "") -> web.StreamResponse:
        await self._say(*lines)
        ended = self._answer.started and not reason
        if not self._responded and self._read.method != LISTEN and not ended:
            await self._say(message.error(self._key, FAILED, reason or "there is no answer"))
        return await self._answer.end()

    async def _say(self, *lines: bytes) -> None:
        for line in lines:
            await give_way(len(line))
            if correlate(line).answers == self._key:
                self._responded = True
                status = header_checks.status_of(line)
                if status != 200 and not self._answer.started:
                    self._answer = self._writer("json", status)
            await self._answer.add(message_event(line))

    def _writer(self, accepts: Wanted, status: int = 200) -> ResponseWriter:
        return ResponseWriter(self._context.request, accepts, expected=1, status=status)
