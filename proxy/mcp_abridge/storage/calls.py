"""The calls of the last hour, as hashes: no tool with side effects runs twice for a view.

Bounded by number and age. Processes of one user share them in the ledger's file, and its secret,
without which a hash could tell a token; replicas share them in Redis.
"""

import time
from collections import OrderedDict
from collections.abc import Callable
from functools import cache
from threading import Event, Lock

from mcp_abridge.errors import StoreError
from mcp_abridge.storage.snapshots import digest

SECONDS = 3600
MOST = 50_000
"""Calls that are remembered at most; the oldest is forgotten first."""

_BATCH = 100  # calls that are hashed together, off the way of a response


class RecentCalls:
    """The calls that this process made, and others as far as `claim_elsewhere` knows; any thread.

    `claim_elsewhere` takes a hash; it returns True, and remembers the call, if no other process has
    made it. It may block. `wake` is set if there is something to `drain`. `secret` is called once,
    before the first hash.
    """

    def __init__(
        self,
        claim_elsewhere: Callable[[bytes], bool] | None = None,
        wake: Event | None = None,
        clock: Callable[[], float] = time.monotonic,
        secret: Callable[[], str] = str,
    ) -> None:
        self._claim_elsewhere = claim_elsewhere
        self._wake = wake
        self._clock = clock
        self._secret = cache(secret)
        self._lock = Lock()
        self._new: dict[tuple[str, str], None] = {}
        self._times: OrderedDict[bytes, float] = OrderedDict()
        self._unshared: set[bytes] = set()

    def add(self, caller: str, call: str) -> None:
        with self._lock:
            self._new[caller, call] = None
            if len(self._new) >= _BATCH:
                self._hash_new()
        if self._wake is not None and not self._wake.is_set():
            self._wake.set()

    def claim(self, caller: str, call: str) -> bool:
        """Return True, and remember the call, if nobody has made it before. May block."""
        key = self._hash(caller, call)
        with self._lock:
            self._hash_new()
            past = self._clock() - SECONDS
            if self._times.get(key, past) > past:
                return False
            self._remember(key)
            self._unshared.discard(key)
        return self._claim_elsewhere is None or self._claim_elsewhere(key)

    def drain(self) -> set[bytes]:
        with self._lock:
            self._hash_new()
            unshared, self._unshared = self._unshared, set()
        return unshared

    def share(self, remember: Callable[[set[bytes]], None], pause: float = 1.0) -> None:
        """Pass the hashes of calls to `remember` until the process ends, in a thread of its own.

        What it refuses with a StoreError is passed to it again, after a `pause` in seconds.
        """
        assert self._wake is not None
        while True:
            self._wake.wait()
            self._wake.clear()
            hashes = self.drain()
            while hashes:
                try:
                    remember(hashes)
                    break
                except StoreError:
                    time.sleep(pause)
                    hashes |= self.drain()

    def _hash_new(self) -> None:
        for caller, call in self._new:
            self._remember(self._hash(caller, call))
        self._new.clear()

    def _hash(self, caller: str, call: str) -> bytes:
        return bytes.fromhex(digest(self._secret(), caller, call))

    def _remember(self, key: bytes) -> None:
        self._times[key] = self._clock()
        self._times.move_to_end(key)
        if len(self._times) > MOST:
            self._times.popitem(last=False)
        if self._claim_elsewhere is not None:
            self._unshared.add(key)
