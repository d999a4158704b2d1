"""A route whose upstream is a command: a stdio server as a Streamable HTTP service.

In the handshake era each session has a server of its own, and lasts until it is ended, until its
server ends, or until it has been idle for too long. Stateless requests share a few servers. No
server outlives the proxy.
"""

import asyncio
import re
import secrets
import shutil
from collections.abc import Coroutine
from typing import Any

from aiohttp import web

from proxy.session.session import Session
from proxy.transports.driver import Driver
from proxy.transports.http import negotiation as accept
from proxy.transports.http import sse
from proxy.transports.http.headers import MODERN
from proxy.transports.sidecar import request as post
from proxy.transports.sidecar.command.child import ORDERLY, ChildServer
from proxy.transports.sidecar.command.child_session import ChildSession
from proxy.transports.sidecar.command.event_store import EventStore
from proxy.transports.sidecar.command.stateless import Stateless
from proxy.transports.sidecar.request import (
    FAILED,
    INVALID,
    NOT_JSON,
    SESSION,
    VERSION,
    PostedBody,
    RequestRefused,
)
from proxy.transports.sidecar.route import AccessRecord, Route, Rules, Services
from proxy.transports.stdio.child import Guardian

_HANDSHAKES = frozenset(("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"))
_SSE = "/sse"
_SESSION_ID = "session_id"  # in the query of the endpoint of 2024-11-05
_GIVEN_UP = 4  # times the idle time, after which a session ends even if a call is pending
_RETRY_AFTER = "5"
_ID = re.compile(rb'"|-?\d+\Z')


