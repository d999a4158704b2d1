"""Snapshots of documents for windows and views: the interface of stores, and a store in memory.

Bounded by number, bytes and age: the least recently used snapshot is dropped first; in memory that
of the caller who holds most, lest one caller push out what is kept for all others.
"""

import struct
import time
from collections import OrderedDict
from io import BytesIO
from threading import Lock, Thread
from typing import Protocol

from msgspec import Struct
from msgspec.structs import replace

from mcp_abridge.document.measure import Structure
from mcp_abridge.document.tree import LARGE, encode
from mcp_abridge.system import platform

_GLANCES = 30  # how often an aging store looks for expired snapshots during their lifetime
_RECENT = 5  # seconds of an age that nobody needs to know
_SELDOM = 86_400.0  # seconds between two such looks at most: a system limits how long it can sleep


ANYBODY = "anybody"
"""How a caller without credentials begins: its sessions may be those of different people."""


class Snapshot(Struct, frozen=True):
    """A document before the first window, and the encoded Frame of the result around it.

    The document is JSON, or a text of ASCII itself: that is the one that the answer was made of,
    and takes no second memory beside it. `structure` is what a text was read as, for views: it may
    be read from the text again. `age` is the whole seconds since it was stored, as a store returns
    it; 0 for the first few.
    """

    frame: bytes
    document: bytes | str
    structure: Structure | None = None
    age: int = 0

    @property
    def raw(self) -> bytes:
        return encode_text(self.document) if isinstance(self.document, str) else self.document

    @property
    def size(self) -> int:
        read = 0 if self.structure is None else self.structure.size
        return len(self.frame) + len(self.document) + read


def encode_text(content: str) -> bytes:
    """Return a text as JSON; written in parts, a long one takes half the memory meanwhile."""
    output = BytesIO()
    output.write(b'"')
    for first in range(0, len(content), LARGE):
        output.write(encode(content[first : first + LARGE])[1:-1])
    output.write(b'"')
    return output.getvalue()


class Key(Struct, frozen=True):
    """The key of a snapshot, or with `call` None, of all of the rule in that scope.

    What a store returns for a key without a call is a list of the caller's snapshots of any rule.
    `scope` separates clients that must not see each other's documents: a caller, perhaps with one
    of its sessions in a second line.
    """

    scope: str
    rule: str
    call: str | None

    @property
    def of_caller(self) -> "Key | None":
        """The key for other sessions of the same caller; None if the scope is no session of one.

        >>> Key("jane\\nsession 1", "rule", "call").of_caller
        Key(scope='jane', rule='rule', call='call')
        >>> Key(f"{ANYBODY}\\nsession 1", "rule", "call").of_caller
        """
        caller, newline, _ = self.scope.partition("\n")
        if not newline or caller.startswith(ANYBODY):
            return None
        return Key(caller, self.rule, self.call)


# Stores beyond this process: a mark with the version, the unix time, the size of the frame, and
# that of the label: what a list says of the snapshot, and of whom it is.
_HEAD = struct.Struct(">8sdQH")
_MARK = b"abridge\x04"
LABELS = 2048
"""The bytes in which the head of a stored snapshot ends, and its label."""


def pack(snapshot: Snapshot, label: str) -> bytes:
    """Return a snapshot that is stored now as bytes."""
    raw_label = label.encode()
    raw_label = raw_label if len(raw_label) <= LABELS - _HEAD.size else b""
    head = _HEAD.pack(_MARK, time.time(), len(snapshot.frame), len(raw_label))
    return head + raw_label + snapshot.frame + snapshot.raw


def unpack(raw: bytes) -> Snapshot | None:
    """Return the snapshot that `pack` wrote; None if another version of this program did."""
    if (head := _head(raw)) is None:
        return None
    age, length, start = head
    end = start + length
    return Snapshot(raw[start:end], raw[end:], age=age)


def label_of(raw: bytes) -> tuple[str, int, int] | None:
    """Return the label, the age in seconds, and the offset of the document.

    The first LABELS bytes of a stored snapshot are enough for it.
    """
    if (head := _head(raw)) is None:
        return None
    age, length, end = head
    return raw[_HEAD.size : end].decode(errors="replace"), age, end + length


def _head(raw: bytes) -> tuple[int, int, int] | None:
    """Return the age, the size of the frame, and the offset of what follows the label."""
    if not raw.startswith(_MARK) or len(raw) < _HEAD.size:
        return None
    _, stored, length, label = _HEAD.unpack_from(raw)
    return _age(time.time() - stored), length, _HEAD.size + label


def age_in_words(seconds: int) -> str:
    """Return an age as a model reads it.

    >>> age_in_words(42), age_in_words(720)
    ('42 s', '12 min')
    """
    return f"{seconds} s" if seconds < 120 else f"{seconds // 60} min"


def _age(seconds: float) -> int:
    return int(seconds) if seconds >= _RECENT else 0


