"""What windows and views are cut from, kept for a while: what a store is, and one in memory.

Bounded by number, by bytes and by age: the least recently used goes first.
"""

import select
import time
from collections import OrderedDict
from threading import Lock, Thread
from typing import Protocol

from msgspec import Struct

_GLANCES = 30  # how often a store that ages looks for what is too old, in the time that it keeps it
_SELDOM = 86_400.0  # seconds between two looks at most: a system cannot sleep for any time


class Snapshot(Struct, frozen=True):
    """A document before the first window, and the result it stood in.

    `document` is JSON; `frame` is a `proxy.shaping.result.frame.Frame`, encoded.
    """

    frame: bytes
    document: bytes

    @property
    def size(self) -> int:
        """Its bytes."""
        return len(self.frame) + len(self.document)


class Key(Struct, frozen=True):
    """Names a snapshot: of whom, cut by which rule, of which call.

    `scope` keeps apart those who must not see each other's documents. With `call` None it names
    everything that is kept of the rule in that scope.
    """

    scope: str
    rule: str
    call: str | None


class Store(Protocol):
    """Where snapshots are kept.

    `remote` says whether asking it may block: such a store is asked in a thread. It may then raise
    StoreError, where it cannot be reached.
    """

    remote: bool

    def put(self, key: Key, snapshot: Snapshot) -> None:
        """Keep `snapshot` under `key` in place of an earlier one."""

    def get(self, key: Key) -> Snapshot | None:
        """Return what is kept under `key`, or None where it is gone or never was."""

    def drop(self, key: Key) -> None:
        """Forget what is kept under `key`; without a call, all of that scope and rule."""


class Memory:
    """A Store in this process, which any thread may use; its length is how many it has.

    What is too old goes with the next snapshot that is asked for. A store that `ages` sees to it by
    itself, in a thread: nothing of what a tool said is to lie in memory because nobody asks.
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
        self._kept: OrderedDict[Key, tuple[float, Snapshot]] = OrderedDict()
        self._calls: dict[Key, set[Key]] = {}  # by the key of the rule: what _kept has of it
        self._bytes = 0
        self._lock = Lock()
        if ages:
            Thread(target=self._age, name="snapshots", daemon=True).start()

    def __len__(self) -> int:
        return len(self._kept)

    def put(self, key: Key, snapshot: Snapshot) -> None:
        """Keep `snapshot`; one that is larger than the whole store is not kept."""
        with self._lock:
            self._forget(key)
            if snapshot.size > self._size:
                return
            self._kept[key] = (time.monotonic(), snapshot)
            self._calls.setdefault(_of_rule(key), set()).add(key)
            self._bytes += snapshot.size
            while len(self._kept) > self._number or self._bytes > self._size:
                self._forget(next(iter(self._kept)))

    def get(self, key: Key) -> Snapshot | None:
        """Return what is kept under `key`, which then counts as just used."""
        with self._lock:
            self._expire()
            if key not in self._kept:
                return None
            _, snapshot = self._kept[key]
            self._kept[key] = (time.monotonic(), snapshot)
            self._kept.move_to_end(key)
            return snapshot

    def drop(self, key: Key) -> None:
        """Forget this one, or all of a scope and rule; unknown ones are no matter."""
        with self._lock:
            for each in (key,) if key.call is not None else tuple(self._calls.get(key, ())):
                self._forget(each)

    def _age(self) -> None:
        while True:
            # time.sleep() fails if the clock is set back: it waits until a time, not for one.
            select.select((), (), (), min(self._seconds / _GLANCES, _SELDOM))
            with self._lock:
                self._expire()

    def _expire(self) -> None:
        past = time.monotonic() - self._seconds
        while self._kept and next(iter(self._kept.values()))[0] < past:
            self._forget(next(iter(self._kept)))

    def _forget(self, key: Key) -> None:
        if key not in self._kept:
            return
        self._bytes -= self._kept.pop(key)[1].size
        calls = self._calls[_of_rule(key)]
        calls.remove(key)
        if not calls:
            del self._calls[_of_rule(key)]


def _of_rule(key: Key) -> Key:
    return Key(key.scope, key.rule, None)
