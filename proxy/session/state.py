"""The state of a session, and what all parts of it do: send, answer, count, fail.

requests.py, responses.py, tool_lists.py and guards.py are functions over one SessionState.
"""

from collections import OrderedDict
from collections.abc import Callable, Iterable, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Literal

from proxy.document import message
from proxy.errors import RuleErrors, raised
from proxy.ruleset.circuit_breaker import MAX_FAILURES
from proxy.ruleset.rule import Rule
from proxy.session.active_rules import ActiveRules, Rules
from proxy.session.inflight import InFlight, PendingRequest, RecentlyAnswered, SuspendedCalls
from proxy.session.outputs import DropSnapshots, Forward, Output, Reply
from proxy.shaping import error_results
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.storage.meter import Meter, Sizes
from proxy.storage.snapshots import Key
from proxy.transforms.base import Call, Warned

if TYPE_CHECKING:
    from proxy.session.tool_lists import ToolListHistory

Meters = Callable[[str | None, str | None], Meter]
ReplyKind = Literal["refused", "answered", "hidden", "late"]

ID_IN_USE = "a request with this id has no answer yet"

_MOST_WARNINGS = 1000  # kinds of warnings that are logged


class SessionState:
    """All that a session knows; its methods are the steps that both directions share.

    `tasks` are calls by the names of their tasks, `stored` the keys of stored snapshots, the oldest
    first. `tool_list` is the list that the client received last, if the server declares that its
    list may change. `answering` are the requests that the current message of the server answers.
    """

    __slots__ = (
        "_logged",
        "_meter",
        "_meters",
        "answering",
        "inflight",
        "log",
        "rules",
        "scope",
        "stored",
        "suspended",
        "tasks",
        "tool_list",
    )

    def __init__(
        self,
        rules: Rules,
        meters: Meters,
        log: Callable[[str], None],
        scope: str = "",
        inflight: InFlight | None = None,
    ) -> None:
        self._meters = meters
        self._meter = meters(None, None)
        self._logged: set[tuple[str, str]] = set()  # warnings
        self.log = log
        self.scope = scope
        self.rules = ActiveRules(rules, log, self._renamed)
        self.inflight = inflight or InFlight()
        self.suspended = SuspendedCalls()
        self.answering: list[PendingRequest] = []
        self.tasks = RecentlyAnswered()
        self.stored: OrderedDict[Key, None] = OrderedDict()
        self.tool_list: ToolListHistory | None = None

    def _renamed(self, server: str | None, client: str | None) -> None:
        self._meter = self._meters(server, client)

    # Requests to the server

    def send(self, raw: bytes, pending: PendingRequest) -> tuple[Output, ...]:
        """Record a request before it is sent upstream: the response may come at once."""
        inflight, slot = self.inflight, pending.exchange + pending.id
        if pending.withholds and inflight.at_server(slot):
            # Of two responses with this id, the first would be taken for the withheld one.
            return (Reply(pending.error(ID_IN_USE)),)
        pending.size = len(raw)
        inflight.add(pending)
        if inflight.deadlines.seconds is not None and pending.method == "tools/call":
            inflight.deadlines.start(slot, pending.progress_token)
        return (Forward(raw),)

    def send_call(self, raw: bytes, pending: PendingRequest) -> tuple[Output, ...]:
        """Send a call on, and drop the snapshots that it makes stale (`drop_on`)."""
        stale = self.rules.dropped_by(pending.tool)
        drops = (DropSnapshots(Key(pending.scope, rule, None)) for rule in stale)
        return (*drops, *self.send(raw, pending))

    # Answers of the proxy's own; outputs are relative to the client

    def reply(self, pending: PendingRequest, kind: ReplyKind, line: bytes) -> tuple[Output, ...]:
        """Answer a call with `line`, and count it."""
        rule = None if pending.rule is None else pending.rule.name
        self._meter.count(pending.tool, rule, Sizes(0, len(line), 0, len(line)), kind)
        return (Reply(line),)

    def refuse(self, pending: PendingRequest, reason: str) -> tuple[Output, ...]:
        """Answer a call with an error result."""
        return self.reply(pending, "refused", self.refusal(pending, reason))

    def refusal(self, pending: PendingRequest, reason: str) -> bytes:
        """Return an error result with this reason, in the form of the rule's errors."""
        rule = pending.rule
        if rule is None or rule.mode != "active" or not rule.errors:
            return message.refusal(pending.id, reason, pending.modern)
        call = Call(pending.tool, pending.step_arguments, names=pending.names, warnings=[])
        line = error_results.refusal(rule, call, pending.id, reason, pending.modern)
        self.warn(pending.tool, rule, call.warnings)
        return line

    # Counts

    def count_untouched(self, pending: PendingRequest, size: int) -> None:
        """Count a response of `size` bytes that is sent unchanged."""
        if pending.tool and not pending.is_repeat:
            self._meter.count_untouched(pending.tool, size)

    def count_shaped(self, job: ShapeJob, result: ShapeResult) -> None:
        """Count and log the result of shaping a response."""
        before = 0 if job.raw is None else len(job.raw)
        sizes = Sizes(before, len(result.raw), result.visible_before, result.visible_after)
        self._meter.count(job.tool, job.rule.name, sizes, result.outcome)
        if result.log_line is not None:
            self.log(result.log_line)
        if result.warnings:
            self.warn(job.tool, job.rule, result.warnings)
        self._record_outcome(job, result)

    def _record_outcome(self, job: ShapeJob, result: ShapeResult) -> None:
        """Record a success or failure of the rule; failures in a row put it out of service."""
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
            self.log(text)
            self._meter.warned(job.tool, rule.name, "out of service")

    def warn(self, tool: str, rule: Rule, warnings: Iterable[Warned]) -> None:
        """Count warnings, and log the first of each kind, rule and tool."""
        for warning in warnings:
            self._meter.warned(tool, rule.name, warning.kind)
            kind = rule.at(tool), warning.kind
            if kind not in self._logged and len(self._logged) < _MOST_WARNINGS:
                self._logged.add(kind)
                self.log(f"{rule.at(tool)}: {warning.text}")

    # Failures of the session itself

    def fail(self, error: Exception, suspended: int) -> str:
        """Log a failure, and return the reason to send in place of an answer.

        Calls that were suspended since token `suspended` are dropped.
        """
        self.suspended.forget_since(suspended)
        reason = failure_reason(error)
        if not isinstance(error, RuleErrors):
            with suppress(Exception):  # it may be the log that failed
                self.log(reason)
        return reason

    def give_up(self, pending: PendingRequest, reason: str) -> bytes:
        """Return the error response to a call on which the proxy failed, and forget the call."""
        self.inflight.retire(pending.slot)
        return pending.error(reason)

    def withhold(
        self, raw: bytes, requests: Sequence[PendingRequest], reason: str, *, lists: bool
    ) -> tuple[Output, ...]:
        """Forward a message on which the proxy failed, unless a response in it must be withheld.

        `requests` are those that it answers. `lists`: a list of tools must not reach the client
        unedited. Outputs are relative to the server.
        """
        if not any(
            each.withholds or each.held_call or (lists and each.method == "tools/list")
            for each in requests
        ):
            return (Forward(raw),)
        return tuple(Forward((each.held_call or each).error(reason)) for each in requests)


def failure_reason(error: Exception) -> str:
    """Return the message for the client about a failure of the proxy.

    >>> failure_reason(KeyError("a"))
    "the proxy failed on a message: KeyError: 'a'"
    """
    if isinstance(error, RuleErrors):
        return error.brief
    return f"the proxy failed on a message: {raised(error)}"
