"""A route whose upstream is an HTTP server: requests are passed on, answers are shaped.

All else is unchanged. Nothing is sent twice, and a client that disconnects ends the request to the
upstream, which then does what it does for a client that disconnects.

A query that a guard asks before a call is sent in the name of the client whose call it is, and
nothing on its stream goes to that client. It ends after its time, or if the client cancels the call
or disconnects.
"""

import asyncio

from aiohttp import web
from msgspec import Raw

from mcp_abridge.document import message
from mcp_abridge.session.guards import LATE, cancellation
from mcp_abridge.session.outputs import Probe
from mcp_abridge.transports.aio import Tasks, give_way
from mcp_abridge.transports.client.endpoint import AnswerTooLong, HttpResponse, NoAnswer
from mcp_abridge.transports.correlation import answered_ids, correlate, refuses
from mcp_abridge.transports.driver import OVERDUE, Routed, in_time
from mcp_abridge.transports.http import headers, hop_headers
from mcp_abridge.transports.http.headers import SESSION
from mcp_abridge.transports.http.negotiation import JSON, STREAM
from mcp_abridge.transports.http.sse import Event
from mcp_abridge.transports.sidecar.caller import digest
from mcp_abridge.transports.sidecar.refusal import FAILED, INVALID, RequestRefused
from mcp_abridge.transports.sidecar.request import NOTHING, PostedBody, read_body, read_post
from mcp_abridge.transports.sidecar.response_writer import ResponseWriter, message_event, translate
from mcp_abridge.transports.sidecar.route import Request, Route, Services
from mcp_abridge.transports.sidecar.session_registry import RequestContext, SessionRegistry
from mcp_abridge.transports.sidecar.url import http_sse
from mcp_abridge.transports.sidecar.url.upstream import Upstream

_NOBODY = "nobody can be asked anything before the call that this is about"
_UNASKED = "the client takes no event stream, so it cannot be asked"
_UNANSWERED = "the server ended its answer without a response"


