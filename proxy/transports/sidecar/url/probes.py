"""The proxy's own questions to an HTTP server, each a POST of its own, before a call that is held.

They are asked in the name of the client whose call it is. Invariants: nothing of a question goes to
a client, its id least of all; whatever the server does, it is over after its time; and whoever
takes the call back, or goes away, ends it at once.
"""

import asyncio
from collections.abc import Awaitable, Callable, Coroutine, Iterable
from contextlib import suppress
from typing import Any

import aiohttp
from aiohttp import web
from msgspec import Raw
from yarl import URL

from proxy.document import message
from proxy.errors import AbridgeError
from proxy.session import probe
from proxy.session.outputs import Probe
from proxy.transports.client import request as posting
from proxy.transports.correlation import address, elements
from proxy.transports.driver import Routed
from proxy.transports.http import body, sse
from proxy.transports.sidecar.request import SESSION, PostedBody
from proxy.transports.sidecar.route import AccessRecord
from proxy.transports.sidecar.session_registry import RequestContext
from proxy.transports.sidecar.url.upstream import Lost, Upstream, request_id

_TAKEN_BACK = 5.0  # seconds for a server to be told that nobody waits for an answer
_STREAM = "text/event-stream"
_NOBODY = "nobody can be asked anything before the call that this is about"

Hear = Callable[[RequestContext, bytes], Awaitable[None]]


class TakenBack(AbridgeError):
    """The client has cancelled the call that was held."""


class Rejected(AbridgeError):
    """The server's answer is about the client: it wants other credentials, or ended the session.

    The call would be answered likewise. `upstream` is the answer's head, `raw` its body.
    """

    def __init__(self, upstream: aiohttp.ClientResponse, raw: bytes) -> None:
        super().__init__(f"the server answered HTTP {upstream.status}")
        self.upstream = upstream
        self.raw = raw


