"""A wait that any thread ends: the proxy would miss a signal, or its end, in any other."""

import signal
from _queue import Empty, SimpleQueue  # `queue` takes 1 ms
from collections.abc import Iterable
from math import inf
from time import monotonic

from mcp_abridge.system import platform


class Alarm:
    """A wait of one thread, which is ended by bytes of other threads and by signals."""

    def __init__(self) -> None:
        self._bytes = SimpleQueue[int]()

    def ring(self, byte: int) -> None:
        """End the wait, or the next one, from any thread."""
        self._bytes.put(byte)

    def wait(self, seconds: float | None) -> int | None:
        """Return the next byte, or None after some seconds."""
        until = monotonic() + (inf if seconds is None else seconds)
        while True:
            rest = until - monotonic()
            try:
                return self._bytes.get(timeout=max(0.0, min(rest, platform.LONGEST_WAIT)))
            except Empty:
                if rest <= platform.LONGEST_WAIT:
                    return None

    def heed(self, signals: Iterable[int]) -> None:
        """Ring with the number of each of these signals; for the main thread."""
        for number in signals:
            signal.signal(number, lambda number, _: self._bytes.put(number))
