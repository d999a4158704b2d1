"""Drives a session in an event loop: carries out what it asks for and says what goes where.

The session is entered by one task at a time, since nothing here waits inside it; what takes long
(a store elsewhere, a large document) is waited for between two entries.
"""

import asyncio
from collections.abc import Callable, Collection, Sequence
from typing import NamedTuple, ParamSpec, TypeVar

import msgspec
from msgspec.structs import replace

from proxy.errors import RuleErrors, StoreError, raised
from proxy.session import failures as fallback
from proxy.session.active_rules import PeerInfo
from proxy.session.outputs import (
    DropSnapshots,
    Forward,
    LoadSnapshot,
    Noise,
    Notify,
    Output,
    Probe,
    Reply,
    RunInBackground,
    Shape,
    StoreSnapshot,
)
from proxy.session.session import Session
from proxy.shaping import pipeline
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.storage.snapshots import Key, Snapshot, Store
from proxy.transports.aio import others, threaded
from proxy.transports.log import Log
from proxy.transports.workers.pool import Workers

P = ParamSpec("P")
T = TypeVar("T")


class Routed(NamedTuple):
    """Messages for either side, each in order; `told` are for the client and answer nothing.

    `probes` are for the server, after what else there is for it.
    """

    to_server: list[bytes]
    to_client: list[bytes]
    told: list[bytes]
    probes: list[Probe]


