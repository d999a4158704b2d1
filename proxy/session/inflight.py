"""The pending requests of a session, their deadlines, and responses that no request waits for.

A request is identified by its slot: the exchange and the id, one after the other. Invariant: every
record is bounded.
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from os import urandom
from time import monotonic
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from proxy.document import message
from proxy.ruleset.guard import FACTS
from proxy.ruleset.rule import Rule
from proxy.session.tools.arguments import VIEW, ArgumentPlan
from proxy.storage.snapshots import Key

_MOST_PENDING = 20_000  # the oldest request is forgotten first
_MOST_ANSWERED = 1000  # requests that may be answered again, or whose response names a task
_MOST_ANSWERED_SIZE = 1 << 20  # bytes of these together; the newest always stays
_MOST_REPLACED = 1000  # requests that the proxy answered in place of the server

_READ = frozenset({"initialize", "server/discover", "tools/list"})


class PendingRequest(Struct):
    """A request in flight, with all facts needed to process its response.

    `is_repeat`: a response was received before. `next_page`: it continues a tool list. `size` is
    the length of its line in bytes; `line` is kept only while it is suspended. A held call has the
    slot of the proxy's query in `query`, and the query has the call as its `held_call`.
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
    next_page: bool = False
    is_repeat: bool = False
    scope: str = ""
    size: int = 0
    line: bytes = b""
    query: bytes = b""
    progress_token: bytes = b""
    held_call: "PendingRequest | None" = None

    @property
    def slot(self) -> bytes:
        """The exchange and the id."""
        return self.exchange + self.id

    @property
    def plain(self) -> bool:
        """True if nothing in the response matters but its size."""
        return (
            self.rule is None
            and not self.as_task
            and self.held_call is None
            and self.method not in _READ
        )

    @property
    def withholds(self) -> bool:
        """True if the rule withholds responses that it could not process."""
        return self.rule is not None and self.rule.failure_policy.withholds

    @property
    def names(self) -> dict[str, str]:
        """The clients' names of the rule's arguments, if they differ."""
        return self.plan.names

    @property
    def step_arguments(self) -> dict[str, Any]:
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

    def error(self, reason: str) -> bytes:
        """Return the error response to a request that can have no other any more."""
        if self.method in ("tools/call", "tasks/result"):
            return message.refusal(self.id, reason, self.modern)
        return message.error(self.id, -1, reason)


class RecentlyAnswered:
    """The requests answered last, by the name under which they may be looked up again."""

    __slots__ = ("_requests", "_size")

    def __init__(self) -> None:
        self._requests: OrderedDict[bytes, PendingRequest] = OrderedDict()
        self._size = 0

    def get(self, name: bytes) -> PendingRequest | None:
        """Return the request of this name, None if it was forgotten or never recorded."""
        return self._requests.get(name)

    def add(self, name: bytes, pending: PendingRequest) -> None:
        """Record a request, in place of an earlier one of its name."""
        self.drop(name)
        self._requests[name] = pending
        self._size += pending.size + len(name)
        while len(self._requests) > 1 and (
            len(self._requests) > _MOST_ANSWERED or self._size > _MOST_ANSWERED_SIZE
        ):
            self.drop(next(iter(self._requests)))

    def clear(self) -> None:
        """Forget all requests."""
        self._requests.clear()
        self._size = 0

    def drop(self, name: bytes) -> None:
        """Forget the request of this name, if there is one."""
        pending = self._requests.pop(name, None)
        if pending is not None:
            self._size -= pending.size + len(name)


