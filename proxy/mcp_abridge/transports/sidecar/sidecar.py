"""The sidecar: listen, route each request, log its outcome, and shut down in order.

Every request writes one line to the log, without a header's value, a token or a query.
"""

import asyncio
import os
import socket
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from functools import partial
from time import monotonic

from aiohttp import hdrs, web
from aiohttp.http import HttpProcessingError

from mcp_abridge.document.message import LISTEN
from mcp_abridge.errors import AbridgeError
from mcp_abridge.ruleset.loading.config_model import TOKEN, LimitsSpec, ListenAddress
from mcp_abridge.system import allocator, platform
from mcp_abridge.transports.aio import Tasks, threaded
from mcp_abridge.transports.client.endpoint import os_error_text
from mcp_abridge.transports.http.headers import SESSION
from mcp_abridge.transports.http.negotiation import STREAM
from mcp_abridge.transports.log import Level, Log, LogValue
from mcp_abridge.transports.sidecar.access import opens_metrics
from mcp_abridge.transports.sidecar.connection import (
    BodyStalled,
    Connection,
    Connections,
    check_framing,
    end_slow_body,
    http_server,
    most_connections,
    send_100_continue,
    waits_for_body,
)
from mcp_abridge.transports.sidecar.metrics import Metrics
from mcp_abridge.transports.sidecar.refusal import FAILED, INVALID, RequestRefused, unavailable
from mcp_abridge.transports.sidecar.route import Handler, Mount, Mounts, Request, find, ranked

_BACKLOG = 1024
# Connections accepted at once: if there is no descriptor for one, asyncio tries all the others,
# logs each failure, and retries each one separately.
_TAKEN = 1
_TRIM = 5.0  # seconds from a use until free memory is given back
_LAST = 1.0  # seconds for the last bytes of complete answers
_METHODS = "GET, POST, DELETE"
_ENDED = "the proxy ended"
_GONE = 499  # nginx logs this status for a client that did not wait


