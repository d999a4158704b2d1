"""How long calls wait for their answers: until when each may, and whose answers come too late.

Calls are known by their slots, see inflight.py. Each has the same time, so whichever was heard
of longest ago is due first. Invariant: what is kept of answers that come too late is bounded.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable

from msgspec import Raw

from proxy.document.message import Message, id_key, members
from proxy.document.tree import ABSENT
from proxy.errors import DocumentError

PROGRESS = "notifications/progress"

_TOKEN = "progressToken"
_LATE = 1000  # calls whose late answers are known as such; the oldest is forgotten first


class Deadlines:
    """The calls of a session that the server has not answered yet.

    Each has `seconds`, and so many again whenever the server tells of its progress; `clock` says
    what time it is.

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
        self._due: OrderedDict[bytes, float] = OrderedDict()  # the first that is due comes first
        self._tokens: dict[bytes, bytes] = {}  # the slots of calls by what names their progress
        self._named: dict[bytes, bytes] = {}  # the other way round
        self._late: OrderedDict[bytes, None] = OrderedDict()

    def begin(self, slot: bytes, token: bytes = b"") -> None:
        """Let the time of a call begin; `token` names its progress, empty where nothing does."""
        self.end(slot)
        self._due[slot] = self._clock() + self.seconds
        if token:
            self._tokens[token] = slot
            self._named[slot] = token

    def progressed(self, token: bytes) -> None:
        """Give the call whose progress this token names its whole time again."""
        self.extend(self._tokens.get(token, b""))

    def extend(self, slot: bytes) -> None:
        """Give a call its whole time again, if it is still waited for."""
        if slot in self._due:
            self._due[slot] = self._clock() + self.seconds
            self._due.move_to_end(slot)

    def end(self, slot: bytes) -> None:
        """Let a call have all the time it wants: its answer is there, or nobody waits for it."""
        if self._due.pop(slot, None) is not None:
            token = self._named.pop(slot, None)
            if token is not None and self._tokens.get(token) == slot:
                del self._tokens[token]

    def patience(self, slots: Iterable[bytes] | None = None) -> float | None:
        """Return in how many seconds the first of these calls, or of all, is due; None for none."""
        if slots is None:
            due = next(iter(self._due.values()), None)
        else:
            due = min((self._due[slot] for slot in slots if slot in self._due), default=None)
        return None if due is None else max(0.0, due - self._clock())

    def overdue(self, slots: Iterable[bytes] | None = None) -> list[bytes]:
        """Return which of these calls, or of all, are due."""
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
        """Record that a call was answered in the server's stead: what it still says is late."""
        self.end(slot)
        self._late[slot] = None
        if len(self._late) > _LATE:
            self._late.popitem(last=False)

    def late(self, slot: bytes) -> bool:
        """Return True if an answer to this call comes too late."""
        return slot in self._late

    @property
    def open(self) -> bool:
        """True where such an answer may still come."""
        return bool(self._late)

    def forget(self, slot: bytes) -> None:
        """Record that an answer with this id is another request's from now on, or nobody's."""
        self._late.pop(slot, None)


def token(meta: Raw) -> bytes:
    """Return what a request's `_meta` has its progress named by, as an id_key; empty for nothing.

    >>> token(Raw(b'{"progressToken":7}')), token(Raw(b"{}"))
    (b'7', b'')
    """
    try:
        found = members(meta).get(_TOKEN)
    except DocumentError:
        return b""
    return b"" if found is None else id_key(bytes(found))


def progressing(read: Message) -> bytes:
    """Return the token of a notification about progress; empty for any other message."""
    try:
        if read.id is not ABSENT or read.params is ABSENT or read.verb != PROGRESS:
            return b""
    except DocumentError:  # the method is no text
        return b""
    return token(read.params)


def lasting(seconds: float) -> str:
    """Say how long that is.

    >>> lasting(30.0), lasting(1.0), lasting(0.25)
    ('30 seconds', '1 second', '0.25 seconds')
    """
    return f"{seconds:.12g} second" + "s" * (seconds != 1)
