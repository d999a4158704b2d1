"""How a request goes to the server: what is remembered and what becomes untrue by it."""

from msgspec import Struct

from proxy.inflight import InFlight, Pending
from proxy.outputs import Forget, Forward, Output, Reply
from proxy.session.unwanted import Unwanted
from proxy.snapshots import Key
from proxy.standing import Standing
from proxy.timing import Timing

TWICE = "a request with this id has no answer yet"


class Sending(Struct, eq=False):
    """Lets requests go on; outputs are relative to the client."""

    standing: Standing
    inflight: InFlight
    unwanted: Unwanted
    timing: Timing | None

    def send(self, raw: bytes, pending: Pending) -> tuple[Output, ...]:
        """Remember a request before it goes upstream; its answer may be quick."""
        slot, rule = pending.exchange + pending.id, pending.rule
        if rule is not None and rule.withholds and self.inflight.awaited(slot) is not None:
            # Of two answers with this id, the first would be taken for what is withheld.
            return (Reply(pending.failed(TWICE)),)
        pending.size = len(raw)
        self.inflight.add(pending)
        if self.unwanted.guessed:
            self.unwanted.forget(slot)
        if self.timing is not None and pending.method == "tools/call":
            self.timing.begin(slot, pending.token)
        return (Forward(raw),)

    def send_call(self, raw: bytes, pending: Pending) -> tuple[Output, ...]:
        """Send a call on, and drop the snapshots that it makes untrue (`drop_on`)."""
        dropped = self.standing.dropped_by(pending.tool)
        stale = (Forget(Key(pending.scope, rule, None)) for rule in dropped)
        return (*stale, *self.send(raw, pending))
