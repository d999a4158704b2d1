"""The handling of each readable message from the client."""

from msgspec import Raw, Struct

from proxy.document import message
from proxy.document.message import CLIENT_INFO, Message, string_at
from proxy.document.tree import ABSENT
from proxy.errors import DocumentError
from proxy.session import probe
from proxy.session.active_rules import ActiveRules
from proxy.session.ambiguity import disguised, doubled, may_call
from proxy.session.calls import Calls
from proxy.session.counts import SessionMeter
from proxy.session.deadlines import Deadlines
from proxy.session.forwarding import TWICE, Sending
from proxy.session.inflight import InFlight, PendingRequest, SuspendedCalls
from proxy.session.outputs import DropSnapshots, Forward, LoadSnapshot, Output, Reply
from proxy.session.responses import Answers
from proxy.session.tool_lists import Lists


class FromClient(Struct, eq=False):
    """The handler of the client's messages; outputs are relative to the client."""

    standing: ActiveRules
    tally: SessionMeter
    inflight: InFlight
    waiting: SuspendedCalls
    timing: Deadlines | None
    sending: Sending
    calls: Calls
    answers: Answers
    lists: Lists

    def take(
        self, raw: bytes, read: Message, exchange: bytes, *, batched: bool
    ) -> tuple[Output, ...]:
        """Process one message, parsed as `read`; `batched` if it came in a batch."""
        key = read.key
        if may_call(raw) and bytes(read.method) != b'"tools/call"' and self._disguised(raw, read):
            # Another reader might see a tool call in it.
            said = "the message has two members of one name"
            if key is None or read.responds:
                self.tally.log(f"{said}, and was dropped")
                return ()
            return (Reply(message.error(key, -32600, said)),)
        if read.method is ABSENT:
            return (Forward(raw),)
        try:
            method = read.verb or ""
        except DocumentError:
            return (Forward(raw),)
        if key is None or key == b"null":
            return self._notified(raw, read, exchange, method)
        pending = PendingRequest(exchange, key, method, batched=batched)
        waits = self.inflight.awaited(exchange + key)
        if waits is not None and waits.rule is not None and waits.rule.failure_policy.withholds:
            # The withheld response would be taken for the response to this request, and be sent.
            self.tally.log(f"{method}: refused: {TWICE}")
            return (Reply(pending.failed(TWICE)),)
        if method == "tools/call":
            outputs = self.calls.called(raw, read, pending)
            return (*self.lists.news(), *outputs) if self.standing.outdated else outputs
        if method == "initialize":
            self.standing.named(client=string_at(read.params, "clientInfo", "name"))
        elif method == "server/discover":
            self.standing.named(client=string_at(read.params, "_meta", CLIENT_INFO, "name"))
        elif method == "tools/list":
            self.standing.named(client=string_at(read.params, "_meta", CLIENT_INFO, "name"))
            pending.further = string_at(read.params, "cursor") is not None
        elif method == "tasks/result":
            task = string_at(read.params, "taskId") or ""
            pending = self.answers.result_of(task, pending)
        return self.sending.send(raw, pending)

    def _disguised(self, raw: bytes, read: Message) -> bool:
        """Return True if another reader may see a call in a message, and a rule must stop calls."""
        return self.standing.protects() and (
            disguised(Raw(raw), "method", "params")
            or (read.method is not ABSENT and doubled(Raw(raw)))
        )

    def _notified(
        self, raw: bytes, read: Message, exchange: bytes, method: str
    ) -> tuple[Output, ...]:
        if method == "notifications/cancelled":
            asked = self._cancelled(read, exchange)
            if asked is not None:
                # The server has not received the call yet.
                return (Forward(probe.cancellation(asked)),)
        if method == "tools/call":
            # It expects no response, but a server may run it all the same.
            outputs = self.calls.called(raw, read, PendingRequest(exchange, b"null", method))
            self.inflight.retire(exchange + b"null")
            for each in outputs:
                if isinstance(each, LoadSnapshot):
                    del self.waiting[each.token]
            return tuple(each for each in outputs if isinstance(each, Forward | DropSnapshots))
        return (Forward(raw),)

    def _cancelled(self, read: Message, exchange: bytes) -> bytes | None:
        """Forget the request that the client cancels; return the id of its open Probe, if any."""
        try:
            held = message.members(read.params) if read.params is not ABSENT else {}
        except DocumentError:
            return None
        if "requestId" in held:
            slot = exchange + message.id_key(bytes(held["requestId"]))
            pending = self.inflight.find(slot)
            # A rule that withholds applies to a late response too.
            rule = None if pending is None else pending.rule
            if pending is not None and pending.probe:
                self.inflight.retire(slot)
                return pending.probe.removeprefix(exchange)
            if rule is None or not rule.failure_policy.withholds:
                self.inflight.retire(slot)
            elif self.timing is not None:
                self.timing.end(slot)
        return None
