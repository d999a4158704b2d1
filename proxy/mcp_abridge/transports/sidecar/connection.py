"""The HTTP server below the sidecar: aiohttp's, with JSON-RPC errors for malformed HTTP.

Anyone may connect, so a head must be complete in a short time, and idle connections are closed for
new ones. aiohttp quotes an ambiguous request in its response; here nothing is quoted, and
`check_framing` refuses what aiohttp accepts although RFC 9112 section 6.1 forbids it.
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
from msgspec import Struct, field

from mcp_abridge.document import message
from mcp_abridge.system import platform
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.sidecar.refusal import FAILED, INVALID, RequestRefused
from mcp_abridge.transports.sidecar.route import Request

_HEAD = 10.0  # seconds for a request's head, from its first byte or the connection's start
_IDLE = 75.0  # seconds: more than reverse proxies keep an unused connection open
_STALLED = 30.0  # seconds in which more of an incomplete body must arrive
_LEAST = 30_000  # bytes that must arrive in that time: slower clients are taken for an attack
_LINGERING = 2.0  # seconds to continue reading after a response, so that the client can receive it

_OWN_DESCRIPTORS = 40  # descriptors that a sidecar needs for itself, with some to spare
_MOST_CONNECTIONS = 4000  # or four for each concurrent request: each costs memory
_WARNED_AGAIN = 60.0  # seconds


class BodyStalled(Exception):
    """The rest of a request's body does not arrive, or too slowly."""


def http_server(handle: Callable[[Request], Awaitable[web.StreamResponse]]) -> web.Server:
    """Return the part that connections of one listener share; `handle` answers their requests."""
    loop = asyncio.get_running_loop()
    return web.Server(
        handle,  # type: ignore[arg-type]
        request_factory=lambda message, payload, protocol, writer, task: Request(
            message, payload, protocol, writer, task, loop
        ),
        handler_cancellation=True,
    )


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
        """True if it waits for a request, and all earlier responses are sent."""
        waits = self._waiter is not None and not self._waiter.done()
        transport = self.transport
        return waits and transport is not None and not transport.get_write_buffer_size()

    @property
    def half(self) -> bool:
        """True while the body of a request is incomplete."""
        return self._current_request is not None and not self._current_request.content.is_eof()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        super().connection_made(transport)
        self.peer = (transport.get_extra_info("peername") or [""])[0]
        self._time_head()
        reason = self._places.enter(self)
        if reason is not None:
            transport.write(_unavailable(reason))  # type: ignore[attr-defined]
            self.force_close()

    def connection_lost(self, exc: BaseException | None) -> None:
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
        waiting = len(self._messages)
        super().data_received(data)
        if len(self._messages) == waiting:
            if self.idle:
                self._time_head()
            return
        self._stop_head_timer()
        self._places.use(self)
        # Bytes that follow an incomplete body are an error in that body. aiohttp's parser in C does
        # not notify the readers that wait for the rest.
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
        """Answer malformed HTTP; raises ConnectionError if a response has begun."""
        if isinstance(exc, ConnectionError) or request.writer.output_size > 0:
            raise ConnectionError
        if status == 400:
            refusal = RequestRefused(400, INVALID, "bad HTTP request", closes=True)
            self._log.event("request", status=400, failure=f"bad HTTP: {type(exc).__name__}")
        else:
            refusal = RequestRefused(status, FAILED, "the proxy failed", closes=True)
        return refusal.response()

    def log_exception(self, *words: Any, **more: Any) -> None:
        """Log that a connection failed, without the bytes that were read from it."""
        self._log.debug("a connection ended with an error of aiohttp's own")


