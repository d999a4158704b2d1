r"""Lines over pipes: read in chunks, split, and written so that no line interrupts another.

A line ends at `\n` and nowhere else (MCP: Transports, stdio). Invariant: the lines do not depend on
how the stream is cut into chunks, and each byte is examined once.

A short message costs one system call each way. Both ends also work on non-blocking descriptors: the
process that started the proxy may have left them so.
"""

import os
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from io import FileIO
from threading import Lock, Thread
from typing import Literal

from msgspec import Struct

from mcp_abridge.document.message import ENDS
from mcp_abridge.system import platform

LONG = 32 << 10
"""The size in bytes from which a line may be streamed before it has ended."""

_CHUNK = 64 << 10
_LARGE = 32 << 10  # bytes of a write from which a wide pipe pays off
_GLANCE = 0.2  # seconds between two checks of a waiting writer if it was closed


class Chunk(Struct, gc=False):
    """A part of a line; the last holds the newline. `raw` is valid until the next chunk is fed."""

    raw: bytes | bytearray | memoryview
    last: bool


class LongLine(Struct, gc=False):
    """A line that is not kept: its first and last bytes, and its size so far.

    `streamed`: it has ended. `too long`: it has grown over the limit, or there was no memory; the
    rest is dropped. In both, a streamed line's last piece came before. `dropped`: such an end.
    """

    state: Literal["streamed", "too long", "dropped"]
    start: bytes
    end: bytes
    size: int


class LineTruncated(Struct, gc=False):
    """The stream has ended in the middle of a line; `raw` is the part that was kept."""

    raw: bytes
    size: int


Event = list[bytes] | Chunk | LongLine | LineTruncated


class Lines:
    r"""Turn chunks into events; whole lines come in lists, without their newlines.

    `limit` is the maximum size of a line in bytes. `passes` gets the start of a line of at least
    `long` bytes and returns True if the line may be streamed; without it, none is.

    >>> lines = Lines(limit=100)
    >>> [event for chunk in (b'{"id"', b':1}\n{}\n[') for event in lines.feed(chunk, len(chunk))]
    [[b'{"id":1}'], [b'{}']]
    >>> list(lines.end())
    [LineTruncated(raw=b'[', size=1)]
    """

    __slots__ = ("_buffer", "_end", "_limit", "_long", "_mode", "_passes", "_size", "_start")

    def __init__(
        self, limit: int, passes: Callable[[bytes], bool] | None = None, long: int = LONG
    ) -> None:
        self._limit = limit
        self._passes = passes
        self._long = min(long, limit)
        self._mode: Literal["fresh", "begun", "kept", "passing", "discarding"] = "fresh"
        self._buffer = bytearray()
        self._start = b""
        self._end = b""
        self._size = 0

    def feed(self, buffer: bytes | bytearray, size: int) -> Iterator[Event]:
        view = memoryview(buffer)
        whole: list[bytes] = []
        at = 0
        while at < size:
            newline = buffer.find(b"\n", at, size)
            after = size if newline < 0 else newline + 1
            if newline >= 0 and self._mode == "fresh" and newline - at < self._long:
                whole.append(bytes(view[at:newline]))
            else:
                if whole:
                    yield whole
                    whole = []
                yield from self._continue(view[at:after], newline >= 0)
            at = after
        if whole:
            yield whole

    def end(self) -> Iterator[Event]:
        # Only its last byte distinguishes a last line without newline from a truncated line.
        whole = (self._end or self._buffer[-ENDS:]).rstrip()[-1:] in (b"}", b"]")
        if self._mode in ("begun", "kept"):
            raw = bytes(self._buffer)
            yield [raw] if whole else LineTruncated(raw, len(raw))
        elif self._mode == "passing":
            yield Chunk(b"\n", True)
            yield self._long_line("streamed") if whole else LineTruncated(b"", self._size)
        elif self._mode == "discarding":
            yield self._long_line("dropped")
        self._forget()

    def _continue(self, part: memoryview, ends: bool) -> Iterator[Event]:
        body = part[:-1] if ends else part
        if len(self._start) < ENDS:
            self._start += body[: ENDS - len(self._start)]
        if self._mode == "fresh":
            self._mode = "begun"
        if self._mode == "begun" and self._size + len(part) >= self._long:
            self._mode = "kept"
            fits = self._size + len(body) <= self._limit
            if fits and self._passes is not None and self._passes(self._start):
                self._mode = "passing"
                if self._buffer:
                    yield Chunk(self._buffer, False)
        self._size += len(body)
        if self._size > self._limit and self._mode != "discarding":
            if self._mode == "passing":
                yield Chunk(b"\n", True)
            self._mode = "discarding"
            yield LongLine("too long", self._start, b"", self._size)
        if self._mode in ("begun", "kept"):
            try:
                self._buffer += body
                line = bytes(self._buffer) if ends else None
            except MemoryError:
                del self._buffer[self._size - len(body) :]
                self._end = bytes(self._buffer[-ENDS:])
                self._buffer = bytearray()  # release it before the next allocation
                self._mode = "discarding"
                yield LongLine("too long", self._start, b"", self._size)
            else:
                if line is not None:
                    self._forget()
                    yield [line]
                return
        if self._buffer:
            self._end = bytes(self._buffer[-ENDS:])
            self._buffer = bytearray()
        self._end = (self._end + body[-ENDS:])[-ENDS:]
        if self._mode == "passing":
            yield Chunk(part, ends)
        if ends:
            event = self._long_line("streamed" if self._mode == "passing" else "dropped")
            self._forget()
            yield event

    def _long_line(self, state: Literal["streamed", "dropped"]) -> LongLine:
        return LongLine(state, self._start, self._end, self._size)

    def _forget(self) -> None:
        self._mode = "fresh"
        self._buffer = bytearray()
        self._start = self._end = b""
        self._size = 0


