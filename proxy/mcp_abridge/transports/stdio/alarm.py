"""A wait that any thread ends: the proxy would miss a signal, or its end, in any other."""

from _queue import Empty, SimpleQueue  # `queue` takes 1 ms
from math import inf
from time import monotonic

from mcp_abridge.system import platform


class Alarm:
    """A wait of one thread, ended by events of other threads, and by the numbers of signals."""

    def __init__(self) -> None:
        self._events = SimpleQueue[str | int]()

    def ring(self, event: str | int) -> None:
        """End the wait, or the next one, from any thread or signal handler."""
        self._events.put(event)

    def wait(self, seconds: float | None) -> str | int | None:
        """Return the next event, or None after some seconds."""
        until = monotonic() + (inf if seconds is None else seconds)
        while True:
            rest = until - monotonic()
            try:
                return self._events.get(timeout=max(0.0, min(rest, platform.LONGEST_WAIT)))
            except Empty:
                if rest <= platform.LONGEST_WAIT:
                    return None