class Probing:
    """The questions to one server.

    `hear` takes what the server says to a client while it is asked, and is no answer.
    """

    def __init__(self, upstream: Upstream, hear: Hear) -> None:
        self._upstream = upstream
        self._hear = hear
        self._awaited: dict[bytes, asyncio.Future[bytes]] = {}
        self._tasks: set[asyncio.Task[None]] = set()

    async def close(self) -> None:
        """Let everything go."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)

    async def ask(
        self,
        request: web.BaseRequest,
        exchange: RequestContext,
        asked: Probe,
        url: URL | None = None,
    ) -> Routed:
        """Ask, and return what is then to be said to whom; raises TakenBack, Rejected.

        With a `url`, that of HTTP+SSE, the answer comes on another stream.
        """
        id = asked.token.removeprefix(exchange.mark)
        answer = self._awaited[id] = asyncio.get_running_loop().create_future()
        asking = asyncio.create_task(self._ask(request, exchange, asked.raw, answer, id, url))
        try:
            await asyncio.wait(
                {answer, asking}, timeout=asked.seconds, return_when=asyncio.FIRST_COMPLETED
            )
        except asyncio.CancelledError:
            exchange.drop()
            self.give_up(request, exchange.post, [probe.cancellation(id)], url)
            raise
        finally:
            del self._awaited[id]
            # In the stateless era this is how the server learns of it.
            if not asking.cancel() and not asking.cancelled():
                asking.exception()  # not asked for where the answer came otherwise
        if answer.cancelled():
            raise TakenBack("Request cancelled")
        if answer.done():
            return await exchange.driver.from_server(answer.result(), exchange.mark)
        if asking.done():
            return await exchange.driver.unanswered(asked.token, asking.result())
        self.give_up(request, exchange.post, [probe.cancellation(id)], url)
        sent = await exchange.driver.unanswered(asked.token)
        return sent._replace(to_server=[raw for raw in sent.to_server if not _cancels(raw, id)])

    def answered(self, raw: bytes) -> bool:
        """Take an answer to a question that has come on another stream; False for all else."""
        key = address(raw).answers if self._awaited else None
        if key not in self._awaited:
            return False
        _settle(self._awaited[key], raw)
        return True

    def taken_back(self, lines: Iterable[bytes]) -> None:
        """End the questions that a client's lines for the server take back."""
        if self._awaited:
            for line in lines:
                for each in elements(line):
                    answer = self._awaited.get(address(each).cancels or b"")
                    if answer is not None:
                        answer.cancel()

    def give_up(
        self,
        request: web.BaseRequest,
        read: PostedBody,
        lines: Iterable[bytes],
        url: URL | None = None,
    ) -> None:
        """Tell the server that nobody waits for answers, if the end of a connection does not."""
        for raw in () if read.modern else lines:
            self.spawn(self._tell(request, read, raw, url))

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        """Have something done that nobody waits for."""
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def _ask(
        self,
        request: web.BaseRequest,
        exchange: RequestContext,
        raw: bytes,
        answer: "asyncio.Future[bytes]",
        id: bytes,
        url: URL | None,
    ) -> str:
        """Ask; where no answer comes of it, return why. Raises Rejected."""
        read = exchange.post if url is None else None
        try:
            async with self._upstream.ask(request, raw, read, url, own=True) as upstream:
                good = 200 <= upstream.status < 300
                if not good or (url is None and upstream.content_type.lower() != _STREAM):
                    return await self._whole(request, exchange.post, upstream, answer, id)
                if url is None:
                    await self._events(request, exchange, upstream, answer, id)
                    return "the server ended its stream before it had answered"
        except Lost as cause:
            return str(cause)
        except (sse.TooLong, body.TooLarge) as cause:
            return f"the server's answer is too long: {cause}"
        await asyncio.wait({answer})
        return ""

    async def _whole(
        self,
        request: web.BaseRequest,
        read: PostedBody,
        upstream: aiohttp.ClientResponse,
        answer: "asyncio.Future[bytes]",
        id: bytes,
    ) -> str:
        status = upstream.status
        raw = await self._upstream.whole(upstream)
        about = id in posting.answered(raw)
        ended = status == 404 and SESSION in request.headers and not (read.modern or about)
        if status == 401 or ended or (status == 403 and "WWW-Authenticate" in upstream.headers):
            raise Rejected(upstream, raw.replace(id, read.ids[0]))
        if posting.refuses(raw, id):
            # Servers that have not read a request cannot know its id.
            raw = message.replaced(raw, id=Raw(id))
        elif status >= 300:
            return f"the server answered HTTP {status} {upstream.reason or ''}".rstrip()
        if about or id in posting.answered(raw):
            _settle(answer, raw)
        return "the server answered something else" if raw.strip() else "the server gave no answer"

    async def _events(
        self,
        request: web.BaseRequest,
        exchange: RequestContext,
        upstream: aiohttp.ClientResponse,
        answer: "asyncio.Future[bytes]",
        id: bytes,
    ) -> None:
        try:
            async for event in self._upstream.events(upstream, AccessRecord()):
                raw = event.data or b""
                if not raw or event.event not in (None, "", "message"):
                    continue
                if id in posting.answered(raw):
                    _settle(answer, raw)
                    return
                if (key := request_id(event)) is not None:
                    await self._upstream.decline(request, exchange.post, key, _NOBODY)
                else:
                    await self._hear(exchange, raw)
        except Lost as broken:
            raise Lost(f"the server's stream broke off: {broken}") from None

    async def _tell(
        self, request: web.BaseRequest, read: PostedBody, raw: bytes, url: URL | None
    ) -> None:
        with suppress(Lost, body.TooLarge, TimeoutError):
            async with (
                asyncio.timeout(_TAKEN_BACK),
                self._upstream.ask(request, raw, None if url else read, url, own=True) as upstream,
            ):
                await self._upstream.whole(upstream)


def _settle(answer: "asyncio.Future[bytes]", raw: bytes) -> None:
    if not answer.done():
        answer.set_result(raw)


def _cancels(raw: bytes, id: bytes) -> bool:
    return address(raw).cancels == id
