"""Random event streams in random chunks, held against the algorithm of the specification."""

import re
from collections.abc import Hashable, Iterator

from msgspec import Struct

from proxy.transports.http import sse
from proxy.transports.http.sse import Events, TooLong
from tests.fuzz.dice import Dice
from tests.fuzz.fuzzer import Wrong

LINES = (
    *(b"", b"", b"", b"data", b"data:", b"data: ", b'data: {"id":1}', b"data:x", b"data:  two"),
    *(b":", b"id: 7", b"id", b"id: \0", b"event: message", b"event", b"retry: 500", b"retry: x"),
    *(b": ping", b"unknown: 1", b" data: 1", b"data\xff: 1", b"id: \xff", b"\xef\xbb\xbf"),
    *(b"retry: 9999999999", "data: \u2028\x85".encode(), b"data: \x00", b"data: a:b", b"DATA: x"),
    *(b"data : x",),
)
ENDS = (b"\n", b"\r\n", b"\r")
Fields = tuple[bytes | None, str | None, str | None, int | None]
NOTHING: Fields = (None, None, None, None)


class Stream(Struct, frozen=True):
    """A stream, where it is cut, and the most bytes that an event may have."""

    raw: bytes
    cuts: tuple[int, ...]
    limit: int


def stream(dice: Dice) -> Stream:
    """Return a random one, its lines ending alike or each in its own way."""
    one = dice.pick((*ENDS, b""))
    lines = []
    for _ in range(dice.below(12)):
        line = dice.pick(LINES)
        lines.append((line * 40 if dice.one_in(30) else line) + (one or dice.pick(ENDS)))
    raw = (b"\xef\xbb\xbf" if dice.one_in(8) else b"") + b"".join(lines)
    raw += dice.pick((b"", b"", b"dat", b"data: x", b"\r", b"\xef\xbb"))
    cuts: Iterator[int] | range = iter(
        sorted({dice.within(1, max(len(raw), 1)) for _ in range(dice.below(9))})
    )
    if dice.one_in(4):
        cuts = range(1, len(raw))
    return Stream(
        raw, tuple(cut for cut in cuts if cut < len(raw)), dice.pick((9, 30, 1 << 20, 1 << 20))
    )


def check(given: Stream) -> Iterator[Hashable]:
    """Read a stream in its chunks. Raises Wrong."""
    events = Events(given.limit)
    found: list[sse.Event] = []
    too_long = False
    try:
        for start, end in zip((0, *given.cuts), (*given.cuts, len(given.raw)), strict=True):
            for event in events.feed(given.raw[start:end]):
                found.append(event)
                if len(event.raw) > given.limit:
                    raise Wrong("no event is over the limit", f"{event}")
    except TooLong:
        too_long = True
    read = [(event.data, event.id, event.event, event.retry) for event in found]
    named = [fields for fields in read if fields != NOTHING]
    # One more byte tells a `\r` at the end from half a line end.
    expected = list(by_the_book(given.raw + b":"))
    whole = b"".join(event.raw for event in found)
    if too_long:
        # What comes before the event that is too long is there.
        if named != expected[: len(named)] or not _unmarked(given.raw).startswith(whole):
            raise Wrong("the events are those of the specification", f"{named}, not {expected}")
        yield ("too long", len(named), given.limit)
        return
    left = events.end()
    if _unmarked(given.raw) != whole + left:
        raise Wrong("no byte is lost but a mark", f"{whole + left!r}")
    if len(left) > given.limit:
        raise Wrong("no event is over the limit", f"{left!r}")
    waits = left.endswith(b"\r") and len(named) + 1 == len(expected)
    if named != expected and not (waits and named == expected[:-1]):
        raise Wrong("the events are those of the specification", f"{named}, not {expected}")
    for event in found:
        if event.data is not None:
            _replaced(event)
    yield (
        tuple(sorted({tuple(part is None for part in fields) for fields in named})),
        bool(left),
        min(len(found), 5),
    )


def _replaced(event: sse.Event) -> None:
    """Hold an event with other data against what it was."""
    again = sse.replaced(event, b"new\nline")
    fields = [*by_the_book(again + b":")]
    if fields != [(b"new\nline", event.id, event.event, event.retry)]:
        raise Wrong("an event with other data is the same event", f"{event}: {again!r}")


def _unmarked(raw: bytes) -> bytes:
    return raw.removeprefix(b"\xef\xbb\xbf")


def by_the_book(raw: bytes) -> Iterator[Fields]:
    """Read a whole stream as WHATWG HTML words it (9.2.6); what carries no data counts, too."""
    fields = NOTHING
    *lines, _ = re.split(rb"\r\n|\n|\r", _unmarked(raw))
    for line in lines:
        data, id, event, retry = fields
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if fields != NOTHING:
                yield fields
            fields = NOTHING
        elif name == b"data":
            fields = (value if data is None else data + b"\n" + value, id, event, retry)
        elif name == b"id" and b"\0" not in value:
            fields = (data, value.decode(errors="replace"), event, retry)
        elif name == b"event":
            fields = (data, id, value.decode(errors="replace"), retry)
        elif name == b"retry" and re.fullmatch(rb"[0-9]+", value):
            fields = (data, id, event, int(value))
