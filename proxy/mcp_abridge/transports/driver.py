"""Drive a session in an event loop: carry out its outputs, route its messages, time its calls.

The session is entered by one task at a time, since nothing here awaits inside it.
"""

import asyncio
from collections.abc import AsyncIterator, Callable, Collection, Coroutine, Sequence
from contextlib import asynccontextmanager
from typing import Any, NamedTuple

import msgspec
from msgspec import Struct, field
from msgspec.structs import replace

from mcp_abridge.session.active_rules import PeerInfo
from mcp_abridge.session.outputs import (
    Noise,
    Output,
    Probe,
    RunInBackground,
    Shape,
    ToClient,
    ToServer,
)
from mcp_abridge.session.session import Session
from mcp_abridge.session.tracing import Arrival
from mcp_abridge.shaping import pipeline
from mcp_abridge.storage.snapshots import ANYBODY, Key, Snapshot
from mcp_abridge.transports.aio import Tasks, give_way, threaded
from mcp_abridge.transports.workers.pool import Workers

OVERDUE = "the server did not answer in time"


class Routed(NamedTuple):
    """Messages for each side, in order; `queries` go to the server after all others for it."""

    to_server: list[bytes]
    to_client: list[bytes]
    queries: list[Probe]

    @property
    def all_to_server(self) -> list[bytes]:
        return [*self.to_server, *(query.raw for query in self.queries)]