class Connections(Struct, eq=False):
    """A limit on open connections, so that idle clients exhaust neither these nor the descriptors.

    Beyond `_limit`, or `_per_peer` from one address, the one that has been idle for longest is
    closed for the new one, else one whose request has an incomplete body. Without `_per_peer` it is
    half of `_limit`, and no limit for loopback addresses: those of a reverse proxy on this machine.
    """

    _limit: int
    _per_peer: int | None
    _log: Log
    _open: dict[Connection, None] = {}  # the most recently used is last
    _peers: Counter[str] = field(default_factory=Counter)
    _warned: float = -_WARNED_AGAIN

    def enter(self, connection: Connection) -> str | None:
        """Count a new connection; return the reason if there is no room for it, else None."""
        peer = connection.peer
        crowd, own = "", None
        if len(self._open) >= self._limit:
            crowd = f"{len(self._open)} connections are open, the most at once (limits.connections)"
        elif self._peers[peer] >= self._most_of(peer):
            own = peer
            crowd = (
                f"{self._peers[peer]} connections from {peer} are open, the most from one address "
                "(limits.peer_connections)"
            )
        if crowd and not self._make_room(crowd, own):
            return crowd
        self._open[connection] = None
        self._peers[peer] += 1
        return None

    def use(self, connection: Connection) -> None:
        if connection in self._open:
            self._open[connection] = self._open.pop(connection)

    def leave(self, connection: Connection) -> None:
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
        if monotonic() - self._warned >= _WARNED_AGAIN:
            self._warned = monotonic()
            self._log.warning(f"{crowd}: idle ones are closed, or new ones refused")
        there = [each for each in self._open if peer in (None, each.peer)]
        idle = next((each for each in there if each.idle), None)
        spare = idle or next((each for each in there if each.half), None)
        if spare is None:
            return False
        self.leave(spare)
        spare.force_close()
        return True


def most_connections(concurrent: int) -> int:
    """Return a limit on connections that leaves half of the descriptors to servers and files."""
    most = max(_MOST_CONNECTIONS, 4 * concurrent)
    descriptors = platform.descriptors()
    if descriptors is None:
        return most
    return max(1, min(most, (descriptors - _OWN_DESCRIPTORS) // 2))


def _unavailable(text: str) -> bytes:
    body = message.error(b"null", FAILED, text)
    head = (
        "HTTP/1.1 503 Service Unavailable\r\nRetry-After: 1\r\nConnection: close\r\n"
        f"Content-Type: application/json\r\nContent-Length: {len(body)}\r\n\r\n"
    )
    return head.encode() + body


def check_framing(request: web.BaseRequest) -> None:
    """Check that the end of a request's body is unambiguous; raises RequestRefused."""
    coding = request.headers.get(hdrs.TRANSFER_ENCODING)
    if coding is not None and request.version < HttpVersion11:
        raise RequestRefused(400, INVALID, "bad HTTP request", closes=True)
    if coding is not None and coding.strip().lower() != "chunked":
        reason = "the only Transfer-Encoding known here is chunked"
        raise RequestRefused(501, INVALID, reason, closes=True)


async def send_100_continue(request: web.BaseRequest) -> None:
    """Write 100 Continue if the client waits for it before it sends the body (RFC 9110 10.1.1)."""
    expected = request.headers.get(hdrs.EXPECT, "").lower() == "100-continue"
    if expected and request.version >= HttpVersion11 and not request.content.is_eof():
        await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
        request.writer.output_size = 0


def waits_for_body(request: web.BaseRequest) -> bool:
    """Return True if more of a request's body is to come."""
    return not request.content.is_eof() and request.content.exception() is None


async def end_slow_body(request: web.BaseRequest) -> None:
    """Wait for a request's body, and have reading it raise BodyStalled if it is too slow.

    In every `_STALLED` seconds at least `_LEAST` more bytes must arrive, or the end of the body.
    """
    content, threshold = request.content, 0
    while waits_for_body(request):
        if content.total_bytes < threshold:
            content.set_exception(BodyStalled())
        threshold = content.total_bytes + _LEAST
        await asyncio.sleep(_STALLED)