class Sidecar:
    """Serve mounted routes, each on its own listener."""

    def __init__(
        self, mounts: Sequence[Mount], limits: LimitsSpec, log: Log, metrics: Metrics
    ) -> None:
        self._limits = limits
        self._log = log
        self._metrics = metrics
        self._mounts: dict[str, Mounts] = {mount.route.listen: () for mount in mounts}
        self._distribute(mounts)
        self._listening: dict[str, asyncio.Server] = {}
        self._servers: list[web.Server] = []
        most = limits.connections or most_connections(limits.concurrent)
        self._connections = Connections(most, limits.peer_connections, log)
        metrics.sessions.set_function(lambda: sum(each.counts()[0] for each in self._handlers))
        metrics.children.set_function(lambda: sum(each.counts()[1] for each in self._handlers))
        self._open: dict[asyncio.Task[object], Request] = {}
        self._streams: set[asyncio.Task[object]] = set()
        self._asked_to_end = asyncio.Event()
        self._draining = False
        self._use = asyncio.Event()
        self._tasks = Tasks()
        self._unready: dict[str, str] = {}
        self._handlers: list[Handler] = []  # those that are open
        self._leaving: list[Handler] = []  # those of them that no mount has any more
        self._own = {"/healthz": self._alive, "/readyz": self._ready, "/metrics": self._figures}

    @property
    def mounts(self) -> tuple[Mount, ...]:
        return tuple(mount for mounts in self._mounts.values() for mount in mounts)

    def address(self, listen: str) -> str:
        """Return the actual address of a listener, whose port is known by now."""
        host, port, *_ = self._listening[listen].sockets[0].getsockname()
        return f"[{host}]:{port}" if ":" in host else f"{host}:{port}"

    async def start(self) -> None:
        """Open the routes and listen; raises AbridgeError if that is not possible."""
        await self._open_handlers()
        self._tasks.spawn(self._trim_after_use())
        loop = asyncio.get_running_loop()
        for listen in self._mounts:
            server = http_server(partial(self._handle, listen))
            self._servers.append(server)
            connection = partial(Connection, server, self._log, self._connections)
            at = ListenAddress(listen)
            try:
                listening = await loop.create_server(connection, at.host, at.port, backlog=_TAKEN)
            except OSError as error:
                reason = f"cannot listen on {listen}: {os_error_text(error)}; --listen says where"
                raise AbridgeError(reason) from None
            self._listening[listen] = listening
            for each in listening.sockets:
                with socket.fromfd(each.fileno(), each.family, each.type) as same:
                    same.listen(_BACKLOG)

    async def _open_handlers(self) -> None:
        for mount in self.mounts:
            if mount.handler not in self._handlers:
                await mount.handler.open()
                self._handlers.append(mount.handler)

    async def _trim_after_use(self) -> None:
        """Give memory back to the system after each use: what large answers took would stay."""
        while True:
            await self._use.wait()
            await asyncio.sleep(_TRIM)
            self._use.clear()
            with suppress(MemoryError):  # tried again after the next use
                await threaded(allocator.trim)

    def _distribute(self, mounts: Sequence[Mount]) -> None:
        for listen in self._mounts:
            self._mounts[listen] = ranked(each for each in mounts if each.route.listen == listen)

    async def replace(self, mounts: Sequence[Mount]) -> None:
        """Serve these mounts from now on, at listeners that there are; requests go on.

        A handler that has no mount any more is closed after the time to drain.
        """
        self._distribute(mounts)
        await self._open_handlers()
        mounted = [each for mount in self.mounts for each in (mount.handler, *mount.earlier)]
        for handler in self._handlers:
            if handler not in (*mounted, *self._leaving):
                self._leaving.append(handler)
                self._tasks.spawn(self._retire(handler))

    async def _retire(self, handler: Handler) -> None:
        await asyncio.sleep(self._limits.drain_seconds)
        await handler.close()
        self._handlers.remove(handler)
        self._leaving.remove(handler)

    def heed_signals(self, on_hangup: Callable[[], None]) -> None:
        """Begin the shutdown on SIGTERM and SIGINT; exit at once on a second signal.

        SIGHUP calls `on_hangup`, as daemons have it, but if there is a terminal, it means that
        this was closed, and ends it too. If it was ignored, it stays so: a process that ignores it
        is to outlive its terminal.
        """

        def end(number: int) -> None:
            if self._asked_to_end.is_set():
                os._exit(128 + number)
            self._asked_to_end.set()

        for number in platform.END_SIGNALS:
            if number != platform.HANGUP:
                platform.heed(number, end, number)
            elif not platform.ignores(number):
                platform.heed(number, *((end, number) if platform.has_terminal() else (on_hangup,)))

    async def until_signal(self) -> None:
        await self._asked_to_end.wait()
        self._log.info(f"ending; open requests: {len(self._open)}")

    async def close(self) -> None:
        self._draining = True
        self._tasks.cancel()
        for listening in self._listening.values():
            listening.close()
        deadline = monotonic() + self._limits.drain_seconds
        self._end(task for task, request in self._open.items() if _endless(request))
        await self._drained(deadline)
        self._end(self._open)
        await self._drained(monotonic() + _LAST)
        for server in self._servers:
            server.pre_shutdown()
        seconds = max(_LAST, deadline - monotonic())
        await asyncio.gather(*(server.shutdown(seconds) for server in self._servers))
        closing = [handler.close() for handler in self._handlers]
        await asyncio.gather(*closing, return_exceptions=True)

    def _end(self, tasks: Iterable[asyncio.Task[object]]) -> None:
        for task in tuple(tasks):
            self._open[task].record.failure = _ENDED
            task.cancel()

    async def _drained(self, deadline: float) -> None:
        while self._open and (seconds := deadline - monotonic()) > 0:
            await asyncio.wait(self._open, timeout=seconds)

    async def _handle(self, listen: str, request: Request) -> web.StreamResponse:
        # Not that of `rel_url`: a target with a host of its own (RFC 9112, 3.2.2) is not served.
        path, mounts = request.raw_path.partition("?")[0], self._mounts[listen]
        own = self._own.get(path)
        if own is not None:
            self._log.event("request", "debug", http=request.method, route=request.path)
            if request.method in ("GET", "HEAD"):
                return await own(mounts, request)
            return web.Response(status=405, headers={hdrs.ALLOW: "GET, HEAD"})
        self._use.set()
        record, started, status = request.record, monotonic(), _GONE
        match = find(mounts, path)
        try:
            try:
                response = await self._answered(mounts, match, request)
            except RequestRefused as refused:
                record.answered_by = "proxy"
                record.failure = record.failure or str(refused)
                response = refused.response(record.id)
            status = response.status
            if self._draining:
                response.force_close()
            if not record.bytes_sent and isinstance(response, web.Response):
                record.bytes_sent = response.content_length or 0
            return response
        except (ConnectionError, asyncio.CancelledError):
            ended = request.writer.output_size and record.failure in ("", _ENDED)
            if record.complete or (ended and _endless(request)):
                status = 200
            else:
                record.failure = record.failure or "the client went away"
            raise
        finally:
            self._say(match[0].route.path if match else "", request, status, started)

    async def _answered(
        self,
        mounts: Mounts,
        match: tuple[Mount, str | None] | None,
        request: Request,
    ) -> web.StreamResponse:
        check_framing(request)
        if match is None:
            reason = f"nothing is served at this path{_paths(mounts, request)}"
            raise RequestRefused(404, INVALID, reason)
        mount, token = match
        request.record.token = mount.route.access.admission(request.headers, token)
        if len(request.headers.getall(SESSION, ())) > 1 and not mount.route.passes:
            # The server might take another one than the one whose owner is checked.
            raise RequestRefused(400, INVALID, f"the request has several {SESSION} headers")
        if request.method != hdrs.METH_POST and request.body_exists and not mount.route.passes:
            # A server that does not expect the body would take it for the next request.
            reason = f"a {request.method} request has no body here; its connection is closed"
            raise RequestRefused(400, INVALID, reason, closes=True)
        if request.method == hdrs.METH_TRACE:
            # TRACE makes the server repeat the request, with the headers that the proxy adds.
            raise RequestRefused(405, INVALID, "Method Not Allowed", {hdrs.ALLOW: _METHODS})
        # Listening streams stay open: they must not take the places of requests.
        listening = len(self._streams)
        there = listening if _listens(request) else len(self._open) - listening
        if there >= self._limits.concurrent and (_listens(request) or not self._end_body(request)):
            what = "streams" if _listens(request) else "requests"
            reason = f"{there} {what} are open, the most this proxy takes at once"
            raise unavailable(reason, 1)
        return await self._within(mount, request)

    def _end_body(self, newcomer: Request) -> bool:
        """End the oldest request whose body is incomplete, of the token that has most of these.

        Returns False if that would have no more of them than the newcomer's.
        """
        bodies = [each for each in self._open.values() if waits_for_body(each)]
        numbers = Counter(each.record.token for each in bodies)
        oldest = max(bodies, key=lambda each: numbers[each.record.token], default=newcomer)
        token = oldest.record.token
        if numbers[token] <= numbers[newcomer.record.token] + 1:
            return False
        oldest.content.set_exception(BodyStalled())
        return True

    async def _within(self, mount: Mount, request: Request) -> web.StreamResponse:
        task, record = asyncio.current_task(), request.record
        assert task is not None
        self._open[task] = request
        self._metrics.requests.inc()
        if _listens(request):
            self._streams.add(task)
        timed = waits_for_body(request) and not mount.route.passes
        patience = self._tasks.spawn(end_slow_body(request)) if timed else None
        try:
            if (request.content_length or 0) <= self._limits.body:
                await send_100_continue(request)
            return await mount.handler_of(request).handle(request)
        except asyncio.CancelledError:
            if record.failure != _ENDED:
                raise
            task.uncancel()
            if request.writer.output_size:
                if _endless(request):
                    await request.writer.write_eof()
                raise ConnectionResetError from None
            raise unavailable("the proxy is ending", 1) from None
        except (web.RequestPayloadError, HttpProcessingError):
            raise RequestRefused(400, INVALID, "bad HTTP request", closes=True) from None
        except BodyStalled:
            reason = "the rest of the body did not come"
            raise RequestRefused(408, INVALID, reason, closes=True) from None
        except (RequestRefused, ConnectionError):
            raise
        except Exception as error:
            self._log.warning(f"{mount.route.path}: {type(error).__name__}: {error}")
            record.failure = type(error).__name__
            if request.writer.output_size:
                raise ConnectionResetError from None
            raise RequestRefused(500, FAILED, "the proxy failed; its log says why") from error
        finally:
            if patience is not None:
                patience.cancel()
            del self._open[task]
            self._streams.discard(task)
            self._metrics.requests.dec()

    def _say(self, route: str, request: Request, status: int, started: float) -> None:
        record, seconds = request.record, round(monotonic() - started, 4)
        self._metrics.count_request(record, status, seconds, route)
        id = b"" if record.id == b"null" else record.id
        fields: dict[str, LogValue] = {
            "route": route,
            "status": status,
            "seconds": seconds,
            "tool": record.tool,
            "token": record.token,
            "client": record.client,
            "session": record.session,
            "request_id": id.decode("utf-8", "replace").strip('"'),
            "trace_id": record.trace_id,
            "received": record.bytes_received,
            "sent": record.bytes_sent,
            "answered_by": record.answered_by,
            "failure": record.failure,
        }
        level: Level = "warning" if status >= 500 else "info"
        who: dict[str, LogValue] = {"http": request.method, "peer": request.remote}
        self._log.event("request", level, **who, method=record.method, **fields)
        if record.method == "tools/call":
            self._log.event("call", level, **fields)

    async def _alive(self, mounts: Mounts, request: web.BaseRequest) -> web.StreamResponse:
        return web.json_response({"status": "alive"})

    def unready(self) -> list[str]:
        """Return the paths of the routes that cannot be served now; log each reason once."""
        reasons = {mount.route.path: mount.handler.unready for mount in self.mounts}
        unready = {path: reason for path, reason in reasons.items() if reason is not None}
        if unready != self._unready:
            self._unready = unready
            for path, reason in unready.items():
                self._log.warning(f"{path} is not ready: {reason}")
        return sorted(unready)

    async def _ready(self, mounts: Mounts, request: web.BaseRequest) -> web.StreamResponse:
        unready = self.unready()
        if not unready and not self._draining:
            return web.json_response({"status": "ready"})
        response = web.json_response(
            {"status": "ending" if self._draining else "not ready", "routes": unready},
            status=503,
        )
        if self._draining:
            response.force_close()
        return response

    async def _figures(self, mounts: Mounts, request: web.BaseRequest) -> web.StreamResponse:
        if not opens_metrics(request.headers, [mount.route.access for mount in mounts]):
            return RequestRefused(403, INVALID, "not for this Host").response()
        # Writing a thousand series takes a while.
        raw, media_type = await threaded(self._metrics.exposition)
        return web.Response(body=raw, headers={hdrs.CONTENT_TYPE: media_type})


def _paths(mounts: Mounts, request: web.BaseRequest) -> str:
    """Return the end of a message on an unknown path: those that the client may use anyway."""
    routes = [mount.route for mount in mounts if TOKEN not in mount.route.path]
    usable = [each.path for each in routes if each.access.admits(request.headers)]
    return f", but at {', '.join(usable)}" if usable else ""


def _listens(request: web.BaseRequest) -> bool:
    return request.method == "GET" and STREAM in request.headers.get(hdrs.ACCEPT, "")


def _endless(request: Request) -> bool:
    """Return True for a stream that has no end of its own."""
    return _listens(request) or request.record.method == LISTEN
