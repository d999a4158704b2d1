"""The HTTP server below the sidecar: aiohttp's, but what is no proper HTTP is answered as JSON-RPC.

Anybody may connect, and nobody is known before a head has come: a head has little time, and if
there are too many connections, those that ask nothing make room for others.

aiohttp refuses what could be read in two ways (two lengths, a length beside chunks, bare line
feeds, folded lines) but quotes it in its answer; here nothing of it is said back. `framing` refuses
what it lets through though RFC 9112 section 6.1 forbids it.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress
from ipaddress import ip_address
from time import monotonic
from typing import Any

from aiohttp import hdrs, web
from aiohttp.http import HttpVersion11

from proxy.document import message
from proxy.transports.log import Log
from proxy.transports.sidecar.request import FAILED, INVALID, RequestRefused

_HEAD = 10.0  # seconds for the whole head of a request, from its first byte or the connection on
_IDLE = 75.0  # seconds: more than reverse proxies keep a connection that they do not use
_STALLED = 30.0  # seconds in which something must come of a body that is not whole
_LEAST = 30_000  # bytes that this must be: who sends less wants to keep others out
_LINGERING = 2.0  # seconds to read on after an answer, so that the client gets to see it

_OWN_DESCRIPTORS = 40  # what a sidecar has open by itself, with some to spare
_MOST_CONNECTIONS = 4000  # or four for each request at once: each costs memory
_WARNED_AGAIN = 60.0  # seconds

Handle = Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]


class BodyStalled(Exception):
    """The rest of a request's body does not come, or too slowly."""


class SidecarServer(web.Server):
    """Makes the connections of one listener; `handle` answers their requests."""

    def __init__(self, handle: Handle, log: Log, connections: "Connections") -> None:
        super().__init__(handle, handler_cancellation=True)
        self._log = log
        self._places = connections

    def __call__(self) -> web.RequestHandler:
        """Make one for somebody who connects."""
        return Connection(self, self._log, self._places)


