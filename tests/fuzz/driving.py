"""Sessions in an event loop: messages at the same time, a slow store, clients that leave."""

import asyncio
from collections.abc import Awaitable, Hashable, Iterator

from proxy.session.session import Session
from proxy.storage.meter import Meters
from proxy.storage.snapshots import Memory
from proxy.transports.driver import Driver, Routed
from proxy.transports.log import Log
from proxy.transports.workers.pool import Workers
from tests.fuzz import covered, speech
from tests.fuzz.account import Account
from tests.fuzz.dice import Dice
from tests.fuzz.fuzzer import Wrong
from tests.fuzz.heard import Request

MESSAGES = 40


class Elsewhere(Memory):
    """A store that is asked in a thread."""

    remote = True


def check(seed: int, index: int) -> Iterator[Hashable]:
    """Drive a session through random messages. Raises Wrong."""
    yield from asyncio.run(_driven(Dice.of(seed, "driving", index)))


async def _driven(dice: Dice) -> list[Hashable]:
    [rules, *_] = covered.rulesets(dice)
    said: list[str] = []
    session = Session(lambda *_: rules, Meters().of, said.append, resumable=dice.one_in(3))
    # In some, what is longer is shaped in a process of its own.
    workers = Workers(2, max_here=dice.pick((1 << 20, 1 << 20, 3000)))
    driver = Driver(session, Elsewhere(), workers, Log("error"), on_noise=lambda raw: None)
    drive = _Drive(driver, dice)
    try:
        await drive.talk()
        await drive.end()
    finally:
        workers.close()
    drive.account.settle()
    failures = [line for line in said if "the proxy failed" in line]
    if failures:
        raise Wrong("the proxy never fails on a message", failures[0])
    suspended, pending = session.suspended, session.inflight._pending
    if suspended or pending:
        raise Wrong("nothing is left at the end", f"{suspended} {pending}")
    return [("driven", drive.left, len(drive.account.asked) > 20)]


class _Drive:
    """What is on its way between a client and a server, several messages at once."""

    def __init__(self, driver: Driver, dice: Dice) -> None:
        self.driver, self.dice = driver, dice
        self.account = Account()
        self.inbox: list[Request] = []
        self.probes: list[bytes] = []
        self.running: dict[asyncio.Task[None], bytes] = {}
        self.left = 0
        self.ids: list[str] = []

    async def talk(self) -> None:
        """Have both sides say things, without waiting for what comes of them."""
        dice = self.dice
        for mark in range(1, MESSAGES):
            kind = dice.below(10)
            if kind < 5 or not self.inbox:
                self.ids.append(str(mark))
                raw = speech.request(dice, str(mark), mark)
                if dice.one_in(12):
                    raw = speech.notice(dice, self.ids)
                self.account.client_says(raw, b"")
                self._run(self.driver.from_client(raw), raw)
            elif kind < 9:
                asked = self.inbox.pop(dice.below(len(self.inbox)))
                raw = speech.answer(dice, asked.id, asked.method, mark)
                self.account.server_says(raw, b"")
                self._run(self.driver.from_server(raw), b"")
            for _ in range(dice.within(1, 4)):
                await asyncio.sleep(0)
            if dice.one_in(12) and self.running:
                self._leave(dice.pick(list(self.running)))

    async def end(self) -> None:
        """Wait for what is on its way, and have the rest answered."""
        while self.running:
            await asyncio.wait(self.running)
            for task in [task for task in self.running if task.done()]:
                self._done(task)
        for token in self.probes:
            self._said(await self.driver.unanswered(token, "the server is gone"))
        for raw in self.driver.ended("the server is gone"):
            self.account.client_hears(raw, b"")

    def _run(self, coming: Awaitable[Routed], raw: bytes) -> None:
        async def take() -> None:
            self._said(await coming)

        self.running[asyncio.create_task(take())] = raw

    def _leave(self, task: asyncio.Task[None]) -> None:
        """Have whoever waits for what one message brings about go away."""
        raw = self.running[task]
        task.cancel()
        self.left += 1
        # What was asked with it, and what was to be answered, may go without an answer.
        self.account.excused |= set(self.account.asked) if not raw else self.account.slots(raw)

    def _done(self, task: asyncio.Task[None]) -> None:
        del self.running[task]
        if not task.cancelled() and (error := task.exception()) is not None:
            raise error

    def _said(self, sent: Routed) -> None:
        for raw in (*sent.to_server, *(probe.raw for probe in sent.queries)):
            self.inbox += self.account.server_hears(raw, b"")
        self.probes += [probe.token for probe in sent.queries]
        for raw in (*sent.to_client, *sent.notifications):
            self.account.client_hears(raw, b"")
