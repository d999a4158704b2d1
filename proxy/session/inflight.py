"""The requests of a session that wait for their answers, and those whose answers may come again."""

from collections import OrderedDict
from collections.abc import Collection
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from proxy.document import message
from proxy.ruleset.guard import FACTS
from proxy.ruleset.rule import Rule
from proxy.session.arguments import VIEW, ArgumentPlan
from proxy.session.deadlines import Deadlines
from proxy.session.probe import Ids
from proxy.storage.snapshots import Key

_MOST = 20_000  # requests that wait at most; the oldest is forgotten first
_ANSWERED = 1000  # of those that may be answered again, or whose answer names a task
_ANSWERED_SIZE = 1 << 20  # bytes that these may have together, the newest left aside

_READ = frozenset({"initialize", "server/discover", "tools/list"})


class PendingRequest(Struct):
    """A request on its way: what must be known when its response comes.

    `again` is true where the response has come before; `masked` where lone surrogates are masked in
    what its guard decides by; `size` counts the bytes of its line. A call that is held has the slot
    of the proxy's question in `probe`, and the question the call as its `held`. `token` names a
    call's progress, where its time counts.
    """

    exchange: bytes
    id: bytes
    method: str
    tool: str = ""
    rule: Rule | None = None
    arguments: dict[str, Any] = {}
    facts: dict[str, Any] = {}
    plan: ArgumentPlan = ArgumentPlan()
    view: str | None = None
    key: Key | None = None
    modern: bool = False
    cacheable: bool = True
    as_task: bool = False
    batched: bool = False
    further: bool = False
    again: bool = False
    masked: bool = False
    scope: str = ""
    size: int = 0
    line: bytes = b""
    probe: bytes = b""
    token: bytes = b""
    held: "PendingRequest | None" = None

    @property
    def plain(self) -> bool:
        """True where nothing in the response is of interest but its size."""
        return (
            self.rule is None
            and not self.as_task
            and self.held is None
            and self.method not in _READ
        )

    @property
    def names(self) -> dict[str, str]:
        """The rule's argument names as clients know them, where that differs."""
        return self.plan.names

    @property
    def told(self) -> dict[str, Any]:
        """The arguments of a call as transforms find them."""
        if self.rule is None or self.rule.guard is None:
            return self.arguments
        # Whatever a client says under this name is no fact.
        return {**self.arguments, FACTS: self.facts}

    @property
    def start_again(self) -> str:
        """What a client is told to do where there is no snapshot to go on in."""
        assert self.rule is not None
        if self.view is not None:
            return f"call again without {self.names.get(VIEW, VIEW)} first"
        positions = [
            self.names.get(name, name)
            for step in self.rule.windows
            for name, parameter in step.parameters.items()
            if parameter.schema.get("default") == 0
        ]
        return f"call again with {' and '.join(f'{name}=0' for name in positions)} first"

    def failed(self, said: str) -> bytes:
        """Return the answer to a request that can have no other any more."""
        if self.method in ("tools/call", "tasks/result"):
            return message.refusal(self.id, said, self.modern)
        return message.error(self.id, -1, said)


class RecentlyAnswered:
    """Requests that were answered, by what they may be asked for again: the newest of them.

    Invariant: their number and the bytes of their lines are bounded, but for the newest.
    """

    __slots__ = ("_kept", "_size")

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, PendingRequest] = OrderedDict()
        self._size = 0

    def get(self, name: bytes) -> PendingRequest | None:
        """Return the request of this name, None where it was forgotten or never was."""
        return self._kept.get(name)

    def put(self, name: bytes, pending: PendingRequest) -> None:
        """Remember a request, in place of an earlier one of its name."""
        self.drop(name)
        self._kept[name] = pending
        self._size += pending.size + len(name)
        while len(self._kept) > 1 and self._crowded:
            self.drop(next(iter(self._kept)))

    def clear(self) -> None:
        """Forget all."""
        self._kept.clear()
        self._size = 0

    def drop(self, name: bytes) -> None:
        """Forget the request of this name, if there is one."""
        pending = self._kept.pop(name, None)
        if pending is not None:
            self._size -= pending.size + len(name)

    @property
    def _crowded(self) -> bool:
        return len(self._kept) > _ANSWERED or self._size > _ANSWERED_SIZE