class Connection(web.RequestHandler):
    """One client's connection."""

    __slots__ = ("_head_timer", "_log", "_places", "peer")

    def __init__(self, server: web.Server, log: Log, connections: "Connections") -> None:
        super().__init__(
            server,
            loop=asyncio.get_running_loop(),
            access_log=None,  # type: ignore[arg-type]
            auto_decompress=False,
            keepalive_timeout=_IDLE,
            lingering_time=_LINGERING,
        )
        self._log = log
        self._places = connections
        self._head_timer: asyncio.TimerHandle | None = None
        self.peer = ""
        """The address that the client connects from."""

    @property
    def idle(self) -> bool:
        """True if it waits for a request, and all that was answered before is sent."""
        waits = self._waiter is not None and not self._waiter.done()
        transport = self.transport
        return waits and transport is not None and not transport.get_write_buffer_size()

    @property
    def half(self) -> bool:
        """True while the body of a request has not come to its end."""
        return self._current_request is not None and not self._current_request.content.is_eof()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Begin, unless there is no room for one more."""
        super().connection_made(transport)
        self.peer = (transport.get_extra_info("peername") or [""])[0]
        self._time_head()
        refused = self._places.enter(self)
        if refused is not None:
            transport.write(_unavailable(refused))  # type: ignore[attr-defined]
            self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
        """End."""
        self._places.leave(self)
        self._stop_head_timer()
        super().connection_lost(exc)

    def _time_head(self) -> None:
        if self._head_timer is None:
            self._head_timer = asyncio.get_running_loop().call_later(_HEAD, self._no_head)

    def _stop_head_timer(self) -> None:
        if self._head_timer is not None:
            self._head_timer.cancel()
            self._head_timer = None

    def _no_head(self) -> None:
        self._head_timer = None
        if self.idle:
            self.force_close()

    def data_received(self, data: bytes) -> None:
        """Take what the client sent."""
        waiting = len(self._messages)
        super().data_received(data)
        if len(self._messages) == waiting:
            if self.idle:
                self._time_head()
            return
        self._stop_head_timer()
        self._places.use(self)
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
            refused = RequestRefused(400, INVALID, "bad HTTP request")
            self._log.event("request", status=400, failure=f"bad HTTP: {type(exc).__name__}")
        else:
            refused = RequestRefused(status, FAILED, "the proxy failed")
        response = refused.response()
        response.force_close()
        return response

    def log_exception(self, *words: Any, **more: Any) -> None:
        """Say that a connection failed; what was read of it is not for a log."""
        self._log.debug("a connection ended with an error of aiohttp's own")


class Connections:
    """Keeps clients that ask nothing from having all connections, and from having all descriptors.

    At most `limit` are open, of one address at most `per_peer`: beyond that, the idle one that has
    asked nothing for longest is closed for the new one, else one whose body is not whole. None for
    `per_peer` is half of them, and no bound for addresses of loopback: all clients have one of
    these if a reverse proxy on this machine stands before the sidecar.
    """

    def __init__(self, limit: int, per_peer: int | None, log: Log) -> None:
        self._limit = limit
        self._per_peer = per_peer
        self._log = log
        self._open: dict[Connection, None] = {}  # the one that has asked last comes last
        self._peers: Counter[str] = Counter()
        self._warned = -_WARNED_AGAIN

    def enter(self, connection: Connection) -> str | None:
        """Count a new connection in; returns why there is no room for it, None if there is."""
        peer = connection.peer
        crowd, own = "", None
        if len(self._open) >= self._limit:
            crowd = f"{len(self._open)} connections are open, the most at once (--connections)"
        elif self._peers[peer] >= self._most_of(peer):
            own = peer
            crowd = (
                f"{self._peers[peer]} connections from {peer} are open, the most from one address "
                "(--peer-connections)"
            )
        if crowd and not self._make_room(crowd, own):
            return crowd
        self._open[connection] = None
        self._peers[peer] += 1
        return None

    def use(self, connection: Connection) -> None:
        """Record that a connection has brought a request."""
        if connection in self._open:
            del self._open[connection]
            self._open[connection] = None

    def leave(self, connection: Connection) -> None:
        """Count a connection out; one that is not there does not matter."""
        if connection in self._open:
            del self._open[connection]
            self._peers[connection.peer] -= 1
            if not self._peers[connection.peer]:
                del self._peers[connection.peer]

    def _most_of(self, peer: str) -> int:
        if self._per_peer is not None:
            return self._per_peer
        with suppress(ValueError):
            if ip_address(peer).is_loopback:
                return self._limit
        return max(1, self._limit // 2)

    def _make_room(self, crowd: str, peer: str | None) -> bool:
        """Close a connection of this peer, or of any, that a client can best do without."""
        if monotonic() - self._warned >= _WARNED_AGAIN:
            self._warned = monotonic()
            self._log.warning(f"{crowd}: idle ones are closed, or new ones refused")
        there = (each for each in self._open if peer in (None, each.peer))
        spare = next((each for each in there if each.idle), None)
        if spare is not None:
            self.leave(spare)
            spare.force_close()
            return True
        there = (each for each in self._open if peer in (None, each.peer))
        spare = next((each for each in there if each.half), None)
        if spare is not None and spare.transport is not None:
            self.leave(spare)
            spare.transport.abort()
        return spare is not None


def most_connections(concurrent: int) -> int:
    """Leave half of the descriptors to servers and files, whatever clients do."""
    most = max(_MOST_CONNECTIONS, 4 * concurrent)
    try:
        import resource
    except ImportError:
        return most
    descriptors = resource.getrlimit(resource.RLIMIT_NOFILE)[0]
    if descriptors == resource.RLIM_INFINITY:
        return most
    return max(1, min(most, (descriptors - _OWN_DESCRIPTORS) // 2))


def _unavailable(text: str) -> bytes:
    body = message.error(b"null", FAILED, text)
    head = (
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def framing(request: web.BaseRequest) -> RequestRefused | None:
    """Say why a request with such framing is not answered, None where it is."""
    coding = request.headers.get(hdrs.TRANSFER_ENCODING)
    if coding is not None and request.version < HttpVersion11:
        return RequestRefused(400, INVALID, "bad HTTP request")
    if coding is not None and coding.strip().lower() != "chunked":
        return RequestRefused(501, INVALID, "the only Transfer-Encoding known here is chunked")
    return None


async def go_on(request: web.BaseRequest) -> None:
    """Tell a client to send the body that it holds back (RFC 9110 section 10.1.1)."""
    expected = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue"
    if expected and request.version >= HttpVersion11 and not request.content.is_eof():
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


class BodyTimeout:
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
            content.set_exception(BodyStalled())
            return
        self._wanted = content.total_bytes + self._least
        self._timer = asyncio.get_running_loop().call_later(self._seconds, self._look)
