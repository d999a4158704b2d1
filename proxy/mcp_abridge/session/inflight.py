"""The requests in flight: without them, no response is known to be one, or to be late.

A request is identified by its slot: the exchange and the id. Invariant: every record is bounded.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Iterator
from time import monotonic
from typing import TYPE_CHECKING, Any, Generic, TypeVar

from msgspec import Struct, field
from msgspec.structs import replace

from mcp_abridge.document import message
from mcp_abridge.ruleset.guard import FACTS
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.session import effects
from mcp_abridge.session.outputs import Outputs, ToClient, ToServer
from mcp_abridge.session.own_requests import OwnRequest, QueryIds
from mcp_abridge.session.tools.arguments import ArgumentPlan
from mcp_abridge.storage.snapshots import Key

if TYPE_CHECKING:
    from mcp_abridge.session.state import SessionState
    from mcp_abridge.session.tracing import CallTrace
    from mcp_abridge.storage.meter import Row
    from mcp_abridge.storage.recorder import CallRecord

K = TypeVar("K")
V = TypeVar("V")

GET_TASK = "tasks/get"
"""The method whose result is a task (MCP 2025-11-25, and the extension of 2026-07-28)."""

ID_IN_USE = "a request with this id has no answer yet"

_MOST_PENDING = 20_000  # the oldest request is forgotten first
_MOST_ANSWERED = 1000  # requests that may be answered again, or whose response names a task
_MOST_ANSWERED_SIZE = 1 << 20  # bytes of these together; the newest always stays
_MOST_LATE = 1000  # overdue requests whose response may still come

_READ = frozenset({"initialize", "server/discover", "tools/list"})


class PendingRequest(Struct):
    """A request in flight, with all facts needed to process its response.

    `is_repeat`: a response was received before. `next_page`: it continues a tool list, and
    `shows_widgets`: that is for a client which does (MCP Apps). `as_task`: the client expects a
    task in place of the result; `around` is the line about a task that held the response to shape,
    without it. `size` is the length of its line in bytes; `line` is kept only while it is
    suspended. `call` is the tool and its arguments, the same for each repetition. A held call has
    the slot of the proxy's query in `query`. `searched_key`: there is no snapshot of that key.
    `max_age`: the call needs none, but takes one of at most so many seconds. `listed`: the server
    was asked for its tools. `lists`: it waits for the list of stored answers. `due` is the time at
    which it is overdue, if calls have a deadline. `trace` follows a call, and `record` is what a
    recorder keeps of it.
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
    shows_widgets: bool = False
    is_repeat: bool = False
    scope: str = ""
    size: int = 0
    line: bytes = b""
    around: bytes = b""
    call: str = ""
    searched_key: Key | None = None
    max_age: int | None = None
    listed: bool = False
    lists: bool = False
    query: bytes = b""
    progress_token: bytes = b""
    due: float | None = None
    trace: "CallTrace | None" = None
    record: "CallRecord | None" = None

    @property
    def slot(self) -> bytes:
        return self.exchange + self.id

    @property
    def caller(self) -> str:
        """The scope without a session: a call that was made in any of them is not the first."""
        return self.scope.partition("\n")[0]

    @property
    def only_counted(self) -> bool:
        """True if nothing in the response matters but its size."""
        return (
            self.rule is None
            and not self.as_task
            and not isinstance(self, PendingOwnRequest)
            and self.method not in _READ
        )

    @property
    def may_stream(self) -> bool:
        """True if nobody needs the response whole, not a recorder either."""
        return self.only_counted and self.record is None

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
    def uri(self) -> str:
        """The URI of the resource that is read by a rule; "" for any other request."""
        return self.arguments.get("uri", "") if self.method == message.READ else ""

    @property
    def may_list(self) -> bool:
        """True if its view may ask for the list of stored answers."""
        return self.view is not None and self.view.lstrip().startswith("kept")

    @property
    def gets_tool_result(self) -> bool:
        """True if a CallToolResult may answer it: not if the client expects a task."""
        return self.method in ("tools/call", "tasks/result") and not self.as_task

    def error(self, reason: str) -> bytes:
        """Return the error response to a request that can have no other any more."""
        if not self.gets_tool_result:
            return self.end(message.error(self.id, message.PROXY_ERROR, reason))
        return self.end(message.refusal(self.id, reason, self.modern))

    def end(self, line: bytes, row: "Row | None" = None) -> bytes:
        """Return its answer, which `row` counts if it is counted; its trace ends."""
        if self.trace is not None:
            self.trace.end(line, row, view=self.view is not None)
        return line