class Deadlines:
    """The time that calls have for a response, in seconds; None is no limit, and nothing expires.

    It begins again with each progress notification. All calls have the same time, so the call with
    the oldest activity is due first. `clock` returns the time.

    >>> now = 0.0
    >>> deadlines = Deadlines(30.0, lambda: now)
    >>> deadlines.start(b"7", b'"token"')
    >>> now = 20.0
    >>> deadlines.progress(b'"token"')
    >>> now = 45.0
    >>> deadlines.expired(), deadlines.time_left()
    ([], 5.0)
    """

    __slots__ = ("_clock", "_due", "_slots", "_tokens", "seconds")

    def __init__(
        self, seconds: float | None = None, clock: Callable[[], float] = monotonic
    ) -> None:
        self.seconds = seconds
        self._clock = clock
        self._due: OrderedDict[bytes, float] = OrderedDict()  # in the order in which they are due
        self._slots: dict[bytes, bytes] = {}  # by progress token
        self._tokens: dict[bytes, bytes] = {}  # by slot

    def start(self, slot: bytes, token: bytes = b"") -> None:
        """Start the time of a call; `token` is its progress token, empty if it has none."""
        if self.seconds is None:
            return
        self.stop(slot)
        self._due[slot] = self._clock() + self.seconds
        if token:
            self._slots[token] = slot
            self._tokens[slot] = token

    def progress(self, token: bytes) -> None:
        """Restart the time of the call with this progress token."""
        self.renew(self._slots.get(token, b""))

    def renew(self, slot: bytes) -> None:
        """Restart the time of a call, if it is still pending."""
        if self.seconds is not None and slot in self._due:
            self._due[slot] = self._clock() + self.seconds
            self._due.move_to_end(slot)

    def stop(self, slot: bytes) -> None:
        """Stop the time of a call: it is answered, or its answer is not expected any more."""
        if self._due.pop(slot, None) is not None:
            token = self._tokens.pop(slot, None)
            if token is not None and self._slots.get(token) == slot:
                del self._slots[token]

    def time_left(self, slots: Iterable[bytes] | None = None) -> float | None:
        """Return the seconds until the first of these calls, or of all, is due; None for none."""
        if slots is None:
            due = next(iter(self._due.values()), None)
        else:
            due = min((self._due[slot] for slot in slots if slot in self._due), default=None)
        return None if due is None else max(0.0, due - self._clock())

    def expired(self, slots: Iterable[bytes] | None = None) -> list[bytes]:
        """Return the slots of these calls, or of all, that are due."""
        if not self._due:
            return []
        now = self._clock()
        candidates = self._due if slots is None else dict.fromkeys(slots)
        return [slot for slot in candidates if slot in self._due and self._due[slot] <= now]


class QueryIds:
    """The ids of a session's queries: no client can choose one, since clients never see them.

    >>> ids = QueryIds()
    >>> first, second = ids.new(), ids.new()
    >>> first != second, ids.issued(first), ids.issued(b'"abridge-1"'), QueryIds().issued(first)
    (True, True, False, False)
    """

    __slots__ = ("_count", "_prefix")

    def __init__(self) -> None:
        self._prefix = b""
        self._count = 0

    def __bool__(self) -> bool:
        return self._count > 0

    def new(self) -> bytes:
        """Return an unused id, as JSON."""
        self._prefix = self._prefix or f'"abridge-{urandom(12).hex()}-'.encode()
        self._count += 1
        return b'%s%d"' % (self._prefix, self._count)

    def issued(self, id: bytes) -> bool:
        """Return True if `id` was issued here."""
        return self._count > 0 and id.startswith(self._prefix)

    def within(self, raw: bytes) -> bool:
        """Return True if a line that cannot be parsed contains an id issued here."""
        return self._count > 0 and self._prefix in raw


