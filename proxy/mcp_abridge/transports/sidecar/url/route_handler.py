"""A route whose upstream is an HTTP server: requests are passed on, answers are shaped.

All else is unchanged. Nothing is sent twice, and a client that disconnects ends the request to the
upstream, which then does what it does for a client that disconnects.
"""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import partial

import msgspec
from aiohttp import web
from msgspec import Struct

from mcp_abridge.document import message
from mcp_abridge.session.outputs import Probe
from mcp_abridge.transports.aio import others
from mcp_abridge.transports.client.endpoint import ConnectionLost, HttpResponse
from mcp_abridge.transports.driver import Routed, Timer
from mcp_abridge.transports.http import body, hop_headers, sse
from mcp_abridge.transports.http.headers import SESSION
from mcp_abridge.transports.http.negotiation import JSON, STREAM
from mcp_abridge.transports.http.sse import Event
from mcp_abridge.transports.sidecar.caller import digest
from mcp_abridge.transports.sidecar.request import (
    FAILED,
    INVALID,
    NOTHING,
    PostedBody,
    RequestRefused,
    read_body,
    read_post,
)
from mcp_abridge.transports.sidecar.response_writer import ResponseWriter, message_event, translate
from mcp_abridge.transports.sidecar.route import AccessRecord, Route, Rules, Services
from mcp_abridge.transports.sidecar.session_registry import RequestContext, SessionRegistry
from mcp_abridge.transports.sidecar.url import http_sse
from mcp_abridge.transports.sidecar.url.probes import CallCancelled, GuardQueries, Rejected
from mcp_abridge.transports.sidecar.url.upstream import Upstream, request_id


class Exchange(Struct):
    """One request of a client and its answer; `timeout` ends the wait for the upstream.

    `ours` are messages for the answer besides those of the upstream.
    """

    context: RequestContext
    record: AccessRecord
    ours: list[bytes] = msgspec.field(default_factory=list)
    answer: ResponseWriter | None = None
    timeout: asyncio.Timeout = msgspec.field(default_factory=lambda: asyncio.timeout(None))


_UNASKED = "the client takes no event stream, so it cannot be asked"
_LATE = "the server did not answer in time"
_UNANSWERED = "the server ended its answer without a response"


