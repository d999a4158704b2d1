"""A route whose upstream is a command: a stdio server as a Streamable HTTP service.

In the handshake era each session has a server of its own; stateless requests share a few.
"""

import asyncio
import os
import re
import secrets
import shutil

from aiohttp import web

from mcp_abridge.system import platform
from mcp_abridge.transports.aio import Tasks
from mcp_abridge.transports.http import negotiation
from mcp_abridge.transports.http.headers import MODERN, SESSION, VERSION
from mcp_abridge.transports.sidecar.caller import (
    NO_SESSION,
    digest,
    of_the_largest_holders,
    scope_of,
)
from mcp_abridge.transports.sidecar.command.child import ChildServer
from mcp_abridge.transports.sidecar.command.child_session import ChildSession
from mcp_abridge.transports.sidecar.command.stateless import Stateless
from mcp_abridge.transports.sidecar.command.streams import EventStore
from mcp_abridge.transports.sidecar.refusal import (
    FAILED,
    INVALID,
    NOT_JSON,
    RequestRefused,
    unavailable,
)
from mcp_abridge.transports.sidecar.request import read_post
from mcp_abridge.transports.sidecar.route import Request, Route, Services

_HANDSHAKES = frozenset(("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25"))
_GIVEN_UP = 4  # times the idle time, after which a session ends even if a call is pending
_ID = re.compile(rb'"|-?\d+\Z')


