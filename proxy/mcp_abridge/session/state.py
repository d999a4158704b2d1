"""The state of a session, its parts, and what it answers if a message cannot be processed."""

from collections import OrderedDict
from collections.abc import Callable
from time import monotonic
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw

from mcp_abridge.document import message
from mcp_abridge.errors import DocumentError, RuleErrors, StoreError, raised
from mcp_abridge.query.call import Call
from mcp_abridge.session.active_rules import ActiveRules, Rules
from mcp_abridge.session.counts import Counts, Meters, ReplyKind
from mcp_abridge.session.inflight import InFlight, PendingRequest, recently_answered
from mcp_abridge.session.looks import Look
from mcp_abridge.session.outputs import Outputs, ToClient
from mcp_abridge.shaping import error_results
from mcp_abridge.storage.calls import RecentCalls
from mcp_abridge.storage.snapshots import Key, Store

if TYPE_CHECKING:
    from mcp_abridge.session.tool_lists import ToolListHistory
    from mcp_abridge.session.tracing import Arrival, Tracer
    from mcp_abridge.storage.recorder import SessionRecorder

_TRACED = {"tools/call": "name", "prompts/get": "name", message.READ: "uri"}


class SessionState:
    """All that a session knows, in parts.

    `rules` and `meters` are called with the names of server and client, `rules` also with the
    client's version; `rules` may block while files are read. Snapshots are in `store` under
    `scope`: a caller, perhaps with a session in a second line; `store_failed` logs its failures,
    `log` all else. `calls` are those made before: without them, none is known to be the first. A
    `tracer` gets each call, with the HTTP request by which the message that is processed came
    (`arrival`). A `recorder` gets each request as the client sent it, and its response as the
    server did.

    `tasks` are calls by the names of their tasks, `stored` the looks by the keys of the stored
    snapshots, the oldest first. `tool_list` is the list that the client received last, if the
    server declares that it may change.
    """

    def __init__(
        self,
        rules: Rules,
        meters: Meters,
        log: Callable[[str], None],
        store: Store,
        *,
        scope: str = "",
        calls: RecentCalls | None = None,
        resumable: bool = False,
        deadline: float | None = None,
        tracer: "Tracer | None" = None,
        recorder: "SessionRecorder | None" = None,
        store_failed: Callable[[str], None] | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        self.log = log
        self.store, self._store_failed = store, store_failed or log
        self.scope = scope
        self.calls = calls
        self.tracer = tracer
        self.recorder = recorder
        self.arrival: Arrival | None = None
        self.counts = Counts(meters, log)
        self.rules = ActiveRules(rules, log, self.counts.rename)
        self.inflight = InFlight(resumable=resumable, deadline=deadline, clock=clock)
        self.tasks = recently_answered()
        self.stored: OrderedDict[Key, Look] = OrderedDict()
        self.tool_list: ToolListHistory | None = None

    def store_failed(self, error: Exception, what: str = "") -> None:
        """Log a failure of the store, and what it costs: of those of a call the first alone."""
        if not (isinstance(error, StoreError) and error.again):
            self._store_failed(what + raised(error))

    def trace(self, pending: PendingRequest, params: Raw) -> None:
        """Begin the trace of a request for a tool, a resource or a prompt, if it names one."""
        name = _TRACED.get(pending.method)
        target = None if name is None else message.string_at(params, name)
        if self.tracer is not None and target is not None:
            meta = message.value_at(params, "_meta")
            pending.trace = self.tracer(pending.method, target, pending.id, meta, self.arrival)

    # Answers of the proxy's own

    def reply(self, pending: PendingRequest, kind: ReplyKind, line: bytes) -> Outputs:
        """Answer a call with `line`, and count it."""
        self.counts.reply(pending, kind, line)
        return (ToClient(line),)

    def refuse(self, pending: PendingRequest, reason: str) -> Outputs:
        return self.reply(pending, "refused", self.refusal(pending, reason))

    def refusal(self, pending: PendingRequest, reason: str) -> bytes:
        """Return an error result with this reason, in the form of the rule's errors."""
        if not pending.gets_tool_result:
            return message.error(pending.id, message.PROXY_ERROR, reason)
        rule = pending.rule
        if rule is None or rule.mode != "active" or not rule.errors:
            return message.refusal(pending.id, reason, pending.modern)
        call = Call(pending.tool, pending.step_arguments, names=pending.names, warnings=[])
        line = error_results.refusal(rule, call, pending.id, reason, pending.modern)
        self.counts.warn(pending.tool, rule, call.warnings)
        return line

    # Failures of the session itself

    def fail(self, error: Exception) -> str:
        """Log a failure, and return the reason to send in place of an answer."""
        reason = failure_reason(error)
        if not isinstance(error, RuleErrors):
            self.log(reason)
        return reason

    def give_up(self, pending: PendingRequest, error: Exception) -> bytes:
        """Return the error response to a call on which the proxy failed, and forget the call."""
        self.inflight.retire(pending.slot)
        return pending.error(self.fail(error))

    def unprocessed(self, raw: bytes, pending: PendingRequest | None, error: Exception) -> Outputs:
        """Forward a message that cannot be read, or on which the proxy failed.

        If the rule of its request withholds responses, that gets an error instead.
        """
        malformed = isinstance(error, DocumentError | msgspec.DecodeError)
        reason = "" if malformed else self.fail(error)
        if pending is None:
            return (ToClient(raw),)
        place = pending.method if pending.rule is None else pending.rule.at(pending.tool)
        if pending.withholds and malformed:
            self.log(f"{place}: withheld: {error}")
            rule = "" if pending.rule is None else pending.rule.name
            reason = f"the response was withheld: rule {rule!r} cannot read it"
            return (ToClient(pending.end(self.refusal(pending, reason))),)
        lists = isinstance(error, RuleErrors) or self.rules.guards
        if pending.withholds or (lists and pending.method == "tools/list"):
            return (ToClient(pending.error(reason or f"the list cannot be read: {error}")),)
        if malformed and not pending.only_counted:
            self.log(f"{place}: left as it came: {error}")
        self.counts.untouched(pending, len(raw), raw)
        return (ToClient(raw),)


def failure_reason(error: Exception) -> str:
    """Return the message for the client about a failure of the proxy."""
    if isinstance(error, RuleErrors):
        return error.brief
    return f"the proxy failed on a message: {raised(error)}"
