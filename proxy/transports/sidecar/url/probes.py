"""The proxy's own queries to an HTTP server, each a POST of its own, before a held call.

They are sent in the name of the client whose call it is. Invariants: no part of a query goes to a
client, least of all its id; whatever the server does, the query ends after its time; and if the
client cancels the call or disconnects, the query ends at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Iterable
from contextlib import AbstractAsyncContextManager, suppress

from msgspec import Raw

from proxy.document import message
from proxy.errors import AbridgeError
from proxy.session.guards import cancellation
from proxy.session.outputs import Probe
from proxy.transports.aio import Tasks
from proxy.transports.client import request as posting
from proxy.transports.client.endpoint import ConnectionLost, HttpResponse
from proxy.transports.correlation import correlate, elements
from proxy.transports.driver import Routed
from proxy.transports.http import body, sse
from proxy.transports.http.negotiation import STREAM
from proxy.transports.sidecar.request import SESSION
from proxy.transports.sidecar.route import AccessRecord
from proxy.transports.sidecar.session_registry import RequestContext
from proxy.transports.sidecar.url.upstream import Upstream, request_id

_TAKEN_BACK = 5.0  # seconds for a server to accept a cancellation
_NOBODY = "nobody can be asked anything before the call that this is about"

OnMessage = Callable[[RequestContext, bytes], Awaitable[None]]


class CallCancelled(AbridgeError):
    """The client has cancelled the call that was held."""


class Rejected(AbridgeError):
    """The server's answer is about the client: it wants other credentials, or ended the session.

    The call would be answered likewise. `upstream` is the answer's head, `raw` its body.
    """

    def __init__(self, upstream: HttpResponse, raw: bytes) -> None:
        super().__init__(f"the server answered HTTP {upstream.status}")
        self.upstream = upstream
        self.raw = raw


class GuardQueries:
    """The queries to one server; `on_message` receives its messages to the client meanwhile."""

    def __init__(self, upstream: Upstream, on_message: OnMessage) -> None:
        self._upstream = upstream
        self._on_message = on_message
        self._awaited: dict[bytes, asyncio.Future[bytes]] = {}
        self.tasks = Tasks()
        """Those in the background, for the other messages to the server too."""

    async def close(self) -> None:
        self.tasks.cancel()
        await asyncio.gather(*self.tasks, return_exceptions=True)

    async def ask(self, context: RequestContext, query: Probe) -> Routed:
        """Send a query; return the messages that follow. Raises CallCancelled, Rejected.

        If the context has a `url`, the answer comes on another stream.
        """
        id = query.token.removeprefix(context.id_prefix)
        answer = self._awaited[id] = asyncio.get_running_loop().create_future()
        task = asyncio.create_task(self._ask(context, query.raw, id))
        try:
            await asyncio.wait(
                {answer, task}, timeout=query.seconds, return_when=asyncio.FIRST_COMPLETED
            )
        except asyncio.CancelledError:
            context.drop()
            self.give_up(context, [cancellation(id)])
            raise
        finally:
            del self._awaited[id]
            # In the stateless era this notifies the server of the cancellation.
            if not task.cancel() and not task.cancelled():
                task.exception()  # not retrieved if the answer came otherwise
        if answer.cancelled():
            raise CallCancelled("Request cancelled")
        if not (answer.done() or task.done()):
            self.give_up(context, [cancellation(id)])
            routed = await context.driver.unanswered(query.token)
            others = [raw for raw in routed.to_server if correlate(raw).cancels != id]
            return routed._replace(to_server=others)
        outcome = answer.result() if answer.done() else task.result()
        if isinstance(outcome, bytes):
            return await context.driver.from_server(outcome, context.id_prefix)
        return await context.driver.unanswered(query.token, outcome)

    def answered(self, raw: bytes) -> bool:
        """Accept an answer to a query that came on another stream; return False for all else."""
        key = correlate(raw).answers if self._awaited else None
        if key not in self._awaited:
            return False
        if not self._awaited[key].done():
            self._awaited[key].set_result(raw)
        return True

    def cancel(self, lines: Iterable[bytes]) -> None:
        if self._awaited:
            for line in lines:
                for each in elements(line):
                    answer = self._awaited.get(correlate(each).cancels or b"")
                    if answer is not None:
                        answer.cancel()

    def give_up(self, context: RequestContext, lines: Iterable[bytes]) -> None:
        """Send cancellations to the server, unless closing the connection has that meaning."""
        for raw in () if context.post.modern else lines:
            self.tasks.spawn(self._tell(context, raw))

    def _send(
        self, context: RequestContext, raw: bytes
    ) -> AbstractAsyncContextManager[HttpResponse]:
        read = context.post if context.url is None else None
        return self._upstream.ask(context.request, raw, read, context.url, own=True)

    async def _ask(self, context: RequestContext, raw: bytes, id: bytes) -> bytes | str:
        here, elsewhere = context.url is None, self._awaited[id]
        try:
            async with self._send(context, raw) as upstream:
                good = 200 <= upstream.status < 300
                if not good or (here and upstream.content_type != STREAM):
                    return await self._whole(context, upstream, id)
                if here:
                    return await self._events(context, upstream, id)
        except ConnectionLost as cause:
            return str(cause)
        except (sse.TooLong, body.TooLarge) as cause:
            return f"the server's answer is too long: {cause}"
        return await asyncio.shield(elsewhere)

    async def _whole(
        self, context: RequestContext, upstream: HttpResponse, id: bytes
    ) -> bytes | str:
        read, status = context.post, upstream.status
        raw = await self._upstream.read(upstream)
        about = id in posting.answered(raw)
        ended = status == 404 and SESSION in context.request.headers and not (read.modern or about)
        if status == 401 or ended or (status == 403 and "WWW-Authenticate" in upstream.headers):
            raise Rejected(upstream, raw.replace(id, read.ids[0]))
        if posting.refuses(raw, id):
            # A server that has not read a request cannot know its id.
            return message.replaced(raw, id=Raw(id))
        if status >= 300:
            return f"the server answered HTTP {status} {upstream.reason or ''}".rstrip()
        if about:
            return raw
        return "the server answered something else" if raw.strip() else "the server gave no answer"

    async def _events(
        self, context: RequestContext, upstream: HttpResponse, id: bytes
    ) -> bytes | str:
        try:
            async for event in self._upstream.events(upstream, AccessRecord()):
                raw = event.data or b""
                if not raw or event.event not in (None, "", "message"):
                    continue
                if id in posting.answered(raw):
                    return raw
                if (key := request_id(event)) is not None:
                    await self._upstream.decline(context, key, _NOBODY)
                else:
                    await self._on_message(context, raw)
        except ConnectionLost as broken:
            return f"the server's stream broke off: {broken}"
        return "the server ended its stream before it had answered"

    async def _tell(self, context: RequestContext, raw: bytes) -> None:
        with suppress(ConnectionLost, body.TooLarge, TimeoutError):
            async with asyncio.timeout(_TAKEN_BACK), self._send(context, raw) as upstream:
                await self._upstream.read(upstream)