class CommandRoute:
    """Answer the requests of a route with child processes."""

    def __init__(self, route: Route, shared: Services) -> None:
        assert not isinstance(route.upstream, str)
        self._command = list(route.upstream)
        self._route = route
        self._shared = shared
        self._sessions: dict[str, ChildSession] = {}
        self._ending = Tasks()
        self._starting: list[str] = []  # the callers of sessions whose server is being started
        self._store = EventStore()
        self._stateless = Stateless(route, shared, self._child)
        self._guardian: platform.Guardian | None = None
        self.unready: str | None = None
        self._reaping = Tasks()

    async def open(self) -> None:
        """Start the guardian and check that the command exists."""
        try:
            self._guardian = platform.Guardian()
        except OSError as error:
            self._shared.log.warning(f"nothing ends the servers should this be killed: {error}")
        if shutil.which(self._command[0]) is None:
            self.unready = f"the command {self._command[0]!r} is not found"
        self._reaping.spawn(self._reap())

    def counts(self) -> tuple[int, int]:
        """Return the number of sessions, each with a server, and that of running servers."""
        return len(self._sessions), len(self._sessions) + self._stateless.pool.running

    async def close(self) -> None:
        self._reaping.cancel()
        for session in list(self._sessions.values()):
            self._end(session, "the proxy is shutting down")
        reading = [session.reading for session in self._sessions.values()]
        await asyncio.gather(self._stateless.pool.close(), *self._ending, *reading)
        if self._guardian is not None:
            self._guardian.dismiss()
            self._guardian = None

    def has_session(self, request: Request) -> bool:
        return request.headers.get(SESSION) in self._sessions

    async def handle(self, request: Request) -> web.StreamResponse:
        if request.method == "POST":
            return await self._post(request)
        modern = (request.headers.get(VERSION) or "") >= MODERN
        if modern or request.method not in ("GET", "DELETE"):
            allowed = "POST" if modern else "GET, POST, DELETE"
            raise RequestRefused(405, INVALID, "Method Not Allowed", {"Allow": allowed})
        if request.method == "GET":
            return await self._get(request)
        self._end(self._session_of(request), "the client has ended the session")
        request.record.answered_by = "proxy"
        return web.Response(status=204)

    async def _post(self, request: Request) -> web.StreamResponse:
        read = await read_post(request, self._route, self._shared.limits)
        if not read.messages or not all(each.is_message for each in read.messages):
            raise RequestRefused(400, INVALID, "the body is no JSON-RPC message")
        try:
            _ = read.raw.isascii() or read.raw.decode()
        except UnicodeDecodeError:
            # Some servers exit on invalid UTF-8, and end the calls of others.
            raise RequestRefused(self._route.malformed_status, NOT_JSON, "Parse error") from None
        if not all(map(_ID.match, read.ids)):
            # The server may spell other ids differently, so its answers could not be matched.
            raise RequestRefused(400, INVALID, "the id of a request must be a text or an integer")
        if read.modern:
            return await self._stateless.post(request, read)
        if read.initializes and SESSION not in request.headers:
            session = await self._begin(request)
            request.record.session = digest(session.id)
        else:
            session = self._session_of(request)
            self._check(request.headers.get(VERSION), session)
        return await session.post(request, read)

    async def _get(self, request: Request) -> web.StreamResponse:
        accepts = ", ".join(request.headers.getall("Accept", []))
        if negotiation.negotiate(accepts) in ("json", "nothing"):
            raise RequestRefused(406, NOT_JSON, f"Acceptable media types: {negotiation.STREAM}")
        session = self._session_of(request)
        self._check(request.headers.get(VERSION), session)
        return await session.get(request)

    def _session_of(self, request: Request) -> ChildSession:
        id = request.headers.get(SESSION)
        if id is None:
            raise RequestRefused(400, INVALID, f"the header {SESSION} is missing")
        request.record.session = digest(id)
        session = self._sessions.get(id)
        if session is None or session.over or session.caller != request.record.token:
            raise RequestRefused(404, INVALID, NO_SESSION)
        return session

    def _check(self, version: str | None, session: ChildSession) -> None:
        # MCP 2025-11-25: Transports, Protocol Version Header.
        if version not in (None, session.version) and version not in _HANDSHAKES:
            raise RequestRefused(400, INVALID, f"the value of {VERSION} is no version served here")

    async def _begin(self, request: Request) -> ChildSession:
        log, token = self._shared.log, request.record.token
        self._make_room(token)
        self._starting.append(token)
        try:
            child = await self._child()
        finally:
            self._starting.remove(token)
        id = secrets.token_urlsafe(24)
        scope = f"{scope_of(request, self._route, token)}\n{digest(id)}"
        driver = self._shared.begin(self._route, scope, log.noise)
        session = ChildSession(id, token, child, driver, self._store, log)
        self._sessions[id] = session
        session.reading.add_done_callback(lambda _: self._sessions.pop(id, None))
        return session

    async def _child(self) -> ChildServer:
        limit, log = self._shared.limits.message, self._shared.log
        env = {name: os.environ[name] for name in os.environ.keys() - self._shared.secrets}
        try:
            child = await ChildServer.start(self._command, self._guardian, log, limit, env)
        except (OSError, ValueError) as error:
            reason = (getattr(error, "strerror", None) or str(error)).lower()
            self.unready = f"the command {self._command[0]!r} cannot be started: {reason}"
            log.error(self.unready)
            raise RequestRefused(502, FAILED, self.unready) from None
        self.unready = None
        return child

    def _make_room(self, newcomer: str) -> None:
        most = self._shared.limits.sessions
        there = [session for session in self._sessions.values() if not session.over]
        if len(there) + len(self._starting) < most:
            return
        # Those with pending answers come last.
        there.sort(key=lambda each: (each.pending, each.last_used))
        largest = of_the_largest_holders(there, newcomer, self._starting)
        idle = next((session for session in largest if not session.connected), None)
        if idle is None:
            raise unavailable(f"there are {most} sessions already", 5)
        self._end(idle, "the session made room for another one")

    async def _reap(self) -> None:
        idle = self._shared.limits.idle_seconds
        while True:
            await asyncio.sleep(min(30.0, idle / 4))
            now = asyncio.get_running_loop().time()
            for session in list(self._sessions.values()):
                quiet = 0.0 if session.connected else now - session.last_used
                if quiet > idle * (_GIVEN_UP if session.pending else 1):
                    self._end(session, "nobody has used the session for too long")
            self._stateless.pool.reap(idle)

    def _end(self, session: ChildSession, cause: str) -> None:
        if not session.over:
            session.over = True
            self._ending.spawn(session.end(cause))
