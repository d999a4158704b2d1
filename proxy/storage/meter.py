"""Counts of bytes before and after, on the wire and as the model sees them, and of rule warnings.

Invariant: with any threads, every counted call is in exactly one row of exactly one `drain`, and
every warning in one of `drain_warnings`. Counts that have not been drained take bounded memory.
"""

import operator
from collections.abc import Callable
from threading import Event, Lock
from typing import Generic, Literal, TypeVar

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

OTHER = "other"
"""The name for further tools, servers, clients and kinds of warnings after the first ones."""

_MAX_TOOLS = _MAX_KINDS = 1_000
_MAX_PEERS = 100
_MAX_SUMS = 20_000

Label = TypeVar("Label")
CallKind = tuple[str, str | None, OutcomeKind, str | None, str | None]
"""A tool, the rule that applied, the outcome, the server and the client."""


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
        """Return the first of `candidates` that is known or finds room; else the last.

        Each is coarser than the one before. The last always finds room.

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


class Sizes(Struct, frozen=True, gc=False):
    """The bytes of one response: of its message on the wire, and of its part for the model.

    `client_cut` of `visible_before` the client would have left out by itself, and it still leaves
    out `client_cut_after` of `visible_after`.
    """

    wire_before: int
    wire_after: int
    visible_before: int
    visible_after: int
    client_cut: int = 0
    client_cut_after: int = 0


class Row(Struct, frozen=True, gc=False):
    """The calls of one tool, rule and outcome, by one client of one server, and their sizes.

    Of `cuts_before` responses the client alone would have left something out, of `cuts_after` it
    still does. The model read `largest` bytes of the largest one.
    """

    tool: str
    rule: str | None
    outcome: OutcomeKind
    calls: int
    wire_before: int
    wire_after: int
    visible_before: int
    visible_after: int
    server: str | None = None
    client: str | None = None
    client_cut: int = 0
    cuts_before: int = 0
    cuts_after: int = 0
    largest: int = 0


class Warnings(Struct, frozen=True, gc=False):
    """The number of warnings of one kind that a rule had for the calls of one tool."""

    tool: str
    rule: str
    kind: str
    count: int


class Definitions(Struct, frozen=True, gc=False):
    """The tool lists of some sessions with a server, and their bytes before and after."""

    server: str | None
    sessions: int
    before: int
    after: int


class Meters:
    """The counts of a process until a `drain` takes them, from any thread.

    `observe` receives a row for each call when it is counted, in the thread that counts it, and
    `observe_warning` each warning. Without a drain, further tools are counted as OTHER at last.

    >>> meters = Meters()
    >>> meters.of("github", "codex").count_untouched("get_me", 120)
    >>> meters.of("github", None).count_untouched("get_me", 80)
    >>> [(row.server, row.client, row.wire_before) for row in meters.drain()]
    [('github', 'codex', 120), ('github', None, 80)]
    """

    def __init__(
        self,
        observe: Callable[[Row], None] | None = None,
        observe_warning: Callable[[Warnings], None] | None = None,
    ) -> None:
        self.wake_drain = Event()
        """Set by each count; the thread that drains waits for it, and clears it first."""
        self._observe = observe
        self._observe_warning = observe_warning
        self._servers = Limiter[str](_MAX_PEERS)
        self._clients = Limiter[str](_MAX_PEERS)
        self._tools = Limiter[str](_MAX_TOOLS)
        self._kinds = Limiter[str](_MAX_KINDS)
        # `+=` on a shared sum is not atomic; an uncontended lock costs some 50 ns.
        self._lock = Lock()
        self._sums: dict[CallKind, list[int]] = {}
        self._warnings: dict[tuple[str, str, str], int] = {}
        self._definitions: dict[str | None, list[int]] = {}

    def of(self, server: str | None, client: str | None) -> "Meter":
        """Return the meter for a server and a client."""
        server = server and self._servers.admit(server[:MAX_NAME], OTHER)
        client = client and self._clients.admit(client[:MAX_NAME], OTHER)
        return Meter(self, server, client)

    def add(self, kind: CallKind, sizes: Sizes) -> None:
        """Count one call; its tool as OTHER beyond the limits."""
        kind = (self._label(self._tools, kind[0]), *kind[1:])
        figures = _figures(kind[2], sizes)
        with self._lock:
            sums = self._sums.get(kind)
            if sums is None:
                self._sums[kind] = figures
            else:
                largest = max(sums[-1], figures[-1])
                self._sums[kind] = [*map(operator.add, sums[:-1], figures), largest]
        self._wake()
        if self._observe is not None:
            self._observe(_row(kind, figures))

    def add_warning(self, tool: str, rule: str, name: str) -> None:
        """Count one warning; Python beside a rule makes any number of kinds."""
        key = self._label(self._tools, tool), rule, self._label(self._kinds, name)
        with self._lock:
            self._warnings[key] = self._warnings.get(key, 0) + 1
        self._wake()
        if self._observe_warning is not None:
            self._observe_warning(Warnings(*key, 1))

    def add_definitions(self, server: str | None, before: int, after: int, *, first: bool) -> None:
        """Count a page of a tool list, the `first` of a session or another one.

        It is recorded with the next call, or at the end: no list waits for a file to be opened.
        """
        with self._lock:
            sums = self._definitions.setdefault(server, [0, 0, 0])
            sums[0] += first
            sums[1] += before
            sums[2] += after

    def drain_definitions(self) -> list[Definitions]:
        """Return the sums of tool lists since the last drain, and clear them."""
        with self._lock:
            definitions, self._definitions = self._definitions, {}
        return [Definitions(server, *sums) for server, sums in definitions.items()]

    def drain(self) -> list[Row]:
        """Return the sums since the last drain, and clear them."""
        with self._lock:
            sums, self._sums = self._sums, {}
        return [_row(kind, figures) for kind, figures in sums.items()]

    def drain_warnings(self) -> list[Warnings]:
        """Return the warnings since the last drain, and clear them."""
        with self._lock:
            warnings, self._warnings = self._warnings, {}
        return [Warnings(*key, count) for key, count in warnings.items()]

    def _label(self, limiter: Limiter[str], name: str) -> str:
        if len(self._sums) + len(self._warnings) >= _MAX_SUMS:
            return OTHER
        return limiter.admit(name[:MAX_NAME], OTHER)

    def _wake(self) -> None:
        # The thread that drains would sleep while there are counts to write.
        if not self.wake_drain.is_set():  # 20 times cheaper than to set it
            self.wake_drain.set()


class Meter:
    """Counts the calls by one client of one server."""

    __slots__ = ("_client", "_meters", "_server")

    def __init__(self, meters: Meters, server: str | None, client: str | None) -> None:
        self._meters = meters
        self._server = server
        self._client = client

    def count_untouched(self, tool: str, wire: int, client_cut: int = 0) -> None:
        """Count a response of `wire` bytes that was sent without being decoded.

        The part that the model reads is unknown: the whole message counts as visible.
        """
        sizes = Sizes(wire, wire, wire, wire, client_cut, client_cut)
        self.count(tool, None, sizes, "untouched")

    def count(self, tool: str, rule: str | None, sizes: Sizes, outcome: OutcomeKind) -> None:
        """Count one answered call of `tool`; `rule` is the name of the rule that applied, if any.

        >>> meters = Meters()
        >>> meter = meters.of(None, None)
        >>> meter.count("list_issues", "issues", Sizes(9_000, 900, 8_000, 800), "shaped")
        >>> meter.count_untouched("get_me", 120), meter.count_untouched("get_me", 80)
        (None, None)
        >>> [(row.tool, row.calls, row.visible_before, row.visible_after) for row in meters.drain()]
        [('list_issues', 1, 8000, 800), ('get_me', 2, 200, 200)]
        """
        self._meters.add((tool, rule, outcome, self._server, self._client), sizes)

    def count_definitions(self, before: int, after: int, *, first: bool) -> None:
        """Count a page of the tools that a session lists, in bytes as the server and we sent it."""
        self._meters.add_definitions(self._server, before, after, first=first)

    def warned(self, tool: str, rule: str, kind: str) -> None:
        """Count one warning that the rule named `rule` had for a call of `tool`.

        >>> meters = Meters()
        >>> meters.of(None, None).warned("get_job", "jobs", "transition: completed -> running")
        >>> [(each.kind, each.count) for each in meters.drain_warnings()]
        [('transition: completed -> running', 1)]
        """
        self._meters.add_warning(tool, rule, kind)


def label(name: str) -> str:
    """Return the part of `name` that a file or a metric can hold: UTF-8 has no lone surrogates."""
    return name[:MAX_NAME].encode("utf-8", "replace").decode()


def _figures(outcome: OutcomeKind, sizes: Sizes) -> list[int]:
    """Return the figures of a Row for one call."""
    before, read = sizes.visible_before, sizes.visible_after
    cut, cut_after, largest = sizes.client_cut, sizes.client_cut_after, read
    if outcome == "shadow":  # the original was sent
        cut_after, largest = cut, before
    cuts = cut > 0, cut_after > 0
    return [1, sizes.wire_before, sizes.wire_after, before, read, cut, *cuts, largest]


def _row(kind: CallKind, sums: list[int]) -> Row:
    tool, rule, outcome, server, client = kind
    calls, wire_before, wire_after, seen_before, seen_after, *cuts = sums
    sizes = (wire_before, wire_after, seen_before, seen_after)
    return Row(tool, rule, outcome, calls, *sizes, server, client, *cuts)
