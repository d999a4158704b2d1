"""A route whose upstream is an HTTP server: requests are passed on, answers are shaped.

Status, headers, events and bytes are unchanged except as rules change them. Nothing is sent twice,
and the end of one side is the end of the other: a client that disconnects ends the request to the
upstream, which then does what it does for a client that disconnects.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from types import TracebackType
from typing import Self

import msgspec
from aiohttp import web
from multidict import CIMultiDict

from proxy.document import message
from proxy.session.outputs import Probe
from proxy.transports.aio import others
from proxy.transports.client.endpoint import ConnectionLost, HttpResponse
from proxy.transports.correlation import correlate
from proxy.transports.driver import Driver, Routed, Timer
from proxy.transports.http import body, hop_headers, sse
from proxy.transports.http.negotiation import JSON, STREAM
from proxy.transports.http.sse import Event
from proxy.transports.sidecar import request as post
from proxy.transports.sidecar.request import FAILED, SESSION, PostedBody, RequestRefused
from proxy.transports.sidecar.response_writer import ResponseWriter, message_event
from proxy.transports.sidecar.route import AccessRecord, Route, Rules, Services
from proxy.transports.sidecar.session_registry import RequestContext, SessionRegistry
from proxy.transports.sidecar.url import http_sse
from proxy.transports.sidecar.url.probes import CallCancelled, GuardQueries, Rejected
from proxy.transports.sidecar.url.upstream import Upstream, request_id

Say = Callable[[RequestContext, ResponseWriter | None, list[bytes]], object]


class ResponseWait:
    """A context in which the requests of a POST wait for the upstream.

    Once the last of the requests is overdue, `over` is True, and the context is left at once
    without an error, unless it is `busy`: then its body must return. `give_up` receives the
    messages that cancel such requests at the upstream. `say` receives the messages about them for
    the client: with the answer that has begun, or with None for another stream on which the client
    listens.
    """

    def __init__(
        self,
        context: RequestContext,
        ours: list[bytes],
        give_up: Callable[[list[bytes]], None],
        say: Say,
    ) -> None:
        self.ours = ours
        """Messages for the answer besides those of the upstream."""
        self.answer: ResponseWriter | None = None
        """The answer to send such messages on at once, as soon as it has begun."""
        self.busy = False
        """True while a message of the upstream is being sent."""
        self.over = False
        """True if nothing more is needed from the upstream."""
        self._context = context
        self._give_up = give_up
        self._say = say
        self._ended = False
        self._timeout: asyncio.Timeout | None = None
        self._timer: Timer | None = None

    async def __aenter__(self) -> Self:
        of = self._context
        if of.driver.session.deadline is not None:
            self._timeout = await asyncio.timeout(None).__aenter__()
            self._timer = Timer(of.driver, self._overdue, of.id_prefix, of.post.ids)
            self._timer.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.leave()
        if self._timeout is None or self._timer is None:
            return False
        of = self._context
        # In a session a call may continue without its client, who can come back for the answer.
        if of.id_prefix or not of.driver.session.awaits(of.id_prefix, of.post.ids):
            self._timer.stop()
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            return True
        return False

    def leave(self) -> None:
        """Record that the answer is about to end: no more messages fit in it."""
        self._ended = True

    def _overdue(self, routed: Routed) -> None:
        of = self._context
        self._give_up(routed.to_server)
        if self._ended:
            self._say(of, None, routed.to_client)
            return
        self.over = not of.driver.session.awaits(of.id_prefix, of.post.ids)
        if self.answer is not None and not self.over:
            self._say(of, self.answer, routed.to_client)
            return
        self.ours += routed.to_client
        if self.over and not self.busy and self._timeout is not None:
            self._timeout.reschedule(asyncio.get_running_loop().time())


_UNASKED = "the client takes no event stream, so it cannot be asked"
_PROMPT = 1.0  # seconds
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
        self._queries = GuardQueries(self._upstream, self._aside)
        self._legacy = http_sse.SseSessions(
            route, shared.limits, self._upstream, self._registry, self._queries, self._translated
        )
        self._listening: dict[Driver, ResponseWriter] = {}
        self._resting: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start the care of idle sessions; connections are made when they are needed."""
        self._resting = asyncio.create_task(self._rest())

    def not_ready_reason(self) -> str | None:
        """Return None: whether its server can answer is not checked in advance."""
        return None

    def counts(self) -> tuple[int, int]:
        """Return the number of known sessions, and no servers: these are not child processes."""
        return len(self._registry), 0

    async def close(self) -> None:
        """Close all connections."""
        if self._resting is not None:
            self._resting.cancel()
        await self._queries.close()
        await self._upstream.close()

    async def _rest(self) -> None:
        while True:
            await asyncio.sleep(self._limits.idle)
            self._registry.rest()

    async def handle(self, request: web.BaseRequest, record: AccessRecord) -> web.StreamResponse:
        """Answer one request."""
        try:
            if request.method == "POST" and not self._route.passes:
                if (name := request.query.get(http_sse.QUERY)) is not None:
                    return await self._legacy.posted(request, name, record)
                return await self._post(request, record)
            return await self._other(request, record)
        except ConnectionLost as error:
            raise RequestRefused(502, FAILED, str(error)) from None

    async def _post(self, request: web.BaseRequest, record: AccessRecord) -> web.StreamResponse:
        read = await post.read(request, self._route, self._limits, record)
        context = await self._registry.context(request, read)
        driver = context.driver
        routed = await driver.from_client(read.raw, context.id_prefix, context.scope)
        record.client = driver.session.client or ""
        self._queries.cancel(routed.to_server)
        try:
            for probe in routed.queries:
                routed = await self._decide(request, context, probe, routed.notifications)
            if not routed.to_server:
                record.answered_by = "proxy"
                if not read.ids:
                    return web.Response(status=202)
                answer = _answer(request, read, streams=False)
                return await self._finish(answer, routed.to_client, record)
            raw = routed.to_server[0]
            ours = [*await self._notify(context, routed.notifications), *routed.to_client]
            waiting = ResponseWait(
                context,
                ours,
                lambda lines: self._queries.give_up(request, read, lines),
                lambda *late: self._queries.spawn(self._send_late(*late)),
            )
            async with waiting, self._upstream.ask(request, raw, read) as upstream:
                return await self._answered(request, context, waiting, upstream, record)
            answer = waiting.answer or _answer(request, read, streams=False)
            record.answered_by, record.failure = "proxy", _LATE
            return await self._finish(answer, ours, record)
        except Rejected as rejected:
            return self._rejected(request, context, rejected, record)
        except ConnectionLost:
            context.drop()
            raise
        finally:
            if context.id_prefix:
                context.drop()

    async def _decide(
        self, request: web.BaseRequest, context: RequestContext, probe: Probe, notices: list[bytes]
    ) -> Routed:
        """Return the decision on a held call; `told` are the messages to its client meanwhile.

        Raises Rejected.
        """
        [id] = context.post.ids
        try:
            routed = await self._queries.ask(request, context, probe)
        except CallCancelled as cause:
            # The server has never received it, so no answer could come.
            return Routed([], [message.error(id, message.CANCELLED, str(cause))], notices, [])
        mine = [raw for raw in routed.to_client if correlate(raw).answers == id]
        for line in routed.to_client:
            if line not in mine:
                await self._spare(context, line)
        if not (routed.to_server or mine):
            mine = [message.error(id, post.INVALID, "another request has the same id")]
        return Routed(routed.to_server, mine, [*notices, *routed.notifications], [])

    def _rejected(
        self,
        request: web.BaseRequest,
        context: RequestContext,
        rejected: Rejected,
        record: AccessRecord,
    ) -> web.Response:
        """Answer a held call with the server's answer to the query, which rejects this client."""
        context.drop()
        upstream = rejected.upstream
        self._forget_ended(request, upstream)
        record.bytes_received = record.bytes_sent = len(rejected.raw)
        return web.Response(
            status=upstream.status,
            reason=upstream.reason,
            headers=hop_headers.to_client(upstream.headers),
            body=rejected.raw,
        )

    async def _aside(self, context: RequestContext, raw: bytes) -> None:
        """Process a message that the server sends while it answers the proxy's own query."""
        for line in await self._tell(context, raw):
            await self._spare(context, line)

    async def _spare(self, context: RequestContext, line: bytes) -> None:
        """Send a client a message it can do without, if it has a stream for such."""
        if await self._notify(context, [line]):
            self._log.debug("a message that came while a call was held was dropped")

    async def _notify(self, context: RequestContext, notices: list[bytes]) -> list[bytes]:
        """Send a client messages that answer nothing; return them if it has no stream for such."""
        stream = self._listening.get(context.driver)
        if stream is None:
            return notices
        try:
            async with asyncio.timeout(_PROMPT):
                await stream.add_messages(notices)
        except (TimeoutError, ConnectionError):  # it is not read, or the client has gone
            return notices
        return []

    async def _send_late(
        self, context: RequestContext, answer: ResponseWriter | None, lines: list[bytes]
    ) -> None:
        with suppress(ConnectionError):
            if answer is None:
                await self._notify(context, lines)
            else:
                await answer.add_messages(lines)

    async def _answered(
        self,
        request: web.BaseRequest,
        context: RequestContext,
        waiting: ResponseWait,
        upstream: HttpResponse,
        record: AccessRecord,
    ) -> web.StreamResponse:
        """Pass on an upstream's answer, with the messages that the proxy adds."""
        read, ours = context.post, waiting.ours
        if read.initializes:
            self._registry.initialized(context, upstream.headers.get(SESSION))
        self._forget_ended(request, upstream)
        kind = upstream.content_type
        good = 200 <= upstream.status < 300
        if ours and good and kind not in (JSON, STREAM):
            # The server got no request, or does not answer it.
            lines = [*ours, *context.end("the server gave no answer")]
            waiting.leave()
            return await self._finish(_answer(request, read, streams=False), lines, record)
        if good and kind not in (JSON, STREAM) and context.withholds and not _empty(upstream):
            # A client that ignores the content type would find data that a rule withholds.
            content_type = upstream.headers.get("Content-Type", "it has no Content-Type")
            record.failure = (
                f"the server's answer is neither JSON nor an event stream: {content_type}"
            )
            lines = context.end(record.failure)
            waiting.leave()
            return await self._finish(_answer(request, read, streams=False), lines, record)
        if not read.ids or not good or kind not in (JSON, STREAM):
            context.drop()
            return await self._upstream.pass_on(request, upstream, record)
        headers = hop_headers.to_client(upstream.headers)
        answer = _answer(request, read, kind == STREAM, upstream.status, headers)
        if kind == STREAM:
            # The client may read slowly, and a head that has begun must not be sent again.
            waiting.busy = True
            await answer.begin()
            while ours:
                await answer.add(message_event(ours.pop(0)))
            waiting.answer, waiting.busy = answer, False
            if not waiting.over:
                await self._events(request, answer, context, upstream, record, waiting)
            waiting.leave()
            if waiting.over:
                record.answered_by, record.failure = "proxy", _LATE
            return await self._finish(answer, ours, record)
        # Nothing is sent before the answer is complete: a failure can still become an error.
        try:
            raw = await self._upstream.read(upstream)
        except body.TooLarge as large:
            record.failure = f"the server's answer is too long: {large}"
            lines = context.end(record.failure)
        else:
            record.bytes_received = len(raw)
            waiting.busy = True
            lines = await self._tell(context, raw)
            if len(read.ids) == 1 and context.withholds:
                # A message that is not recognized as the answer may be the answer all the same.
                lines = [each for each in lines if message.fails(each)]
            lines += context.end(_UNANSWERED)
        waiting.leave()
        return await self._finish(answer, [*ours, *lines], record)

    async def _finish(
        self, answer: ResponseWriter, lines: list[bytes], record: AccessRecord
    ) -> web.StreamResponse:
        await answer.add_messages(lines[:-1])
        await others(len(lines[-1]) if lines else 0)
        response = await answer.end(message_event(lines[-1]) if lines else None)
        record.bytes_sent = answer.bytes_sent
        return response

    async def _events(
        self,
        request: web.BaseRequest,
        answer: ResponseWriter,
        context: RequestContext,
        upstream: HttpResponse,
        record: AccessRecord,
        waiting: ResponseWait | None = None,
    ) -> None:
        """Pass on a stream of events until it ends, or no more of it is needed."""
        resumable = False
        cause = "the server ended its stream before it had answered"
        try:
            async for event in self._upstream.events(upstream, record):
                resumable |= event.id is not None and not context.id_prefix
                if context.post.accepts == "json" and (id := request_id(event)) is not None:
                    await self._upstream.decline(request, context.post, id, _UNASKED)
                if waiting is not None:
                    waiting.busy = True
                for each in await self._translated(context, event):
                    await answer.add(each)
                if waiting is not None:
                    waiting.busy = False
                if answer.complete or (waiting is not None and waiting.over):
                    return
        except (ConnectionLost, sse.TooLong) as broken:
            cause = f"the server's stream broke off: {broken}"
            record.failure = cause
        if not resumable:
            lines = context.end(cause)
            record.failure = cause if lines else record.failure
            await answer.add_messages(lines)

    async def _translated(self, context: RequestContext, event: Event) -> list[Event]:
        """Return the events for the client: usually the event itself."""
        if not event.data or event.data.isspace():
            return [event]
        lines = await self._tell(context, event.data)
        if lines == [event.data]:
            return [event]
        if not lines:
            return _without_message(event)
        *first, last = lines
        raw = sse.replaced(event, last)
        return [*map(message_event, first), msgspec.structs.replace(event, raw=raw, data=last)]

    async def _tell(self, context: RequestContext, raw: bytes) -> list[bytes]:
        """Process a message of the upstream; return the messages for the client."""
        if self._queries.answered(raw):
            return []
        if context.post.modern and context.post.method == "tools/list":
            self._upstream.listed(raw)
        routed = await context.driver.from_server(raw, context.id_prefix)
        await self._registry.share(context)
        return routed.to_client

    async def _other(self, request: web.BaseRequest, record: AccessRecord) -> web.StreamResponse:
        """Pass on a request that brings no message: GET, DELETE, and any other method."""
        raw = b""
        if request.body_exists:
            try:
                encoding = request.headers.get("Content-Encoding")
                raw = await body.whole(request.content, encoding, self._limits.body)
            except body.TooLarge as large:
                raise RequestRefused(413, post.INVALID, str(large)) from None
            except body.Unreadable as cause:
                raise RequestRefused(400, post.NOT_JSON, str(cause)) from None
        session = request.headers.get(SESSION)
        if session is not None:
            record.session = post.digest(session)
        async with self._upstream.ask(request, raw) as upstream:
            self._forget_ended(request, upstream)
            streams = upstream.content_type == STREAM and not self._route.passes
            if not streams or not 200 <= upstream.status < 300:
                return await self._upstream.pass_on(request, upstream, record)
            headers = hop_headers.to_client(upstream.headers)
            answer = _answer(request, post.NOTHING, True, upstream.status, headers)
            await answer.begin()
            if session is not None:
                context = await self._registry.of_session(request, post.NOTHING, session)
                self._listening[context.driver] = answer
                try:
                    await self._events(request, answer, context, upstream, record)
                finally:
                    if self._listening.get(context.driver) is answer:
                        del self._listening[context.driver]
            else:
                await self._legacy.follow(answer, upstream, record)
            return await self._finish(answer, [], record)

    def _forget_ended(self, request: web.BaseRequest, upstream: HttpResponse) -> None:
        session = request.headers.get(SESSION)
        ended = request.method == "DELETE" and 200 <= upstream.status < 300
        # For a GET, 404 may only mean that there is no such stream.
        unknown = request.method != "GET" and upstream.status == 404
        if session is not None and (ended or unknown):
            self._registry.ended(session)


def _empty(upstream: HttpResponse) -> bool:
    return upstream.status == 204 or upstream.headers.get("Content-Length") == "0"


def _without_message(event: Event) -> list[Event]:
    """Return the fields of an event that the client needs without its message: id and retry."""
    fields = [] if event.id is None else [f"id: {event.id}"]
    fields += [] if event.retry is None else [f"retry: {event.retry}"]
    raw = "\n".join([*fields, "", ""]).encode()
    return [Event(raw, None, event.id, None, event.retry)] if fields else []


def _answer(
    request: web.BaseRequest,
    read: PostedBody,
    streams: bool,
    status: int = 200,
    headers: CIMultiDict[str] | None = None,
) -> ResponseWriter:
    return ResponseWriter(
        request,
        read.accepts,
        streams=streams,
        expected=len(read.ids),
        batch=read.batch,
        status=status,
        headers=headers or CIMultiDict(),
    )
