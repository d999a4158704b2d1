"""Wakes up, in an event loop, when calls of a session are overdue."""

import asyncio
from collections.abc import Callable, Collection

from proxy.transports.driver import Driver, Sent


class Timer:
    """Calls `late` with what is to be said to whom, once calls have waited for too long.

    These are all calls of a session, or those in an `exchange` with these `ids`. It has to be
    started again after each that goes to the server, and where nothing waits it does nothing.
    """

    def __init__(
        self,
        driver: Driver,
        late: Callable[[Sent], None],
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