class Driver:
    """One session with the store and the workers that it needs.

    `aside` takes what the server says that is no message; without it that goes on to the client.
    """

    def __init__(
        self,
        session: Session,
        store: Store,
        workers: Workers,
        log: Log,
        aside: Callable[[bytes], None] | None = None,
    ) -> None:
        self.session = session
        self._store = store
        self._workers = workers
        self._log = log
        self._aside = aside
        self._shared = b""  # what the store was last told of the server
        self._memory: Key | None = None  # under which replicas tell each other
        self._recalling: asyncio.Task[None] | None = None

    async def recall(self, key: Key) -> None:
        """Learn what another replica knows of the same server and client.

        What the client says meanwhile waits for it. Until somebody has listed the tools, each call
        of one asks again: that may have happened elsewhere by then.
        """
        if self._store.remote:
            self._memory = key
            await self._recalled(key)

    async def _recalled(self, key: Key) -> None:
        if self._recalling is None:
            self._recalling = asyncio.create_task(self._recall(key))
        # Whoever goes away meanwhile, others wait for the same.
        await asyncio.shield(self._recalling)

    async def _recall(self, key: Key) -> None:
        try:
            found = await self._ask(self._store.get, key)
            if found is not None:
                self.session.recall(msgspec.json.decode(found.document, type=PeerInfo))
                self._shared = found.document
        except Exception as cause:
            said = f"what other replicas know of the server was not read: {_said(cause)}"
            self._log.warning(said)
        finally:
            self._recalling = None

    async def share(self, key: Key) -> None:
        """Let other replicas know what this one has learned."""
        if not self._store.remote:
            return
        self._memory = key
        known = msgspec.json.encode(self.session.known, order="sorted")
        if known == self._shared:
            return
        try:
            await self._ask(self._store.put, key, Snapshot(b"", known))
            self._shared = known
        except Exception as cause:
            self._log.warning(f"other replicas were not told of the server: {_said(cause)}")

    async def from_client(
        self, raw: bytes, exchange: bytes = b"", scope: str | None = None
    ) -> Routed:
        """Take a message of the client; never raises.

        `scope` is whose snapshots it may see, where that may differ between its messages.
        """
        await self._inform(raw)
        if scope is not None:
            self.session.scope = scope
        return await self._take(raw, exchange, of_client=True)

    async def from_server(self, raw: bytes, exchange: bytes = b"") -> Routed:
        """Take a message of the server; never raises."""
        await others(len(raw))
        return await self._take(raw, exchange, of_client=False)

    async def unanswered(self, token: bytes, cause: str = "") -> Routed:
        """Go on without an answer to a probe, see `Session.unanswered`; never raises."""
        sent = Routed([], [], [], [])
        outputs = self.session.unanswered(token, cause)
        await self._carry_out(outputs, sent, sent.to_server, sent.to_client)
        return sent

    def overdue(self, exchange: bytes = b"", ids: Collection[bytes] | None = None) -> Routed:
        """Return what is to be said of calls that were left alone, see `Session.overdue`."""
        outputs = self.session.overdue(exchange, ids)
        to_server = [output.raw for output in outputs if isinstance(output, Forward)]
        return Routed(to_server, [each.raw for each in outputs if isinstance(each, Reply)], [], [])

    def ended(
        self,
        cause: str,
        exchange: bytes | None = None,
        ids: Collection[bytes] | None = None,
    ) -> list[bytes]:
        """Return an answer for each request in flight that is meant, see `Session.ended`."""
        outputs = self.session.ended(cause, exchange, ids)
        return [output.raw for output in outputs if isinstance(output, Forward)]

    async def _take(self, raw: bytes, exchange: bytes, *, of_client: bool) -> Routed:
        enter: Callable[[bytes, bytes], tuple[Output, ...]]
        enter = self.session.from_client if of_client else self.session.from_server
        sent = Routed([], [], [], [])
        ahead, back = sent.to_client, sent.to_server
        if of_client:
            ahead, back = back, ahead
        try:
            outputs = enter(raw, exchange)
        except Exception as error:  # one message must never end all others
            said = fallback.said_of(error)
            if not isinstance(error, RuleErrors):
                self._log.error(said)
            line = fallback.in_place_of(raw, said, answers=not of_client)
            if line is not None:
                sent.to_client.append(line)
            elif not of_client:
                ahead.append(raw)
            return sent
        await self._carry_out(outputs, sent, ahead, back)
        return sent

    async def _inform(self, raw: bytes) -> None:
        """See to it that the session knows of a message of the client what other replicas do."""
        if self._memory is None:
            return
        if self._recalling or (b"tools/call" in raw and not self.session.listed):
            await self._recalled(self._memory)

    async def _carry_out(
        self, outputs: Sequence[Output], sent: Routed, ahead: list[bytes], back: list[bytes]
    ) -> None:
        try:
            for output in outputs:
                if isinstance(output, Noise) and self._aside is None and len(outputs) > 1:
                    continue  # it stood before a message, and is not to be taken for it
                await self._do(output, sent, ahead, back)
                if isinstance(output, Shape) and len(outputs) > 1:
                    # Each of a batch may just have been short enough to be shaped at once.
                    await asyncio.sleep(0)
        except asyncio.CancelledError:
            for output in outputs:
                if isinstance(output, LoadSnapshot | Shape):
                    self.session.given_up(output)
            raise

    async def _do(
        self, output: Output, sent: Routed, ahead: list[bytes], back: list[bytes]
    ) -> None:
        if isinstance(output, Forward):
            ahead.append(output.raw)
        elif isinstance(output, Reply):
            back.append(output.raw)
        elif isinstance(output, Notify):
            sent.told.append(output.raw)
        elif isinstance(output, Probe):
            sent.probes.append(output)
        elif isinstance(output, Shape):
            outcome = await self._shaped(output.job)
            # Whoever asked for it, the answer goes to the client.
            outputs = self.session.shaped(output.job, outcome)
            await self._carry_out(outputs, sent, sent.to_client, sent.to_server)
        elif isinstance(output, RunInBackground):
            outputs = output.then(await threaded(output.do))
            await self._carry_out(outputs, sent, ahead, back)
        elif isinstance(output, LoadSnapshot):
            found, failure = await self._load(output.key)
            outputs = self.session.loaded(output.token, found, failure)
            await self._carry_out(outputs, sent, ahead, back)
        elif isinstance(output, StoreSnapshot):
            await self._keep(output)
        elif isinstance(output, DropSnapshots):
            await self._forget(output)
        elif isinstance(output, Noise):
            if self._aside is None:
                ahead.append(output.raw)
            else:
                # Waits for a moment where nobody reads what we say.
                await threaded(self._aside, output.raw)

    async def _shaped(self, job: ShapeJob) -> ShapeResult:
        try:
            return await self._workers.shape(job)
        except Exception as error:  # no thread or no memory for what it takes to get there, ...
            return replace(pipeline.failure(job, error), blameless=True)

    async def _ask(self, do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Ask the store: in a thread, where that may take long."""
        if self._store.remote:
            return await asyncio.to_thread(do, *args, **kwargs)
        return do(*args, **kwargs)

    async def _load(self, key: Key) -> tuple[Snapshot | None, str | None]:
        try:
            return await self._ask(self._store.get, key), None
        except Exception as cause:
            said = _said(cause)
            self._log.error(said)
            return None, said

    async def _keep(self, output: StoreSnapshot) -> None:
        try:
            await self._ask(self._store.put, output.key, output.snapshot)
        except Exception as cause:
            self._log.error(f"the answer was not kept for later pages and views: {_said(cause)}")

    async def _forget(self, output: DropSnapshots) -> None:
        try:
            await self._ask(self._store.drop, output.key)
        except Exception as cause:
            self._log.error(f"an outdated answer may still be in the store: {_said(cause)}")


def _said(cause: Exception) -> str:
    return str(cause) if isinstance(cause, StoreError) else raised(cause)


class Timer:
    """Calls `late` with what is to be said to whom, once calls have waited for too long.

    These are all calls of a session, or those in an `exchange` with these `ids`. It has to be
    started again after each that goes to the server, and where nothing waits it does nothing.
    """

    def __init__(
        self,
        driver: Driver,
        late: Callable[[Routed], None],
        exchange: bytes = b"",
        ids: Collection[bytes] | None = None,
    ) -> None:
        self._driver = driver
        self._late = late
        self._exchange = exchange
        self._ids = ids
        self._waking: asyncio.TimerHandle | None = None

    def start(self) -> None:
        """Wait for the first call that will be overdue, unless that is being done."""
        if self._waking is None:
            seconds = self._driver.session.patience(self._exchange, self._ids)
            if seconds is not None:
                self._waking = asyncio.get_running_loop().call_later(seconds, self._wake)

    def stop(self) -> None:
        """Wait no longer."""
        if self._waking is not None:
            self._waking.cancel()
            self._waking = None

    def _wake(self) -> None:
        self._waking = None
        sent = self._driver.overdue(self._exchange, self._ids)
        # Those that were heard of meanwhile have more time.
        self.start()
        if sent.to_client:
            self._late(sent)
