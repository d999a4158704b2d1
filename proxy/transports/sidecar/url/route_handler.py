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
from proxy.transports.http import body, sse
from proxy.transports.http import hop_headers as passing
from proxy.transports.http.negotiation import JSON, STREAM
from proxy.transports.http.sse import Event
from proxy.transports.sidecar import request as post
from proxy.transports.sidecar.request import FAILED, SESSION, PostedBody, RequestRefused
from proxy.transports.sidecar.response_writer import ResponseWriter, unframed
from proxy.transports.sidecar.route import AccessRecord, Route, Rules, Services
from proxy.transports.sidecar.session_registry import RequestContext, SessionRegistry
from proxy.transports.sidecar.url import http_sse as legacy
from proxy.transports.sidecar.url.probes import Probing, Rejected, TakenBack
from proxy.transports.sidecar.url.upstream import Upstream, request_id

Say = Callable[[RequestContext, ResponseWriter | None, list[bytes]], object]


class QueryWait:
    """A context in which the requests of an exchange wait for the upstream.

    Once the last of the requests is overdue, `over` is True, and the context is left at once
    without an error, unless it is `busy`: then its body must return. `give_up` receives the
    messages that cancel such requests at the upstream. `say` receives the messages about them for
    the client: with the answer that has begun, or with None for another stream on which the client
    listens.
    """

    def __init__(
        self,
        exchange: RequestContext,
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
        self._exchange = exchange
        self._give_up = give_up
        self._say = say
        self._ended = False
        self._timeout: asyncio.Timeout | None = None
        self._timer: Timer | None = None

    async def __aenter__(self) -> Self:
        of = self._exchange
        if of.driver.session.deadline is not None:
            self._timeout = await asyncio.timeout(None).__aenter__()
            self._timer = Timer(of.driver, self._overdue, of.mark, of.post.ids)
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
        of = self._exchange
        # In a session a call may continue without its client, who can come back for the answer.
        if of.mark or not of.driver.session.awaits(of.mark, of.post.ids):
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
        of = self._exchange
        self._give_up(routed.to_server)
        if self._ended:
            self._say(of, None, routed.to_client)
            return
        self.over = not of.driver.session.awaits(of.mark, of.post.ids)
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
        self._callers = SessionRegistry(route, rules, shared)
        self._log = shared.log
        self._probing = Probing(self._upstream, self._aside)
        self._legacy = legacy.Streams(
            route, shared.limits, self._upstream, self._callers, self._probing, self._translated
        )
        self._listening: dict[Driver, ResponseWriter] = {}
        self._resting: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start the care of idle sessions; connections are made when they are needed."""
        self._resting = asyncio.create_task(self._rest())

    def unready(self) -> str | None:
        """Return None: whether its server can answer is not checked in advance."""
        return None

    def counts(self) -> tuple[int, int]:
        """Return the number of known sessions, and no servers: these are not child processes."""
        return len(self._callers), 0

    async def close(self) -> None:
        """Close all connections."""
        if self._resting is not None:
            self._resting.cancel()
        await self._probing.close()
        await self._upstream.close()

    async def _rest(self) -> None:
        while True:
            await asyncio.sleep(self._limits.idle)
            self._callers.rest()

    async def handle(self, request: web.BaseRequest, record: AccessRecord) -> web.StreamResponse:
        """Answer one request."""
        try:
            if request.method == "POST" and not self._route.passes:
                if (name := request.query.get(legacy.QUERY)) is not None:
                    return await self._legacy.posted(request, name, record)
                return await self._post(request, record)
            return await self._other(request, record)
        except ConnectionLost as error:
            raise RequestRefused(502, FAILED, str(error)) from None

    async def _post(self, request: web.BaseRequest, record: AccessRecord) -> web.StreamResponse:
        read = await post.read(request, self._route, self._limits, record)
        exchange = await self._callers.exchange(request, read)
        driver = exchange.driver
        routed = await driver.from_client(read.raw, exchange.mark, exchange.scope)
        record.client = driver.session.client or ""
        self._probing.taken_back(routed.to_server)
        try:
            for probe in routed.queries:
                routed = await self._decide(request, exchange, probe, routed.notifications)
            if not routed.to_server:
                record.answered_by = "proxy"
                if not read.ids:
                    return web.Response(status=202)
                answer = _answer(request, read, streams=False)
                return await self._finish(answer, routed.to_client, record)
            raw = routed.to_server[0]
            ours = [*await self._notify(exchange, routed.notifications), *routed.to_client]
            waiting = QueryWait(
                exchange,
                ours,
                lambda lines: self._probing.give_up(request, read, lines),
                lambda *late: self._probing.spawn(self._send_late(*late)),
            )
            async with waiting, self._upstream.ask(request, raw, read) as upstream:
                return await self._answered(request, exchange, waiting, upstream, record)
            answer = waiting.answer or _answer(request, read, streams=False)
            record.answered_by, record.failure = "proxy", _LATE
            return await self._finish(answer, ours, record)
        except Rejected as rejected:
            return self._rejected(request, exchange, rejected, record)
        except ConnectionLost:
            exchange.drop()
            raise
        finally:
            if exchange.mark:
                exchange.drop()

    async def _decide(
        self, request: web.BaseRequest, exchange: RequestContext, probe: Probe, notices: list[bytes]
    ) -> Routed:
        """Return the decision on a held call; `told` are the messages to its client meanwhile.

        Raises Rejected.
        """
        [id] = exchange.post.ids
        try:
            routed = await self._probing.ask(request, exchange, probe)
        except TakenBack as cause:
            # The server has never received it, so no answer could come.
            return Routed([], [message.error(id, message.CANCELLED, str(cause))], notices, [])
        mine = [raw for raw in routed.to_client if correlate(raw).answers == id]
        for line in routed.to_client:
            if line not in mine:
                await self._spare(exchange, line)
        if not (routed.to_server or mine):
            mine = [message.error(id, post.INVALID, "another request has the same id")]
        return Routed(routed.to_server, mine, [*notices, *routed.notifications], [])

    def _rejected(
        self,
        request: web.BaseRequest,
        exchange: RequestContext,
        rejected: Rejected,
        record: AccessRecord,
    ) -> web.Response:
        """Answer a held call with the server's answer to the query, which rejects this client."""
        exchange.drop()
        upstream = rejected.upstream
        self._forget_ended(request, upstream)
        record.bytes_received = record.bytes_sent = len(rejected.raw)
        return web.Response(
            status=upstream.status,
            reason=upstream.reason,
            headers=passing.to_client(upstream.headers),
            body=rejected.raw,
        )

    async def _aside(self, exchange: RequestContext, raw: bytes) -> None:
        """Process a message that the server sends while it answers the proxy's own query."""
        for line in await self._tell(exchange, raw):
            await self._spare(exchange, line)

    async def _spare(self, exchange: RequestContext, line: bytes) -> None:
        """Send a client a message it can do without, if it has a stream for such."""
        if await self._notify(exchange, [line]):
            self._log.debug("a message that came while a call was held was dropped")

    async def _notify(self, exchange: RequestContext, notices: list[bytes]) -> list[bytes]:
        """Send a client messages that answer nothing; return them if it has no stream for such."""
        stream = self._listening.get(exchange.driver)
        if stream is None:
            return notices
        try:
            async with asyncio.timeout(_PROMPT):
                await stream.add_messages(notices)
        except (TimeoutError, ConnectionError):  # it is not read, or the client has gone
            return notices
        return []

    async def _send_late(
        self, exchange: RequestContext, answer: ResponseWriter | None, lines: list[bytes]
    ) -> None:
        with suppress(ConnectionError):
            if answer is None:
                await self._notify(exchange, lines)
            else:
                await answer.add_messages(lines)

    async def _answered(
        self,
        request: web.BaseRequest,
        exchange: RequestContext,
        waiting: QueryWait,
        upstream: HttpResponse,
        record: AccessRecord,
    ) -> web.StreamResponse:
        """Pass on an upstream's answer, with the messages that the proxy adds."""
        read, ours = exchange.post, waiting.ours
        if read.initializes:
            self._callers.initialized(exchange, upstream.headers.get(SESSION))
        self._forget_ended(request, upstream)
        kind = upstream.content_type
        good = 200 <= upstream.status < 300
        if ours and good and kind not in (JSON, STREAM):
            # The server got no request, or does not answer it.
            lines = [*ours, *exchange.end("the server gave no answer")]
            waiting.leave()
            return await self._finish(_answer(request, read, streams=False), lines, record)
        if good and kind not in (JSON, STREAM) and exchange.withholds and not _empty(upstream):
            # A client that ignores the content type would find data that a rule withholds.
            content_type = upstream.headers.get("Content-Type", "it has no Content-Type")
            record.failure = (
                f"the server's answer is neither JSON nor an event stream: {content_type}"
            )
            lines = exchange.end(record.failure)
            waiting.leave()
            return await self._finish(_answer(request, read, streams=False), lines, record)
        if not read.ids or not good or kind not in (JSON, STREAM):
            exchange.drop()
            return await self._upstream.pass_on(request, upstream, record)
        headers = passing.to_client(upstream.headers)
        answer = _answer(request, read, kind == STREAM, upstream.status, headers)
        if kind == STREAM:
            # The client may read slowly, and a head that has begun must not be sent again.
            waiting.busy = True
            await answer.begin()
            while ours:
                await answer.add(unframed(ours.pop(0)))
            waiting.answer, waiting.busy = answer, False
            if not waiting.over:
                await self._events(request, answer, exchange, upstream, record, waiting)
            waiting.leave()
            if waiting.over:
                record.answered_by, record.failure = "proxy", _LATE
            return await self._finish(answer, ours, record)
        # Nothing is sent before the answer is complete: a failure can still become an error.
        try:
            raw = await self._upstream.read(upstream)
        except body.TooLarge as large:
            record.failure = f"the server's answer is too long: {large}"
            lines = exchange.end(record.failure)
        else:
            record.bytes_received = len(raw)
            waiting.busy = True
            lines = await self._tell(exchange, raw)
            if len(read.ids) == 1 and exchange.withholds:
                # A message that is not recognized as the answer may be the answer all the same.
                lines = [each for each in lines if message.fails(each)]
            lines += exchange.end(_UNANSWERED)
        waiting.leave()
        return await self._finish(answer, [*ours, *lines], record)

    async def _finish(
        self, answer: ResponseWriter, lines: list[bytes], record: AccessRecord
    ) -> web.StreamResponse:
        await answer.add_messages(lines[:-1])
        await others(len(lines[-1]) if lines else 0)
        response = await answer.end(unframed(lines[-1]) if lines else None)
        record.bytes_sent = answer.bytes_sent
        return response

    async def _events(
        self,
        request: web.BaseRequest,
        answer: ResponseWriter,
        exchange: RequestContext,
        upstream: HttpResponse,
        record: AccessRecord,
        waiting: QueryWait | None = None,
    ) -> None:
        """Pass on a stream of events until it ends, or no more of it is needed."""
        resumable = False
        cause = "the server ended its stream before it had answered"
        try:
            async for event in self._upstream.events(upstream, record):
                resumable |= event.id is not None and not exchange.mark
                if exchange.post.accepts == "json" and (id := request_id(event)) is not None:
                    await self._upstream.decline(request, exchange.post, id, _UNASKED)
                if waiting is not None:
                    waiting.busy = True
                for each in await self._translated(exchange, event):
                    await answer.add(each)
                if waiting is not None:
                    waiting.busy = False
                if answer.complete or (waiting is not None and waiting.over):
                    return
        except (ConnectionLost, sse.TooLong) as broken:
            cause = f"the server's stream broke off: {broken}"
            record.failure = cause
        if not resumable:
            lines = exchange.end(cause)
            record.failure = cause if lines else record.failure
            await answer.add_messages(lines)

    async def _translated(self, exchange: RequestContext, event: Event) -> list[Event]:
        """Return the events for the client: usually the event itself."""
        if not event.data or event.data.isspace():
            return [event]
        lines = await self._tell(exchange, event.data)
        if lines == [event.data]:
            return [event]
        if not lines:
            return _without_message(event)
        *first, last = lines
        raw = sse.replaced(event, last)
        return [*map(unframed, first), msgspec.structs.replace(event, raw=raw, data=last)]

    async def _tell(self, exchange: RequestContext, raw: bytes) -> list[bytes]:
        """Process a message of the upstream; return the messages for the client."""
        if self._probing.answered(raw):
            return []
        if exchange.post.modern and exchange.post.method == "tools/list":
            self._upstream.listed(raw)
        routed = await exchange.driver.from_server(raw, exchange.mark)
        await self._callers.share(exchange)
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
            headers = passing.to_client(upstream.headers)
            answer = _answer(request, post.NOTHING, True, upstream.status, headers)
            await answer.begin()
            if session is not None:
                exchange = await self._callers.of_session(request, post.NOTHING, session)
                self._listening[exchange.driver] = answer
                try:
                    await self._events(request, answer, exchange, upstream, record)
                finally:
                    if self._listening.get(exchange.driver) is answer:
                        del self._listening[exchange.driver]
            else:
                await self._legacy.follow(answer, upstream, record)
            return await self._finish(answer, [], record)

    def _forget_ended(self, request: web.BaseRequest, upstream: HttpResponse) -> None:
        session = request.headers.get(SESSION)
        ended = request.method == "DELETE" and 200 <= upstream.status < 300
        # For a GET, 404 may only mean that there is no such stream.
        unknown = request.method != "GET" and upstream.status == 404
        if session is not None and (ended or unknown):
            self._callers.ended(session)


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
