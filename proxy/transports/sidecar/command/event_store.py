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
    events: deque[StoredEvent]
    dropped: int = 0  # how many events were dropped before the first that is kept
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
        self._count = 0

    def open(self) -> int:
        """Begin a stream and return its number."""
        self._count += 1
        self._streams[self._count] = _Stream(deque())
        return self._count

    def add(self, stream: int, data: bytes) -> StoredEvent:
        """Add an event to an open stream; return it with its id."""
        stored = self._streams[stream]
        event = StoredEvent(f"{stream}-{stored.dropped + len(stored.events) + 1}", data)
        stored.events.append(event)
        self._order.append(stream)
        self._bytes += len(data) + _OVERHEAD
        while len(self._order) > 1 and self._crowded:
            self._forget_oldest()
        return event

    def after(self, id: str) -> tuple[int, list[StoredEvent]] | None:
        """Return the stream that an event id belongs to, and the events that followed there.

        None if the id is unknown, or if an event that followed is no longer kept.
        """
        match = _ID.fullmatch(id)
        if match is None:
            return None
        stream, number = int(match[1]), int(match[2])
        stored = self._streams.get(stream)
        if (
            stored is None
            or not stored.dropped <= number <= stored.dropped + len(stored.events)
            or not number
        ):
            return None
        return stream, list(stored.events)[number - stored.dropped :]

    def close(self, stream: int) -> None:
        """Record that a stream has ended; its events stay until they are too old."""
        stored = self._streams.get(stream)
        if stored is not None:
            stored.over = True
            if not stored.events:
                del self._streams[stream]

    def drop(self, stream: int) -> None:
        """Forget all of a stream; an unknown one is ignored."""
        stored = self._streams.pop(stream, None)
        if stored is None:
            return
        self._bytes -= sum(len(event.data) + _OVERHEAD for event in stored.events)
        self._dropped += len(stored.events)
        if self._dropped > len(self._order) // 2:
            self._order = deque(each for each in self._order if each in self._streams)
            self._dropped = 0

    @property
    def _crowded(self) -> bool:
        return len(self._order) > self._number or self._bytes > self._size

    def _forget_oldest(self) -> None:
        stream = self._order.popleft()
        stored = self._streams.get(stream)
        if stored is None:  # dropped meanwhile
            self._dropped -= 1
            return
        self._bytes -= len(stored.events.popleft().data) + _OVERHEAD
        stored.dropped += 1
        if stored.over and not stored.events:
            del self._streams[stream]