class UrlRoute:
    """Answer the requests of a route with a server at a URL."""

    unready: str | None = None  # that its server can answer is not checked in advance

    def __init__(self, route: Route, shared: Services) -> None:
        self._route = route
        self._limits = shared.limits
        self._upstream = Upstream(route, shared.limits.message, traces=shared.telemetry is not None)
        self._registry = SessionRegistry(route, shared)
        self._tasks = Tasks()
        self._queries: dict[bytes, asyncio.Timeout] = {}  # of each wait, by the id of the query
        self._legacy = http_sse.SseSessions(route, self._limits, self._upstream, self._registry)

    async def open(self) -> None:
        """Start the care of idle sessions; connections are made when they are needed."""
        self._tasks.spawn(self._rest())

    def counts(self) -> tuple[int, int]:
        """Return the number of known sessions, and no servers: these are not child processes."""
        return len(self._registry), 0

    async def close(self) -> None:
        self._tasks.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        await self._upstream.endpoint.close()

    async def _rest(self) -> None:
        while True:
            await asyncio.sleep(self._limits.idle_seconds)
            self._registry.rest()

    def has_session(self, request: Request) -> bool:
        return self._registry.has_session(request) or self._legacy.has_session(request)

    async def handle(self, request: Request) -> web.StreamResponse:
        try:
            if not self._route.passes:
                await self._registry.check_owner(request)
            if request.method == "POST" and not self._route.passes:
                if (name := request.query.get(http_sse.QUERY)) is not None:
                    return await self._legacy.posted(request, name)
                return await self._post(request)
            return await self._other(request)
        except NoAnswer as error:
            raise RequestRefused(502, FAILED, str(error)) from None

    async def _post(self, request: Request) -> web.StreamResponse:
        read = await read_post(request, self._route, self._limits)
        context = await self._registry.context(request, read)
        routed = await context.enter(read.raw)
        for raw in routed.to_server if self._queries else ():
            if (query := self._queries.pop(correlate(raw).cancels or b"", None)) is not None:
                query.reschedule(asyncio.get_running_loop().time())
        then: Routed | web.StreamResponse = routed
        try:
            while isinstance(then, Routed):
                context.ours += then.to_client
                then = await self._go_on(context, then)
        except NoAnswer:
            context.drop()
            raise
        finally:
            if context.exchange:
                context.drop()
        return then

    async def _go_on(self, context: RequestContext, routed: Routed) -> Routed | web.StreamResponse:
        """Send the request, or what a guard asks before it; return the answer, or what follows."""
        request, read, record = context.request, context.post, context.record
        if routed.queries:
            return await self._ask(context, routed.queries[0])
        if routed.to_server:
            ask = self._upstream.ask(request, routed.to_server[0], read)
            async with in_time(context.driver, context.slots) as late, ask as upstream:
                return await self._answered(context, upstream)
            for overdue in late:
                self._take_back(context, overdue.to_server)
                context.ours += overdue.to_client
            record.failure = OVERDUE
        record.answered_by = "proxy"
        if not read.ids:
            return web.Response(status=202)
        return await _finish(context.answer or _writer(request, read), context.ours)

    async def _ask(self, context: RequestContext, query: Probe) -> Routed | web.StreamResponse:
        """Send a query; return what follows for the call that it holds."""
        driver, exchange, [key] = context.driver, context.exchange, context.post.ids
        id = query.token.removeprefix(exchange)
        timeout = asyncio.timeout(driver.session.time_left(context.slots))
        self._queries[id] = timeout
        answer: bytes | str | web.Response
        try:
            async with timeout:
                answer = await self._answer_of(context, query, id)
        except NoAnswer as lost:
            answer = str(lost)
        except (TimeoutError, asyncio.CancelledError) as end:
            if id in self._queries:
                self._take_back(context, [cancellation(id)])
            if isinstance(end, asyncio.CancelledError):
                context.drop()
                raise
            answer = LATE
        finally:
            cancelled = self._queries.pop(id, None) is None
        if isinstance(answer, web.Response):
            return answer
        if isinstance(answer, bytes):
            routed = await driver.from_server(answer, exchange)
        else:
            routed = await driver.fail([query.token], answer)
        if cancelled:
            # The server has never received the call, so no answer could come.
            routed.to_client.append(message.error(key, message.CANCELLED, "Request cancelled"))
        elif not any(routed):
            reason = "another request has the same id"
            routed.to_client.append(message.error(key, INVALID, reason))
        return routed

    async def _answer_of(
        self, context: RequestContext, query: Probe, id: bytes
    ) -> bytes | web.Response:
        """Return the answer to a query, or the refusal of its client; raises NoAnswer."""
        ask = self._upstream.ask(context.request, query.raw, context.post, own=True)
        async with ask as upstream:
            if upstream.content_type == STREAM and 200 <= upstream.status < 300:
                async for event in upstream.events():
                    if event.data and event.event in (None, "", "message"):
                        if id in answered_ids(event.data):
                            return event.data
                        await self._upstream.decline(context, event, _NOBODY)
                raise NoAnswer(_UNANSWERED)
            raw = await upstream.whole()
            about = id in answered_ids(raw)
            if upstream.status in (401, 403) or (upstream.status == 404 and not about):
                return self._rejected(context, upstream, raw.replace(id, context.post.ids[0]))
            if refuses(raw, id):
                # A server that has not read a request cannot know its id.
                return message.replaced(raw, id=Raw(id))
            if upstream.status >= 300:
                text = f"the server answered HTTP {upstream.status} {upstream.reason or ''}"
                raise NoAnswer(text.rstrip())
        if about:
            return raw
        raise NoAnswer(_UNANSWERED)

    def _take_back(self, context: RequestContext, lines: list[bytes]) -> None:
        """Send cancellations to the server, unless closing the connection has that meaning."""
        for raw in () if context.post.modern else lines:
            self._tasks.spawn(self._upstream.tell(context, raw))

    def _rejected(
        self, context: RequestContext, upstream: HttpResponse, raw: bytes
    ) -> web.Response:
        """Pass on the answer to a query that concerns the client's credentials or session."""
        context.drop()
        self._forget_ended(context.request, upstream)
        context.record.bytes_received = context.record.bytes_sent = len(raw)
        return web.Response(
            status=upstream.status,
            reason=upstream.reason,
            headers=hop_headers.to_client(upstream.headers),
            body=raw,
        )

    async def _answered(
        self, context: RequestContext, upstream: HttpResponse
    ) -> web.StreamResponse:
        request, read, record = context.request, context.post, context.record
        if read.initializes:
            await self._registry.initialized(context, upstream.headers.get(SESSION))
        self._forget_ended(request, upstream)
        good = 200 <= upstream.status < 300
        empty = upstream.status == 204 or upstream.headers.get("Content-Length") == "0"
        if not good or upstream.content_type not in (JSON, STREAM):
            # A client that ignores the content type would find data that a rule withholds.
            if good and (context.ours or (context.withholds and not empty)):
                content_type = upstream.headers.get("Content-Type", "it has no Content-Type")
                reason = f"the server's answer is neither JSON nor an event stream: {content_type}"
                record.failure = reason
                lines = [*context.ours, *context.end(reason)]
                return await _finish(_writer(request, read), lines)
        elif read.ids:
            answer = _writer(request, read, upstream)
            if upstream.content_type == STREAM:
                context.answer = answer
                await answer.begin()
                while context.ours:
                    await answer.add(message_event(context.ours.pop(0)))
                await self._events(context, answer, upstream)
                return await _finish(answer, context.ours)
            lines = await self._whole(context, upstream)
            return await _finish(answer, [*context.ours, *lines])
        context.drop()
        return await self._upstream.pass_on(request, upstream)

    async def _whole(self, context: RequestContext, upstream: HttpResponse) -> list[bytes]:
        # Nothing is sent before the answer is complete: a failure can still become an error.
        record = context.record
        try:
            raw = await upstream.whole()
        except AnswerTooLong as too_long:
            record.failure = str(too_long)
            lines = context.end(record.failure)
        else:
            lines = await self._tell(context, raw)
            if len(context.post.ids) == 1 and context.withholds:
                # A message that is not recognized as the answer may be the answer all the same.
                lines = [each for each in lines if message.fails(each)]
            lines += context.end(_UNANSWERED)
        return lines

    async def _events(
        self, context: RequestContext, answer: ResponseWriter, upstream: HttpResponse
    ) -> None:
        record = context.record
        resumable = False
        cause = _UNANSWERED
        try:
            async for event in upstream.events():
                resumable |= event.id is not None and not context.exchange
                if context.post.accepts == "json":
                    await self._upstream.decline(context, event, _UNASKED)
                for each in await self._translated(context, event):
                    await answer.add(each)
                if answer.complete:
                    return
                record.complete = context.complete
        except NoAnswer as broken:
            record.failure = cause = str(broken)
        if not resumable:
            lines = context.end(cause)
            record.failure = cause if lines else record.failure
            await answer.add_messages(lines)

    async def _translated(self, context: RequestContext, event: Event) -> list[Event]:
        if not event.data or event.data.isspace():
            return [event]
        return translate(event, await self._tell(context, event.data))

    async def _tell(self, context: RequestContext, raw: bytes) -> list[bytes]:
        if self._queries and correlate(raw).answers in self._queries:
            return []  # it is read on the stream of its own request only
        if context.post.modern and context.post.method == "tools/list":
            headers.learn(self._upstream.parameters, raw)
        routed = await context.driver.from_server(raw, context.exchange)
        await self._registry.share(context)
        return routed.to_client

    async def _other(self, request: Request) -> web.StreamResponse:
        raw = await read_body(request, self._limits) if request.body_exists else b""
        session = request.headers.get(SESSION)
        if session is not None:
            request.record.session = digest(session)
        async with self._upstream.ask(request, raw) as upstream:
            self._forget_ended(request, upstream)
            streams = upstream.content_type == STREAM and not self._route.passes
            if not streams or not 200 <= upstream.status < 300:
                return await self._upstream.pass_on(request, upstream)
            answer = _writer(request, NOTHING, upstream)
            await answer.begin()
            if session is not None:
                context = await self._registry.of_session(request, NOTHING, session)
                await self._events(context, answer, upstream)
            else:
                await self._legacy.follow(request, answer, upstream)
            return await _finish(answer, [])

    def _forget_ended(self, request: Request, upstream: HttpResponse) -> None:
        session = request.headers.get(SESSION)
        ended = request.method == "DELETE" and 200 <= upstream.status < 300
        # For a GET, 404 may only mean that there is no such stream.
        unknown = request.method != "GET" and upstream.status == 404
        if session is not None and (ended or unknown):
            self._registry.ended(session)


def _writer(
    request: Request, read: PostedBody, upstream: HttpResponse | None = None
) -> ResponseWriter:
    return ResponseWriter(
        request,
        read.accepts,
        streams=upstream is not None and upstream.content_type == STREAM,
        expected=len(read.ids),
        batch=read.batch,
        status=200 if upstream is None else upstream.status,
        headers=() if upstream is None else hop_headers.to_client(upstream.headers),
    )


async def _finish(answer: ResponseWriter, lines: list[bytes]) -> web.StreamResponse:
    await answer.add_messages(lines[:-1])
    await give_way(len(lines[-1]) if lines else 0)
    return await answer.end(message_event(lines[-1]) if lines else None)