def digest(*parts: str | None) -> str:
    """Return a text for these parts that shows nothing of them."""
    # Imported late: it takes 3 ms, and no snapshot in memory needs it.
    from hashlib import sha256

    sized: list[bytes] = []
    for part in parts:
        raw = (part or "").encode("utf-8", "surrogatepass")  # JSON may hold a lone surrogate
        sized.append(b"-" if part is None else b"%d:%b" % (len(raw), raw))
    return sha256(b"".join(sized)).hexdigest()[:40]


class Store(Protocol):
    """A store of snapshots.

    If `remote`, its methods may block, and raise StoreError: they are called in a thread.
    """

    remote: bool

    def put(self, key: Key, snapshot: Snapshot) -> None:
        """Store `snapshot` in place of an earlier one; if it is too large, drop that."""

    def get(self, key: Key) -> Snapshot | None:
        """Return the snapshot of `key`, which then counts as just used; None if there is none.

        Without a call in the key, a list of the caller's snapshots (storage/answer_list.py).
        """

    def drop(self, key: Key) -> None:
        """Drop the snapshot of `key`; without a call, all snapshots of that scope and rule."""


class Memory:
    """A Store in this process, for any thread; its length is the number of snapshots.

    Expired snapshots are dropped at the next `get` or `put`. A store that `ages` drops them by
    itself, in a thread: results of tools must not stay in memory because no request arrives.
    """

    remote = False

    def __init__(
        self,
        *,
        number: int = 64,
        size: int = 256 * 10**6,
        seconds: float = 1800,
        ages: bool = False,
    ) -> None:
        """Keep at most `number` snapshots, `size` bytes in all, `seconds` after their last use."""
        self._number, self._size, self._seconds = number, size, seconds
        # Each with the time of its last use, and that at which it was stored.
        self._snapshots: OrderedDict[Key, tuple[float, float, Snapshot]] = OrderedDict()
        self._newest: dict[Key, Key] = {}  # by the keys for other sessions of a caller
        self._bytes = 0
        self._totals: dict[str, list[int]] = {}  # the number and the bytes of each caller's
        self._lock = Lock()
        if ages:
            Thread(target=self._age, name="snapshots", daemon=True).start()

    def __len__(self) -> int:
        return len(self._snapshots)

    def put(self, key: Key, snapshot: Snapshot) -> None:
        with self._lock:
            self._expire()
            self._forget(key)
            if snapshot.size > self._size:
                snapshot = replace(snapshot, structure=None)
            if snapshot.size > self._size:
                return
            now = time.monotonic()
            self._snapshots[key] = (now, now, snapshot)
            if key.of_caller is not None:
                self._newest[key.of_caller] = key
            self._count(key, 1, snapshot.size)
            while (in_bytes := self._bytes > self._size) or len(self._snapshots) > self._number:
                most = max(self._totals, key=lambda each: self._totals[each][in_bytes])
                self._forget(next(each for each in self._snapshots if _holder(each) == most))

    def get(self, key: Key) -> Snapshot | None:
        if key.call is None:
            return self._list(key)
        with self._lock:
            self._expire()
            key = self._newest.get(key, key)
            if key not in self._snapshots:
                return None
            now = time.monotonic()
            _, stored, snapshot = self._snapshots[key]
            self._snapshots[key] = (now, stored, snapshot)
            self._snapshots.move_to_end(key)
            return replace(snapshot, age=_age(now - stored))

    def _list(self, key: Key) -> Snapshot:
        # Imported late: few sessions have such a list.
        from mcp_abridge.storage.answer_list import MOST, StoredAnswer, listing, text_of

        now, shared = time.monotonic(), key.of_caller
        with self._lock:
            self._expire()
            own = [
                (each.call, len(snapshot.document), _age(now - stored))
                for each, (_, stored, snapshot) in reversed(self._snapshots.items())
                if each.scope == key.scope
                or (shared is not None and (each.of_caller or each).scope == shared.scope)
            ]
        return listing(StoredAnswer(text_of(call), size, age) for call, size, age in own[:MOST])

    def drop(self, key: Key) -> None:
        with self._lock:
            for each in tuple(self._snapshots) if key.call is None else (key,):
                if (each.scope, each.rule) == (key.scope, key.rule):
                    self._forget(each)
            shared = key.of_caller
            for each in tuple(self._newest) if shared is not None else ():
                if shared in (each, replace(each, call=None)):
                    del self._newest[each]

    def _age(self) -> None:
        while True:
            platform.pause(min(self._seconds / _GLANCES, _SELDOM))
            with self._lock:
                self._expire()

    def _expire(self) -> None:
        past = time.monotonic() - self._seconds
        while self._snapshots and next(iter(self._snapshots.values()))[0] < past:
            self._forget(next(iter(self._snapshots)))

    def _forget(self, key: Key) -> None:
        if key in self._snapshots:
            self._count(key, -1, -self._snapshots.pop(key)[2].size)
            if key.of_caller is not None and self._newest.get(key.of_caller) == key:
                del self._newest[key.of_caller]

    def _count(self, key: Key, number: int, size: int) -> None:
        self._bytes += size
        totals = self._totals.setdefault(_holder(key), [0, 0])
        totals[:] = totals[0] + number, totals[1] + size
        if not totals[0]:
            del self._totals[_holder(key)]


def _holder(key: Key) -> str:
    return (key.of_caller or key).scope
