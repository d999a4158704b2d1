"""The events of the streams of all sessions, kept for a while so that a client can resume.

Bounded by number and by bytes: the oldest is dropped first, the newest always stays. Invariant:
`after` returns all events that followed, or none at all.
"""

import re
from collections import deque

from msgspec import Struct

_OVERHEAD = 200  # bytes that an event costs besides its data
_ID = re.compile(r"(\d{1,18})-(\d{1,18})")


class StoredEvent(Struct, frozen=True, gc=False):
    """One event of a stream; empty data means that it only carries its id."""

    id: str
    data: bytes


class _Stream(Struct):
    said: deque[StoredEvent]
    gone: int = 0  # how many events were dropped before the first that is kept
    over: bool = False


class EventStore:
    """The events of any number of streams, each of which has a number.

    >>> history = EventStore()
    >>> stream = history.open()
    >>> first, second = history.add(stream, b"1"), history.add(stream, b"2")
    >>> history.after(first.id) == (stream, [second])
    True
    """

    def __init__(self, *, number: int = 100_000, size: int = 256 << 20) -> None:
        self._number = number
        self._size = size
        self._streams: dict[int, _Stream] = {}
        self._order: deque[int] = deque()  # the stream of each event, oldest first
        self._dropped = 0  # how many entries of `_order` belong to dropped streams
        self._bytes = 0
        self._opened = 0

    def open(self) -> int:
        """Begin a stream and return its number."""
        self._opened += 1
        self._streams[self._opened] = _Stream(deque())
        return self._opened

    def add(self, stream: int, data: bytes) -> StoredEvent:
        """Add an event to an open stream; return it with its id."""
        kept = self._streams[stream]
        said = StoredEvent(f"{stream}-{kept.gone + len(kept.said) + 1}", data)
        kept.said.append(said)
        self._order.append(stream)
        self._bytes += len(data) + _OVERHEAD
        while len(self._order) > 1 and self._crowded:
            self._forget_oldest()
        return said

    def after(self, id: str) -> tuple[int, list[StoredEvent]] | None:
        """Return the stream that an event id belongs to, and the events that followed there.

        None if the id is unknown, or if an event that followed is no longer kept.
        """
        found = _ID.fullmatch(id)
        if found is None:
            return None
        stream, number = int(found[1]), int(found[2])
        kept = self._streams.get(stream)
        if kept is None or not kept.gone <= number <= kept.gone + len(kept.said) or not number:
            return None
        return stream, list(kept.said)[number - kept.gone :]

    def close(self, stream: int) -> None:
        """Record that a stream has ended; its events stay until they are too old."""
        kept = self._streams.get(stream)
        if kept is not None:
            kept.over = True
            if not kept.said:
                del self._streams[stream]

    def drop(self, stream: int) -> None:
        """Forget all of a stream; an unknown one is ignored."""
        kept = self._streams.pop(stream, None)
        if kept is None:
            return
        self._bytes -= sum(len(said.data) + _OVERHEAD for said in kept.said)
        self._dropped += len(kept.said)
        if self._dropped > len(self._order) // 2:
            self._order = deque(each for each in self._order if each in self._streams)
            self._dropped = 0

    @property
    def _crowded(self) -> bool:
        return len(self._order) > self._number or self._bytes > self._size

    def _forget_oldest(self) -> None:
        stream = self._order.popleft()
        kept = self._streams.get(stream)
        if kept is None:  # dropped meanwhile
            self._dropped -= 1
            return
        self._bytes -= len(kept.said.popleft().data) + _OVERHEAD
        kept.gone += 1
        if kept.over and not kept.said:
            del self._streams[stream]
