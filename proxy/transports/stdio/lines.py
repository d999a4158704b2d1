r"""Cuts a stream of bytes into lines: kept whole, passed on in pieces as they come, or thrown away.

A line ends at `\n` and nowhere else (MCP: Transports, stdio). Invariant: whatever the chunks, the
lines are the same, and each byte is looked at once.
"""

from collections.abc import Callable, Iterator
from typing import Literal

from msgspec import Struct

LONG = 32 << 10
"""Bytes from which it is worth asking whether a line may go on before it has ended."""

ENDS = 512
"""How many of its first and last bytes are known of a line that was not kept."""

_NEWLINE = 0x0A


class Chunk(Struct, gc=False):
    """A part of a line that goes on as it comes; the last one brings the newline.

    `raw` is good until the next chunk is fed.
    """

    raw: bytes | bytearray | memoryview
    last: bool


class LineStreamed(Struct, gc=False):
    """A line has gone on in pieces, the last of which came just before; its size in bytes."""

    start: bytes
    end: bytes
    size: int


class LineTooLong(Struct, gc=False):
    """A line has grown over the limit: the rest of it is thrown away, and what was kept of it.

    Or there was no memory for it: then its size is not over the limit.
    Where pieces of it have gone on, the last of them came just before.
    """

    start: bytes
    size: int


class LineDropped(Struct, gc=False):
    """A line that was over the limit, or did not fit into memory, has ended."""

    start: bytes
    end: bytes
    size: int


class LineTruncated(Struct, gc=False):
    """The stream has ended in the middle of a line; what was kept of it."""

    raw: bytes
    size: int


Event = list[bytes] | Chunk | LineStreamed | LineTooLong | LineDropped | LineTruncated


class Lines:
    r"""Turns chunks into events; whole lines come in lists, without their newlines.

    `limit` is the most bytes that one line may have. `passes` is asked with the start of a line
    of at least `long` bytes whether its body may go on in pieces; without it none does.

    >>> lines = Lines(limit=100)
    >>> [event for chunk in (b'{"id"', b':1}\n{}\n[') for event in lines.feed(chunk, len(chunk))]
    [[b'{"id":1}'], [b'{}']]
    >>> list(lines.end())
    [Cut(raw=b'[', size=1)]
    """

    __slots__ = ("_end", "_held", "_limit", "_long", "_mode", "_passes", "_size", "_start")

    def __init__(
        self, limit: int, passes: Callable[[bytes], bool] | None = None, long: int = LONG
    ) -> None:
        self._limit = limit
        self._passes = passes
        self._long = min(long, limit)
        self._mode: Literal["fresh", "begun", "held", "passing", "discarding"] = "fresh"
        self._held = bytearray()
        self._start = b""
        self._end = b""
        self._size = 0

    def whole(self, buffer: bytes | bytearray, size: int) -> list[bytes] | None:
        """Take a chunk of short and complete lines and return them; None for any other, untaken.

        Most chunks are one such line: this is `feed` for them, without what makes it slower.
        """
        if self._mode == "fresh" and size <= self._long and buffer[size - 1] == _NEWLINE:
            chunk = buffer if type(buffer) is bytes else bytes(buffer[:size])
            return chunk[: size - 1].split(b"\n")
        return None

    def feed(self, buffer: bytes | bytearray, size: int) -> Iterator[Event]:
        """Take the first `size` bytes of `buffer`, at least one; yield what they complete."""
        view = memoryview(buffer)
        whole: list[bytes] = []
        at = 0
        while at < size:
            found = buffer.find(b"\n", at, size)
            after = size if found < 0 else found + 1
            if found >= 0 and self._mode == "fresh" and found - at < self._long:
                whole.append(bytes(view[at:found]))
            else:
                if whole:
                    yield whole
                    whole = []
                yield from self._continue(view[at:after], found >= 0)
            at = after
        if whole:
            yield whole

    def end(self) -> Iterator[Event]:
        """Take the end of the stream, which may have come in the middle of a line."""
        # Only its end can tell a last line without newline from one that was cut.
        whole = (self._end or self._held[-ENDS:]).rstrip()[-1:] in (b"}", b"]")
        if self._mode in ("begun", "held"):
            yield (
                [bytes(self._held)] if whole else LineTruncated(bytes(self._held), len(self._held))
            )
        elif self._mode == "passing":
            yield Chunk(b"\n", True)
            yield (
                LineStreamed(self._start, self._end, self._size)
                if whole
                else LineTruncated(b"", self._size)
            )
        elif self._mode == "discarding":
            yield LineDropped(self._start, self._end, self._size)
        self._forget()

    def _continue(self, part: memoryview, ends: bool) -> Iterator[Event]:
        """Go on with a line, or begin one, by `part`, which brings its newline where it `ends`."""
        body = part[:-1] if ends else part
        if len(self._start) < ENDS:
            self._start += body[: ENDS - len(self._start)]
        if self._mode == "fresh":
            self._mode = "begun"
        if self._mode == "begun" and self._size + len(part) >= self._long:
            self._mode = "held"
            fits = self._size + len(body) <= self._limit
            if fits and self._passes is not None and self._passes(self._start):
                self._mode = "passing"
                if self._held:
                    yield Chunk(self._held, False)
        self._size += len(body)
        if self._size > self._limit and self._mode != "discarding":
            if self._mode == "passing":
                yield Chunk(b"\n", True)
            self._mode = "discarding"
            yield LineTooLong(self._start, self._size)
        if self._mode in ("begun", "held"):
            try:
                self._held += body
                line = bytes(self._held) if ends else None
            except MemoryError:
                del self._held[self._size - len(body) :]
                self._end = bytes(self._held[-ENDS:])
                self._held = bytearray()  # before anybody else needs memory
                self._mode = "discarding"
                yield LineTooLong(self._start, self._size)
            else:
                if line is not None:
                    self._forget()
                    yield [line]
                return
        if self._held:
            self._end = bytes(self._held[-ENDS:])
            self._held = bytearray()
        self._end = (self._end + body[-ENDS:])[-ENDS:]
        if self._mode == "passing":
            yield Chunk(part, ends)
        if ends:
            over = LineStreamed if self._mode == "passing" else LineDropped
            event = over(self._start, self._end, self._size)
            self._forget()
            yield event

    def _forget(self) -> None:
        self._mode = "fresh"
        self._held = bytearray()
        self._start = self._end = b""
        self._size = 0
