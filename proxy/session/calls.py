"""Calls on their way to the server: the rule that applies, and the arguments to send."""

from typing import Any

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from proxy.document import message
from proxy.document.message import CLIENT_INFO, PROTOCOL_VERSION, Message, string_at
from proxy.document.tree import ABSENT, encode, loads, text
from proxy.errors import DocumentError, Refusal
from proxy.ruleset.clients import client_for
from proxy.ruleset.rule import Rule
from proxy.session import arguments as argument
from proxy.session import deadlines as timing
from proxy.session.active_rules import ActiveRules
from proxy.session.ambiguity import ambiguous, disguised, doubled, repeated
from proxy.session.arguments import VIEW, ArgumentPlan, Completed
from proxy.session.counts import SessionMeter
from proxy.session.deadlines import Deadlines
from proxy.session.forwarding import Sending, refuse, reply
from proxy.session.guards import GuardRunner
from proxy.session.inflight import PendingRequest, SuspendedCalls
from proxy.session.outputs import LoadSnapshot, Output, Shape
from proxy.session.responses import Answers
from proxy.storage.snapshots import Key, Snapshot

_LONGEST = 500  # bytes of a call in a snapshot's key; a longer one is hashed
_AMBIGUOUS = "the call is ambiguous: its name or its arguments are given twice"


class _Params(Struct):
    """The members of the params of tools/call that the proxy reads."""

    name: Raw = ABSENT
    arguments: Raw = ABSENT
    task: Raw = ABSENT
    meta: Raw = msgspec.field(default=ABSENT, name="_meta")
    answers: Raw = msgspec.field(default=ABSENT, name="inputResponses")
    state: Raw = msgspec.field(default=ABSENT, name="requestState")


_PARAMS = msgspec.json.Decoder(_Params)