class InFlight:
    """Requests by their slots.

    If responses are `resumable`, a request whose response matters is kept for a while after it was
    answered.
    """

    __slots__ = (
        "_answered",
        "_pending",
        "_replaced",
        "_resumable",
        "deadlines",
        "queries",
        "to_inspect",
    )

    def __init__(self, *, resumable: bool = False, deadlines: Deadlines | None = None) -> None:
        self._resumable = resumable
        self._pending: OrderedDict[bytes, PendingRequest] = OrderedDict()
        self._answered = RecentlyAnswered()
        self._replaced: OrderedDict[bytes, bool] = OrderedDict()  # True: its response may come
        self.deadlines = deadlines or Deadlines()
        self.queries = QueryIds()
        self.to_inspect = 0
        """The number of pending requests whose responses must be inspected."""

    def add(self, pending: PendingRequest) -> None:
        """Record a request, in place of an earlier one in its slot."""
        slot = pending.exchange + pending.id
        self.retire(slot)
        # Responses in this slot are for the new request from now on.
        self._answered.drop(slot)
        self._replaced.pop(slot, None)
        self._pending[slot] = pending
        if not pending.plain:
            self.to_inspect += 1
        if len(self._pending) > _MOST_PENDING:
            self.retire(self._spare())

    def _spare(self) -> bytes:
        """Return the slot to forget first: the oldest, unless its rule withholds responses.

        A late response to a forgotten request is sent unchanged.
        """
        open = (slot for slot, pending in self._pending.items() if not pending.withholds)
        return next(open, next(iter(self._pending)))

    def find(self, slot: bytes) -> PendingRequest | None:
        """Return the request that a response in this slot answers."""
        return self._pending.get(slot) or self._answered.get(slot)

    def only(self) -> bytes | None:
        """Return the slot of the only pending request; None if there are more, or none.

        None also while late responses may come: a line may belong to any of those calls.
        """
        if len(self._pending) != 1 or any(self._replaced.values()):
            return None
        return next(iter(self._pending))

    def holds(self, slot: bytes) -> bool:
        """Return True if a request in this slot is pending."""
        return slot in self._pending

    def at_server(self, slot: bytes) -> PendingRequest | None:
        """Return the request in this slot that was sent to the server, None for a held call."""
        pending = self._pending.get(slot)
        return None if pending is None or pending.query else pending

    def retire(self, slot: bytes) -> PendingRequest | None:
        """Forget and return a pending request; the query of a held call is forgotten with it."""
        pending = self._pending.pop(slot, None)
        if self.deadlines.seconds is not None:
            self.deadlines.stop(slot)
        if pending is not None and not pending.plain:
            self.to_inspect -= 1
        if pending is not None and pending.query:
            self.retire(pending.query)
        return pending

    def answer(self, slot: bytes) -> PendingRequest | None:
        """Return the request that a response answers, for the first time or again."""
        pending = self.retire(slot)
        if not self._resumable or (pending is not None and pending.held_call is not None):
            return pending
        if pending is None:
            return self._answered.get(slot)
        if not pending.plain:
            self._answered.add(slot, replace(pending, is_repeat=True))
        return pending

    def rest(self) -> None:
        """Forget answered requests: no client resumes them after so long."""
        self._answered.clear()

    def release(
        self, exchange: bytes | None = None, ids: Collection[bytes] | None = None
    ) -> list[PendingRequest]:
        """Forget and return pending requests: all, those of an exchange, or these ids of it."""
        if exchange is not None and ids is not None:
            slots = [exchange + id for id in ids]
        else:
            slots = [
                slot
                for slot, pending in self._pending.items()
                if exchange is None or pending.exchange == exchange
            ]
        requests = [pending for pending in map(self.retire, slots) if pending is not None]
        return [pending for pending in requests if pending.held_call is None]

    # Responses that must not reach the client

    @property
    def strays_possible(self) -> bool:
        """False if no response can be a stray one."""
        return bool(self.queries or self._replaced)

    def is_stray(self, exchange: bytes, key: bytes) -> bool:
        """Return True if a response without a pending request must not reach the client.

        It answers a query, or a request that the proxy has answered itself.
        """
        return exchange + key in self._replaced or self.queries.issued(key)

    def replace_response(self, slot: bytes, *, expected: bool = False) -> None:
        """Record that the proxy answered a request; `expected`: the server's response may come."""
        self.deadlines.stop(slot)
        self._replaced[slot] = expected
        if len(self._replaced) > _MOST_REPLACED:
            self._replaced.popitem(last=False)

    def forget_response(self, slot: bytes) -> None:
        """Record that no response can come in this slot any more."""
        self._replaced.pop(slot, None)


class SuspendedCalls(dict[int, PendingRequest]):
    """Calls by the tokens of the LoadSnapshot or Shape that they wait for.

    A dict, since nothing may fail between the end of the wait and the answer to the call.
    """

    __slots__ = ("last",)

    def __init__(self) -> None:
        super().__init__()
        self.last = 0
        """The newest token; tokens are consecutive numbers."""

    def add(self, pending: PendingRequest) -> int:
        """Record a call, and return its token."""
        self.last += 1
        self[self.last] = pending
        return self.last

    def forget_since(self, last: int) -> None:
        """Forget the calls whose tokens are newer than `last`."""
        for token in range(last + 1, self.last + 1):
            self.pop(token, None)
