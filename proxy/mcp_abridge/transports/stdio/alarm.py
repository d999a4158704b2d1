"""A wait that any thread ends: the proxy would miss a signal, or its end, in any other.

Pipes are polled if the platform can. `QueueAlarm` is for those that cannot, as Windows: there, no
signal ends a wait, so that it is a series of short ones.
"""

import os
import signal
from _queue import Empty, SimpleQueue  # `queue` takes 1 ms
from collections.abc import Iterable
from contextlib import suppress
from math import ceil
from time import monotonic
from typing import Protocol

_LONGEST = 3600.0  # seconds of a single wait: the clock may jump
_SLICE = 0.1  # seconds of a wait that no signal ends


class Alarm(Protocol):
    """A wait of one thread, which is ended by bytes of other threads and by signals."""

    def ring(self, byte: int) -> None:
        """End the wait, or the next one, from any thread."""

    def wait(self, seconds: float | None) -> int | None:
        """Return the next byte, or None after some seconds."""

    def heed(self, signals: Iterable[int]) -> None:
        """Ring with the number of each of these signals; for the main thread."""


class PollAlarm:
    """An Alarm of a pipe, into which Python itself writes the numbers of signals."""

    def __init__(self) -> None:
        from select import POLLIN, poll

        self._reading, self._writing = os.pipe()
        os.set_blocking(self._writing, False)
        self._poll = poll()  # `select` takes no descriptor above 1023
        self._poll.register(self._reading, POLLIN)

    def ring(self, byte: int) -> None:
        with suppress(BlockingIOError):
            os.write(self._writing, bytes([byte]))

    def wait(self, seconds: float | None) -> int | None:
        # `sleep` fails if the clock jumps, and locks then do not wait.
        wait = None if seconds is None else ceil(1000 * min(max(seconds, 0.0), _LONGEST))
        return os.read(self._reading, 1)[0] if self._poll.poll(wait) else None

    def heed(self, signals: Iterable[int]) -> None:
        signal.set_wakeup_fd(self._writing, warn_on_full_buffer=False)
        for number in signals:
            signal.signal(number, _noticed)


class QueueAlarm:
    """An Alarm of a queue."""

    def __init__(self) -> None:
        self._bytes = SimpleQueue[int]()

    def ring(self, byte: int) -> None:
        self._bytes.put(byte)

    def wait(self, seconds: float | None) -> int | None:
        until = monotonic() + (_LONGEST if seconds is None else seconds)
        while True:
            rest = until - monotonic()
            try:
                return self._bytes.get(timeout=max(0.0, min(rest, _SLICE)))
            except Empty:
                if rest <= _SLICE and seconds is not None:
                    return None

    def heed(self, signals: Iterable[int]) -> None:
        for number in signals:
            signal.signal(number, lambda number, _: self._bytes.put(number))


def new_alarm() -> Alarm:
    """Return the Alarm of this platform."""
    import select

    return PollAlarm() if hasattr(select, "poll") else QueueAlarm()


def _noticed(number: int, frame: object) -> None:
    """Do nothing: with any handler, the signal's byte appears in the pipe."""