class PipeReader:
    """The end of a pipe that is read."""

    def __init__(self, descriptor: int) -> None:
        self._descriptor = descriptor
        self._file: FileIO | None = None
        self._buffer = bytearray()
        self._large = False
        self.idle = False
        """True while there is nothing to read."""

    def read(self) -> tuple[bytes | bytearray, int]:
        """Return a buffer, valid until the next call, and the size of its content, 0 at the end."""
        while True:
            self.idle = True
            try:
                if self._large and self._file is not None:
                    chunk: bytes | bytearray = self._buffer
                    count = self._file.readinto(self._buffer)
                    if count is None:
                        raise BlockingIOError
                    size = count
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
                self._buffer = bytearray(platform.WIDE)
                self._file = FileIO(self._descriptor, closefd=False)
            except (MemoryError, OSError):
                return
            platform.widen(self._descriptor)
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
        """Write whole lines, given without newlines, after all that were sent before."""
        self._waiting.extend(lines)
        with self._lock:
            self._write_waiting()
        if self._closed:
            self.close()

    def put(self, lines: Iterable[bytes]) -> None:
        """Have whole lines written by the next `send`, before its own."""
        self._waiting.extend(lines)

    def send_later(self, lines: Iterable[bytes]) -> None:
        """Write whole lines in another thread: for a caller that must not block."""
        self._waiting.extend(lines)
        try:
            Thread(target=self.send, name="send_later", daemon=True).start()
        except RuntimeError:  # no thread can be started: better block than lose the lines
            self.send()

    def send_chunk(self, part: bytes | bytearray | memoryview, last: bool) -> None:
        """Write a part of a line; only one thread may write in pieces."""
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
            lines = [self._waiting.popleft() for _ in range(len(self._waiting))]
            if len(lines) == 1 and len(lines[0]) >= _CHUNK:
                # Not joined, which would copy a line that may be very long.
                self._write(lines[0])
                self._write(b"\n")
            else:
                self._write(b"\n".join([*lines, b""]))

    def _write(self, raw: bytes | bytearray | memoryview) -> None:
        if len(raw) >= _LARGE and not self._wide:
            self._wide = True
            platform.widen(self._descriptor)
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


def ready(descriptor: int, event: str, seconds: float) -> bool:
    """Wait until a descriptor is ready for an event, named as in `select`; False if it is not.

    False at once if the platform cannot poll: there, no pipe is non-blocking.
    """
    import select

    if not hasattr(select, "poll"):
        return False
    poll = select.poll()
    poll.register(descriptor, getattr(select, event))
    return bool(poll.poll(seconds * 1000))
