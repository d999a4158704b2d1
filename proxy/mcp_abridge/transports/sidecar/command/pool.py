"""The servers that the stateless requests of a caller share (MCP 2026-07-28).

Invariant: a server serves one caller only, so whatever it mixes up stays with that caller.
"""

import asyncio
from collections import Counter
from collections.abc import Awaitable, Callable
from contextlib import suppress

from msgspec import Struct, field

from mcp_abridge.session.own_requests import QueryIds
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.sidecar.caller import of_the_largest_holders
from mcp_abridge.transports.sidecar.command.child import ChildServer
from mcp_abridge.transports.sidecar.command.pooled_server import PooledRequest, PooledServer
from mcp_abridge.transports.sidecar.refusal import unavailable

_WAIT = 10.0  # seconds that a request waits until the servers of other callers have given way

Start = Callable[[], Awaitable[ChildServer]]


class Pool(Struct, eq=False):
    """At most `_limit` servers in all, each for one caller, started by `_start` when needed."""

    _start: Start
    _limit: int
    _log: Log
    _ids: QueryIds = field(default_factory=QueryIds)
    _servers: list[PooledServer] = []
    _starting: dict[str, asyncio.Task[PooledServer]] = {}
    _waiting: dict[str, list[PooledRequest]] = {}  # for these
    _reserved: int = 0  # places of servers that are being started
    _change: asyncio.Event = field(default_factory=asyncio.Event)

    @property
    def running(self) -> int:
        return sum(not each.reading.done() for each in self._servers)

    async def open(self, request: PooledRequest, caller: str = "") -> PooledServer:
        """Return a server of the caller, to which `request` is added.

        It is the least busy of those that answer. If that one is busy, another one is started for
        later requests. Raises RequestRefused if there is no room, and what `start` raises.
        """
        self._servers = [each for each in self._servers if not each.reading.done()]
        accepting = [each for each in self._servers if each.caller == caller and each.accepts]
        server = min(accepting, key=lambda each: (each.silent, each.load), default=None)
        if server is not None and server.silent and server.idle:
            server.finish()  # it may never answer again
            server = None
        if server is None or (server.silent and self._has_room):
            return await self._started_for(request, caller)
        if server.load and self._has_room:
            self._another(caller)
        server.open(request)
        return server

    async def _started_for(self, request: PooledRequest, caller: str) -> PooledServer:
        task = self._another(caller)
        self._waiting.setdefault(caller, []).append(request)
        try:
            # The start continues even if this request is cancelled.
            return await asyncio.shield(task)
        except asyncio.CancelledError:
            if not task.done():
                self._waiting[caller].remove(request)
            elif task.exception() is None:
                task.result().cancel(request)
            raise

    @property
    def _has_room(self) -> bool:
        # Those that end do not count: that takes seconds.
        staying = sum(not (each.leaving and each.idle) for each in self._servers)
        return staying + self._reserved < self._limit

    def _another(self, caller: str) -> "asyncio.Task[PooledServer]":
        task = self._starting.get(caller)
        if task is None:
            self._starting[caller] = task = asyncio.create_task(self._begin(caller))
            # Perhaps no request waits for it, and its error is in the log.
            task.add_done_callback(lambda task: task.cancelled() or task.exception())
        return task

    async def _begin(self, caller: str) -> PooledServer:
        try:
            await self._make_room(caller)
            self._reserved += 1
            try:
                child = await self._start()
            finally:
                self._reserved -= 1
            server = PooledServer(child, caller, self._log, self._ids, self._change)
            self._servers.append(server)
            # Before anything else runs: an idle server may have to give way to another caller's.
            for request in self._waiting.get(caller, ()):
                server.open(request)
            return server
        finally:
            del self._starting[caller]
            self._waiting.pop(caller, None)
            self._change.set()

    async def _make_room(self, caller: str) -> None:
        """End servers of other callers until there is room for one more; raises RequestRefused."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_WAIT):
                while not self._has_room:
                    self._change.clear()
                    # One that is being started can give way once it has done its work.
                    leaving = any(each.leaving and not each.idle for each in self._servers)
                    comes = leaving or self._reserved
                    server = self._dispensable(caller)
                    if server is not None and not (server.load and comes):
                        server.finish()
                    elif not comes:
                        break
                    if not self._has_room:
                        await self._change.wait()
        if not self._has_room:
            reason = f"all {self._limit} processes are in use (limits.children in --config)"
            raise unavailable(reason, 5)

    def _dispensable(self, caller: str) -> PooledServer | None:
        """Return the server to end for one more of the caller's: an idle one if there is one.

        Nobody's only server ends while a subscription is open there.
        """
        there = [each for each in self._servers if not each.leaving]
        there.sort(key=lambda each: each.last_used)
        numbers = Counter(each.caller for each in there)
        others = [
            each
            for each in of_the_largest_holders(there, caller)
            if each.caller != caller and (numbers[each.caller] > 1 or not each.listened_to)
        ]
        return min(others, key=lambda each: (each.load > 0, each.listened_to), default=None)

    def reap(self, seconds: float) -> None:
        now = asyncio.get_running_loop().time()
        for server in self._servers:
            if server.idle and now - server.last_used > seconds:
                server.finish()

    async def close(self) -> None:
        if self._starting:
            await asyncio.wait(self._starting.values())
        await asyncio.gather(*(server.child.end() for server in self._servers))
        await asyncio.gather(*(server.reading for server in self._servers))