class UrlRoute:
    """Answer the requests of a route with a server at a URL."""

    def __init__(self, route: Route, rules: Rules, shared: Services) -> None:
        self._route = route
        self._limits = shared.limits
        self._upstream = Upstream(route, shared.limits.message)
        self._registry = SessionRegistry(route, rules, shared)
        self._log = shared.log
        self._queries = GuardQueries(self._upstream)
        limits, upstream, registry = shared.limits, self._upstream, self._registry
        self._legacy = http_sse.SseSessions(route, limits, upstream, registry)

    async def open(self) -> None:
        """Start the care of idle sessions; connections are made when they are needed."""
        self._queries.tasks.spawn(self._rest())

    def not_ready_reason(self) -> str | None:
        """Return None: whether its server can answer is not checked in advance."""
        return None

    def counts(self) -> tuple[int, int]:
        """Return the number of known sessions, and no servers: these are not child processes."""
        return len(self._registry), 0

    async def close(self) -> None:
        await self._queries.close()
        await self._upstream.close()

    async def _rest(self) -> None:
        while True:
            await asyncio.sleep(self._limits.idle_seconds)
            self._registry.rest()

    def has_session(self, request: web.BaseRequest) -> bool:
        return self._registry.has_session(request) or self._legacy.has_session(request)

    async def handle(self, request: web.BaseRequest, record: AccessRecord) -> web.StreamResponse:
        try:
            if not self._route.passes:
                await self._registry.check_owner(request, record.token)
            if request.method == "POST" and not self._route.passes:
                if (name := request.query.get(http_sse.QUERY)) is not None:
                    return await self._legacy.posted(request, name, record)
                return await self._post(request, record)
            return await self._other(request, record)
        except ConnectionLost as error:
            raise RequestRefused(502, FAILED, str(error)) from None

    async def _post(self, request: web.BaseRequest, record: AccessRecord) -> web.StreamResponse:
        read = await read_post(request, self._route, self._limits, record)
        context = await self._registry.context(request, read, record.token)
        exchange = Exchange(context, record)
        driver = context.driver
        routed = await driver.from_client(read.raw, context.id_prefix, context.scope)
        record.client = driver.session.rules.client or ""
        self._queries.cancel(routed.to_server)
        try:
            while routed.queries:
                [probe] = routed.queries
                exchange.ours += routed.notifications
                routed = await self._decide(exchange, probe)
            exchange.ours += routed.all_to_client
            if not routed.to_server:
                record.answered_by = "proxy"
                if not read.ids:
                    return web.Response(status=202)
                return await _finish(_writer(request, read, record), exchange.ours)
            raw = routed.to_server[0]
            async with self._deadline(exchange), self._upstream.ask(request, raw, read) as upstream:
                return await self._answered(exchange, upstream)
            record.answered_by, record.failure = "proxy", _LATE
            return await _finish(exchange.answer or _writer(request, read, record), exchange.ours)
        except Rejected as rejected:
            return self._rejected(exchange, rejected)
        except ConnectionLost:
            context.drop()
            raise
        finally:
            if context.id_prefix:
                context.drop()

    @asynccontextmanager
    async def _deadline(self, exchange: Exchange) -> AsyncIterator[None]:
        """Leave this context, without an error, once the call is overdue: batches are not timed."""
        of = exchange.context
        timer = Timer(of.driver, partial(self._overdue, exchange), of.id_prefix, of.post.ids)
        timer.start()
        try:
            async with exchange.timeout:
                yield
        except TimeoutError:
            if not exchange.timeout.expired():
                raise
        finally:
            timer.stop()

    async def _overdue(self, exchange: Exchange, routed: Routed) -> None:
        self._queries.give_up(exchange.context, routed.to_server)
        exchange.ours += routed.to_client
        exchange.timeout.reschedule(asyncio.get_running_loop().time())

    async def _decide(self, exchange: Exchange, probe: Probe) -> Routed:
        context = exchange.context
        [id] = context.post.ids
        try:
            routed = await self._queries.ask(context, probe, exchange.ours)
        except CallCancelled as cause:
            # The server has never received it, so no answer could come.
            return Routed([], [message.error(id, message.CANCELLED, str(cause))], [], [])
        if not any(routed):
            return Routed(
                [], [message.error(id, INVALID, "another request has the same id")], [], []
            )
        return routed

    def _rejected(self, exchange: Exchange, rejected: Rejected) -> web.Response:
        exchange.context.drop()
        upstream, record = rejected.upstream, exchange.record
        self._forget_ended(exchange.context.request, upstream)
        record.bytes_received = record.bytes_sent = len(rejected.raw)
        return web.Response(
            status=upstream.status,
            reason=upstream.reason,
            headers=hop_headers.to_client(upstream.headers),
            body=rejected.raw,
        )

    async def _answered(self, exchange: Exchange, upstream: HttpResponse) -> web.StreamResponse:
        context, record, ours = exchange.context, exchange.record, exchange.ours
        request, read = context.request, context.post
        if read.initializes:
            await self._registry.initialized(context, upstream.headers.get(SESSION))
        self._forget_ended(request, upstream)
        good = 200 <= upstream.status < 300
        if not good or upstream.content_type not in (JSON, STREAM):
            reason = ""
            if good and ours:
                # The server got no request, or does not answer it.
                reason = "the server gave no answer"
            elif good and context.withholds and not _empty(upstream):
                # A client that ignores the content type would find data that a rule withholds.
                content_type = upstream.headers.get("Content-Type", "it has no Content-Type")
                reason = f"the server's answer is neither JSON nor an event stream: {content_type}"
                record.failure = reason
            if reason:
                lines = [*ours, *context.end(reason)]
                return await _finish(_writer(request, read, record), lines)
        elif read.ids:
            answer = _writer(request, read, record, upstream)
            if upstream.content_type == STREAM:
                return await self._streamed(exchange, answer, upstream)
            lines = await self._whole(exchange, upstream)
            return await _finish(answer, [*ours, *lines])
        context.drop()
        return await self._upstream.pass_on(request, upstream, record)

    async def _streamed(
        self, exchange: Exchange, answer: ResponseWriter, upstream: HttpResponse
    ) -> web.StreamResponse:
        exchange.answer = answer
        await answer.begin()
        while exchange.ours:
            await answer.add(message_event(exchange.ours.pop(0)))
        await self._events(exchange, answer, upstream)
        return await _finish(answer, exchange.ours)

    async def _whole(self, exchange: Exchange, upstream: HttpResponse) -> list[bytes]:
        # Nothing is sent before the answer is complete: a failure can still become an error.
        context, record = exchange.context, exchange.record
        try:
            raw = await self._upstream.read(upstream)
        except body.TooLarge as large:
            record.failure = f"the server's answer is too long: {large}"
            lines = context.end(record.failure)
        else:
            record.bytes_received = len(raw)
            lines = await self._tell(context, raw)
            if len(context.post.ids) == 1 and context.withholds:
                # A message that is not recognized as the answer may be the answer all the same.
                lines = [each for each in lines if message.fails(each)]
            lines += context.end(_UNANSWERED)
        return lines

    async def _events(
        self, exchange: Exchange, answer: ResponseWriter, upstream: HttpResponse
    ) -> None:
        context, record = exchange.context, exchange.record
        resumable = False
        cause = "the server ended its stream before it had answered"
        try:
            async for event in self._upstream.events(upstream, record):
                resumable |= event.id is not None and not context.id_prefix
                if context.post.accepts == "json" and (id := request_id(event)) is not None:
                    await self._upstream.decline(context, id, _UNASKED)
                for each in await self._translated(context, event):
                    await answer.add(each)
                if answer.complete:
                    return
                record.complete = context.complete
        except (ConnectionLost, sse.TooLong) as broken:
            cause = f"the server's stream broke off: {broken}"
            record.failure = cause
        if not resumable:
            lines = context.end(cause)
            record.failure = cause if lines else record.failure
            await answer.add_messages(lines)

    async def _translated(self, context: RequestContext, event: Event) -> list[Event]:
        if not event.data or event.data.isspace():
            return [event]
        return translate(event, await self._tell(context, event.data))

    async def _tell(self, context: RequestContext, raw: bytes) -> list[bytes]:
        if self._queries.awaits(raw):
            return []
        if context.post.modern and context.post.method == "tools/list":
            self._upstream.listed(raw)
        routed = await context.driver.from_server(raw, context.id_prefix)
        await self._registry.share(context)
        return routed.to_client

    async def _other(self, request: web.BaseRequest, record: AccessRecord) -> web.StreamResponse:
        raw = await read_body(request, self._limits) if request.body_exists else b""
        session = request.headers.get(SESSION)
        if session is not None:
            record.session = digest(session)
        async with self._upstream.ask(request, raw) as upstream:
            self._forget_ended(request, upstream)
            streams = upstream.content_type == STREAM and not self._route.passes
            if not streams or not 200 <= upstream.status < 300:
                return await self._upstream.pass_on(request, upstream, record)
            answer = _writer(request, NOTHING, record, upstream)
            await answer.begin()
            if session is not None:
                context = await self._registry.of_session(request, NOTHING, record.token, session)
                await self._events(Exchange(context, record), answer, upstream)
            else:
                await self._legacy.follow(request, answer, upstream, record)
            return await _finish(answer, [])

    def _forget_ended(self, request: web.BaseRequest, upstream: HttpResponse) -> None:
        session = request.headers.get(SESSION)
        ended = request.method == "DELETE" and 200 <= upstream.status < 300
        # For a GET, 404 may only mean that there is no such stream.
        unknown = request.method != "GET" and upstream.status == 404
        if session is not None and (ended or unknown):
            self._registry.ended(session)


def _empty(upstream: HttpResponse) -> bool:
    return upstream.status == 204 or upstream.headers.get("Content-Length") == "0"


def _writer(
    request: web.BaseRequest,
    read: PostedBody,
    record: AccessRecord,
    upstream: HttpResponse | None = None,
) -> ResponseWriter:
    return ResponseWriter(
        request,
        read.accepts,
        record,
        streams=upstream is not None and upstream.content_type == STREAM,
        expected=len(read.ids),
        batch=read.batch,
        status=200 if upstream is None else upstream.status,
        headers=() if upstream is None else hop_headers.to_client(upstream.headers),
    )


async def _finish(answer: ResponseWriter, lines: list[bytes]) -> web.StreamResponse:
    await answer.add_messages(lines[:-1])
    await others(len(lines[-1]) if lines else 0)
    return await answer.end(message_event(lines[-1]) if lines else None)
