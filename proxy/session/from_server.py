"""The handling of each message from the server: the request it answers, and the facts in it.

Outputs are relative to the server.
"""

import msgspec
from msgspec import Struct

from proxy.document import message
from proxy.document.message import SERVER_INFO, Message, string_at
from proxy.document.tree import ABSENT
from proxy.errors import DocumentError
from proxy.ruleset.guard import QueryResult
from proxy.session import deadlines as timing
from proxy.session.active_rules import ActiveRules
from proxy.session.counts import SessionMeter
from proxy.session.deadlines import Deadlines
from proxy.session.guards import GuardRunner
from proxy.session.inflight import InFlight, PendingRequest, StrayResponses
from proxy.session.outputs import Forward, Output
from proxy.session.responses import Answers
from proxy.session.tool_lists import Lists


class FromServer(Struct, eq=False):
    """The handler of the server's messages; `taken` are the requests that one message answers."""

    standing: ActiveRules
    tally: SessionMeter
    inflight: InFlight
    unwanted: StrayResponses
    timing: Deadlines | None
    guarding: GuardRunner
    answers: Answers
    lists: Lists
    taken: list[PendingRequest] = []

    def take(self, raw: bytes, read: Message, exchange: bytes) -> tuple[Output, ...]:
        """Process one message, parsed as `read`."""
        if not read.responds:
            if self.timing is not None and (token := timing.progressing(read)):
                self.timing.progressed(exchange + token)
            return (Forward(raw),)
        key = read.key
        found = None if key is None else self._answering(exchange + key)
        if found is None:
            unwanted = key is not None and self.unwanted.holds(exchange, key)
            return () if unwanted else (Forward(raw),)
        if found.held is not None:
            return self.guarding.answered(found, raw)
        failed = read.result is ABSENT or read.error is not ABSENT
        if found.plain or (failed and not _minds_failures(found, read, len(raw))):
            return self._untouched(raw, found)
        return self._response(raw, read, found)

    def by_ends(self, raw: bytes, exchange: bytes) -> tuple[Output, ...] | None:
        """Process a long message by its head and tail; None if they are not enough."""
        key = message.response_key(raw[:512], raw[-512:])
        if key is None or message.second(raw):
            return None
        slot = exchange + key
        pending = self.inflight.find(slot)
        if pending is None:
            return () if self.unwanted.holds(exchange, key) else (Forward(raw),)
        if pending.plain:
            return self._untouched(raw, self.inflight.retire(slot) or pending)
        if pending.rule is not None and not pending.as_task and message.succeeds(raw[:512]):
            self._answering(slot)
            return self.answers.answered(raw, pending, pending.rule)
        return None

    def glued(self, raw: bytes, end: int, exchange: bytes) -> tuple[tuple[Output, ...], bytes]:
        """Answer a call whose response ends before its line does: no client could parse that line.

        Returns the outputs, and the rest of the line to process: all of it if no such call is
        pending.
        """
        try:
            read = message.read(raw[:end])
        except DocumentError:
            return (), raw
        key = read.key if isinstance(read, Message) and read.responds else None
        pending = None if key is None else self.inflight.retire(exchange + key)
        if pending is None:
            return (), raw
        self.taken.append(pending)
        # The line may hold a second response to the same call.
        self.unwanted.guess(exchange + pending.id)
        rest, text = raw[end:], message.not_alone(end, len(raw))
        self.tally.log(f"{pending.tool or pending.method}: {text}")
        if pending.held is not None:
            return self.guarding.probed(pending, QueryResult(failure=text)), rest
        if pending.rule is not None and pending.rule.failure_policy.withholds:
            other = message.response_key(rest[:512], rest[-512:])
            if other is None or not self.inflight.holds(exchange + other):
                rest = b""  # it may be the withheld response
        return (Forward(pending.failed(text)),), rest

    def unreadable(self, raw: bytes, exchange: bytes, cause: DocumentError) -> tuple[Output, ...]:
        """Process a message that others may parse but the proxy cannot, for this cause."""
        key = message.response_key(raw[:512], raw[-512:])
        pending = None if key is None else self._answering(exchange + key)
        if pending is None:
            unwanted = key is not None and self.unwanted.holds(exchange, key)
            return () if unwanted or self.unwanted.ids.within(raw) else (Forward(raw),)
        if pending.held is not None:
            return self.guarding.probed(pending, QueryResult(failure="the answer cannot be read"))
        if pending.rule is not None and pending.rule.failure_policy.withholds:
            return self.answers.unread(pending, pending.rule, cause)
        if pending.rule is not None:
            self.tally.log(f"{pending.rule.at(pending.tool)}: left as it came: {cause}")
        return self._untouched(raw, pending)

    def answered_by(self, raw: bytes, exchange: bytes) -> list[PendingRequest]:
        """Return the request that a message answers, after a failure before its look-up."""
        key = message.response_key(raw[:512], raw[-512:])
        found = None if key is None else self.inflight.answer(exchange + key)
        return [] if found is None else [found]

    def _answering(self, slot: bytes) -> PendingRequest | None:
        """Return the request that a response answers, and mark it as answered."""
        pending = self.inflight.find(slot)
        if pending is not None:
            self.taken.append(pending)
        return self.inflight.answer(slot)

    def _untouched(self, raw: bytes, pending: PendingRequest) -> tuple[Output, ...]:
        self.tally.untouched(pending, len(raw))
        return (Forward(raw),)

    def _response(self, raw: bytes, read: Message, pending: PendingRequest) -> tuple[Output, ...]:
        try:
            if pending.method == "initialize":
                self.standing.named(server=string_at(read.result, "serverInfo", "name"))
                self.lists.introduced(read.result)
            elif pending.method == "server/discover":
                self.standing.named(server=string_at(read.result, "_meta", SERVER_INFO, "name"))
            elif pending.method == "tools/list":
                return self.lists.answered(raw, read, pending)
            elif pending.as_task and self.answers.tasked(read, pending):
                pass
            elif pending.rule is not None:
                return self.answers.answered(raw, pending, pending.rule)
        except (DocumentError, msgspec.DecodeError) as cause:
            if pending.rule is not None and pending.rule.failure_policy.withholds:
                return self.answers.unread(pending, pending.rule, cause)
            self.tally.log(f"{pending.method}: left as it came: {cause}")
        return self._untouched(raw, pending)


def _minds_failures(pending: PendingRequest, read: Message, size: int) -> bool:
    """Return True if a rule applies to an error response of `size` bytes."""
    rule = pending.rule
    if rule is None:
        return False
    # With both members, one must not disclose the content withheld in the other.
    if rule.errors or (rule.failure_policy.withholds and read.result is not ABSENT):
        return True
    return rule.max_bytes is not None and size > rule.max_bytes and read.result is ABSENT
