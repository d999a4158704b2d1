"""Lines of the server that are too long to buffer, handled by their first and last bytes."""

from msgspec import Struct

from proxy.document import message
from proxy.ruleset.guard import QueryResult
from proxy.session.counts import SessionMeter
from proxy.session.deadlines import PROGRESS, Deadlines
from proxy.session.guards import GuardRunner
from proxy.session.inflight import InFlight, StrayResponses
from proxy.session.outputs import Forward, Output


class StreamedResponses(Struct, eq=False):
    """The handler of long lines by their ends; outputs are relative to the server."""

    tally: SessionMeter
    inflight: InFlight
    unwanted: StrayResponses
    timing: Deadlines | None
    guarding: GuardRunner

    def passes(self, start: bytes, exchange: bytes) -> bool:
        """Return True if a line that begins with `start` may be streamed through.

        Only lines that surely need no inspection are streamed: a request or notification, or a
        response while no pending response must be shaped or read.
        """
        if message.asks(start):
            return self.timing is None or PROGRESS.encode() not in start
        if self.inflight.watched == 0 and not self.unwanted.possible:
            # A request whose response has no readable id would stay pending forever.
            return message.answers(start)
        key = message.response_key(start, b"")
        if key is None or self.unwanted.holds(exchange, key):
            return False
        pending = self.inflight.find(exchange + key)
        passes = pending is None or pending.plain
        if self.timing is not None:
            # The response has begun: a call whose answer is partly sent must not get another one.
            (self.timing.end if passes else self.timing.extend)(exchange + key)
        return passes

    def streamed(self, start: bytes, end: bytes, size: int, exchange: bytes) -> None:
        """Record the end of a streamed line."""
        key = message.response_key(start, end)
        if key is not None:
            pending = self.inflight.retire(exchange + key)
            if pending is not None:
                self.tally.untouched(pending, size)

    def discarded(self, start: bytes, size: int, limit: int) -> tuple[Output, ...]:
        """Answer the call whose response was discarded, see `message.thrown_away`."""
        said = message.thrown_away(size, limit, " from the server")
        self.tally.log(said)
        key = message.response_key(start, b"")
        if key is None and message.answers(start):
            # If only one request is pending, the line most likely was its response.
            key = self.inflight.only()
            if key is not None:
                self.unwanted.guess(key)
        pending = None if key is None else self.inflight.retire(key)
        if pending is not None and pending.held is not None:
            return self.guarding.probed(pending, QueryResult(failure=said))
        return () if pending is None else (Forward(pending.failed(said)),)
