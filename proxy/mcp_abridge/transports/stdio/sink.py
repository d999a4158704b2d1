"""A descriptor that may not be read: a log line must never make a message wait.

If the platform can poll a pipe, it is written if it is ready. `ThreadSink` is for platforms that
cannot, as Windows.
"""

import os
from threading import Condition, Thread

from mcp_abridge.transports.stdio.pipes import ready

_ATOMIC = 4096  # bytes that a pipe takes without blocking if it takes any
_ROOM = 1 << 16  # bytes, as a pipe has


class PollSink:
    """A descriptor that is written if the system says that there is room."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor

    def write(self, raw: bytes | bytearray | memoryview) -> int:
        """Write as much as there is room for, perhaps nothing; return how much. Raises OSError."""
        if not ready(self._descriptor, "POLLOUT", 0):
            return 0
        try:
            return os.write(self._descriptor, raw[:_ATOMIC])
        except BlockingIOError:
            return 0

    def wait(self, seconds: float) -> None:
        """Wait until there may be more room."""
        ready(self._descriptor, "POLLOUT", seconds)

    def flush(self, seconds: float) -> None:
        """Wait until all is written, as what was accepted is."""


class ThreadSink:
    """A descriptor whose thread waits in place of the caller; as a PollSink in all else."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._bytes = bytearray()
        self._change = Condition()
        self._error: OSError | None = None
        # From the start: later there may be no memory for it.
        Thread(target=self._write_all, name="log", daemon=True).start()

    def write(self, raw: bytes | bytearray | memoryview) -> int:
        with self._change:
            if self._error is not None:
                raise self._error
            count = min(len(raw), _ROOM - len(self._bytes))
            self._bytes += raw[:count]
            self._change.notify_all()
            return count

    def wait(self, seconds: float) -> None:
        with self._change:
            self._change.wait_for(lambda: len(self._bytes) < _ROOM, seconds)

    def flush(self, seconds: float) -> None:
        with self._change:
            self._change.wait_for(lambda: not self._bytes or self._error is not None, seconds)

    def _write_all(self) -> None:
        try:
            while True:
                with self._change:
                    self._change.wait_for(lambda: self._bytes)
                    raw = bytes(self._bytes)
                count = os.write(self._descriptor, raw)
                with self._change:
                    del self._bytes[:count]
                    self._change.notify_all()
        except OSError as error:  # it can never be read
            with self._change:
                self._error = error
                self._bytes.clear()
                self._change.notify_all()


Sink = PollSink | ThreadSink


def new_sink(descriptor: int) -> Sink:
    """Return the sink of this platform."""
    import select

    return PollSink(descriptor) if hasattr(select, "poll") else ThreadSink(descriptor)