class PendingOwnRequest(PendingRequest, kw_only=True):
    """A request of the proxy's own, and the call that is held until its response."""

    held_call: PendingRequest
    own_request: OwnRequest


class Bounded(Generic[K, V]):
    """A mapping that drops its oldest values above a number or a sum of sizes, never the newest."""

    def __init__(self, number: int, size: int, size_of: Callable[[K, V], int]) -> None:
        self._number, self._size = number, size
        self._size_of = size_of
        self._values: dict[K, V] = {}
        self._sum = 0

    def __len__(self) -> int:
        return len(self._values)

    def get(self, key: K) -> V | None:
        return self._values.get(key)

    def add(self, key: K, value: V) -> None:
        self.drop(key)
        self._values[key] = value
        self._sum += self._size_of(key, value)
        while len(self) > 1 and (len(self) > self._number or self._sum > self._size):
            self.drop(next(iter(self._values)))

    def drop(self, key: K) -> None:
        value = self._values.pop(key, None)
        if value is not None:
            self._sum -= self._size_of(key, value)


def recently_answered() -> Bounded[bytes, PendingRequest]:
    """Return a store of answered requests, by the names under which they are looked up again."""
    return Bounded(_MOST_ANSWERED, _MOST_ANSWERED_SIZE, lambda name, each: each.size + len(name))


