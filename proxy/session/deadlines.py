"""Deadlines of calls: how long each may wait, and which responses come too late.

Calls are identified by their slots, see inflight.py. All have the same time, so the call with the
oldest activity is due first. Invariant: the record of late responses is bounded.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from msgspec import Raw

from proxy.document.message import Message, id_key, members
from proxy.document.tree import ABSENT
from proxy.errors import DocumentError

PROGRESS = "notifications/progress"

_TOKEN = "progressToken"
_LATE = 1000  # calls whose late responses are recognized; the oldest is forgotten first


class Deadlines:
    """The calls of a session that the server has not answered yet.

    Each has `seconds`, which begin again with each progress notification; `clock` returns the time.

    >>> now = 0.0
    >>> timing = Deadlines(30.0, lambda: now)
    >>> timing.begin(b"7", b'"token"')
    >>> now = 20.0
    >>> timing.progressed(b'"token"')
    >>> now = 45.0
    >>> timing.overdue(), timing.patience()
    ([], 5.0)
    """

    def __init__(self, seconds: float, clock: Callable[[], float]) -> None:
        self.seconds = seconds
        self._clock = clock
        self._due: OrderedDict[bytes, float] = OrderedDict()  # in the order in which they are due
        self._tokens: dict[bytes, bytes] = {}  # slots of calls by progress token
        self._named: dict[bytes, bytes] = {}  # progress tokens by slot
        self._late: OrderedDict[bytes, None] = OrderedDict()

    def begin(self, slot: bytes, token: bytes = b"") -> None:
        """Start the time of a call; `token` is its progress token, empty if it has none."""
        self.end(slot)
        self._due[slot] = self._clock() + self.seconds
        if token:
            self._tokens[token] = slot
            self._named[slot] = token

    def progressed(self, token: bytes) -> None:
        """Restart the time of the call with this progress token."""
        self.extend(self._tokens.get(token, b""))

    def extend(self, slot: bytes) -> None:
        """Restart the time of a call, if it is still pending."""
        if slot in self._due:
            self._due[slot] = self._clock() + self.seconds
            self._due.move_to_end(slot)

    def end(self, slot: bytes) -> None:
        """Stop the time of a call: it is answered, or its answer is not expected any more."""
        if self._due.pop(slot, None) is not None:
            token = self._named.pop(slot, None)
            if token is not None and self._tokens.get(token) == slot:
                del self._tokens[token]

    def patience(self, slots: Iterable[bytes] | None = None) -> float | None:
        """Return the seconds until the first of these calls, or of all, is due; None for none."""
        if slots is None:
            due = next(iter(self._due.values()), None)
        else:
            due = min((self._due[slot] for slot in slots if slot in self._due), default=None)
        return None if due is None else max(0.0, due - self._clock())

    def overdue(self, slots: Iterable[bytes] | None = None) -> list[bytes]:
        """Return the slots of these calls, or of all, that are due."""
        now = self._clock()
        if slots is not None:
            asked = dict.fromkeys(slots)
            return [slot for slot in asked if slot in self._due and self._due[slot] <= now]
        found = []
        for slot, due in self._due.items():
            if due > now:
                break
            found.append(slot)
        return found

    def give_up(self, slot: bytes) -> None:
        """Record that the proxy answered a call itself: a response from the server is late."""
        self.end(slot)
        self._late[slot] = None
        if len(self._late) > _LATE:
            self._late.popitem(last=False)

    def late(self, slot: bytes) -> bool:
        """Return True if a response to this call comes too late."""
        return slot in self._late

    @property
    def open(self) -> bool:
        """True if a late response may still come."""
        return bool(self._late)

    def forget(self, slot: bytes) -> None:
        """Record that a response with this id belongs to another request now, or to none."""
        self._late.pop(slot, None)


def token(meta: Raw) -> bytes:
    """Return the progress token in a request's `_meta` as an id_key; empty if there is none.

    >>> token(Raw(b'{"progressToken":7}')), token(Raw(b"{}"))
    (b'7', b'')
    """
    try:
        found = members(meta).get(_TOKEN)
    except DocumentError:
        return b""
    return b"" if found is None else id_key(bytes(found))


def progressing(read: Message) -> bytes:
    """Return the token of a progress notification; empty for any other message."""
    try:
        if read.id is not ABSENT or read.params is ABSENT or read.verb != PROGRESS:
            return b""
    except DocumentError:  # the method is no string
        return b""
    return token(read.params)


def lasting(seconds: float) -> str:
    """Return a duration in words.

    >>> lasting(30.0), lasting(1.0), lasting(0.25)
    ('30 seconds', '1 second', '0.25 seconds')
    """
    return f"{seconds:.12g} second" + "s" * (seconds != 1)
