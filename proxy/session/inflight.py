"""The pending requests of a session, and answered ones whose responses may come again."""

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

_MOST = 20_000  # most pending requests; the oldest is forgotten first
_ANSWERED = 1000  # most requests that may be answered again, or whose response names a task
_ANSWERED_SIZE = 1 << 20  # most bytes of these together; the newest always stays

_READ = frozenset({"initialize", "server/discover", "tools/list"})


class PendingRequest(Struct):
    """A request in flight, with all facts needed to process its response.

    `again` is true if a response was received before; `size` is the length of its line in bytes. A
    held call has the slot of the proxy's query in `probe`, and the query has the call as its
    `held`. `token` is a call's progress token, if calls have a deadline.
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
    scope: str = ""
    size: int = 0
    line: bytes = b""
    probe: bytes = b""
    token: bytes = b""
    held: "PendingRequest | None" = None

    @property
    def plain(self) -> bool:
        """True if nothing in the response matters but its size."""
        return (
            self.rule is None
            and not self.as_task
            and self.held is None
            and self.method not in _READ
        )

    @property
    def names(self) -> dict[str, str]:
        """The clients' names of the rule's arguments, if they differ."""
        return self.plan.names

    @property
    def told(self) -> dict[str, Any]:
        """The arguments of a call as transforms see them."""
        if self.rule is None or self.rule.guard is None:
            return self.arguments
        # A client's argument of this name is no fact.
        return {**self.arguments, FACTS: self.facts}

    @property
    def start_again(self) -> str:
        """The advice to a client if there is no snapshot to continue in."""
        assert self.rule is not None
        if self.view is not None:
            return f"call again without {self.names.get(VIEW, VIEW)} first"
        positions = [
            self.names.get(name, name)
            for step in self.rule.snapshot_step.windows
            for name, parameter in step.parameters.items()
            if parameter.schema.get("default") == 0
        ]
        return f"call again with {' and '.join(f'{name}=0' for name in positions)} first"

    def failed(self, said: str) -> bytes:
        """Return the error response to a request that can have no other any more."""
        if self.method in ("tools/call", "tasks/result"):
            return message.refusal(self.id, said, self.modern)
        return message.error(self.id, -1, said)


class RecentlyAnswered:
    """The requests answered last, by the name under which they may be looked up again.

    Invariant: their number and the bytes of their lines are bounded, except for the newest.
    """

    __slots__ = ("_kept", "_size")

    def __init__(self) -> None:
        self._kept: OrderedDict[bytes, PendingRequest] = OrderedDict()
        self._size = 0

    def get(self, name: bytes) -> PendingRequest | None:
        """Return the request of this name, None if it was forgotten or never recorded."""
        return self._kept.get(name)

    def put(self, name: bytes, pending: PendingRequest) -> None:
        """Record a request, in place of an earlier one of its name."""
        self.drop(name)
        self._kept[name] = pending
        self._size += pending.size + len(name)
        while len(self._kept) > 1 and self._crowded:
            self.drop(next(iter(self._kept)))

    def clear(self) -> None:
        """Forget all requests."""
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

    If responses are `resumable`, a request whose response matters is kept for a while after it was
    answered. `timing` is notified of requests that are over.
    """

    __slots__ = ("_answered", "_resumable", "_timing", "_waiting", "watched")

    def __init__(self, *, resumable: bool, timing: Deadlines | None = None) -> None:
        self._resumable = resumable
        self._timing = timing
        self._waiting: OrderedDict[bytes, PendingRequest] = OrderedDict()
        self._answered = RecentlyAnswered()
        self.watched = 0
        """The number of pending requests whose responses must be inspected."""

    def add(self, pending: PendingRequest) -> None:
        """Record a request, in place of an earlier one in its slot."""
        slot = pending.exchange + pending.id
        self.retire(slot)
        # Responses in this slot are for the new request from now on.
        self._answered.drop(slot)
        if self._timing is not None:
            self._timing.forget(slot)
        self._waiting[slot] = pending
        if not pending.plain:
            self.watched += 1
        if len(self._waiting) > _MOST:
            self.retire(self._spare())

    def _spare(self) -> bytes:
        """Return the slot to forget first: the oldest, unless its rule withholds responses.

        A late response to a forgotten request is sent unchanged.
        """
        open = (
            slot
            for slot, pending in self._waiting.items()
            if pending.rule is None or not pending.rule.failure_policy.withholds
        )
        return next(open, next(iter(self._waiting)))

    def find(self, slot: bytes) -> PendingRequest | None:
        """Return the request that a response in this slot answers."""
        return self._waiting.get(slot) or self._answered.get(slot)

    def only(self) -> bytes | None:
        """Return the slot of the only pending request; None if there are more, or none.

        None also while late responses may come: a line may belong to any of those calls.
        """
        if len(self._waiting) != 1 or (self._timing is not None and self._timing.open):
            return None
        return next(iter(self._waiting))

    def holds(self, slot: bytes) -> bool:
        """Return True if a request in this slot is pending."""
        return slot in self._waiting

    def awaited(self, slot: bytes) -> PendingRequest | None:
        """Return the request in this slot that was sent to the server, None for a held call."""
        pending = self._waiting.get(slot)
        return None if pending is None or pending.probe else pending

    def retire(self, slot: bytes) -> PendingRequest | None:
        """Forget and return a pending request; the query of a held call is forgotten with it."""
        pending = self._waiting.pop(slot, None)
        if self._timing is not None:
            self._timing.end(slot)
        if pending is not None and not pending.plain:
            self.watched -= 1
        if pending is not None and pending.probe:
            self.retire(pending.probe)
        return pending

    def answer(self, slot: bytes) -> PendingRequest | None:
        """Return the request that a response answers, for the first time or again."""
        pending = self.retire(slot)
        if not self._resumable or (pending is not None and pending.held is not None):
            return pending
        if pending is None:
            return self._answered.get(slot)
        if not pending.plain:
            self._answered.put(slot, replace(pending, again=True))
        return pending

    def rest(self) -> None:
        """Forget answered requests: no client resumes them after so long."""
        self._answered.clear()

    def let_go(
        self, exchange: bytes | None = None, ids: Collection[bytes] | None = None
    ) -> list[PendingRequest]:
        """Forget and return pending requests: all, those of an exchange, or these ids of it."""
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
    """Responses that must not reach the client: to queries, or later than the proxy's own answers.

    `ids` identify the queries. Invariant: the record of the proxy's own answers is bounded.
    """

    ids: Ids
    timing: Deadlines | None
    guessed: dict[bytes, None] = {}
    """The slots of requests that the proxy answered without being certain."""

    @property
    def possible(self) -> bool:
        """False if no response can be a stray one."""
        return self.ids.used or bool(self.guessed) or self.timing is not None

    def holds(self, exchange: bytes, key: bytes) -> bool:
        """Return True if a response without a pending request is a stray one."""
        slot = exchange + key
        late = self.timing is not None and self.timing.late(slot)
        return late or slot in self.guessed or self.ids.hold(key)

    def guess(self, slot: bytes) -> None:
        """Record that the proxy answered a request, most likely in place of the server."""
        self.guessed[slot] = None
        if len(self.guessed) > _REMEMBERED:
            del self.guessed[next(iter(self.guessed))]

    def forget(self, slot: bytes) -> None:
        """Record that a response in this slot is for another request from now on."""
        self.guessed.pop(slot, None)


class SuspendedCalls(dict[int, PendingRequest]):
    """Calls by the tokens of the LoadSnapshot or Shape that they wait for.

    A dict, since nothing may fail between the end of the wait and the answer to the call.
    """

    __slots__ = ("last",)

    def __init__(self) -> None:
        super().__init__()
        self.last = 0
        """The newest token; tokens are consecutive numbers."""

    def hold(self, pending: PendingRequest) -> int:
        """Record a call, and return its token."""
        self.last += 1
        self[self.last] = pending
        return self.last

    def forget_since(self, last: int) -> None:
        """Forget the calls whose tokens are newer than `last`."""
        for token in range(last + 1, self.last + 1):
            self.pop(token, None)
