"""Random streams of lines in random chunks, held against what `split` makes of them."""

from collections.abc import Hashable, Iterator

from msgspec import Struct

from proxy.document.message import ENDS
from proxy.transports.stdio.lines import (
    Chunk,
    Event,
    LineDropped,
    Lines,
    LineStreamed,
    LineTooLong,
    LineTruncated,
)
from tests.fuzz.dice import Dice
from tests.fuzz.fuzzer import Wrong

PARTS = (
    *(b'{"jsonrpc":"2.0","id":1,"result":{}}', b"{}", b"[]", b"", b"", b"\r", b"\xef\xbb\xbf{}"),
    *(b" ", "\u2028\u0085".encode(), b"\xff\xfe", "é😀"[:1].encode()[:1], b"\x00", b"debug: x"),
    *(b"}", b"\r\r", b"0123456789abcdef", "漢字".encode(), b'"', b"]  ", b"} \r"),
)


class Stream(Struct, frozen=True):
    """A stream, where it is cut, and what it is read with."""

    raw: bytes
    cuts: tuple[int, ...]
    limit: int
    long: int
    yes: bytes
    quick: bool = False


def stream(dice: Dice) -> Stream:
    """Return a random one: mostly of short lines, cut anywhere or between lines."""
    lines = [_line(dice) for _ in range(dice.below(7))]
    raw = b"\n".join(lines)
    if dice.one_in(2) and raw:
        raw += b"\n"
    return Stream(
        raw,
        _cuts(dice, raw),
        limit=dice.pick((1, 5, 17, 40, 700, 1 << 20)),
        long=dice.pick((1, 8, 17, 33, 600)),
        yes=dice.pick((b"", b'{0"', b"{[\x00\xff0} ")),
        quick=dice.one_in(2),
    )


def _cuts(dice: Dice, raw: bytes) -> tuple[int, ...]:
    """Return where a stream is cut: everywhere, behind its lines, nowhere or anywhere."""
    way = dice.below(5)
    cuts: list[int] = []
    if way == 0 and len(raw) < 900:
        cuts = list(range(1, len(raw)))
    elif way == 1:
        cuts = [at + 1 for at, byte in enumerate(raw[:-1]) if byte == 0x0A]
    elif way > 2:
        cuts = sorted({dice.within(1, len(raw)) for _ in range(dice.below(12))})
    return tuple(cut for cut in cuts if cut < len(raw))


def _line(dice: Dice) -> bytes:
    line = b"".join(dice.pick(PARTS) for _ in range(dice.below(5)))
    return line * dice.within(1, 60) if dice.one_in(10) else line


def check(given: Stream) -> Iterator[Hashable]:
    """Read a stream in its chunks. Raises Wrong."""
    asked: list[bytes] = []

    def passes(start: bytes) -> bool:
        asked.append(start)
        return start[:1] in given.yes if given.yes and start else False

    lines = Lines(given.limit, passes, given.long)
    found = list(_events(lines, given))
    *whole, rest = given.raw.split(b"\n")
    at = 0
    for number, line in enumerate([*whole, *([rest] if rest else [])]):
        ended = number < len(whole)
        at = _matched(given, line, ended, found, at)
    if at != len(found):
        raise Wrong("there are no more lines than the stream has", f"{found[at:]}")
    if len(asked) > len(whole) + 1:
        raise Wrong("each line is asked about once", f"{asked}")
    yield (
        tuple(sorted({type(event).__name__ for event in found})),
        given.limit,
        given.long,
        bool(given.yes),
        len(whole) > 1,
        bool(rest),
        min(len(given.cuts), 3),
        given.quick,
    )


Seen = bytes | Chunk | LineStreamed | LineTooLong | LineDropped | LineTruncated


def _events(lines: Lines, given: Stream) -> Iterator[Seen]:
    """Yield what comes of the chunks; of pieces copies, since they are good for a moment only."""
    for start, end in zip((0, *given.cuts), (*given.cuts, len(given.raw)), strict=True):
        chunk = given.raw[start:end]
        if not chunk:
            continue
        # What is read into a buffer does not fill it.
        buffer = bytearray(chunk + b"{\n junk") if len(chunk) % 2 else chunk
        known = lines.whole(buffer, len(chunk)) if given.quick else None
        if known is not None:
            yield from known
            continue
        for event in lines.feed(buffer, len(chunk)):
            yield from _copied(event)
        if len(lines._buffer) > given.limit:
            raise Wrong("no more is held than a line may have", f"{len(lines._buffer)}")
    for event in lines.end():
        yield from _copied(event)


def _copied(event: Event) -> Iterator[Seen]:
    if isinstance(event, list):
        yield from event
    else:
        yield Chunk(bytes(event.raw), event.last) if isinstance(event, Chunk) else event


def _matched(given: Stream, line: bytes, ended: bool, found: list[Seen], at: int) -> int:
    """Hold the events from `at` on against a line; return where those of the next one begin."""

    def taken() -> Seen:
        nonlocal at
        if at >= len(found):
            raise Wrong("each line is there", f"{line!r} is not")
        at += 1
        return found[at - 1]

    event, pieces = taken(), b""
    while isinstance(event, Chunk):
        pieces += event.raw
        last, event = event.last, taken()
        if last != (not isinstance(event, Chunk)):
            raise Wrong("the last piece is the last one", f"{line!r}: {event!r}")
    if isinstance(event, LineTooLong):
        _over(given, line, event, taken(), pieces)
    elif len(line) > given.limit or (pieces, event) not in _expected(given, line, ended):
        raise Wrong("a line comes whole or in pieces", f"{line!r}: {pieces!r} {event!r}")
    return at


def _over(given: Stream, line: bytes, event: LineTooLong, after: Seen, pieces: bytes) -> None:
    """Hold what is said of a line against one that is over the limit."""
    thrown = LineDropped(line[:ENDS], line[-ENDS:], len(line))
    if len(line) <= given.limit or after != thrown or not line.startswith(event.start):
        said = f"{line!r}: {event} {after!r}"
        raise Wrong("a line over the limit is thrown away and told of", said)
    begun = line.startswith(pieces[:-1]) and pieces != b"\n"
    if not (begun and given.limit < event.size <= len(line)):
        said = f"{line!r}: {pieces!r}"
        raise Wrong("what went on of a line over the limit is its start", said)


def _expected(given: Stream, line: bytes, ended: bool) -> list[tuple[bytes, Seen]]:
    """Return what may come of a line within the limit: its pieces, and what follows them."""
    # Only its end can tell a last line without newline from one that was cut.
    whole = ended or line[-ENDS:].rstrip()[-1:] in (b"}", b"]")
    least = min(given.long, given.limit)
    held: tuple[bytes, Seen] = (b"", line if whole else LineTruncated(line, len(line)))
    if not (line and given.yes and line[:1] in given.yes and len(line) + 1 >= least):
        return [held]
    told = (
        LineStreamed(line[:ENDS], line[-ENDS:], len(line))
        if whole
        else LineTruncated(b"", len(line))
    )
    # One that is long only by its newline passes if that comes in a chunk of its own.
    return [(line + b"\n", told), *([held] if len(line) < least else [])]
