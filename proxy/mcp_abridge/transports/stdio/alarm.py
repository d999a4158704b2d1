"""A wait that any thread ends: the proxy would miss a signal, or its end, in any other."""

from _queue import Empty, SimpleQueue  # `queue` takes 1 ms
from math import inf
from time import monotonic

from mcp_abridge.system import platform


class Alarm:
    """A wait of one thread, which is ended by bytes of other threads and of signal handlers."""

    def __init__(self) -> None:
        self._bytes = SimpleQueue[int]()

    def ring(self, byte: int) -> None:
        """End the wait, or the next one, from any thread or signal handler."""
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
