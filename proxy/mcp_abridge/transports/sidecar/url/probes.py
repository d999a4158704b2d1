"""The proxy's own queries to an HTTP server, each a POST of its own, before a held call.

They are sent in the name of the client whose call it is. Invariants: no part of a query goes to a
client; and the query ends after its time, or if the client cancels the call or disconnects.
"""

import asyncio
from collections.abc import Iterable
from contextlib import suppress

from msgspec import Raw

from mcp_abridge.document import message
from mcp_abridge.errors import AbridgeError
from mcp_abridge.session.guards import LATE, cancellation
from mcp_abridge.session.outputs import Probe
from mcp_abridge.transports.aio import Tasks
from mcp_abridge.transports.client.endpoint import ConnectionLost, HttpResponse
from mcp_abridge.transports.correlation import answered_ids, correlate, elements, refuses
from mcp_abridge.transports.driver import Routed
from mcp_abridge.transports.http import body, sse
from mcp_abridge.transports.http.headers import SESSION
from mcp_abridge.transports.http.negotiation import STREAM
from mcp_abridge.transports.sidecar.route import AccessRecord
from mcp_abridge.transports.sidecar.session_registry import RequestContext
from mcp_abridge.transports.sidecar.url.upstream import Upstream, request_id

_TAKEN_BACK = 5.0  # seconds for a server to accept a cancellation
_MOST_ASIDE = 1 << 20  # bytes of messages to the client during a query; later ones are dropped
_NOBODY = "nobody can be asked anything before the call that this is about"


class CallCancelled(AbridgeError):
    """The client has cancelled the call that was held."""


class Rejected(AbridgeError):
    """The server wants other credentials, or has ended the session, of the client."""

    def __init__(self, upstream: HttpResponse, raw: bytes) -> None:
        super().__init__(f"the server answered HTTP {upstream.status}")
        self.upstream = upstream
        self.raw = raw


class GuardQueries:
    """The queries to one server."""

    def __init__(self, upstream: Upstream) -> None:
        self._upstream = upstream
        self._awaited: dict[bytes, asyncio.Task[bytes | str]] = {}
        self.tasks = Tasks()
        """Those in the background, for the other messages to the server too."""

    async def close(self) -> None:
        self.tasks.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def ask(self, context: RequestContext, query: Probe, aside: list[bytes]) -> Routed:
        """Send a query; return the messages that follow. Raises CallCancelled, Rejected.

        Messages of the server to the client meanwhile are added to `aside`.
        """
        id = query.token.removeprefix(context.id_prefix)
        seconds = context.driver.session.time_left(context.id_prefix, context.post.ids)
        task = self._awaited[id] = asyncio.create_task(self._ask(context, query.raw, id, aside))
        try:
            await asyncio.wait({task}, timeout=seconds)
        except asyncio.CancelledError:
            context.drop()
            self.give_up(context, [cancellation(id)])
            raise
        finally:
            del self._awaited[id]
            # In the stateless era this notifies the server of the cancellation.
            pending = task.cancel()
        if task.cancelled():
            raise CallCancelled("Request cancelled")
        outcome = LATE if pending else task.result()
        if pending:
            self.give_up(context, [cancellation(id)])
        if isinstance(outcome, bytes):
            return await context.driver.from_server(outcome, context.id_prefix)
        return await context.driver.unanswered(query.token, outcome)

    def awaits(self, raw: bytes) -> bool:
        """Return True for an answer to a query: on another stream than its own it is ignored."""
        return bool(self._awaited) and correlate(raw).answers in self._awaited

    def cancel(self, lines: Iterable[bytes]) -> None:
        if self._awaited:
            for line in lines:
                for each in elements(line):
                    task = self._awaited.get(correlate(each).cancels or b"")
                    if task is not None:
                        task.cancel()

    def give_up(self, context: RequestContext, lines: Iterable[bytes]) -> None:
        """Send cancellations to the server, unless closing the connection has that meaning."""
        for raw in () if context.post.modern else lines:
            self.tasks.spawn(self._tell(context, raw))

    async def _ask(
        self, context: RequestContext, raw: bytes, id: bytes, aside: list[bytes]
    ) -> bytes | str:
        request, read = context.request, context.post
        try:
            async with self._upstream.ask(request, raw, read, own=True) as upstream:
                if upstream.content_type == STREAM and 200 <= upstream.status < 300:
                    return await self._events(context, upstream, id, aside)
                return await self._whole(context, upstream, id)
        except ConnectionLost as cause:
            return str(cause)
        except (sse.TooLong, body.TooLarge) as cause:
            return f"the server's answer is too long: {cause}"

    async def _whole(
        self, context: RequestContext, upstream: HttpResponse, id: bytes
    ) -> bytes | str:
        read, status = context.post, upstream.status
        raw = await self._upstream.read(upstream)
        about = id in answered_ids(raw)
        ended = status == 404 and SESSION in context.request.headers and not (read.modern or about)
        if status == 401 or ended or (status == 403 and "WWW-Authenticate" in upstream.headers):
            raise Rejected(upstream, raw.replace(id, read.ids[0]))
        if refuses(raw, id):
            # A server that has not read a request cannot know its id.
            return message.replaced(raw, id=Raw(id))
        if status >= 300:
            return f"the server answered HTTP {status} {upstream.reason or ''}".rstrip()
        if about:
            return raw
        return "the server answered something else" if raw.strip() else "the server gave no answer"

    async def _events(
        self, context: RequestContext, upstream: HttpResponse, id: bytes, aside: list[bytes]
    ) -> bytes | str:
        room = _MOST_ASIDE
        try:
            async for event in self._upstream.events(upstream, AccessRecord()):
                raw = event.data or b""
                if not raw or event.event not in (None, "", "message"):
                    continue
                if id in answered_ids(raw):
                    return raw
                if (key := request_id(event)) is not None:
                    await self._upstream.decline(context, key, _NOBODY)
                else:
                    lines = (await context.driver.from_server(raw, context.id_prefix)).to_client
                    room -= sum(map(len, lines))
                    aside += lines if room >= 0 else ()
        except ConnectionLost as broken:
            return f"the server's stream broke off: {broken}"
        return "the server ended its stream before it had answered"

    async def _tell(self, context: RequestContext, raw: bytes) -> None:
        with suppress(ConnectionLost, body.TooLarge, TimeoutError):
            ask = self._upstream.ask(context.request, raw, context.post, own=True)
            async with asyncio.timeout(_TAKEN_BACK), ask as upstream:
                await self._upstream.read(upstream)
