"""Counts and warnings of a session: nobody would see what a rule saves, or that it fails."""

from collections.abc import Callable, Iterable
from typing import Literal

from mcp_abridge.query.call import Warned
from mcp_abridge.ruleset.clients import SHOWN_BY_ALL, client_for
from mcp_abridge.ruleset.rule import MAX_FAILURES, Rule
from mcp_abridge.session.inflight import GET_TASK, PendingRequest
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from mcp_abridge.storage.meter import LookSign, Meter

Meters = Callable[[str | None, str | None], Meter]
ReplyKind = Literal["refused", "answered", "hidden", "late"]

_MOST_WARNINGS = 1000  # kinds of warnings that are logged


class Counts:
    """Counts and log lines of results; `meters` is called with the names of both sides."""

    def __init__(self, meters: Meters, log: Callable[[str], None]) -> None:
        self._meters = meters
        self._meter = meters(None, None)
        self._log = log
        self._client: str | None = None
        self._logged: set[tuple[str, str]] = set()  # warnings
        self._lists_tools = True

    def rename(self, server: str | None, client: str | None) -> None:
        self._meter, self._client = self._meters(server, client), client

    def untouched(self, pending: PendingRequest, size: int, raw: bytes = b"") -> None:
        """Count a response of `size` bytes that is sent unchanged; `raw` is empty if streamed."""
        row = None
        if pending.tool and not pending.is_repeat and pending.method != GET_TASK:
            row = self._meter.count_untouched(pending.tool, size, self._client_cut(size))
        pending.end(raw, row)

    def reply(self, pending: PendingRequest, kind: ReplyKind, line: bytes) -> None:
        rule = None if pending.rule is None else pending.rule.name
        size = 0, len(line)
        pending.end(line, self._meter.count(pending.tool, rule, kind, size, size))

    def tools(self, before: int, after: int, *, first: bool, last: bool) -> None:
        """Count the bytes of a page of the tool list, in each session the first list alone."""
        if self._lists_tools:
            self._meter.count_definitions(before, after, first=first)
        self._lists_tools &= not last

    def shaped(self, job: ShapeJob, result: ShapeResult, pending: PendingRequest | None) -> None:
        """Count and log the result of shaping a response; `pending` is its call."""
        before = 0 if job.raw is None else len(job.raw)
        wire = before, len(result.raw)
        visible = result.visible_before, result.visible_after
        client_cut = self._client_cut(visible[0]), self._client_cut(visible[1])
        rule, kind = job.rule.name, result.outcome
        row = self._meter.count(job.tool, rule, kind, wire, visible, client_cut)
        if pending is not None:
            pending.end(result.raw, row)
        if result.log_line is not None:
            self._log(result.log_line)
        if result.warnings:
            self.warn(job.tool, job.rule, result.warnings)
        self._outcome(job, result)

    def look(self, job: ShapeJob, sign: LookSign) -> None:
        """Count a first answer in short, or a sign that it was too little."""
        self._meter.count_look(job.tool, job.rule.name, sign)

    def _client_cut(self, size: int) -> int:
        return client_for(self._client).cut(size) if size > SHOWN_BY_ALL else 0

    def _outcome(self, job: ShapeJob, result: ShapeResult) -> None:
        rule = job.rule
        # A failed view is not the rule's failure, and a rule that withholds must stay in service.
        if job.view is not None or rule.failure_policy.withholds:
            return
        if result.outcome not in ("failed", "error", "refused"):
            if rule.circuit_breaker.failures:
                rule.circuit_breaker.record_success()
        elif result.outcome != "failed" or result.blameless:
            return
        elif rule.circuit_breaker.record_failure():
            text = f"rule {rule.name!r} is out of service after {MAX_FAILURES} failures in a row, "
            text += "until the rules are loaded again; its responses go out as they came"
            self._log(text)
            self._meter.warned(rule.name, "out of service")

    def warn(self, tool: str, rule: Rule, warnings: Iterable[Warned]) -> None:
        """Count warnings, and log the first of each kind, rule and tool."""
        for warning in warnings:
            self._meter.warned(rule.name, warning.kind)
            kind = rule.at(tool), warning.kind
            if kind not in self._logged and len(self._logged) < _MOST_WARNINGS:
                self._logged.add(kind)
                self._log(f"{rule.at(tool)}: {warning.text}")
