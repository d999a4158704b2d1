"""Requests on their way to the server: they are recorded, and stale snapshots dropped."""

from msgspec import Struct

from proxy.document import message
from proxy.session.active_rules import ActiveRules
from proxy.session.counts import SessionMeter, Word
from proxy.session.deadlines import Deadlines
from proxy.session.inflight import InFlight, PendingRequest, StrayResponses
from proxy.session.outputs import DropSnapshots, Forward, Output, Reply
from proxy.shaping import error_results as error_result
from proxy.storage.snapshots import Key
from proxy.transforms.base import Call


def reply(
    tally: SessionMeter, pending: PendingRequest, word: Word, line: bytes
) -> tuple[Output, ...]:
    """Answer a call with `line`; `word` is the kind of answer. Relative to the client."""
    tally.replied(pending, word, line)
    return (Reply(line),)


def refuse(tally: SessionMeter, pending: PendingRequest, said: str) -> tuple[Output, ...]:
    """Answer a call with an error result of the text `said`. Relative to the client."""
    return reply(tally, pending, "refused", refusal(tally, pending, said))


def refusal(tally: SessionMeter, pending: PendingRequest, said: str) -> bytes:
    """Return the error result of the text `said`, in the form of the rule's errors."""
    rule = pending.rule
    if rule is None or rule.mode != "active" or not rule.errors:
        return message.refusal(pending.id, said, pending.modern)
    call = Call(pending.tool, pending.told, names=pending.names, warnings=[])
    line = error_result.refusal(rule, call, pending.id, said, pending.modern)
    tally.warned(pending.tool, rule, call.warnings)
    return line


TWICE = "a request with this id has no answer yet"


class Sending(Struct, eq=False):
    """The sender of requests; outputs are relative to the client."""

    standing: ActiveRules
    inflight: InFlight
    unwanted: StrayResponses
    timing: Deadlines | None

    def send(self, raw: bytes, pending: PendingRequest) -> tuple[Output, ...]:
        """Record a request before it is sent upstream: the response may come at once."""
        slot, rule = pending.exchange + pending.id, pending.rule
        withholds = rule is not None and rule.failure_policy.withholds
        if withholds and self.inflight.awaited(slot) is not None:
            # Of two responses with this id, the first would be taken for the withheld one.
            return (Reply(pending.failed(TWICE)),)
        pending.size = len(raw)
        self.inflight.add(pending)
        if self.unwanted.guessed:
            self.unwanted.forget(slot)
        if self.timing is not None and pending.method == "tools/call":
            self.timing.begin(slot, pending.token)
        return (Forward(raw),)

    def send_call(self, raw: bytes, pending: PendingRequest) -> tuple[Output, ...]:
        """Send a call on, and drop the snapshots that it makes stale (`drop_on`)."""
        dropped = self.standing.dropped_by(pending.tool)
        stale = (DropSnapshots(Key(pending.scope, rule, None)) for rule in dropped)
        return (*stale, *self.send(raw, pending))