class Calls(Struct, eq=False):
    """Handles tool calls; outputs are relative to the client. Snapshots are under `scope`."""

    scope: str
    standing: ActiveRules
    tally: SessionMeter
    waiting: SuspendedCalls
    timing: Deadlines | None
    sending: Sending
    guarding: GuardRunner
    answers: Answers

    def called(self, raw: bytes, read: Message, pending: PendingRequest) -> tuple[Output, ...]:
        """Refuse a call, load its snapshot, or send it on, as its rule says."""
        try:
            params = _PARAMS.decode(read.params) if read.params is not ABSENT else _Params()
            tool = None if params.name is ABSENT else text(params.name)
        except (msgspec.DecodeError, DocumentError):
            return self.sending.send(raw, pending)
        standing = self.standing
        pending.tool, pending.scope = tool or "", self.scope
        if params.meta is not ABSENT:
            standing.named(client=string_at(params.meta, CLIENT_INFO, "name"))
            pending.modern = (string_at(params.meta, PROTOCOL_VERSION) or "") >= "2026"
            if self.timing is not None and (token := timing.token(params.meta)):
                pending.token = pending.exchange + token
        if standing.protects() and (
            disguised(Raw(raw), "method", "params")
            or (tool is None and disguised(read.params, "name", "arguments"))
            or (tool is not None and (doubled(Raw(raw)) or ambiguous(read.params)))
        ):
            self.tally.log(f"{tool or 'a tool'}: refused: {_AMBIGUOUS}")
            return refuse(self.tally, pending, _AMBIGUOUS)
        if tool is None:
            return self.sending.send(raw, pending)
        hiding, hidden = standing.hiding(tool)
        if hidden is not None:
            pending.rule = hiding
            said = hidden.message.replace("{tool}", tool)
            line = message.error(pending.id, hidden.code, said)
            return reply(self.tally, pending, "hidden", line)
        covering = standing.covering(tool)
        if not covering:
            return self._passed(raw, pending)
        try:
            sent = {} if params.arguments is ABSENT else loads(bytes(params.arguments))
            if not isinstance(sent, dict):
                sent = {}
            if standing.seen(tool) is None and (own := argument.implied(sent)):
                covering = standing.guessed(tool, own)
            rule, plan = self._applying(tool, covering, sent)
            pending.rule = rule
            others = [other for owner, other in covering if owner is not rule]
            completed = argument.complete(plan, others, sent)
            return self._completed(raw, read, params, pending, plan, completed)
        except Refusal as cause:
            said = str(cause)
        except (DocumentError, RecursionError) as cause:
            if not standing.guarded(tool):
                pending.rule = None
                return self._passed(raw, pending)
            said = f"the call cannot be read: {cause}"
        return refuse(self.tally, pending, said)

    def _passed(self, raw: bytes, pending: PendingRequest) -> tuple[Output, ...]:
        """Send a call on, unless its rule's guard decides otherwise."""
        rule = pending.rule
        if rule is not None and rule.guard is not None and rule.mode == "active":
            return self.guarding.decided(raw, pending, rule.guard, None)
        return self.sending.send_call(raw, pending)

    def _applying(
        self, tool: str, covering: tuple[tuple[Rule, ArgumentPlan], ...], sent: dict[str, Any]
    ) -> tuple[Rule | None, ArgumentPlan]:
        """Return the first rule that applies; raises Refusal if a protecting `when` fails."""
        for rule, plan in covering:
            try:
                if rule.applies(sent):
                    return rule, plan
            except Refusal as cause:
                said = f"{rule.name}: `when` failed: {cause}"
                if rule.failure_policy.protects:
                    raise Refusal(said) from cause
                self.tally.log(f"{tool}: {said}")
        return None, ArgumentPlan()

    def _completed(
        self,
        raw: bytes,
        read: Message,
        params: _Params,
        pending: PendingRequest,
        plan: ArgumentPlan,
        completed: Completed,
    ) -> tuple[Output, ...]:
        rule, view = pending.rule, completed.steering.get(VIEW)
        if rule is not None and rule is self.standing.budget and self._in_code_mode(params.meta):
            rule = pending.rule = None if view is None else _unbounded(rule)
        # A server that reads the other of two equal members must not bypass a rule or its `when`.
        twofold = (
            params.arguments is not ABSENT
            and self.standing.guarded(pending.tool)
            and repeated(params.arguments)
        )
        if completed.changed or twofold:
            raw = message.with_arguments(raw, read.params, completed.upstream)
        pending.as_task = params.task is not ABSENT
        pending.cacheable = params.answers is ABSENT and params.state is ABSENT
        if rule is None:
            return self._passed(raw, pending)
        pending.arguments = completed.arguments
        pending.plan = plan
        pending.view = view
        if rule.snapshot_step.restart is not None:
            pending.key = _snapshot_key(pending, rule, completed)
        asks = pending.view is not None or completed.resumes
        if pending.key is not None and pending.cacheable and asks:
            pending.line = raw
            return (LoadSnapshot(self.waiting.hold(pending), pending.key),)
        return self._passed(raw, pending)

    def _in_code_mode(self, meta: Raw) -> bool:
        """Return True if a program gets the result: it would not notice that parts are missing."""
        mark = None if meta is ABSENT else client_for(self.standing.client).code_mode
        return mark is not None and (string_at(meta, *mark[0]) or "").startswith(mark[1])

    # The snapshot

    def loaded(
        self, pending: PendingRequest, snapshot: Snapshot | None, failure: str | None
    ) -> tuple[Output, ...]:
        """Continue a call that waited for its snapshot.

        `failure` is the reason why the snapshot could not be looked up.
        """
        rule = pending.rule
        assert rule is not None
        if rule.circuit_breaker.open:
            again = pending.start_again.removesuffix(" first")
            said = f"nothing is shown in parts while rule {rule.name!r} is out of service; {again}"
            return refuse(self.tally, pending, said)
        if snapshot is not None and (pending.view is not None or not _of_error(snapshot)):
            return (Shape(self.answers.job(pending, rule, snapshot=snapshot)),)
        if failure is not None:
            # A second run of the tool might give other pages than those already read, or repeat
            # its side effects.
            said = f"what was kept of the earlier answer is out of reach: {failure}; "
            said += "try again later"
            if self._repeatable(pending, rule):
                said += f", or {pending.start_again}"
            return refuse(self.tally, pending, said)
        if self._repeatable(pending, rule):
            line, pending.line = pending.line, b""
            return self._passed(line, pending)
        said = (
            "nothing is kept of an earlier answer to this call (it expired, or was never given); "
            + pending.start_again
        )
        return refuse(self.tally, pending, said)

    def _repeatable(self, pending: PendingRequest, rule: Rule) -> bool:
        seen = self.standing.seen(pending.tool)
        if seen is not None and seen.reads_only:
            return True
        return any(getattr(step, "refetch", None) for step in rule.pipeline)


def _of_error(snapshot: Snapshot) -> bool:
    """Return True if the snapshot is of an error, which has no pages: a new call may succeed."""
    from proxy.shaping.result.frame import Frame

    return Frame.decode(snapshot.frame).error


def _unbounded(budget: Rule) -> Rule:
    """Return the budget rule without its bound, so that a view is answered whole."""
    from proxy.transforms.abridge import Abridge

    return replace(budget, pipeline=(Abridge(),), max_bytes=None)


def _snapshot_key(pending: PendingRequest, rule: Rule, completed: Completed) -> Key:
    """Return the key of a call: its tool, rule and arguments, without windows and views.

    The rule counts as it is now: a snapshot of an earlier rule of the same name may hold more than
    the current rule would keep.
    """
    asked = [pending.tool, completed.upstream, completed.own, rule.snapshot_key]
    return Key(pending.scope, rule.name, _shortly(encode(asked, ordered=True)))


def _shortly(raw: bytes) -> str:
    """Return a short text that is unique for `raw`."""
    if len(raw) <= _LONGEST:
        return raw.decode()
    # Imported late: it takes 3 ms, and few calls are as long.
    from hashlib import sha256

    return sha256(raw).hexdigest()
