"""The execution of a guard's decision: a call is sent, answered, or held for a query."""

from functools import partial

from msgspec import UNSET, Struct

from proxy.document import message
from proxy.document.tree import loads
from proxy.errors import raised
from proxy.ruleset.guard import Allow as Onward
from proxy.ruleset.guard import Guard, Query, QueryResult, Respond, decided
from proxy.session import arguments as argument
from proxy.session import failures as fallback
from proxy.session import probe
from proxy.session.active_rules import ActiveRules
from proxy.session.counts import SessionMeter
from proxy.session.forwarding import Sending, refuse, reply
from proxy.session.inflight import InFlight, PendingRequest, SuspendedCalls
from proxy.session.outputs import LARGE, Forward, Output, Probe, RunInBackground, turned
from proxy.shaping.result import write as writing
from proxy.transforms.base import Call


class GuardRunner(Struct, eq=False):
    """Runs the guards of rules on calls, and their queries on the server.

    `ids` are the ids of the queries.
    """

    standing: ActiveRules
    tally: SessionMeter
    inflight: InFlight
    waiting: SuspendedCalls
    sending: Sending
    ids: probe.Ids

    def decided(
        self, raw: bytes, pending: PendingRequest, guard: Guard, found: QueryResult | None
    ) -> tuple[Output, ...]:
        """Apply a guard's decision to a call; outputs are relative to the client."""
        rule = pending.rule
        assert rule is not None
        call = Call(pending.tool, pending.arguments, names=pending.names, warnings=[])
        try:
            decision = decided(guard, call, found)
            self.tally.warned(pending.tool, rule, call.warnings)
            if isinstance(decision, Respond):
                return self._replied(pending, decision)
            if isinstance(decision, Onward):
                return self._onward(raw, pending, decision)
            return self._asked(raw, pending, decision)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # a guard may raise anything
            said = f"{rule.at(pending.tool)}: the guard {guard.name!r} failed: "
            self.tally.log(f"{said}{raised(error)}")
            self.inflight.retire(pending.exchange + pending.id)
        if rule.on_failure == "pass":
            return self.sending.send_call(raw, pending)
        # A guard fails closed unless the rule says otherwise.
        said = f"the call was withheld: the guard of rule {rule.name!r} failed"
        return refuse(self.tally, pending, said)

    def _onward(self, raw: bytes, pending: PendingRequest, decision: Onward) -> tuple[Output, ...]:
        pending.facts = decision.facts
        if decision.arguments:
            params = message.params(raw)
            held = message.members(params)
            sent = loads(bytes(held["arguments"])) if "arguments" in held else {}
            sent = sent if isinstance(sent, dict) else {}  # as the guard saw them
            for name, value in decision.arguments.items():
                if value is UNSET:
                    pending.arguments = argument.without(pending.arguments, name)
                    sent = argument.without(sent, name)
                else:
                    pending.arguments = argument.put(pending.arguments, name, value)
                    sent = argument.put(sent, name, value)
            # The current rules, too: they may have changed while the call was held.
            now = [plan for _, plan in self.standing.covering(pending.tool)]
            for plan in (pending.plan, *now):
                sent = argument.without_ours(plan, sent)
            raw = message.with_arguments(raw, params, sent)
        return self.sending.send_call(raw, pending)

    def _replied(self, pending: PendingRequest, decision: Respond) -> tuple[Output, ...]:
        """Answer a call with the guard's document."""
        rule = pending.rule
        seen = self.standing.seen(pending.tool)
        # A client may know from an earlier session that the tool has an outputSchema.
        declared = seen is None or seen.structured
        structured = declared or (rule is not None and rule.structures)
        value = writing.made(
            decision.document,
            error=decision.error,
            structured=structured and not decision.error,
        )
        line = message.completed(pending.id, value, pending.modern)
        return reply(self.tally, pending, "answered", line)

    # The query

    def _asked(self, raw: bytes, pending: PendingRequest, ask: Query) -> tuple[Output, ...]:
        """Hold a call and send a query to the server, under an id that no client can choose."""
        if pending.batched:
            said = "the server must be asked something before this call: send it alone"
            return refuse(self.tally, pending, said)
        id = self.ids.new()
        asked = PendingRequest(pending.exchange, id, "tools/call", ask.tool, held=pending)
        line = probe.request(id, ask, message.params(raw))
        pending.line, pending.probe = raw, pending.exchange + id
        self.inflight.add(pending)
        self.inflight.add(asked)
        return (Probe(line, pending.probe, ask.seconds),)

    def answered(self, asked: PendingRequest, raw: bytes) -> tuple[Output, ...]:
        """Process the response to a query; outputs are relative to the server."""
        assert asked.held is not None
        heard = partial(probe.heard, raw)
        then = partial(self.heard, asked)
        return then(heard()) if len(raw) <= LARGE else (RunInBackground(heard, then),)

    def heard(self, asked: PendingRequest, found: QueryResult) -> tuple[Output, ...]:
        """Process the result of a query; outputs are relative to the server. Never raises."""
        assert asked.held is not None
        mark = self.waiting.last
        try:
            return self.probed(asked, found)
        except Exception as error:
            said = fallback.failed(error, mark, self.waiting, self.tally.log)
            return (Forward(fallback.gave_up(asked.held, self.inflight, said)),)

    def probed(self, asked: PendingRequest, found: QueryResult) -> tuple[Output, ...]:
        """Process the result of a query; outputs are relative to the server."""
        return tuple(map(turned, self.found(asked, found)))

    def found(self, asked: PendingRequest, found: QueryResult) -> tuple[Output, ...]:
        """Continue a held call after its query; outputs are relative to the client."""
        pending = asked.held
        assert pending is not None
        assert pending.rule is not None
        assert pending.rule.guard is not None
        pending.probe = b""
        self.inflight.retire(asked.exchange + asked.id)
        if self.inflight.find(pending.exchange + pending.id) is not pending:
            return ()  # cancelled, or another request has its id by now
        self.inflight.retire(pending.exchange + pending.id)
        if found.failure is not None:
            said = f"{pending.rule.at(pending.tool)}: what the guard asked of {asked.tool!r} failed"
            self.tally.log(f"{said}: {found.failure}")
        line, pending.line = pending.line, b""
        return self.decided(line, pending, pending.rule.guard, found)
