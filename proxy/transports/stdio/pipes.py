"""The proxy's ends of pipes: read in chunks, and written so that no line interrupts another.

A short message costs one system call each way. Both ends also work on non-blocking descriptors: the
process that started the proxy may have left them so.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable
from contextlib import suppress
from threading import Lock, Thread

_CHUNK = 64 << 10
_LARGE = 32 << 10  # bytes of a write from which a wide pipe pays off
_WIDE = 1 << 20
_GLANCE = 0.2  # seconds between two checks of a waiting writer if it was closed


class PipeReader:
    """The end of a pipe that is read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()
        self._large = False
        self.idle = False
        """True while there is nothing to read."""

    def read(self) -> tuple[bytes | bytearray, int]:
        """Return a buffer, valid until the next call, and the size of its content, 0 at the end."""
        while True:
            self.idle = True
            try:
                if self._large:
                    chunk: bytes | bytearray = self._buffer
                    size = os.readv(self._descriptor, [self._buffer])
                else:
                    chunk = os.read(self._descriptor, _CHUNK)
                    size = len(chunk)
            except BlockingIOError:
                ready(self._descriptor, "POLLIN", _GLANCE)
                continue
            except OSError:
                return b"", 0
            self.idle = False
            if (size >= _CHUNK) is not self._large:
                self._switch()
            return chunk, size

    def _switch(self) -> None:
        if not self._buffer:
            try:
                self._buffer = bytearray(_WIDE)
            except MemoryError:
                return
            widen(self._descriptor)
        self._large = not self._large


class PipeWriter:
    """The end of a pipe that is written: whole lines by any thread, long lines in pieces by one.

    Lines wait while another is written in pieces. If the other side is gone or the writer was
    closed, writes are lost; `on_broken` is called when the other side is first found to be gone.
    """

    def __init__(self, descriptor: int, on_broken: Callable[[], None]) -> None:
        self.broken = False
        """True if the other side was found to be gone."""
        self._descriptor = descriptor
        self._lock = Lock()
        self._mid_line = False
        self._waiting: deque[bytes] = deque()
        self._wide = False
        self._closed = False
        self._on_broken = on_broken

    def send(self, lines: Iterable[bytes] = ()) -> None:
        self._waiting.extend(lines)
        with self._lock:
            self._write_waiting()
        if self._closed:
            self.close()

    def send_later(self, lines: Iterable[bytes]) -> None:
        """Write whole lines in another thread: for a caller that must not block."""
        self._waiting.extend(lines)
        try:
            Thread(target=self.send, name="send_later", daemon=True).start()
        except RuntimeError:  # no thread can be started: better block than lose the lines
            self.send()

    def send_chunk(self, part: bytes | bytearray | memoryview, last: bool) -> None:
        with self._lock:
            self._mid_line = not last
            self._write(part)
            self._write_waiting()

    def finish(self, lines: Iterable[bytes]) -> None:
        """Write whole lines, after ending a line whose further pieces will never come."""
        self._waiting.extend(lines)
        with self._lock:
            if self._mid_line:
                self._mid_line = False
                self._write(b"\n")
            self._write_waiting()

    def close(self) -> None:
        # A thread that is writing now checks this once it has released the lock.
        self._closed = True
        if self._lock.acquire(blocking=False):
            try:
                if self._descriptor >= 0:
                    os.close(self._descriptor)
                    self._descriptor = -1
            finally:
                self._lock.release()

    def _write_waiting(self) -> None:
        while self._waiting and not self._mid_line:
            line = self._waiting.popleft()
            if self._waiting:
                rest = [self._waiting.popleft() for _ in range(len(self._waiting))]
                self._write(b"\n".join([line, *rest, b""]))
            elif len(line) < _CHUNK:
                self._write(line + b"\n")
            else:
                # Not joined, which would copy a line that may be very long.
                self._write(line)
                self._write(b"\n")

    def _write(self, raw: bytes | bytearray | memoryview) -> None:
        if len(raw) >= _LARGE and not self._wide:
            self._wide = True
            widen(self._descriptor)
        try:
            while not self._closed:
                try:
                    count = os.write(self._descriptor, raw)
                except BlockingIOError:
                    ready(self._descriptor, "POLLOUT", _GLANCE)
                    continue
                if count == len(raw):
                    return
                raw = memoryview(raw)[count:]
        except OSError:
            if not (self.broken or self._closed):
                self.broken = True
                self._on_broken()


def widen(descriptor: int) -> None:
    """Give a pipe the largest capacity that the system allows; other descriptors are unchanged.

    Only once it is needed: the wide pipes of one user share a limit of 64 MiB on Linux.
    """
    # There may be no memory to load it.
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _WIDE)


def ready(descriptor: int, event: str, seconds: float) -> bool:
    """Wait until a descriptor is ready for an event, named as in `select`; False if it is not."""
    import select

    poll = select.poll()
    poll.register(descriptor, getattr(select, event))
    return bool(poll.poll(seconds * 1000))
