r"""Reads and writes text/event-stream (WHATWG HTML, section 9.2), incrementally.

Invariant: whatever the chunks, the events are the same, and their bytes together with what `end`
returns are the bytes that came, apart from a byte order mark. Each byte is looked at once.

Where a chunk ends in `\r`, its `\n` may be still to come. Inside an event that is no matter. The
end of an event is not held up by it where the line before ended in a bare `\r` too: should a `\n`
follow all the same, it is an event of its own, a blank line, which means nothing. Everywhere else
one more byte is waited for.

A comment between two events is an event as soon as its line ends: servers keep a connection alive
by single lines.
"""

from collections.abc import Iterator

from msgspec import Struct

from proxy.errors import AbridgeError

_BOM = b"\xef\xbb\xbf"
_LF = 0x0A
_COLON = 0x3A
_LONGEST_RETRY = 18  # digits


class TooLong(AbridgeError):
    """An event has grown over the limit; nothing more can be read of its stream."""


class Event(Struct, frozen=True, gc=False):
    """What came up to and with a blank line, or a comment on its own.

    `raw` is every byte of it. `data` is None where there is no data field (a comment, a bare id or
    retry), and empty where there is an empty one. `retry` counts milliseconds.
    """

    raw: bytes
    data: bytes | None
    id: str | None = None
    event: str | None = None
    retry: int | None = None


