"""Whoever watches a session in an event loop wakes up for calls that are overdue, and only then."""

import asyncio
import json

from proxy.ruleset.rule import EMPTY
from proxy.session.session import Session
from proxy.storage.meter import Meters
from proxy.storage.snapshots import Memory
from proxy.transports.driver import Driver, Routed, Timer
from proxy.transports.log import Log
from proxy.transports.workers.pool import Workers
from tests.given import answer, call, said

SECONDS = 60.0
DEADLINE = 0.02


class Watched:
    """A driver whose clock a test sets, and what its timer has said."""

    def __init__(self, deadline: float | None = DEADLINE) -> None:
        self.now = 0.0
        self.looks = 0
        log = Log("error")
        session = Session(
            lambda *_: EMPTY,
            Meters().of,
            lambda _: None,
            deadline=deadline,
            clock=lambda: self.now,
        )
        self.driver = Driver(session, Memory(), Workers(), log)
        self.late: asyncio.Queue[Routed] = asyncio.Queue()

    def timer(self, exchange: bytes = b"", ids: list[bytes] | None = None) -> Timer:
        return Timer(self.driver, self.late.put_nowait, exchange, ids)

    async def told(self) -> list[int]:
        """Wait until calls are late; return their ids."""
        async with asyncio.timeout(SECONDS):
            sent = await self.late.get()
        assert len(sent.to_client) == len(sent.to_server)
        assert (sent.notifications, sent.queries) == ([], [])
        return [json.loads(raw)["id"] for raw in sent.to_client]


async def test_calls_that_are_overdue_are_told_of_once() -> None:
    made = Watched()
    timer = made.timer()
    for id in (1, 2):
        await made.driver.from_client(call("a", id=id))
        timer.start()
    made.now = 1.0
    assert await made.told() == [1, 2]
    # Nothing waits, and nothing is watched.
    assert timer._waking is None
    timer.start()
    assert timer._waking is None
    await made.driver.from_client(call("a", id=3))
    timer.start()
    made.now = 2.0
    assert await made.told() == [3]
    assert made.late.empty()


async def test_what_is_not_due_yet_is_looked_at_again() -> None:
    made = Watched()
    timer = made.timer()
    await made.driver.from_client(call("a", id=1))
    timer.start()
    first = timer._waking
    async with asyncio.timeout(SECONDS):
        # As where progress was told of meanwhile.
        while timer._waking is first:
            await asyncio.sleep(DEADLINE / 4)
    assert made.late.empty()
    made.now = 1.0
    assert await made.told() == [1]


async def test_calls_of_other_exchanges_are_none_of_its_concern() -> None:
    made = Watched()
    for exchange in (b"1:", b"2:"):
        await made.driver.from_client(call("a", id=7), exchange)
    timer, other = made.timer(b"2:", [b"7"]), made.timer(b"3:", [b"7"])
    timer.start()
    other.start()
    assert other._waking is None
    made.now = 1.0
    assert await made.told() == [7]
    assert made.driver.session.patience(b"1:", [b"7"]) == 0.0


async def test_one_that_was_stopped_wakes_nobody() -> None:
    made = Watched()
    timer = made.timer()
    timer.stop()
    await made.driver.from_client(call("a", id=1))
    timer.start()
    timer.stop()
    assert timer._waking is None
    made.now = 1.0
    other = made.timer()
    other.start()
    assert await made.told() == [1]
    assert made.late.empty()


async def test_without_a_deadline_nothing_is_watched() -> None:
    made = Watched(None)
    timer = made.timer()
    await made.driver.from_client(call("a", id=1))
    timer.start()
    assert timer._waking is None
    await made.driver.from_server(answer(said("done")))