class InFlight(Struct, eq=False):
    """Requests by their slots, and responses that no request waits for.

    `pending` are those without a response, the oldest first; `suspended` are calls by the tokens of
    outputs that they wait for.

    If responses are `resumable`, a request whose response matters is kept after it was answered.
    With a `deadline`, a call is due that many seconds after it was sent, or showed progress.
    """

    resumable: bool = False
    deadline: float | None = None
    clock: Callable[[], float] = monotonic
    pending: OrderedDict[bytes, PendingRequest] = field(default_factory=OrderedDict)
    suspended: dict[int, PendingRequest] = {}
    queries: QueryIds = field(default_factory=QueryIds)
    last_write: float = 0  # when a call was sent that may write
    _answered: Bounded[bytes, PendingRequest] = field(default_factory=recently_answered)
    _late: dict[bytes, None] = {}  # overdue requests, which the proxy answered
    _last_token: int = 0

    def suspend(self, pending: PendingRequest) -> int:
        """Record a call that waits, and return the token for the output that it waits for."""
        self._last_token += 1
        self.suspended[self._last_token] = pending
        return self._last_token

    def collides(self, pending: PendingRequest) -> bool:
        """Return True if a request has the id of another one, and one of the responses is withheld.

        Of two responses with one id, the first would be taken for the withheld one.
        """
        other = self.pending.get(pending.slot)
        return other is not None and not other.query and (other.withholds or pending.withholds)

    def send(self, raw: bytes, pending: PendingRequest) -> Outputs:
        """Record a request before it is sent upstream: the response may come at once."""
        if self.collides(pending):
            return (ToClient(pending.error(ID_IN_USE)),)
        if pending.trace is not None:
            raw = pending.trace.forward(raw)
        pending.size = len(raw)
        self.begin(pending)
        return (ToServer(raw),)

    def begin(self, pending: PendingRequest) -> None:
        """Record a request that is sent to the server now; the time of a call begins."""
        self.add(pending, self.deadline if pending.method == "tools/call" else None)

    def add(self, pending: PendingRequest, seconds: float | None = None) -> None:
        """Record a request, in place of an earlier one in its slot; it is due in some seconds."""
        slot = pending.slot
        pending.due = None if seconds is None else self.clock() + seconds
        self.retire(slot)
        # Responses in this slot are for the new request from now on.
        self._answered.drop(slot)
        self._late.pop(slot, None)
        self.pending[slot] = pending
        if len(self.pending) > _MOST_PENDING:
            # Not one whose rule withholds: a late response to a forgotten one is sent unchanged.
            open = (slot for slot, each in self.pending.items() if not each.withholds)
            self.retire(next(open, next(iter(self.pending))))

    def find(self, slot: bytes) -> PendingRequest | None:
        """Return the request that a response in this slot answers."""
        return self.pending.get(slot) or self._answered.get(slot)

    def retire(self, slot: bytes) -> PendingRequest | None:
        """Forget and return a pending request; the query of a held call is forgotten with it."""
        pending = self.pending.pop(slot, None)
        if pending is not None and pending.query:
            self.retire(pending.query)
        return pending

    def answer(self, slot: bytes) -> PendingRequest | None:
        """Return the request that a response answers, for the first time or again."""
        pending = self.retire(slot)
        if not self.resumable or isinstance(pending, PendingOwnRequest):
            return pending
        if pending is None:
            return self._answered.get(slot)
        if not pending.only_counted:
            self._answered.add(slot, replace(pending, is_repeat=True, record=None))
        return pending

    def rest(self) -> None:
        """Forget answered requests: no client resumes them after so long."""
        self._answered = recently_answered()

    def release(self, slots: Iterable[bytes] | None = None) -> list[PendingRequest]:
        """Forget and return pending requests, all or these."""
        slots = tuple(self.pending) if slots is None else slots
        requests = [pending for pending in map(self.retire, slots) if pending is not None]
        return [each for each in requests if not isinstance(each, PendingOwnRequest)]

    # Deadlines

    def _due(self, slots: Iterable[bytes] | None) -> Iterator[tuple[float, PendingRequest]]:
        """Yield the deadlines and their requests: of all, or of these and their queries."""
        requests = self.pending.values() if slots is None else map(self.pending.get, slots)
        for pending in requests:
            if pending is not None and slots is not None and pending.query:
                pending = self.pending.get(pending.query)
            if pending is not None and pending.due is not None:
                yield pending.due, pending

    def progress(self, token: bytes) -> None:
        """Restart the time of the calls with this progress token."""
        for _, pending in self._due(None):
            if pending.progress_token == token:
                self.renew(pending.slot)

    def renew(self, slot: bytes) -> None:
        """Restart the time of a call, if it is still pending."""
        for _, pending in self._due([slot]):
            seconds = self.deadline or 0.0
            if isinstance(pending, PendingOwnRequest):
                seconds = pending.own_request.seconds
            pending.due = self.clock() + seconds

    def stop(self, slot: bytes) -> None:
        """Stop the time of a call: it is being answered, or its answer is not expected any more."""
        for _, pending in self._due([slot]):
            pending.due = None

    def time_left(self, slots: Iterable[bytes] | None = None) -> float | None:
        """Return the seconds until the first of these calls, or of all, is due; None for none."""
        due = min((due for due, _ in self._due(slots)), default=None)
        return None if due is None else max(0.0, due - self.clock())

    def expire(self, slots: Iterable[bytes] | None = None) -> list[PendingRequest]:
        """Forget and return these calls, or of all, that are due: their responses will be late."""
        now = self.clock()
        expired = [pending for due, pending in self._due(slots) if due <= now]
        for pending in expired:
            self.retire(pending.slot)
            if not isinstance(pending, PendingOwnRequest):
                self._late[pending.slot] = None
                if len(self._late) > _MOST_LATE:
                    del self._late[next(iter(self._late))]
        return expired

    # Responses that must not reach the client

    def is_stray(self, exchange: bytes, key: bytes) -> bool:
        """Return True if a response without a pending request must not reach the client.

        It answers a query, or a request that was overdue.
        """
        return exchange + key in self._late or self.queries.issued(key)


def send_call(state: "SessionState", raw: bytes, pending: PendingRequest) -> Outputs:
    """Send a call on and remember it; drop the snapshots that it makes stale (`drop_on`)."""
    drops = stale(state, pending)
    facts = state.rules.facts(pending.tool)
    if facts is None or not facts.reads_only:
        state.inflight.last_write = state.inflight.clock()
    # A tool that may run again needs no hash of its calls, which take 4 MB for OpenSSL.
    if state.calls is not None and pending.call and (facts is None or not facts.repeatable):
        state.calls.add(pending.caller, pending.call)
    return (*drops, *state.inflight.send(raw, pending))


def stale(state: "SessionState", pending: PendingRequest) -> Outputs:
    """Return the drops of the snapshots that a call makes stale: as it is sent, and at its end.

    What was read meanwhile may be from before it.
    """
    rules = state.rules.covering(pending.tool).drops
    if not rules:
        return ()
    return tuple(effects.drop(state, Key(pending.scope, rule, None)) for rule in rules)
