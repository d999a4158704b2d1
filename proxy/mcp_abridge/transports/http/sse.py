r"""Read and write text/event-stream (WHATWG HTML, section 9.2), incrementally.

Invariant: the events do not depend on how the stream is cut into chunks. Their bytes and those
that `end` returns are the bytes of the stream, apart from a byte order mark.

If a chunk ends in `\r`, its `\n` may follow in the next, so the reader waits for one more byte, but
not for a blank line behind a bare `\r`. A comment between two events is an event as soon as its
line ends: servers keep a connection alive with single lines.
"""

from collections.abc import Iterator

from msgspec import Struct

from mcp_abridge.errors import AbridgeError

ENDPOINT = "endpoint"
"""The event of HTTP+SSE of 2024-11-05 that names the endpoint for messages."""

_BOM = b"\xef\xbb\xbf"
_CR, _COLON = b"\r:"
_LONGEST_RETRY = 18  # digits


class TooLong(AbridgeError):
    """An event over the limit; its stream can be read no further."""


class Event(Struct, frozen=True, gc=False):
    """The lines up to and including a blank line, or a single comment.

    `raw` is every byte of it. `data` is None if there is no data field (a comment, a bare id or
    retry), and empty if the data field is empty. `retry` is in milliseconds.
    """

    raw: bytes
    data: bytes | None
    id: str | None = None
    event: str | None = None
    retry: int | None = None


class Events:
    r"""Turn chunks into events of at most `limit` bytes each.

    >>> events = Events(limit=1000)
    >>> [event.data for chunk in (b": hi\n\ndata: 1\nda", b"ta: 2\n\ndata") for event in
    ... events.feed(chunk)]
    [None, None, b'1\n2']
    >>> events.end()
    b'data'
    """

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._buffer = bytearray()  # from the first byte of the unfinished event
        self._line = 0  # the start of the unfinished line
        self._searched = 0  # the offset at which the search for its end continues
        self._started = False  # a byte order mark can no longer follow

    def feed(self, chunk: bytes) -> Iterator[Event]:
        """Yield the events that `chunk` completes; iterate to the end. Raises TooLong."""
        buffer = self._buffer
        buffer += chunk
        if not self._started:
            if len(buffer) < len(_BOM) and _BOM.startswith(buffer):
                return
            self._started = True
            if buffer.startswith(_BOM):
                del buffer[: len(_BOM)]
        start, line, at, size = 0, self._line, self._searched, len(buffer)
        lf = cr = at - 1  # the next of each, searched again only after it was passed
        while True:
            if lf < at:
                lf = _find(buffer, b"\n", at)
            if cr < at:
                cr = _find(buffer, b"\r", at)
            end = min(lf, cr)
            if end == size:
                break
            blank = end == line
            if end == lf or (blank and line > start and buffer[line - 1] == _CR):
                at = end + 1
            elif end + 1 == size:
                break
            else:
                at = end + 1 + (lf == end + 1)
            if blank or (line == start and buffer[line] == _COLON):
                if at - start > self._limit:
                    raise self._too_long()
                with memoryview(buffer) as view:
                    raw = bytes(view[start:at])
                yield _read(raw)
                start = at
            line = at
        del buffer[:start]
        self._line, self._searched = line - start, end - start
        if len(buffer) > self._limit:
            raise self._too_long()

    def end(self) -> bytes:
        r"""Take the end of the stream; return the bytes of an unfinished event, empty if none."""
        rest = bytes(self._buffer)
        self._buffer.clear()
        self._line = self._searched = 0
        return rest

    def _too_long(self) -> TooLong:
        self._buffer.clear()
        return TooLong(f"an event of more than {self._limit} bytes")


def encode_event(
    data: bytes, *, event: str | None = "message", id: str | None = None, retry: int | None = None
) -> bytes:
    r"""Return an event that carries `data`; its `event` field is left out if None.

    >>> encode_event(b'{}', id="7")
    b'id: 7\nevent: message\ndata: {}\n\n'

    Neither an id nor an event may have a line end.
    """
    spelled = data.replace(b"\r\n", b"\n").replace(b"\r", b"\n")
    lines = [b"data: " + line for line in spelled.split(b"\n")]
    for name, value in (("retry", retry), ("event", event), ("id", id)):
        if value is not None:
            lines.insert(0, f"{name}: {value}".encode())
    return b"\n".join([*lines, b"", b""])


def _read(raw: bytes) -> Event:
    data: list[bytes] = []
    id = event = retry = None
    start, lf, cr = 0, -1, -1
    while start < len(raw):
        if lf < start:
            lf = _find(raw, b"\n", start)
        if cr < start:
            cr = _find(raw, b"\r", start)
        end = min(lf, cr)
        if raw.startswith(b"data: ", start):  # the usual case, and the line may be very long
            data.append(raw[start + 6 : end])
        else:
            name, _, value = raw[start:end].partition(b":")
            value = value.removeprefix(b" ")
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
        start = end + 1 + (lf == end + 1)
    return Event(raw, b"\n".join(data) if data else None, id, event, retry)


def _find(buffer: bytes | bytearray, what: bytes, at: int) -> int:
    index = buffer.find(what, at)
    return len(buffer) if index < 0 else index
