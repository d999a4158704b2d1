"""HTTP+SSE of 2024-11-05 to an upstream: one stream of answers, and the endpoint it names.

The client gets an endpoint of the proxy instead, which is valid as long as the stream is open.
"""

import secrets
from contextlib import suppress
from functools import partial

import msgspec
from aiohttp import web
from msgspec import Struct
from yarl import URL

from mcp_abridge.ruleset.loading.config_model import LimitsSpec
from mcp_abridge.transports.aio import Tasks
from mcp_abridge.transports.client.endpoint import HttpResponse, NoAnswer
from mcp_abridge.transports.client.request import client_request
from mcp_abridge.transports.driver import Driver, Routed
from mcp_abridge.transports.http.sse import ENDPOINT, Event, encode_event
from mcp_abridge.transports.sidecar.refusal import INVALID, RequestRefused
from mcp_abridge.transports.sidecar.request import read_post
from mcp_abridge.transports.sidecar.response_writer import ResponseWriter, translate
from mcp_abridge.transports.sidecar.route import Request, Route
from mcp_abridge.transports.sidecar.session_registry import SessionRegistry
from mcp_abridge.transports.sidecar.url.upstream import Upstream

QUERY = "mcp-abridge-endpoint"
"""The query parameter of the proxy's endpoint that identifies the stream."""


class SseSession(Struct):
    """An open stream; `url` is the server's endpoint, `request` the client's last one to it."""

    driver: Driver
    caller: str
    answer: ResponseWriter
    request: Request
    url: URL
    tasks: Tasks = msgspec.field(default_factory=Tasks)


class SseSessions(Struct, frozen=True):
    """The open streams of a route, and the messages posted to their endpoints."""

    route: Route
    limits: LimitsSpec
    upstream: Upstream
    registry: SessionRegistry
    streams: dict[str, SseSession] = {}

    def has_session(self, request: Request) -> bool:
        return request.query.get(QUERY) in self.streams

    async def follow(
        self, request: Request, answer: ResponseWriter, upstream: HttpResponse
    ) -> None:
        """Pass on a stream until it ends, with the proxy's endpoint in place of the server's."""
        name, record = secrets.token_urlsafe(16), request.record
        driver = self.registry.begin(name, resumable=False)
        stream = SseSession(driver, record.token, answer, request, upstream.url)
        driver.late = partial(self._dispatch, stream)
        try:
            async for event in upstream.events():
                if event.event == ENDPOINT:
                    location = (event.data or b"").decode("utf-8", "replace")
                    stream.url = self.upstream.endpoint.within(location, upstream.url)
                    self.streams[name] = stream
                    own = f"?{QUERY}={name}".encode()
                    await answer.add(Event(encode_event(own, event=ENDPOINT), own, event=ENDPOINT))
                elif not event.data or event.data.isspace():
                    await answer.add(event)
                else:
                    routed = await driver.from_server(event.data)
                    for each in translate(event, routed.to_client):
                        await answer.add(each)
                    await self._dispatch(stream, routed._replace(to_client=[]))
        except NoAnswer as broken:
            record.failure = str(broken)
            await answer.add_messages(driver.session.fail_pending(record.failure))
        finally:
            driver.stop()
            stream.tasks.cancel()
            self.streams.pop(name, None)

    async def posted(self, request: Request, name: str) -> web.StreamResponse:
        """Send a message to the endpoint of a stream, which will carry its answer.

        Raises NoAnswer, and RequestRefused if the stream has ended or the message is none.
        """
        stream, record = self.streams.get(name), request.record
        if stream is None or stream.caller != record.token:
            raise RequestRefused(404, INVALID, "the stream of this endpoint is over")
        read = await read_post(request, self.route, self.limits)
        stream.request = request
        routed = await stream.driver.from_client(read.raw, arrival=record)
        record.client = stream.driver.session.rules.peer.client or ""
        await self._dispatch(stream, routed._replace(to_server=[]))
        if not routed.to_server:
            record.answered_by = "proxy"
            return web.Response(status=202, text="Accepted")
        async with self.upstream.ask(request, routed.to_server[0], url=stream.url) as upstream:
            return await self.upstream.pass_on(request, upstream)

    async def _dispatch(self, stream: SseSession, routed: Routed) -> None:
        for raw in routed.all_to_server:
            stream.tasks.spawn(self._post(stream, raw))
        with suppress(ConnectionError):
            await stream.answer.add_messages(routed.to_client)

    async def _post(self, stream: SseSession, raw: bytes) -> None:
        try:
            ask = self.upstream.ask(stream.request, raw, url=stream.url, own=True)
            async with ask as upstream:
                if upstream.status < 300:
                    return
                cause = f"the server answered HTTP {upstream.status}"
        except NoAnswer as lost:
            cause = str(lost)
        failed = await stream.driver.fail(client_request(raw).waiting, cause)
        await self._dispatch(stream, failed)
