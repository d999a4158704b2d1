"""Counts of bytes before and after, on the wire and as the model sees them, and of rule warnings.

Invariant: with any threads, whatever is counted is in exactly one row of exactly one `drain`.
Counts that have not been drained take bounded memory.
"""

import operator
from collections.abc import Callable
from threading import Event, Lock
from typing import Any, Generic, Literal, TypeVar, get_args

from msgspec import Struct

OutcomeKind = Literal[
    "untouched",  # no rule applied, or none changed anything: sent unchanged
    "shaped",  # a rule, or the budget, rewrote the response
    "page",  # answered from a snapshot: the upstream sent nothing, so its sizes before are 0
    "view",  # the same, for a view
    "failed",  # a rule failed, and the original was sent
    "shadow",  # measured only: the sizes after are those of the response that a rule would send
    "refused",  # answered by the proxy, for arguments or a result that a rule refuses
    "answered",  # answered by the proxy: a guard had the response
    "hidden",  # answered by the proxy, for a tool that a rule hides
    "late",  # answered by the proxy: the server did not respond in time
    "error",  # an error from the upstream, sent unchanged
]

MAX_NAME = 200
"""The number of characters of a name that are counted and recorded."""

STAGES = ("before", "after", "visible_before", "visible_after")
"""The names of the sizes of `Row.sent_sizes`."""

OTHER = "other"
"""The name for further tools, servers, clients and kinds of warnings after the first ones."""

_MAX_TOOLS = _MAX_KINDS = 1_000
_MAX_PEERS = 100
_MAX_SUMS = 20_000

Label = TypeVar("Label")


class Limiter(Generic[Label]):
    """Bounds how many labels there are, since clients and servers choose any number of names.

    `reserve` of the `limit` are closed to labels that have a coarser one to be counted under.
    """

    def __init__(self, limit: int, reserve: int = 0) -> None:
        self._limit = limit
        self._reserve = reserve
        self._admitted: set[Label] = set()
        self._lock = Lock()

    def admit(self, *candidates: Label) -> Label:
        """Return the first of `candidates`, each coarser, that is known or finds room; or the last.

        >>> tools = Limiter(2)
        >>> [tools.admit(name, OTHER) for name in ("a", "b", "c", "a")]
        ['a', 'b', 'other', 'a']
        """
        if candidates[0] in self._admitted:
            return candidates[0]
        *finer, label = candidates
        limit = self._limit - self._reserve
        with self._lock:
            for each in finer:
                if each in self._admitted or len(self._admitted) < limit:
                    label = each
                    break
                limit = self._limit - 1
            self._admitted.add(label)
            return label


class Row(Struct, frozen=True, gc=False):
    """The calls of one tool, rule and outcome, by one client of one server, and their sizes.

    The sizes are bytes of the message on the wire, and of its part for the model: of the whole
    message if it was not parsed, as most `untouched` ones are not. Of these the client alone
    would have left out `client_cut`, in `cuts_before` responses; in `cuts_after` it still leaves
    something out. The model read `largest` bytes of the largest response.
    """

    tool: str
    rule: str | None
    outcome: OutcomeKind
    server: str | None
    client: str | None
    calls: int
    wire_before: int
    wire_after: int
    visible_before: int
    visible_after: int
    client_cut: int = 0
    cuts_before: int = 0
    cuts_after: int = 0
    largest: int = 0

    @property
    def sent_sizes(self) -> tuple[int, int, int, int]:
        """The sizes by STAGES, of what was sent: a rule in shadow mode changes no response."""
        if self.outcome == "shadow":
            return (self.wire_before,) * 2 + (self.visible_before,) * 2
        return self.wire_before, self.wire_after, self.visible_before, self.visible_after


class Warnings(Struct, frozen=True, gc=False):
    """The number of warnings of one kind that a rule had."""

    rule: str
    kind: str
    count: int


class Definitions(Struct, frozen=True, gc=False):
    """The tool lists of some sessions with a server, and their bytes before and after."""

    server: str | None
    sessions: int
    before: int
    after: int


class Looks(Struct, frozen=True, gc=False):
    """The first answers in short of one tool, rule, server and client, and what was asked for next.

    `looks` are the answers that a rule or the budget shortened, and of which the rest was kept. Of
    these, some were too little, each by one sign: all was asked for, or several parts, or the same
    call was made again. See mcp_abridge.session.looks.
    """

    tool: str
    rule: str | None
    server: str | None
    client: str | None
    looks: int = 0
    asked_all: int = 0
    asked_parts: int = 0
    called_again: int = 0


LookSign = Literal["looks", "asked_all", "asked_parts", "called_again"]
LOOK_SIGNS: tuple[LookSign, ...] = get_args(LookSign)

Tally = Row | Warnings | Definitions | Looks
SomeTally = TypeVar("SomeTally", bound=Tally)


