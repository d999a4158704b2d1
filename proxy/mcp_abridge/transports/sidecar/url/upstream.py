"""The server behind a route: requests to it in the client's name, and its unchanged answers."""

import asyncio
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, suppress
from urllib.parse import unquote_plus

from aiohttp import web
from multidict import CIMultiDict
from yarl import URL

from mcp_abridge.document import message
from mcp_abridge.document.message import string_at
from mcp_abridge.document.tree import ABSENT
from mcp_abridge.transports.client.endpoint import (
    ConnectionLost,
    HttpClient,
    HttpResponse,
    NoAnswer,
)
from mcp_abridge.transports.http import headers, hop_headers, negotiation
from mcp_abridge.transports.http.sse import Event
from mcp_abridge.transports.sidecar.refusal import FAILED
from mcp_abridge.transports.sidecar.request import PostedBody
from mcp_abridge.transports.sidecar.route import Request, Route
from mcp_abridge.transports.sidecar.session_registry import RequestContext

# Headers that are true of one message only: keys of its repetition, digests of its contents.
_OF_ONE_MESSAGE = re.compile(
    r"(x-)?idempotency-key|mcp-param-.*|(content-|repr-)?digest|content-md5|signature(-input)?"
)

_ACCEPTED = 5.0  # seconds for a server to accept a message that has no response


class Upstream:
    """The server at a route's URL; no answer of it may have more than `limit` bytes.

    If calls have `traces`, headers repeat the context of the one that is sent.
    """

    def __init__(self, route: Route, limit: int, *, traces: bool = False) -> None:
        assert isinstance(route.upstream, str)
        self._route = route
        self._traces = traces
        self.endpoint = HttpClient(route.upstream, limit, transparent=True)
        self.parameters: headers.Parameters = {}
        """The arguments of each known tool that are repeated in headers."""

    @asynccontextmanager
    async def ask(
        self,
        request: Request,
        raw: bytes,
        read: PostedBody | None = None,
        url: URL | None = None,
        *,
        own: bool = False,
    ) -> AsyncIterator[HttpResponse]:
        """Send `raw` as the client sent its request, and record the size of the answer.

        If `own`, the message is the proxy's own, a POST, and headers that are true of the client's
        message only are left out. Raises NoAnswer.
        """
        headers = self._headers(request, raw, read, own)
        method, url = "POST" if own else request.method, url or self._url(request)
        async with self.endpoint.request(method, headers, raw or None, url=url) as response:
            if response.status < 200:
                # No other protocol was requested, and the bytes that follow may be no HTTP.
                response.close()
                reason = f"the server answers with the status {response.status}"
                raise ConnectionLost(f"{reason}, which is no answer")
            try:
                yield response
            finally:
                if not own:
                    request.record.bytes_received = response.received

    async def tell(self, context: RequestContext, raw: bytes) -> None:
        """Send a message of the proxy's own that has no response; it may be lost."""
        with suppress(NoAnswer, TimeoutError):
            ask = self.ask(context.request, raw, context.post, own=True)
            async with asyncio.timeout(_ACCEPTED), ask as upstream:
                await upstream.whole()

    async def decline(self, context: RequestContext, event: Event, reason: str) -> None:
        """Answer with an error if an event is a request of the server, lest it wait."""
        raw = event.data or b""
        if message.responds_to(raw) is not None:  # usual, and it may be long
            return
        read = message.envelope(raw)
        if read.method is not ABSENT and read.key is not None:
            await self.tell(context, message.error(read.key, FAILED, reason))

    async def pass_on(self, request: Request, response: HttpResponse) -> web.StreamResponse:
        """Pass on an answer unchanged; raises NoAnswer, after closing one that has begun."""
        answer = web.StreamResponse(
            status=response.status,
            reason=response.reason,
            headers=hop_headers.to_client(response.headers, whole=True),
        )
        chunks = response.encoded_chunks()
        first = await anext(chunks, b"")
        if not first and request.method != "HEAD":
            # Explicit, so that no type is added for an empty body.
            answer.content_length = 0
        await answer.prepare(request)
        try:
            if first:
                await answer.write(first)
            async for chunk in chunks:
                await answer.write(chunk)
        except NoAnswer:
            request.cut()  # so that the client notices: the announced body cannot be completed
            raise
        await answer.write_eof()
        request.record.bytes_sent = response.received
        return answer

    def _url(self, request: web.BaseRequest) -> URL:
        url, query = self.endpoint.url, request.rel_url.raw_query_string
        if not (self._route.passes or query):
            return url
        text = str(url)
        if self._route.passes:
            text = str(url.origin()) + request.rel_url.raw_path
        elif url.query_string:
            # Of two values, some servers take the last: the configured one may be a limit.
            own = {name.casefold() for name in url.query}
            pairs = query.split("&")
            query = "&".join(each for each in pairs if _name(each).casefold() not in own)
        if query:
            text += ("&" if "?" in text else "?") + query
        return URL(text, encoded=True)

    def _headers(
        self, request: web.BaseRequest, raw: bytes, read: PostedBody | None, own: bool
    ) -> CIMultiDict[str]:
        route = self._route
        # A token that opens this route is not for the upstream.
        credentials = route.auth == "forward" and not route.access.opened_by(request.headers)
        fields = hop_headers.to_upstream(
            request.headers, credentials=credentials, fixed=route.headers
        )
        if own:
            for name in [each for each in fields if _OF_ONE_MESSAGE.fullmatch(each.lower())]:
                fields.popall(name, None)
            fields["Content-Type"] = negotiation.JSON
        if self._traces and not route.passes:
            fields.update(headers.trace_headers(raw))
        if read is None:
            return fields
        fields["Accept"] = negotiation.MEDIA_TYPES
        if read.modern and raw != read.raw:
            # A rule has changed the call: adapt its headers.
            tool = None if read.first is None else string_at(read.first.params, "name")
            for _, name in self.parameters.get(tool or "", ()):
                fields.popall(name, None)
            fields.update(headers.request_headers(raw, self.parameters))
        return fields


def _name(pair: str) -> str:
    """Return the name of a parameter of a query, as a server reads it."""
    return unquote_plus(pair.partition("=")[0])
