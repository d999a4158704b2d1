"""What windows and views are cut from, kept for a while in memory.

Bounded by number, by bytes and by age: the least recently used goes first.
"""

import time
from collections import OrderedDict
from typing import Protocol

from msgspec import Struct


class Snapshot(Struct, frozen=True):
    """A document before the first window, and the result it stood in.

    `document` is JSON; `frame` is a `proxy.result.Frame`, encoded.
    """

    frame: bytes
    document: bytes

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.frame) + len(self.document)


class Store(Protocol):
    """Where snapshots are kept."""

    def put(self, key: str, snapshot: Snapshot) -> None:
        """Keep `snapshot` under `key` in place of an earlier one."""

    def get(self, key: str) -> Snapshot | None:
        """Return what is kept under `key`, or None where it is gone or never was."""

    def drop(self, keys: tuple[str, ...]) -> None:
        """Forget these."""


class Memory:
    """A Store in this process."""

    def __init__(self, *, number: int = 64, size: int = 256 << 20, seconds: float = 1800.0) -> None:
        """Keep at most `number` snapshots, `size` bytes in all, `seconds` after their last use."""
        self._number, self._size, self._seconds = number, size, seconds
        self._kept: OrderedDict[str, tuple[float, Snapshot]] = OrderedDict()
        self._bytes = 0

    def put(self, key: str, snapshot: Snapshot) -> None:
        """Keep `snapshot`; one that is larger than the whole store is not kept."""
        self.drop((key,))
        if snapshot.size > self._size:
            return
        self._kept[key] = (time.monotonic(), snapshot)
        self._bytes += snapshot.size
        while len(self._kept) > self._number or self._bytes > self._size:
            self.drop((next(iter(self._kept)),))

    def get(self, key: str) -> Snapshot | None:
        """Return what is kept under `key`, which then counts as just used."""
        now = time.monotonic()
        while self._kept and next(iter(self._kept.values()))[0] + self._seconds < now:
            self.drop((next(iter(self._kept)),))
        if key not in self._kept:
            return None
        _, snapshot = self._kept[key]
        self._kept[key] = (now, snapshot)
        self._kept.move_to_end(key)
        return snapshot

    def drop(self, keys: tuple[str, ...]) -> None:
        """Forget these; unknown ones are no matter."""
        for key in keys:
            if key in self._kept:
                self._bytes -= self._kept.pop(key)[1].size