class Events:
    r"""Turns chunks into events, of which none may have more than `limit` bytes.

    >>> events = Events(limit=1000)
    >>> [event.data for chunk in (b": hi\n\ndata: 1\nda", b"ta: 2\n\ndata") for event in
    ... events.feed(chunk)]
    [None, None, b'1\n2']
    >>> events.end()
    b'data'
    """

    __slots__ = ("_bare", "_begun", "_held", "_limit", "_line", "_seen")

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._held = bytearray()  # from the first byte of the unfinished event
        self._line = 0  # where the line begins that has not ended
        self._seen = 0  # where looking for its end goes on
        self._bare = False  # the line before it ended in a `\r` alone
        self._begun = False  # there can be no byte order mark any more

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that `chunk` completes, to be taken to the last. Raises TooLong."""
        held = self._held
        held += chunk
        if not self._begun and not self._begins():
            return
        size = len(held)
        start, line = 0, self._line
        # The next of each, looked for again only when it has been passed: once over every byte.
        lf = cr = self._seen - 1
        at = self._seen
        while True:
            if lf < at:
                lf = _found(held, b"\n", at)
            if cr < at:
                cr = _found(held, b"\r", at)
            end = min(lf, cr)
            if end == size:
                break
            ends = end == line or (line == start and held[line] == _COLON)
            bare = False
            if end == lf:
                after = end + 1
            elif ends and self._bare:
                after, bare = end + 1, True
            elif end + 1 == size:
                break
            else:
                bare = held[end + 1] != _LF
                after = end + (1 if bare else 2)
            self._bare = bare
            at = line = after
            if ends:
                if after - start > self._limit:
                    raise self._too_long()
                with memoryview(held) as view:
                    raw = bytes(view[start:after])
                yield _read(raw)
                start = after
        del held[:start]
        self._line, self._seen = line - start, end - start
        if len(held) > self._limit:
            raise self._too_long()

    def end(self) -> bytes:
        r"""Take the end of the stream; return what was left unfinished, empty where nothing was.

        An event whose last `\r` could have been followed by a `\n` counts as unfinished.
        """
        left = bytes(self._held)
        self._held.clear()
        self._line = self._seen = 0
        return left

    def _begins(self) -> bool:
        """Take off a byte order mark, and say whether enough has come to know if there is one."""
        if len(self._held) < len(_BOM) and _BOM.startswith(self._held):
            return False
        self._begun = True
        if self._held.startswith(_BOM):
            del self._held[: len(_BOM)]
        return True

    def _too_long(self) -> TooLong:
        self._held.clear()
        return TooLong(f"an event of more than {self._limit} bytes")


def written(
    data: bytes, *, event: str | None = "message", id: str | None = None, retry: int | None = None
) -> bytes:
    r"""Return an event that carries `data`; `event` is left out where it is None.

    >>> written(b'{}', id="7")
    b'id: 7\nevent: message\ndata: {}\n\n'

    Raises ValueError for an id or an event that does not fit on one line.
    """
    lines = [b"data: " + line for line in _lines(data)]
    for name, value in (("retry", retry), ("event", event), ("id", id)):
        if value is not None:
            text = str(value)
            if not {"\r", "\n", "\0"}.isdisjoint(text):
                raise ValueError(f"{name} must be one line without NUL, found {text!r}")
            lines.insert(0, f"{name}: {text}".encode())
    return b"\n".join([*lines, b"", b""])


def replaced(event: Event, data: bytes) -> bytes:
    r"""Return the bytes of `event` with other data; every other line and line end is as it was.

    >>> event = Event(raw=b"id: 7\r\ndata: 1\r\ndata: 2\r\n\r\n", data=b"1\n2")
    >>> replaced(event, b"3")
    b'id: 7\r\ndata: 3\r\n\r\n'
    """
    raw, spans = event.raw, list(_spans(event.raw))
    old = {at for at, (start, end, _) in enumerate(spans) if _is_data(raw, start, end)}
    place = min(old, default=len(spans) - 1)
    ending = raw[slice(*spans[place][1:])]
    lines: list[bytes] = []
    for at, (start, _, after) in enumerate(spans):
        if at == place:
            lines += [b"data: " + line + ending for line in _lines(data)]
        if at not in old:
            lines.append(raw[start:after])
    if lines[-1] == b"\n" and lines[-2].endswith(b"\r"):
        lines[-1] = b"\r\n"  # together they would be one line end, and no blank line
    return b"".join(lines)


def _read(raw: bytes) -> Event:
    data: list[bytes] = []
    id = event = retry = None
    for start, end, _ in _spans(raw):
        if raw.startswith(b"data: ", start):  # mostly, and it may be very long
            data.append(raw[start + 6 : end])
            continue
        name, _, value = raw[start:end].partition(b":")
        if value[:1] == b" ":
            value = value[1:]
        match name:
            case b"data":
                data.append(value)
            case b"event":
                event = value.decode(errors="replace")
            case b"id" if b"\0" not in value:
                id = value.decode(errors="replace")
            case b"retry" if value.isdigit() and len(value) <= _LONGEST_RETRY:
                retry = int(value)
            case _:
                pass
    return Event(raw, b"\n".join(data) if data else None, id, event, retry)


def _spans(raw: bytes) -> Iterator[tuple[int, int, int]]:
    """Yield of each line where it begins, where it ends, and where the next one begins.

    What may be very long is not copied for that.
    """
    at, lf, cr, size = 0, -1, -1, len(raw)
    while at < size:
        if lf < at:
            lf = _found(raw, b"\n", at)
        if cr < at:
            cr = _found(raw, b"\r", at)
        end = min(lf, cr)
        after = min(size, end + (2 if raw.startswith(b"\r\n", end) else 1))
        yield at, end, after
        at = after


def _is_data(raw: bytes, start: int, end: int) -> bool:
    return raw.startswith(b"data:", start) or raw[start : min(end, start + 5)] == b"data"


def _lines(data: bytes) -> list[bytes]:
    """Cut `data` where the format cannot hold it on one line; empty data is one empty line."""
    if b"\n" not in data and b"\r" not in data:
        return [data]
    return data.replace(b"\r\n", b"\n").replace(b"\r", b"\n").split(b"\n")


def _found(held: bytes | bytearray, what: bytes, at: int) -> int:
    found = held.find(what, at)
    return len(held) if found < 0 else found
