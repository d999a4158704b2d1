"""Snapshots of documents for windows and views: the interface of stores, and a store in memory.

Bounded by number, bytes and age: the least recently used snapshot is dropped first.
"""

import select
import time
from collections import OrderedDict
from threading import Lock, Thread
from typing import Protocol

from msgspec import Struct

_GLANCES = 30  # how often an aging store looks for expired snapshots during their lifetime
_SELDOM = 86_400.0  # seconds between two such looks at most: a system limits how long it can sleep


class Snapshot(Struct, frozen=True):
    """A document before the first window, and the result around it.

    `document` is JSON; `frame` is a `proxy.shaping.result.frame.Frame`, encoded.
    """

    frame: bytes
    document: bytes

    @property
    def size(self) -> int:
        """The number of bytes."""
        return len(self.frame) + len(self.document)


class Key(Struct, frozen=True):
    """The key of a snapshot: its scope, rule and call.

    `scope` separates clients that must not see each other's documents. With `call` None, it names
    all snapshots of the rule in that scope.
    """

    scope: str
    rule: str
    call: str | None


class Store(Protocol):
    """A store of snapshots.

    `remote` is true if its methods may block: they are then called in a thread, and may raise
    StoreError if the store cannot be reached.
    """

    remote: bool

    def put(self, key: Key, snapshot: Snapshot) -> None:
        """Store `snapshot` under `key` in place of an earlier one."""

    def get(self, key: Key) -> Snapshot | None:
        """Return the snapshot of `key`, or None if it was dropped or never stored."""

    def drop(self, key: Key) -> None:
        """Drop the snapshot of `key`; without a call, all snapshots of that scope and rule."""


class Memory:
    """A Store in this process, for any thread; its length is the number of snapshots.

    Expired snapshots are dropped at the next `get`. A store that `ages` drops them by itself, in a
    thread: results of tools must not stay in memory because no request arrives.
    """

    remote = False

    def __init__(
        self,
        *,
        number: int = 64,
        size: int = 256_000_000,
        seconds: float = 1800.0,
        ages: bool = False,
    ) -> None:
        """Keep at most `number` snapshots, `size` bytes in all, `seconds` after their last use."""
        self._number, self._size, self._seconds = number, size, seconds
        self._snapshots: OrderedDict[Key, tuple[float, Snapshot]] = OrderedDict()
        self._bytes = 0
        self._lock = Lock()
        if ages:
            Thread(target=self._age, name="snapshots", daemon=True).start()

    def __len__(self) -> int:
        return len(self._snapshots)

    def put(self, key: Key, snapshot: Snapshot) -> None:
        """Store `snapshot`; if it is larger than the whole store, just drop the earlier one."""
        with self._lock:
            self._forget(key)
            if snapshot.size > self._size:
                return
            self._snapshots[key] = (time.monotonic(), snapshot)
            self._bytes += snapshot.size
            while len(self._snapshots) > self._number or self._bytes > self._size:
                self._forget(next(iter(self._snapshots)))

    def get(self, key: Key) -> Snapshot | None:
        """Return the snapshot of `key`, which then counts as just used; None if there is none."""
        with self._lock:
            self._expire()
            if key not in self._snapshots:
                return None
            _, snapshot = self._snapshots[key]
            self._snapshots[key] = (time.monotonic(), snapshot)
            self._snapshots.move_to_end(key)
            return snapshot

    def drop(self, key: Key) -> None:
        """Drop the snapshot of `key`, or all of a scope and rule; unknown keys are ignored."""
        with self._lock:
            for each in tuple(self._snapshots) if key.call is None else (key,):
                if (each.scope, each.rule) == (key.scope, key.rule):
                    self._forget(each)

    def _age(self) -> None:
        while True:
            # time.sleep() fails if the clock is set back: it waits until a point in time.
            select.select((), (), (), min(self._seconds / _GLANCES, _SELDOM))
            with self._lock:
                self._expire()

    def _expire(self) -> None:
        past = time.monotonic() - self._seconds
        while self._snapshots and next(iter(self._snapshots.values()))[0] < past:
            self._forget(next(iter(self._snapshots)))

    def _forget(self, key: Key) -> None:
        if key in self._snapshots:
            self._bytes -= self._snapshots.pop(key)[1].size
