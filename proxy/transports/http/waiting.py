"""A POST while its upstream is asked: what is said of its calls that are overdue, and where.

Invariants: where nothing is awaited any more, the upstream is asked no longer; and what is said of
a call is said once, wherever its client listens.
"""

import asyncio
from collections.abc import Callable
from types import TracebackType
from typing import Self

from proxy.transports.driver import Sent
from proxy.transports.http.answer import Answer
from proxy.transports.http.callers import Exchange
from proxy.transports.timer import Timer

Say = Callable[[Exchange, Answer | None, list[bytes]], None]


class Waiting:
    """A context in which an upstream is asked what an exchange asks.

    Where the last of its requests was overdue it is `over`, and left at once without an error,
    unless whoever is in it is `busy`: then they see to it. `give_up` takes what the upstream is to
    be told of such requests, and `say` what the client hears of them on an answer that has begun;
    without one, wherever it listens.
    """

    def __init__(
        self,
        exchange: Exchange,
        ours: list[bytes],
        give_up: Callable[[list[bytes]], None],
        say: Say,
    ) -> None:
        self.ours = ours
        """What is to be said in the answer besides what the upstream says."""
        self.answer: Answer | None = None
        """Where it is said at once, as soon as that has begun."""
        self.busy = False
        """True while something that the upstream has said is on its way."""
        self.over = False
        """True where nothing more has to come of the upstream."""
        self._exchange = exchange
        self._give_up = give_up
        self._say = say
        self._left = False
        self._timeout: asyncio.Timeout | None = None
        self._timer: Timer | None = None

    async def __aenter__(self) -> Self:
        of = self._exchange
        if of.driver.session.deadline is not None:
            self._timeout = await asyncio.timeout(None).__aenter__()
            self._timer = Timer(of.driver, self._overdue, of.mark, of.post.ids)
            self._timer.start()
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> bool:
        self.leave()
        if self._timeout is None or self._timer is None:
            return False
        of = self._exchange
        # In a session a call may go on without its client, who can come back for the answer.
        if of.mark or not of.driver.session.awaits(of.mark, of.post.ids):
            self._timer.stop()
        try:
            await self._timeout.__aexit__(kind, error, trace)
        except TimeoutError:
            return True
        return False

    def leave(self) -> None:
        """Take note that the answer is about to end: nothing more can be said there."""
        self._left = True

    def _overdue(self, sent: Sent) -> None:
        of = self._exchange
        self._give_up(sent.to_server)
        if self._left:
            self._say(of, None, sent.to_client)
            return
        self.over = not of.driver.session.awaits(of.mark, of.post.ids)
        if self.answer is not None and not self.over:
            self._say(of, self.answer, sent.to_client)
            return
        self.ours += sent.to_client
        if self.over and not self.busy and self._timeout is not None:
            self._timeout.reschedule(asyncio.get_running_loop().time())
