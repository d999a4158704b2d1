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


class Piece(Struct, gc=False):
    """A part of a line that goes on as it comes; the last one brings the newline.

    `raw` lives until the next chunk is fed.
    """

    raw: memoryview | bytes | bytearray
    last: bool


class Passed(Struct, gc=False):
    """A line has gone on in pieces, the last of which came just before."""

    start: bytes
    end: bytes
    size: int


class Discarded(Struct, gc=False):
    """A line over the limit has ended; nothing of it went on."""

    start: bytes
    size: int


Event = list[bytes] | Piece | Passed | Discarded


class Lines:
    r"""Turns chunks into events; whole lines come in lists, without their newlines.

    `limit` is the most bytes that are kept of one line. `passes` is asked with the start of a long
    line whether its body may go on in pieces; without it none does.

    >>> lines = Lines(limit=100)
    >>> [event for chunk in (b'{"id"', b':1}\n{}\n[') for event in lines.feed(chunk, len(chunk))]
    [[b'{"id":1}', b'{}']]
    >>> list(lines.end())
    [[b'[']]
    """

    __slots__ = ("_end", "_held", "_limit", "_mode", "_passes", "_size", "_start")

    def __init__(self, limit: int, passes: Callable[[bytes], bool] | None = None) -> None:
        self._limit = limit
        self._passes = passes
        self._mode: Literal["fresh", "begun", "held", "passing", "discarding"] = "fresh"
        self._held = bytearray()
        self._start = b""
        self._end = b""
        self._size = 0

    def feed(self, buffer: bytes | bytearray, size: int) -> Iterator[Event]:
        """Take the first `size` bytes (at least one) of `buffer`; yield what they complete."""
        if self._mode == "fresh" and size <= LONG and buffer[size - 1] == _NEWLINE:
            yield bytes(memoryview(buffer)[: size - 1]).split(b"\n")
            return
        view = memoryview(buffer)
        whole: list[bytes] = []
        at = 0
        while at < size:
            found = buffer.find(b"\n", at, size)
            after = size if found < 0 else found + 1
            if found >= 0 and self._mode == "fresh" and found - at < LONG:
                whole.append(bytes(view[at:found]))
            else:
                if whole:
                    yield whole
                    whole = []
                yield from self._long(view[at:after], found >= 0)
            at = after
        if whole:
            yield whole

    def end(self) -> Iterator[Event]:
        """Take the end of the stream, which may have come in the middle of a line."""
        if self._mode in ("begun", "held"):
            yield [bytes(self._held)]
        elif self._mode == "passing":
            yield Piece(b"\n", True)
            # Only its end can tell a last line without newline from one that was cut.
            if self._end.rstrip()[-1:] in (b"}", b"]"):
                yield Passed(self._start, self._end, self._size)
        elif self._mode == "discarding":
            yield Discarded(self._start, self._size)
        self._forget()

    def _long(self, part: memoryview, ends: bool) -> Iterator[Event]:
        """Go on with a line, or begin one, by `part`, which brings its newline where it `ends`."""
        if self._mode in ("fresh", "begun", "held"):
            yield from self._keep(part, ends)
        elif self._mode == "passing":
            yield from self._pass(part, ends)
        else:
            self._size += len(part) - ends
            if ends:
                yield Discarded(self._start, self._size)
                self._forget()

    def _keep(self, part: memoryview, ends: bool) -> Iterator[Event]:
        asked = self._mode == "held"
        if not asked and len(self._held) + len(part) >= LONG:
            self._start = bytes(self._held[:ENDS]) + bytes(part[: ENDS - len(self._held[:ENDS])])
            self._mode = "held"
            if self._passes is not None and self._passes(self._start):
                if self._held:
                    yield from self._pass(self._held, False)
                    self._held = bytearray()
                yield from self._pass(part, ends)
                return
        elif not asked:
            self._mode = "begun"
        if len(self._held) + len(part) - ends > self._limit:
            self._start = bytes(self._held[:ENDS]) + bytes(part[: ENDS - len(self._held[:ENDS])])
            self._size = len(self._held)
            self._held = bytearray()
            self._mode = "discarding"
            yield from self._long(part, ends)
        elif ends:
            self._held += part[:-1]
            line = bytes(self._held)
            self._forget()
            yield [line]
        else:
            self._held += part

    def _pass(self, part: memoryview | bytearray, ends: bool) -> Iterator[Event]:
        self._mode = "passing"
        body = memoryview(part)[: len(part) - ends]
        self._size += len(body)
        self._end = bytes(body[-ENDS:]) if len(body) >= ENDS else (self._end + body)[-ENDS:]
        yield Piece(part, ends)
        if ends:
            yield Passed(self._start, self._end, self._size)
            self._forget()

    def _forget(self) -> None:
        self._mode = "fresh"
        self._held = bytearray()
        self._start = self._end = b""
        self._size = 0