class Driver(Struct, eq=False):
    """One session; `_on_noise` takes what is no message of the server, else the client does.

    `late`, for who serves a whole session, takes the messages to send once calls have waited for
    too long.
    """

    session: Session
    _workers: Workers
    _on_noise: Callable[[bytes], None] | None = None
    late: Callable[[Routed], Coroutine[Any, Any, None]] | None = None
    _shared: bytes = b""  # the facts of the server last written to the store
    _memory: Key | None = None  # the key of the facts that replicas share
    _recalling: asyncio.Task[None] | None = None
    _timer: asyncio.TimerHandle | None = None  # for the next call that will be overdue
    _tasks: Tasks = field(default_factory=Tasks)

    @property
    def _caller(self) -> str:
        """Whose turn a costly job takes: sessions of one caller share it, but for anybody's."""
        scope = self.session.state.scope
        return scope if scope.startswith(ANYBODY) else scope.partition("\n")[0]

    async def recall(self, key: Key) -> None:
        """Read from the store what another replica knows of the same server and client.

        Until the tools are listed, each call of a tool reads it again: it may have listed them.
        """
        if self.session.state.store.remote:
            self._memory = key
            if self._recalling is None:
                self._recalling = asyncio.create_task(self._recall(key))
            # If one waiting task is cancelled, the others still wait for the same read.
            await asyncio.shield(self._recalling)

    async def _recall(self, key: Key) -> None:
        try:
            snapshot = await threaded(self.session.state.store.get, key)
            if snapshot is not None:
                self.session.rules.recall(msgspec.json.decode(snapshot.raw, type=PeerInfo))
                self._shared = snapshot.raw
        except Exception as error:
            what = "what other replicas know of the server was not read: "
            self.session.state.store_failed(error, what)
        finally:
            self._recalling = None

    async def share(self, key: Key) -> None:
        """Write to the store what this replica knows of the server, for other replicas."""
        if not self.session.state.store.remote:
            return
        self._memory = key
        facts = msgspec.json.encode(self.session.rules.peer, order="sorted")
        if facts == self._shared:
            return
        try:
            await threaded(self.session.state.store.put, key, Snapshot(b"", facts))
            self._shared = facts
        except Exception as error:
            what = "other replicas were not told of the server: "
            self.session.state.store_failed(error, what)

    async def from_client(
        self,
        raw: bytes,
        exchange: bytes = b"",
        scope: str | None = None,
        arrival: Arrival | None = None,
    ) -> Routed:
        """Take a message of the client, which may use the snapshots of `scope`; never raises.

        `arrival` is the HTTP request that it came by.
        """
        # What other replicas know, if the message may depend on it.
        if self._memory is not None and (
            self._recalling or (b"tools/call" in raw and not self.session.rules.listed)
        ):
            await self.recall(self._memory)
        if scope is not None:
            self.session.state.scope = scope
        self.session.state.arrival = arrival
        return await self._routed(self.session.from_client(raw, exchange))

    async def from_server(self, raw: bytes, exchange: bytes = b"") -> Routed:
        """Take a message of the server; never raises."""
        await give_way(len(raw))
        return await self._routed(self.session.from_server(raw, exchange))

    async def fail(self, slots: Collection[bytes], cause: str) -> Routed:
        """End requests without a response: each gets an error, the call of a query goes on."""
        outputs = [out for slot in slots for out in self.session.unanswered(slot, cause)]
        errors = self.session.fail_pending(cause, slots)
        return await self._routed([*map(ToClient, errors), *outputs])

    async def expire(self, slots: Collection[bytes] | None = None) -> Routed:
        """Return the messages about calls without a response in time, see `Session.expire`."""
        return await self._routed(self.session.expire(slots))

    def stop(self) -> None:
        """Wait no more for calls that will be overdue."""
        if self._timer is not None:
            self._timer.cancel()
        self._tasks.cancel()

    async def _routed(self, outputs: Sequence[Output]) -> Routed:
        routed = Routed([], [], [])
        await self._perform_all(outputs, routed)
        if self.late is not None:
            if self._timer is not None:
                self._timer.cancel()
                self._timer = None
            if (seconds := self.session.time_left()) is not None:
                loop = asyncio.get_running_loop()
                self._timer = loop.call_later(seconds, lambda: self._tasks.spawn(self._end_late()))
        return routed

    async def _end_late(self) -> None:
        # Calls with progress in the meantime have more time.
        routed = await self.expire()
        if self.late is not None and any(routed):
            await self.late(routed)

    async def _perform_all(self, outputs: Sequence[Output], routed: Routed) -> None:
        try:
            for output in outputs:
                if isinstance(output, Noise) and self._on_noise is None and len(outputs) > 1:
                    continue  # it preceded a message, and must not be taken for the message
                await self._perform(output, routed)
                if isinstance(output, Shape) and len(outputs) > 1:
                    # Each message of a batch may have been just short enough to be shaped here.
                    await asyncio.sleep(0)
        except asyncio.CancelledError:
            for output in outputs:
                if isinstance(output, RunInBackground):
                    self.session.given_up(output.token)
                elif isinstance(output, Shape):
                    self.session.given_up(output.job.token)
            raise

    async def _perform(self, output: Output, routed: Routed) -> None:
        if isinstance(output, ToServer):
            routed.to_server.append(output.raw)
        elif isinstance(output, ToClient):
            routed.to_client.append(output.raw)
        elif isinstance(output, Probe):
            routed.queries.append(output)
        elif isinstance(output, Shape):
            try:
                outcome = await self._workers.shape(output.job, self._caller)
            except Exception as error:  # no thread or no memory to reach a worker, ...
                outcome = replace(pipeline.failure(output.job, error), blameless=True)
            await self._perform_all(self.session.shaped(output.job, outcome), routed)
        elif isinstance(output, Noise):
            if self._on_noise is None:
                routed.to_client.append(output.raw)
            else:
                # May block for a moment if the proxy's stderr is not read.
                await threaded(self._on_noise, output.raw)
        else:
            result = await threaded(output.do) if output.long else output.do()
            await self._perform_all(output.then(result), routed)


@asynccontextmanager
async def in_time(driver: Driver, slots: Collection[bytes]) -> AsyncIterator[list[Routed]]:
    """Leave this context, with messages and no error, once one of these calls is overdue."""
    late: list[Routed] = []
    if driver.session.time_left(slots) is None:
        yield late
        return

    async def leave() -> None:
        while (seconds := driver.session.time_left(slots)) is not None:
            await asyncio.sleep(seconds)
            # Calls with progress in the meantime have more time.
            if any(routed := await driver.expire(slots)):
                late.append(routed)
                timeout.reschedule(asyncio.get_running_loop().time())
                return

    timeout, tasks = asyncio.timeout(None), Tasks()
    tasks.spawn(leave())
    try:
        async with timeout:
            yield late
    except TimeoutError:
        if not timeout.expired():
            raise
    finally:
        tasks.cancel()