class CommandRoute:
    """Answer the requests of a route with child processes."""

    def __init__(self, route: Route, rules: Rules, shared: Services) -> None:
        assert not isinstance(route.upstream, str)
        self._command = list(route.upstream)
        self._route = route
        self._rules = rules
        self._shared = shared
        self._sessions: dict[str, ChildSession] = {}
        self._ending: set[asyncio.Task[None]] = set()
        self._starting = 0
        self._history = EventStore()
        self._stateless = Stateless(route, rules, shared, self._child)
        self._guardian: Guardian | None = None
        self._unready: str | None = None
        self._reaping: asyncio.Task[None] | None = None

    async def open(self) -> None:
        """Start the guardian and check that the command exists."""
        try:
            self._guardian = Guardian()
        except OSError as error:
            self._shared.log.warning(f"nothing ends the servers should this be killed: {error}")
        if shutil.which(self._command[0]) is None:
            self._unready = f"the command {self._command[0]!r} is not found"
        self._reaping = asyncio.create_task(self._reap())

    def unready(self) -> str | None:
        """Return the reason why no server can be started now, else None."""
        return self._unready

    def population(self) -> tuple[int, int]:
        """Return the number of sessions, each with a server, and that of running servers."""
        return len(self._sessions), len(self._sessions) + self._stateless.pool.running

    async def close(self) -> None:
        """End all servers."""
        if self._reaping is not None:
            self._reaping.cancel()
        for hosted in list(self._sessions.values()):
            self._end(hosted, "the proxy is shutting down")
        reading = [hosted.reading for hosted in self._sessions.values()]
        await asyncio.gather(self._stateless.close(), *self._ending, *reading)
        if self._guardian is not None:
            self._guardian.dismiss()
            self._guardian = None

    async def handle(self, request: web.BaseRequest, asked: AccessRecord) -> web.StreamResponse:
        """Answer one request."""
        try:
            if request.method == "POST":
                return await self._post(request, asked)
            modern = (request.headers.get(VERSION) or "") >= MODERN
            if modern or request.method not in ("GET", "DELETE"):
                allowed = "POST" if modern else "GET, POST, DELETE"
                raise RequestRefused(405, INVALID, "Method Not Allowed", {"Allow": allowed})
            if request.method == "GET":
                return await self._get(request, asked)
            hosted = self._known(request, asked)
            self._end(hosted, "the client has ended the session")
            asked.answered_by = "proxy"
            return web.Response(status=204)
        except RequestRefused as refused:
            asked.answered_by, asked.failure = "proxy", str(refused)
            return refused.response()

    async def _post(self, request: web.BaseRequest, asked: AccessRecord) -> web.StreamResponse:
        read = await post.read(request, self._route, self._shared.limits, asked)
        if not read.messages or not all(each.speaks for each in read.messages):
            raise RequestRefused(400, INVALID, "the body is no JSON-RPC message")
        if not _decodes(read.raw):
            # Some servers exit on invalid UTF-8, and end the calls of others.
            raise RequestRefused(self._route.malformed_status, NOT_JSON, "Parse error")
        if not all(map(_ID.match, read.ids)):
            # The server may spell other ids differently, so its answers could not be matched.
            raise RequestRefused(400, INVALID, "the id of a request must be a text or an integer")
        single = request.query.get(_SESSION_ID)
        if single is not None:
            return await self._hosted(single, asked, single=True).post(request, read, asked)
        if read.modern:
            return await self._stateless.post(request, read, asked)
        if read.initializes and read.session is None:
            return await self._begin(request, read, asked)
        hosted = self._known(request, asked)
        self._check(read.version, hosted)
        return await hosted.post(request, read, asked)

    async def _begin(
        self, request: web.BaseRequest, read: PostedBody, asked: AccessRecord
    ) -> web.StreamResponse:
        try:
            hosted = await self._host(single=False)
        except RequestRefused as refused:
            asked.answered_by, asked.failure = "proxy", str(refused)
            return refused.response(*read.ids)
        asked.session = post.digest(hosted.id)
        return await hosted.post(request, read, asked)

    async def _get(self, request: web.BaseRequest, asked: AccessRecord) -> web.StreamResponse:
        accepts = ", ".join(request.headers.getall("Accept", [])) or None
        single = request.path.endswith(_SSE) and SESSION not in request.headers
        if accept.wanted(accepts) in ("json", "nothing"):
            raise RequestRefused(406, NOT_JSON, f"Acceptable media types: {accept.STREAM}")
        if single:
            return await self._single(request, asked)
        hosted = self._known(request, asked)
        version = request.headers.get(VERSION)
        self._check(version, hosted)
        return await hosted.get(request, asked, version, request.headers.get("Last-Event-ID"))

    async def _single(self, request: web.BaseRequest, asked: AccessRecord) -> web.StreamResponse:
        """Serve a client of 2024-11-05: its one stream is its session."""
        hosted = await self._host(single=True)
        # Relative to the URL that the client has used, whatever a reverse proxy made of it.
        endpoint = f"?{_SESSION_ID}={hosted.id}".encode()
        raw = sse.written(endpoint, event="endpoint")
        first = sse.Event(raw, endpoint, None, "endpoint")
        try:
            return await hosted.get(request, asked, None, first=[first])
        finally:
            self._end(hosted, "the client closed its stream")

    def _known(self, request: web.BaseRequest, asked: AccessRecord) -> ChildSession:
        id = request.headers.get(SESSION)
        if id is None:
            raise RequestRefused(400, INVALID, f"the header {SESSION} is missing")
        return self._hosted(id, asked, single=False)

    def _hosted(self, id: str, asked: AccessRecord, *, single: bool) -> ChildSession:
        asked.session = post.digest(id)
        hosted = self._sessions.get(id)
        if hosted is None or hosted.over or hosted.single is not single:
            raise RequestRefused(404, INVALID, "there is no such session, or none any more")
        return hosted

    def _check(self, version: str | None, hosted: ChildSession) -> None:
        # MCP 2025-11-25: Transports, Protocol Version Header.
        if version not in (None, hosted.version) and version not in _HANDSHAKES:
            raise RequestRefused(400, INVALID, f"the value of {VERSION} is no version served here")

    async def _host(self, *, single: bool) -> ChildSession:
        """Begin a session; raises RequestRefused."""
        limits, log = self._shared.limits, self._shared.log
        self._make_room()
        self._starting += 1
        try:
            child = await self._child()
        except OSError as error:
            raise RequestRefused(502, FAILED, f"the server cannot be started: {error}") from None
        finally:
            self._starting -= 1
        id = secrets.token_urlsafe(24)
        scope, shared = post.digest(id), self._shared
        session = Session(
            self._rules,
            shared.meters.of,
            log.warning,
            scope=scope,
            deadline=self._route.deadline,
        )
        driver = Driver(session, shared.store, shared.workers, log, log.noise)
        hosted = ChildSession(id, child, driver, self._history, log, limits, single=single)
        self._sessions[id] = hosted
        hosted.reading.add_done_callback(lambda _: self._sessions.pop(id, None))
        return hosted

    async def _child(self) -> ChildServer:
        """Start a server; raises OSError."""
        limit, log = self._shared.limits.message, self._shared.log
        try:
            child = await ChildServer.start(self._command, self._guardian, log, limit)
        except OSError as error:
            self._unready = f"the command {self._command[0]!r} cannot be started: {error.strerror}"
            log.error(self._unready)
            raise
        self._unready = None
        return child

    def _make_room(self) -> None:
        most = self._shared.limits.sessions
        there = [hosted for hosted in self._sessions.values() if not hosted.over]
        if len(there) + self._starting < most:
            return
        idle = [hosted for hosted in there if not hosted.connected]
        if not idle:
            said = f"there are {most} sessions already"
            raise RequestRefused(503, FAILED, said, {"Retry-After": _RETRY_AFTER})
        self._end(min(idle, key=_claim), "the session made room for another one")

    async def _reap(self) -> None:
        idle = self._shared.limits.idle
        while True:
            await asyncio.sleep(min(30.0, idle / 4))
            now = asyncio.get_running_loop().time()
            for hosted in list(self._sessions.values()):
                quiet = 0.0 if hosted.connected else now - hosted.used
                if quiet > idle * (_GIVEN_UP if hosted.pending else 1):
                    self._end(hosted, "nobody has used the session for too long")
            self._stateless.reap()

    def _end(self, hosted: ChildSession, cause: str) -> None:
        if not hosted.over:
            self._spawn(hosted.end(cause, ORDERLY))
            hosted.over = True

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._ending.add(task)
        task.add_done_callback(self._ending.discard)


def _decodes(raw: bytes) -> bool:
    try:
        return raw.isascii() or bool(raw.decode())
    except UnicodeDecodeError:
        return False


def _claim(hosted: ChildSession) -> tuple[bool, float]:
    """Return the rank of an idle session: pending answers last, then by last use."""
    return hosted.pending, hosted.used
