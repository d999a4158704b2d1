"""Counts of bytes before and after, on the wire and as the model sees them, and of rule warnings.

Invariant: with any threads, every counted call is in exactly one row of exactly one `drain`, and
every warning in one of `drain_warnings`. Counts that have not been drained take bounded memory.
"""

from collections.abc import Callable
from threading import Event, Lock
from typing import Literal

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

# Kept one row per call, since their sizes show how well a rule works; the others are just summed.
_SINGLE = frozenset(("shaped", "page", "view", "failed", "shadow"))
_MOST_ROWS = 4_096
_MOST_SUMS = 20_000
_MOST_TOOLS = 1_000
_MOST_KINDS = 1_000
_MOST_NAMES = 100
_LONGEST_NAME = 200
OTHER = "other"
"""The name for further tools after the first thousand of a process.

The same for servers and clients after a hundred, and kinds of warnings after a thousand.
"""


class Sizes(Struct, frozen=True, gc=False):
    """The bytes of one response: of its message on the wire, and of its part for the model."""

    wire_before: int
    wire_after: int
    visible_before: int
    visible_after: int


class Row(Struct, frozen=True, gc=False):
    """One call, or the sum of several of the same tool, rule and outcome."""

    tool: str
    rule: str | None
    outcome: OutcomeKind
    calls: int
    wire_before: int
    wire_after: int
    visible_before: int
    visible_after: int


class Warnings(Struct, frozen=True, gc=False):
    """The number of warnings of one kind that a rule had for the calls of one tool."""

    tool: str
    rule: str
    kind: str
    count: int


class _Room:
    """The state that the meters of a process share: a lock, the known names, the rows and sums."""

    __slots__ = ("counted", "kinds", "lock", "rows", "sums", "tools")

    def __init__(self) -> None:
        # `+=` on a shared sum is not atomic; an uncontended lock costs some 50 ns.
        self.lock = Lock()
        self.counted = Event()
        self.tools: set[str] = set()
        self.kinds: set[str] = set()
        self.rows = 0
        self.sums = 0

    def label(self, tool: str) -> str:
        """Return the name to count `tool` under; OTHER beyond the limits."""
        # A client may call tools by any number of names of any length.
        return self._known(tool, self.tools, _MOST_TOOLS)

    def kind(self, kind: str) -> str:
        """Return the name to count warnings of this `kind` under."""
        # A transform from outside the project may have made it from data of the server.
        return self._known(kind, self.kinds, _MOST_KINDS)

    def wake(self) -> None:
        """Wake the thread that drains, or it would sleep while there are counts to write."""
        if not self.counted.is_set():  # 20 times cheaper than to set it
            self.counted.set()

    def _known(self, name: str, names: set[str], most: int) -> str:
        if self.sums >= _MOST_SUMS:
            return OTHER
        name = name[:_LONGEST_NAME]
        if name not in names:
            if len(names) >= most:
                return OTHER
            names.add(name)
        return name