class InFlight:
    """Requests by their slots: the exchange and the id, one after the other.

    Where answers are `resumable`, a request whose response is of interest is remembered for a while
    after it was answered. `timing` is told of those that are over.
    """

    __slots__ = ("_answered", "_resumable", "_timing", "_waiting", "watched")

    def __init__(self, *, resumable: bool, timing: Deadlines | None = None) -> None:
        self._resumable = resumable
        self._timing = timing
        self._waiting: OrderedDict[bytes, PendingRequest] = OrderedDict()
        self._answered = RecentlyAnswered()
        self.watched = 0
        """How many of them have responses that must be looked into."""

    def add(self, pending: PendingRequest) -> None:
        """Remember a request, in place of an earlier one in its slot."""
        slot = pending.exchange + pending.id
        self.retire(slot)
        # What comes in this slot from now on is for the new one.
        self._answered.drop(slot)
        if self._timing is not None:
            self._timing.forget(slot)
        self._waiting[slot] = pending
        if not pending.plain:
            self.watched += 1
        if len(self._waiting) > _MOST:
            self.retire(self._spare())

    def _spare(self) -> bytes:
        """Return the slot that is forgotten first: the oldest, unless its rule withholds answers.

        A late answer to what was forgotten passes as it came.
        """
        open = (
            slot
            for slot, pending in self._waiting.items()
            if pending.rule is None or not pending.rule.withholds
        )
        return next(open, next(iter(self._waiting)))

    def find(self, slot: bytes) -> PendingRequest | None:
        """Return the request that a response in this slot is for."""
        return self._waiting.get(slot) or self._answered.get(slot)

    def only(self) -> bytes | None:
        """Return the slot of the only request that waits; None where there are more, or none.

        What the server still says of a call that it was too late with may be of any.
        """
        if len(self._waiting) != 1 or (self._timing is not None and self._timing.open):
            return None
        return next(iter(self._waiting))

    def holds(self, slot: bytes) -> bool:
        """Return True if a request in this slot waits."""
        return slot in self._waiting

    def awaited(self, slot: bytes) -> PendingRequest | None:
        """Return the request in this slot that the server was sent: none that is held."""
        pending = self._waiting.get(slot)
        return None if pending is None or pending.probe else pending

    def retire(self, slot: bytes) -> PendingRequest | None:
        """Forget a request that waits, and return it; a held call takes its question along."""
        pending = self._waiting.pop(slot, None)
        if self._timing is not None:
            self._timing.end(slot)
        if pending is not None and not pending.plain:
            self.watched -= 1
        if pending is not None and pending.probe:
            self.retire(pending.probe)
        return pending

    def answer(self, slot: bytes) -> PendingRequest | None:
        """Return the request whose response has come, for the first time or once more."""
        pending = self.retire(slot)
        if not self._resumable or (pending is not None and pending.held is not None):
            return pending
        if pending is None:
            return self._answered.get(slot)
        if not pending.plain:
            self._answered.put(slot, replace(pending, again=True))
        return pending

    def rest(self) -> None:
        """Forget what was answered: nobody comes back for it after so long."""
        self._answered.clear()

    def let_go(
        self, exchange: bytes | None = None, ids: Collection[bytes] | None = None
    ) -> list[PendingRequest]:
        """Forget what waits, and return it: all, what is of an exchange, or these ids of it."""
        if exchange is not None and ids is not None:
            slots = [exchange + id for id in ids]
        else:
            slots = [
                slot
                for slot, pending in self._waiting.items()
                if exchange is None or pending.exchange == exchange
            ]
        gone = [pending for pending in map(self.retire, slots) if pending is not None]
        return [pending for pending in gone if pending.held is None]


_REMEMBERED = 1000  # the oldest is forgotten first


class StrayResponses(Struct, eq=False):
    """Tells answers to questions of our own, by their `ids`, and those that come after ours.

    Invariant: what is remembered of the latter is bounded.
    """

    ids: Ids
    timing: Deadlines | None
    guessed: dict[bytes, None] = {}
    """The slots of requests that we have answered, though in doubt."""

    @property
    def possible(self) -> bool:
        """False where no answer can be one of these."""
        return self.ids.used or bool(self.guessed) or self.timing is not None

    def holds(self, exchange: bytes, key: bytes) -> bool:
        """Return True if an answer that nothing waits for is one of these."""
        slot = exchange + key
        late = self.timing is not None and self.timing.late(slot)
        return late or slot in self.guessed or self.ids.hold(key)

    def guess(self, slot: bytes) -> None:
        """Record that a request is answered by us, most likely in place of the server."""
        self.guessed[slot] = None
        if len(self.guessed) > _REMEMBERED:
            del self.guessed[next(iter(self.guessed))]

    def forget(self, slot: bytes) -> None:
        """Record that an answer in this slot is for another request from now on."""
        self.guessed.pop(slot, None)


class SuspendedCalls(dict[int, PendingRequest]):
    """Calls by the tokens of the Load or Shape that they wait for.

    A dict, since nothing may fail between the end of the wait and what answers the call.
    """

    __slots__ = ("last",)

    def __init__(self) -> None:
        super().__init__()
        self.last = 0
        """The token that was given last; they are numbers in a row."""

    def hold(self, pending: PendingRequest) -> int:
        """Remember a call, and return its token."""
        self.last += 1
        self[self.last] = pending
        return self.last

    def forget_since(self, last: int) -> None:
        """Forget the calls whose tokens were given after this one."""
        for token in range(last + 1, self.last + 1):
            self.pop(token, None)
