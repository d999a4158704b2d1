"""Counters and log lines of a session: calls, warnings, and failing rules."""

from collections.abc import Callable, Iterable
from typing import Literal

from proxy.ruleset.circuit_breaker import MAX_FAILURES
from proxy.ruleset.rule import Rule
from proxy.session.inflight import PendingRequest
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.storage.meter import Meter, Sizes
from proxy.transforms.base import Warned

Meters = Callable[[str | None, str | None], Meter]
Word = Literal["refused", "answered", "hidden", "late"]

_REMEMBERED = 1000  # most kinds of warnings that are logged


class SessionMeter:
    """Counts with the meter of the server and client last given to `named`.

    `log` takes one line.
    """

    __slots__ = ("_meter", "_meters", "_told", "log")

    def __init__(self, meters: Meters, log: Callable[[str], None]) -> None:
        self.log = log
        self._meters = meters
        self._meter = meters(None, None)
        self._told: set[tuple[str, str]] = set()  # the warnings that were logged

    def named(self, server: str | None, client: str | None) -> None:
        """Count for the server and client of these names from now on."""
        self._meter = self._meters(server, client)

    def replied(self, pending: PendingRequest, word: Word, line: bytes) -> None:
        """Count a call that the proxy answers itself with `line`."""
        rule = pending.rule.name if pending.rule is not None else None
        self._meter.count(pending.tool, rule, Sizes(0, len(line), 0, len(line)), word)

    def untouched(self, pending: PendingRequest, size: int) -> None:
        """Count a response of `size` bytes that is sent unchanged."""
        if pending.tool and not pending.again:
            self._meter.passed(pending.tool, size)

    def shaped(self, job: ShapeJob, outcome: ShapeResult) -> None:
        """Count and log the result of shaping a response."""
        before = 0 if job.raw is None else len(job.raw)
        sizes = Sizes(before, len(outcome.raw), outcome.visible_before, outcome.visible_after)
        self._meter.count(job.tool, job.rule.name, sizes, outcome.word)
        if outcome.said is not None:
            self.log(outcome.said)
        self.warned(job.tool, job.rule, outcome.warnings)
        self._note(job, outcome)

    def warned(self, tool: str, rule: Rule, warnings: Iterable[Warned]) -> None:
        """Count warnings, and log the first of each kind, rule and tool."""
        for warned in warnings:
            self._meter.warned(tool, rule.name, warned.kind)
            kind = rule.at(tool), warned.kind
            if kind not in self._told and len(self._told) < _REMEMBERED:
                self._told.add(kind)
                self.log(f"{rule.at(tool)}: {warned.said}")

    def _note(self, job: ShapeJob, outcome: ShapeResult) -> None:
        """Record a success or failure of the rule; failures in a row put it out of service."""
        rule = job.rule
        # A failed view is not the rule's failure, and a rule that withholds must stay in service.
        if job.view is not None or rule.failure_policy.withholds:
            return
        if outcome.word in ("error", "refused"):
            return
        if outcome.word != "failed":
            rule.circuit_breaker.record_success()
        elif not outcome.blameless and rule.circuit_breaker.record_failure():
            said = f"rule {rule.name!r} is out of service after {MAX_FAILURES} failures in a row"
            said += ", until the rules are loaded again; its responses go out as they came"
            self.log(said)
            self._meter.warned(job.tool, rule.name, "out of service")
