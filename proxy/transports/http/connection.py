"""The HTTP server below the sidecar: aiohttp's, but what is no proper HTTP is answered as JSON-RPC.

aiohttp refuses what could be read in two ways (two lengths, a length beside chunks, bare line
feeds, folded lines) but quotes it in its answer; here nothing of it is said back. `framing` refuses
what it lets through though RFC 9112 section 6.1 forbids it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

from aiohttp import hdrs, web
from aiohttp.http import HttpVersion11

from proxy.transports.http.post import FAILED, INVALID, Refused
from proxy.transports.log import Log

_IDLE = 75.0  # seconds: more than reverse proxies keep a connection that they do not use
_STALLED = 30.0  # seconds in which something must come of a body that is not whole
_LEAST = 30_000  # bytes that this must be: who sends less wants to keep others out
_LINGERING = 2.0  # seconds to read on after an answer, so that the client gets to see it

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class Stalled(Exception):
    """The rest of a request's body does not come, or too slowly."""


class Server(web.Server):
    """Makes the connections of one listener; `handle` answers their requests."""

    def __init__(self, handle: Handle, log: Log) -> None:
        super().__init__(handle, handler_cancellation=True)
        self._log = log

    def __call__(self) -> web.RequestHandler:
        """Make one for somebody who connects."""
        return Connection(self, self._log)


class Connection(web.RequestHandler):
    """One client's connection."""

    __slots__ = ("_log",)

    def __init__(self, server: web.Server, log: Log) -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]
            auto_decompress=False,
            keepalive_timeout=_IDLE,
            lingering_time=_LINGERING,
        )
        self._log = log

    def data_received(self, data: bytes) -> None:
        """Take what the client sent."""
        waiting = len(self._messages)
        super().data_received(data)
        if len(self._messages) == waiting:
            return
        # Whatever follows a body that is not whole is an error in that body. aiohttp's parser in C
        # does not tell those who wait for the rest.
        before = [payload for _, payload in self._messages][:-1]
        if self._current_request is not None:
            before.append(self._current_request.content)
        for payload in before:
            if not payload.is_eof():
                payload.set_exception(web.RequestPayloadError())

    def handle_error(
        self,
        request: web.BaseRequest,
        status: int = 500,
        exc: BaseException | None = None,
        message: str | None = None,
    ) -> web.StreamResponse:
        """Answer what is no proper HTTP; raises ConnectionError where an answer has begun."""
        if isinstance(exc, ConnectionError) or request.writer.output_size > 0:
            raise ConnectionError
        if status == 400:
            refused = Refused(400, INVALID, "bad HTTP request")
            self._log.event("request", status=400, failure=f"bad HTTP: {type(exc).__name__}")
        else:
            refused = Refused(status, FAILED, "the proxy failed")
        response = refused.response()
        response.force_close()
        return response

    def log_exception(self, *words: Any, **more: Any) -> None:
        """Say that a connection failed; what was read of it is not for a log."""
        self._log.debug("a connection ended with an error of aiohttp's own")


def framing(request: web.BaseRequest) -> Refused | None:
    """Say why a request with such framing is not answered, None where it is."""
    coding = request.headers.get(hdrs.TRANSFER_ENCODING)
    if coding is not None and request.version < HttpVersion11:
        return Refused(400, INVALID, "bad HTTP request")
    if coding is not None and coding.strip().lower() != "chunked":
        return Refused(501, INVALID, "the only Transfer-Encoding known here is chunked")
    return None


async def go_on(request: web.BaseRequest) -> None:
    """Tell a client to send the body that it holds back (RFC 9110 section 10.1.1)."""
    expected = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue"
    if expected and request.version >= HttpVersion11 and not request.content.is_eof():
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


class Patience:
    """Ends the wait for a request's body once too little of it comes: reading raises Stalled.

    In so many seconds there must be `least` bytes more, or the end.
    """

    def __init__(
        self, request: web.BaseRequest, seconds: float = _STALLED, least: int = _LEAST
    ) -> None:
        self._content = request.content
        self._seconds = seconds
        self._least = least
        self._wanted = 0
        self._timer: asyncio.TimerHandle | None = None
        self._look()

    def end(self) -> None:
        """Look no more."""
        if self._timer is not None:
            self._timer.cancel()

    def _look(self) -> None:
        content = self._content
        if content.is_eof() or content.exception() is not None:
            return
        if content.total_bytes < self._wanted:
            content.set_exception(Stalled())
            return
        self._wanted = content.total_bytes + self._least
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)