class Meters:
    """The counts of a process until a `drain` takes them, from any thread.

    `observe` receives a row for each call when it is counted, in the thread that counts it, and
    `observe_warning` each warning, with the route that it came by. Without a drain, further tools
    are counted as OTHER at last.
    """

    def __init__(
        self,
        observe: Callable[[Row, str], None] | None = None,
        observe_warning: Callable[[Warnings, str], None] | None = None,
    ) -> None:
        self.wake_drain = Event()
        """Set by each call and warning; the thread that drains waits for it, and clears it first.

        Tool lists are recorded with the next call, or at the end: none waits for a file to open.
        """
        self._observers: dict[type, Callable[[Any, str], None] | None] = {
            Row: observe,
            Warnings: observe_warning,
        }
        self._servers = Limiter[str](_MAX_PEERS)
        self._clients = Limiter[str](_MAX_PEERS)
        self._labels = {Row: Limiter[str](_MAX_TOOLS), Warnings: Limiter[str](_MAX_KINDS)}
        # `+=` on a shared sum is not atomic; an uncontended lock costs some 50 ns.
        self._lock = Lock()
        self._sums: dict[type, dict[tuple[Any, ...], list[int]]]
        self._sums = {kind: {} for kind in get_args(Tally)}

    def of(self, server: str | None, client: str | None, route: str = "") -> "Meter":
        """Return the meter for a server and a client, and the route of a sidecar."""
        server = server and self._servers.admit(server[:MAX_NAME], OTHER)
        client = client and self._clients.admit(client[:MAX_NAME], OTHER)
        return Meter(self, server, client, route)

    def label(self, kind: type[Row | Warnings], name: str) -> str:
        """Return a tool, or a kind of warning, as it is counted: beyond the limits as OTHER."""
        if len(self._sums[Row]) + len(self._sums[Warnings]) >= _MAX_SUMS:
            return OTHER
        return self._labels[kind].admit(name[:MAX_NAME], OTHER)

    def add(
        self, kind: type[SomeTally], key: tuple[Any, ...], *figures: int, route: str = ""
    ) -> None:
        """Add figures to the sums of the row of this kind that has this key."""
        with self._lock:
            sums = self._sums[kind]
            earlier = sums.get(key)
            if earlier is None:
                sums[key] = [*figures]
            else:
                sums[key] = [*map(operator.add, earlier, figures)]
                if kind is Row:
                    sums[key][-1] = max(earlier[-1], figures[-1])
        # The thread that drains would sleep while there are counts to write.
        if kind is not Definitions and not self.wake_drain.is_set():  # 20 times cheaper than to set
            self.wake_drain.set()
        if (observe := self._observers.get(kind)) is not None:
            observe(kind(*key, *figures), route)

    def drain(self, kind: type[SomeTally]) -> list[SomeTally]:
        with self._lock:
            sums = self._sums[kind]
            self._sums[kind] = {}
        return [kind(*key, *figures) for key, figures in sums.items()]


Sizes = tuple[int, int]
"""Bytes before and after."""


class Meter(Struct, frozen=True):
    """Counts the calls by one client of one server, by the route of a sidecar."""

    meters: Meters
    server: str | None
    client: str | None
    route: str = ""

    def count_untouched(self, tool: str, wire: int, client_cut: int = 0) -> Row:
        """Count a response of `wire` bytes that was not decoded: all of it counts as visible."""
        size = wire, wire
        return self.count(tool, None, "untouched", size, size, (client_cut, client_cut))

    def count(
        self,
        tool: str,
        rule: str | None,
        outcome: OutcomeKind,
        wire: Sizes,
        visible: Sizes,
        client_cut: Sizes = (0, 0),
    ) -> Row:
        """Count one answered call of `tool`; `rule` is the name of the rule that applied, if any.

        `client_cut` are the bytes that the client by itself leaves out.

        >>> meters = Meters()
        >>> meter = meters.of(None, None)
        >>> _ = meter.count("list_issues", "issues", "shaped", (9_000, 900), (8_000, 800))
        >>> meter.count_untouched("get_me", 120).calls, meter.count_untouched("get_me", 80).calls
        (1, 1)
        >>> [(row.tool, row.calls, row.visible_after) for row in meters.drain(Row)]
        [('list_issues', 1, 800), ('get_me', 2, 200)]
        """
        key = self.meters.label(Row, tool), rule, outcome, self.server, self.client
        cut, cut_after = client_cut
        largest = visible[1]
        if outcome == "shadow":  # the original was sent
            cut_after, largest = cut, visible[0]
        figures = (1, *wire, *visible, cut, cut > 0, cut_after > 0, largest)
        self.meters.add(Row, key, *figures, route=self.route)
        return Row(*key, *figures)

    def count_definitions(self, before: int, after: int, *, first: bool) -> None:
        """Count a page of a tool list, the `first` of a session or not, in bytes."""
        self.meters.add(Definitions, (self.server,), first, before, after)

    def count_look(self, tool: str, rule: str | None, sign: LookSign) -> None:
        key = self.meters.label(Row, tool), rule, self.server, self.client
        self.meters.add(Looks, key, *(each == sign for each in LOOK_SIGNS))

    def warned(self, rule: str, kind: str) -> None:
        """Count one warning of a rule; Python beside a rule makes any number of kinds."""
        key = rule, self.meters.label(Warnings, kind)
        self.meters.add(Warnings, key, 1, route=self.route)


def label(name: str) -> str:
    """Return the part of `name` that a file or a metric can hold: UTF-8 has no lone surrogates."""
    return name[:MAX_NAME].encode("utf-8", "replace").decode()
