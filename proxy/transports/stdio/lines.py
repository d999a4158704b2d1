r"""Split a stream of bytes into lines: kept whole, streamed in pieces as they arrive, or dropped.

A line ends at `\n` and nowhere else (MCP: Transports, stdio). Invariant: the lines do not depend on
how the stream is cut into chunks, and each byte is examined once.
"""

from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct

from proxy.document.message import ENDS

LONG = 32 << 10
"""The size in bytes from which a line may be streamed before it has ended."""


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
