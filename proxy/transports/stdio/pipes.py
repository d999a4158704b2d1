"""Our ends of pipes: read in chunks, and written so that no line breaks into another.

Small talk costs one system call each way. What comes in large chunks is read into one buffer, and
through pipes made as wide as the system allows, which is faster than a pipe as it comes. Both work
on descriptors that do not block, too: whoever started us may have left them so.
"""

import os
from collections import deque
from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Lock, Thread

_CHUNK = 64 << 10
_WIDE = 1 << 20
_MOST_WAITING = 4 << 20
_GLANCE = 0.2  # seconds until a writer that waits looks whether its outlet was closed


class PipeReader:
    """The end of a pipe that is read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._buffer = bytearray()
        self._large = False
        self.idle = False
        """True while nothing is there to be read."""

    def read(self) -> tuple[bytes | bytearray, int]:
        """Wait for bytes and return them as the first so many of a buffer; 0 at the end.

        The buffer is good until the next call. A descriptor that is broken counts as ended.
        """
        while True:
            self.idle = True
            try:
                if self._large:
                    chunk: bytes | bytearray = self._buffer
                    size = _read_into(self._descriptor, self._buffer)
                else:
                    chunk = os.read(self._descriptor, _CHUNK)
                    size = len(chunk)
            except BlockingIOError:
                _wait(self._descriptor, "POLLIN")
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
    """The end of a pipe that is written: whole lines by any thread, a long one in pieces by one.

    Lines that are sent while another goes out in pieces follow it. Where the other side is gone,
    or the outlet was closed, what is written is lost; `broken` is called with the first of it.
    """

    def __init__(self, descriptor: int, broken: Callable[[], None]) -> None:
        self.broken = False
        """True where the other side was found to be gone."""
        self._descriptor = descriptor
        self._lock = Lock()
        self._line_over = Condition(self._lock)
        self._midline = False
        self._waiting: list[bytes] = []
        self._waiting_size = 0
        self._posted: deque[bytes] = deque()
        self._wide = False
        self._closed = False
        self._tell = broken

    def send(self, lines: list[bytes]) -> None:
        """Write whole lines, given without newlines; after one that is on its way in pieces."""
        if len(lines) == 1 and len(lines[0]) >= _CHUNK:
            # Not joined, which would make a copy of a line that may be very long.
            parts = [lines[0], b"\n"]
        else:
            parts = [b"\n".join(lines) + b"\n"]
        with self._lock:
            if self._posted:
                self._write_posted()
            while self._midline and self._waiting_size > _MOST_WAITING:
                self._line_over.wait()
            for part in parts:
                self._put(part)
        if self._closed:
            self.close()

    def piece(self, part: bytes | bytearray | memoryview, last: bool) -> None:
        """Write a part of a line, for the one thread that writes in pieces."""
        with self._lock:
            self._midline = not last
            if not self._wide:
                self._wide = True
                widen(self._descriptor)
            self._write(part)
            if last and self._waiting:
                waiting, self._waiting, self._waiting_size = self._waiting, [], 0
                self._line_over.notify_all()
                self._write(b"".join(waiting))

    def post(self, lines: list[bytes]) -> None:
        """Have whole lines written by somebody else: for a thread that must not wait.

        What is sent after that follows them.
        """
        self._posted.extend(lines)
        try:
            Thread(target=self._send_posted, name="post", daemon=True).start()
        except RuntimeError:  # there can be no more of them: to wait is the lesser evil
            self._send_posted()

    def flush(self) -> None:
        """Write what was posted so far, whoever else is about to."""
        with self._lock:
            self._write_posted()

    def finish(self, lines: list[bytes]) -> None:
        """Write whole lines, after the end of one whose further pieces will never come."""
        with self._lock:
            unfinished, self._midline = self._midline, False
            ends = b"\n" * unfinished
            self._write(ends + b"".join([*self._waiting, *(line + b"\n" for line in lines)]))

    def close(self) -> None:
        """Let the other side see the end; what is just being written is given up."""
        # Whoever is writing now looks at this once it has let go of the lock.
        self._closed = True
        if self._lock.acquire(blocking=False):
            try:
                self._close()
            finally:
                self._lock.release()

    def _send_posted(self) -> None:
        # A thread for each call, and the lock alone would not keep them in order.
        self.flush()
        if self._closed:
            self.close()

    def _write_posted(self) -> None:
        while self._posted:
            self._put(self._posted.popleft() + b"\n")

    def _put(self, part: bytes) -> None:
        """Write what must not break into a line that goes out in pieces: it follows that one."""
        if self._midline:
            self._waiting.append(part)
            self._waiting_size += len(part)
        else:
            self._write(part)

    def _write(self, raw: bytes | bytearray | memoryview) -> None:
        try:
            sent = os.write(self._descriptor, raw)
            if sent < len(raw):
                self._write_rest(memoryview(raw)[sent:])
        except BlockingIOError:
            self._write_rest(memoryview(raw))
        except OSError:
            self._break()

    def _write_rest(self, rest: memoryview) -> None:
        try:
            while rest and not self._closed:
                _wait(self._descriptor, "POLLOUT")
                with suppress(BlockingIOError):
                    rest = rest[os.write(self._descriptor, rest) :]
        except OSError:
            self._break()

    def _break(self) -> None:
        if not (self.broken or self._closed):
            self.broken = True
            self._tell()

    def _close(self) -> None:
        if self._descriptor >= 0:
            os.close(self._descriptor)
            self._descriptor = -1


def widen(descriptor: int) -> None:
    """Make a pipe hold as much as the system allows; anything but a pipe stays as it is.

    Not done before it is needed: the wide pipes of one user share a limit of 64 MiB on Linux.
    """
    with suppress(ImportError, AttributeError, OSError):
        import fcntl

        fcntl.fcntl(descriptor, fcntl.F_SETPIPE_SZ, _WIDE)


def _read_into(descriptor: int, buffer: bytearray) -> int:
    if hasattr(os, "readv"):
        return os.readv(descriptor, [buffer])
    chunk = os.read(descriptor, len(buffer))
    buffer[: len(chunk)] = chunk
    return len(chunk)


def _wait(descriptor: int, event: str) -> None:
    """Wait until a descriptor that does not block is ready, for a glance at most."""
    import select

    if hasattr(select, "poll"):
        poll = select.poll()
        poll.register(descriptor, getattr(select, event))
        poll.poll(_GLANCE * 1000)
    else:
        reading = [descriptor] if event == "POLLIN" else []
        select.select(reading, [] if reading else [descriptor], [], _GLANCE)