class Meter:
    """A collector of the sizes of calls until a `drain` takes them.

    Any thread may count, any other may drain. It works without a drain too: after a few thousand
    rows, further calls are summed by tool, rule and outcome. `observe` receives a row for each
    call, `observe_warning` each warning.
    """

    def __init__(
        self,
        observe: Callable[[Row], None] | None = None,
        observe_warning: Callable[[Warnings], None] | None = None,
        room: _Room | None = None,
    ) -> None:
        self._observe = observe
        self._observe_warning = observe_warning
        self._room = _Room() if room is None else room
        self._lock = self._room.lock
        self._rows: list[Row] = []
        self._sums: dict[tuple[str, str | None, OutcomeKind], list[int]] = {}
        self._passed: dict[str, list[int]] = {}
        self._warnings: dict[tuple[str, str, str], int] = {}

    def passed(self, tool: str, wire: int) -> None:
        """Count a response of `wire` bytes that was sent without being decoded.

        The part that the model reads is unknown without decoding, so the whole message counts as
        visible: a little too much, but the same before and after, so that no bytes seem saved.
        """
        with self._lock:
            sums = self._passed.get(tool)
            if sums is None:
                tool = self._room.label(tool)
                sums = self._passed.get(tool)
                if sums is None:
                    sums = self._passed[tool] = [0, 0]
                    self._room.sums += 1
            sums[0] += 1
            sums[1] += wire
        self._room.wake()
        if self._observe is not None:
            self._observe(Row(tool, None, "untouched", 1, wire, wire, wire, wire))

    def count(self, tool: str, rule: str | None, sizes: Sizes, outcome: OutcomeKind) -> None:
        """Count one answered call of `tool`; `rule` is the name of the rule that applied, if any.

        >>> meter = Meter()
        >>> meter.count("list_issues", "issues", Sizes(9_000, 900, 8_000, 800), "shaped")
        >>> meter.passed("get_me", 120), meter.passed("get_me", 80)
        (None, None)
        >>> [(row.tool, row.calls, row.visible_before, row.visible_after) for row in meter.drain()]
        [('list_issues', 1, 8000, 800), ('get_me', 2, 200, 200)]
        """
        with self._lock:
            tool = self._room.label(tool)
            row = Row(
                tool,
                rule,
                outcome,
                1,
                sizes.wire_before,
                sizes.wire_after,
                sizes.visible_before,
                sizes.visible_after,
            )
            if outcome in _SINGLE and self._room.rows < _MOST_ROWS:
                self._rows.append(row)
                self._room.rows += 1
            else:
                self._add(row)
        self._room.wake()
        if self._observe is not None:
            self._observe(row)

    def _add(self, row: Row) -> None:
        key = (row.tool, row.rule, row.outcome)
        sums = self._sums.get(key)
        if sums is None:
            sums = self._sums[key] = [0, 0, 0, 0, 0]
            self._room.sums += 1
        sums[0] += 1
        sums[1] += row.wire_before
        sums[2] += row.wire_after
        sums[3] += row.visible_before
        sums[4] += row.visible_after

    def warned(self, tool: str, rule: str, kind: str) -> None:
        """Count one warning that the rule named `rule` had for a call of `tool`.

        >>> meter = Meter()
        >>> meter.warned("get_job", "jobs", "transition: completed -> running")
        >>> meter.warned("get_job", "jobs", "transition: completed -> running")
        >>> [(each.kind, each.count) for each in meter.drain_warnings()]
        [('transition: completed -> running', 2)]
        """
        with self._lock:
            key = self._room.label(tool), rule, self._room.kind(kind)
            count = self._warnings.get(key, 0)
            if not count:
                self._room.sums += 1
            self._warnings[key] = count + 1
        self._room.wake()
        if self._observe_warning is not None:
            self._observe_warning(Warnings(*key, 1))

    def drain_warnings(self) -> list[Warnings]:
        """Return the warnings since the last drain, and clear them."""
        with self._lock:
            warnings, self._warnings = self._warnings, {}
            self._room.sums -= len(warnings)
        return [Warnings(*key, count) for key, count in warnings.items()]

    def drain(self) -> list[Row]:
        """Return the rows counted since the last drain, and clear them."""
        with self._lock:
            rows, self._rows = self._rows, []
            sums, self._sums = self._sums, {}
            passed, self._passed = self._passed, {}
            self._room.rows -= len(rows)
            self._room.sums -= len(sums) + len(passed)
        rows.extend(Row(*key, *figures) for key, figures in sums.items())
        for tool, (calls, wire) in passed.items():
            rows.append(Row(tool, None, "untouched", calls, wire, wire, wire, wire))
        return rows


class Meters:
    """The meters of a process: one for each server and client that are known by name.

    `observe` receives a row for each call when it is counted, in the thread that counts it;
    `observe_warning` receives each warning in the same way.

    >>> meters = Meters()
    >>> meters.of("github", "codex").passed("get_me", 120)
    >>> meters.of("github", None).passed("get_me", 80)
    >>> [(server, client, row.wire_before) for server, client, row in meters.drain()]
    [('github', 'codex', 120), ('github', None, 80)]
    """

    def __init__(
        self,
        observe: Callable[[Row], None] | None = None,
        observe_warning: Callable[[Warnings], None] | None = None,
    ) -> None:
        self._observe = observe
        self._observe_warning = observe_warning
        self._room = _Room()
        self.counted = self._room.counted
        """Set by each count; the thread that drains waits for it, and clears it first."""
        self._meters: dict[tuple[str | None, str | None], Meter] = {}
        self._servers: set[str | None] = {None}
        self._clients: set[str | None] = {None}

    def of(self, server: str | None, client: str | None) -> Meter:
        """Return the meter for a server and a client; the same meter for the same names."""
        with self._room.lock:
            names = _known(server, self._servers), _known(client, self._clients)
            meter = self._meters.get(names)
            if meter is None:
                meter = Meter(self._observe, self._observe_warning, self._room)
                self._meters[names] = meter
            return meter

    def drain(self) -> list[tuple[str | None, str | None, Row]]:
        """Return the rows of all meters since the last drain, with their server and client."""
        return [(*names, row) for names, meter in self._known() for row in meter.drain()]

    def drain_warnings(self) -> list[tuple[str | None, str | None, Warnings]]:
        """Return the warnings of all meters since the last drain, with their server and client."""
        return [(*names, each) for names, meter in self._known() for each in meter.drain_warnings()]

    def _known(self) -> list[tuple[tuple[str | None, str | None], Meter]]:
        with self._room.lock:
            return list(self._meters.items())


def _known(name: str | None, names: set[str | None]) -> str | None:
    """Return `name`, cut to its limit, or OTHER if `names` is full."""
    if name in names:
        return name
    cut = name and name[:_LONGEST_NAME]
    if cut not in names:
        if len(names) > _MOST_NAMES:
            return OTHER
        names.add(cut)
    return cut
