"""The events of the streams of all sessions, kept for a while so that a client can resume.

Bounded by number and by bytes: the oldest is dropped first, the newest always stays. Invariant:
`after` returns all events that followed, or none at all.
"""

import re
from collections import OrderedDict

from msgspec import Struct

_OVERHEAD = 200  # bytes that an event costs besides its data
_ID = re.compile(r"(\d{1,18})-(\d{1,18})")


class StoredEvent(Struct, frozen=True, gc=False):
    """One event of a stream; empty data means that it only carries its id."""

    id: str
    data: bytes


class _Stream(Struct):
    """The number of events that a stream has had, and how many of them are no longer kept."""

    count: int = 0
    dropped: int = 0


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
        self._events: OrderedDict[str, StoredEvent] = OrderedDict()  # by id, the oldest first
        self._bytes = 0
        self._count = 0

    def open(self) -> int:
        """Begin a stream and return its number."""
        self._count += 1
        self._streams[self._count] = _Stream()
        return self._count

    def add(self, stream: int, data: bytes) -> StoredEvent:
        """Add an event to an open stream; return it with its id."""
        stored = self._streams[stream]
        stored.count += 1
        event = StoredEvent(f"{stream}-{stored.count}", data)
        self._events[event.id] = event
        self._bytes += len(data) + _OVERHEAD
        while len(self._events) > 1 and self._crowded:
            id, oldest = self._events.popitem(last=False)
            self._streams[int(id.partition("-")[0])].dropped += 1
            self._bytes -= len(oldest.data) + _OVERHEAD
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
        if stored is None or not max(stored.dropped, 1) <= number <= stored.count:
            return None
        following = range(number + 1, stored.count + 1)
        return stream, [self._events[f"{stream}-{each}"] for each in following]

    def drop(self, stream: int) -> None:
        """Forget all of a stream; an unknown one is ignored."""
        stored = self._streams.pop(stream, _Stream())
        for number in range(stored.dropped + 1, stored.count + 1):
            self._bytes -= len(self._events.pop(f"{stream}-{number}").data) + _OVERHEAD

    @property
    def _crowded(self) -> bool:
        return len(self._events) > self._number or self._bytes > self._size
