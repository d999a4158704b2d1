"""Counts bytes before and after, on the wire and as the model sees them.

Invariant: every call that was counted is in exactly one row of exactly one `drain`, whatever the
threads, and what has not been drained takes bounded memory.
"""

from threading import Lock
from typing import Literal

from msgspec import Struct

Outcome = Literal[
    "untouched",  # no rule applied, or none changed anything: sent as it came
    "shaped",  # a rule, or the budget, rewrote the response
    "page",  # answered from a snapshot: upstream sent nothing, so its sizes before are 0
    "view",  # the same, for a view
    "failed",  # a rule failed, and the original went out
    "shadow",  # measured only: the sizes after are what would have been sent
    "refused",  # answered by the proxy, for arguments or a result that a rule refuses
    "hidden",  # answered by the proxy, for a tool that a rule hides
    "error",  # an error of the upstream's own, sent as it came
]

# Kept one row each, since their sizes say how well a rule does; the others are only summed.
_SINGLE = frozenset(("shaped", "page", "view", "failed", "shadow"))
_MOST_ROWS = 4_096
_MOST_TOOLS = 1_000
_LONGEST_NAME = 200
OTHER = "other"
"""The name under which tools are counted once a process has seen a thousand."""


class Sizes(Struct, frozen=True, gc=False):
    """The bytes of one response: of its message on the wire, and of what the model reads of it."""

    wire_before: int
    wire_after: int
    visible_before: int
    visible_after: int


class Row(Struct, frozen=True, gc=False):
    """One call, or the sum of several of the same tool, rule and outcome."""

    tool: str
    rule: str | None
    outcome: Outcome
    calls: int
    wire_before: int
    wire_after: int
    visible_before: int
    visible_after: int


class Meter:
    """Collects the sizes of calls until a `drain` takes them.

    Any thread may count, any other may drain. It works without a drain too: past a few thousand
    rows, further calls are summed by tool, rule and outcome.
    """

    def __init__(self) -> None:
        # `+=` on a shared sum is not atomic; an uncontended lock costs some 50 ns.
        self._lock = Lock()
        self._rows: list[Row] = []
        self._sums: dict[tuple[str, str | None, Outcome], list[int]] = {}
        self._passed: dict[str, list[int]] = {}
        self._tools: set[str] = set()

    def passed(self, tool: str, wire: int) -> None:
        """Count a response of `wire` bytes that went through without being decoded.

        How much of it the model reads is not known without decoding it, so the whole message is
        taken as visible: a little too much, the same before and after, so that nothing seems saved.
        """
        with self._lock:
            sums = self._passed.get(tool)
            if sums is None:
                sums = self._passed.setdefault(self._label(tool), [0, 0])
            sums[0] += 1
            sums[1] += wire

    def count(self, tool: str, rule: str | None, sizes: Sizes, outcome: Outcome) -> None:
        """Count one answered call of `tool`; `rule` is the name of the rule that did it, if any.

        >>> meter = Meter()
        >>> meter.count("list_issues", "issues", Sizes(9_000, 900, 8_000, 800), "shaped")
        >>> meter.passed("get_me", 120), meter.passed("get_me", 80)
        (None, None)
        >>> [(row.tool, row.calls, row.visible_before, row.visible_after) for row in meter.drain()]
        [('list_issues', 1, 8000, 800), ('get_me', 2, 200, 200)]
        """
        with self._lock:
            tool = self._label(tool)
            before, after = sizes.wire_before, sizes.wire_after
            seen_before, seen_after = sizes.visible_before, sizes.visible_after
            if outcome in _SINGLE and len(self._rows) < _MOST_ROWS:
                row = Row(tool, rule, outcome, 1, before, after, seen_before, seen_after)
                self._rows.append(row)
                return
            sums = self._sums.setdefault((tool, rule, outcome), [0, 0, 0, 0, 0])
            sums[0] += 1
            sums[1] += before
            sums[2] += after
            sums[3] += seen_before
            sums[4] += seen_after

    def drain(self) -> list[Row]:
        """Hand over what was counted since the last drain, and forget it."""
        with self._lock:
            rows, self._rows = self._rows, []
            sums, self._sums = self._sums, {}
            passed, self._passed = self._passed, {}
        rows.extend(Row(*key, *figures) for key, figures in sums.items())
        for tool, (calls, wire) in passed.items():
            rows.append(Row(tool, None, "untouched", calls, wire, wire, wire, wire))
        return rows

    def _label(self, tool: str) -> str:
        # A client may call any name it likes, however many and however long.
        if tool in self._tools:
            return tool
        tool = tool[:_LONGEST_NAME]
        if tool not in self._tools:
            if len(self._tools) >= _MOST_TOOLS:
                return OTHER
            self._tools.add(tool)
        return tool
