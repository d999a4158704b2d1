"""HTTP+SSE of 2024-11-05 to an upstream: one stream of answers, and the endpoint it names.

The client is given an endpoint of the proxy instead, on the path that it requested, which is valid
as long as the stream is open.
"""

import secrets
from collections.abc import Awaitable, Callable
from contextlib import suppress

import msgspec
from aiohttp import web
from msgspec import Struct

from proxy.ruleset.loading.config_model import LimitsSpec
from proxy.session.outputs import Probe
from proxy.transports.aio import Tasks
from proxy.transports.client.endpoint import ConnectionLost, HttpResponse
from proxy.transports.driver import Routed, Timer
from proxy.transports.http.sse import ENDPOINT, Event, TooLong, endpoint_event
from proxy.transports.sidecar import request as post
from proxy.transports.sidecar.request import RequestRefused
from proxy.transports.sidecar.response_writer import ResponseWriter
from proxy.transports.sidecar.route import AccessRecord, Route
from proxy.transports.sidecar.session_registry import RequestContext, SessionRegistry
from proxy.transports.sidecar.url.probes import CallCancelled, GuardQueries, Rejected
from proxy.transports.sidecar.url.upstream import Upstream

QUERY = "mcp-abridge-endpoint"
"""The query parameter of the proxy's endpoint that identifies the stream."""

Translate = Callable[[RequestContext, Event], Awaitable[list[Event]]]


class SseSession(Struct):
    """An open stream, the timer of all its calls, and tasks for messages that no event brings."""

    context: RequestContext
    answer: ResponseWriter
    timer: Timer
    tasks: Tasks = msgspec.field(default_factory=Tasks)


class SseSessions:
    """The open streams of a route; `translated` returns the events for the client."""

    def __init__(
        self,
        route: Route,
        limits: LimitsSpec,
        upstream: Upstream,
        registry: SessionRegistry,
        queries: GuardQueries,
        translated: Translate,
    ) -> None:
        self._route = route
        self._limits = limits
        self._upstream = upstream
        self._registry = registry
        self._queries = queries
        self._translated = translated
        self._streams: dict[str, SseSession] = {}

    async def follow(
        self,
        request: web.BaseRequest,
        answer: ResponseWriter,
        upstream: HttpResponse,
        record: AccessRecord,
    ) -> None:
        """Pass on a stream until it ends, with the proxy's endpoint in place of the server's."""
        name = secrets.token_urlsafe(16)
        context = self._registry.alone(request, name)
        timer = Timer(context.driver, lambda routed: self._overdue(name, routed))
        try:
            async for event in self._upstream.events(upstream, record):
                if event.event == ENDPOINT:
                    location = (event.data or b"").decode("utf-8", "replace")
                    context.url = self._upstream.within(location, upstream.url)
                    self._streams[name] = SseSession(context, answer, timer)
                    await answer.add(endpoint_event(f"?{QUERY}={name}".encode()))
                else:
                    for each in await self._translated(context, event):
                        await answer.add(each)
        except (ConnectionLost, TooLong) as broken:
            record.failure = f"the server's stream broke off: {broken}"
            await answer.add_messages(context.driver.session.ended(record.failure))
        finally:
            timer.stop()
            stream = self._streams.pop(name, None)
            if stream is not None:
                stream.tasks.cancel()

    async def posted(
        self, request: web.BaseRequest, name: str, record: AccessRecord
    ) -> web.StreamResponse:
        """Send a message to a stream's endpoint; raises ConnectionLost, RequestRefused."""
        stream = self._streams.get(name)
        if stream is None:
            raise RequestRefused(404, post.INVALID, "the stream of this endpoint is over")
        read = await post.read(request, self._route, self._limits, record)
        driver = stream.context.driver
        routed = await driver.from_client(read.raw)
        record.client = driver.session.client or ""
        self._queries.cancel(routed.to_server)
        await stream.answer.add_messages(routed.to_client)
        stream.timer.start()
        context = msgspec.structs.replace(stream.context, request=request, post=read)
        for probe in routed.queries:
            # Its client sends nothing more until this POST is accepted.
            stream.tasks.spawn(self._finish_held(stream, context, probe))
        if not routed.to_server:
            record.answered_by = "proxy"
            return web.Response(status=202, text="Accepted")
        async with self._upstream.ask(request, routed.to_server[0], url=context.url) as upstream:
            return await self._upstream.pass_on(request, upstream, record)

    async def _finish_held(self, stream: SseSession, context: RequestContext, probe: Probe) -> None:
        request, url = context.request, context.url
        try:
            routed = Routed([], [], [], [probe])
            while routed.queries:
                [probe] = routed.queries
                routed = await self._queries.ask(context, probe)
            await stream.answer.add_messages(routed.to_client)
            stream.timer.start()
            for raw in routed.to_server:
                async with self._upstream.ask(request, raw, url=url) as upstream:
                    if upstream.status >= 300:
                        raise ConnectionLost(f"the server answered HTTP {upstream.status}")
        except (ConnectionLost, Rejected) as cause:
            await stream.answer.add_messages(context.end(str(cause)))
        except (CallCancelled, ConnectionError):
            return

    def _overdue(self, name: str, routed: Routed) -> None:
        stream = self._streams[name]
        self._queries.give_up(stream.context, routed.to_server)
        stream.tasks.spawn(self._say(stream, routed.to_client))

    async def _say(self, stream: SseSession, lines: list[bytes]) -> None:
        with suppress(ConnectionError):
            await stream.answer.add_messages(lines)
