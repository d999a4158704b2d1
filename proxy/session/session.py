"""The session of one client with one server: lines in, outputs out. No I/O, no threads.

Every request is recorded by its id until its response has passed. A call under a rule is answered
from a snapshot, refused, or sent on and its response shaped. Every other message is forwarded byte
for byte. Invariants: no id is invented, renumbered or retyped; each request gets exactly one
answer; nothing here raises for any input.

If one session serves many exchanges, as for the stateless requests of one caller, equal ids are
distinguished by the `exchange` that is given with each message; otherwise that is b"".
"""

from collections.abc import Callable, Collection
from time import monotonic

from proxy.document import message
from proxy.document.message import Message
from proxy.errors import DocumentError, RuleErrors
from proxy.ruleset.guard import QueryResult
from proxy.session import batch, probe
from proxy.session import deadlines as timing
from proxy.session import failures as fallback
from proxy.session import malformed as garbled
from proxy.session.active_rules import ActiveRules, PeerInfo, Rules
from proxy.session.calls import Calls
from proxy.session.counts import Meters, SessionMeter
from proxy.session.deadlines import Deadlines
from proxy.session.forwarding import Sending, refusal, reply
from proxy.session.from_client import FromClient
from proxy.session.from_server import FromServer
from proxy.session.guards import GuardRunner
from proxy.session.inflight import InFlight, StrayResponses, SuspendedCalls
from proxy.session.outputs import Forward, LoadSnapshot, Noise, Output, Reply, Shape
from proxy.session.responses import Answers
from proxy.session.streamed import StreamedResponses
from proxy.session.tool_lists import Lists
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.storage.snapshots import Snapshot

_SMALL = 4096  # bytes; longer lines are identified by their head and tail if that is certain


class Session:
    """The conversation of one client with one server.

    `rules` and `meters` are called with the names of server and client, as far as they are known;
    `rules` for every message about tools, and it may block while rule files are read. `log` takes
    one line. Snapshots are stored under `scope`. If responses are `resumable`, a response may come
    again. With a `deadline`, in seconds by `clock`, a call without a response or progress for that
    long is `overdue`.
    """

    __slots__ = (
        "_answers",
        "_batched",
        "_calls",
        "_client",
        "_guarding",
        "_heads",
        "_inflight",
        "_log",
        "_server",
        "_standing",
        "_tally",
        "_timing",
        "_waiting",
    )

    def __init__(
        self,
        rules: Rules,
        meters: Meters,
        log: Callable[[str], None],
        *,
        scope: str = "",
        resumable: bool = False,
        deadline: float | None = None,
        clock: Callable[[], float] = monotonic,
    ) -> None:
        timed = None if deadline is None else Deadlines(deadline, clock)
        self._log = log
        self._timing = timed
        self._tally = tally = SessionMeter(meters, log)
        self._standing = standing = ActiveRules(rules, log, tally.named)
        self._inflight = inflight = InFlight(resumable=resumable, timing=timed)
        self._waiting = waiting = SuspendedCalls()
        self._batched = False
        ids = probe.Ids()
        unwanted = StrayResponses(ids, timed)
        sending = Sending(standing, inflight, unwanted, timed)
        lists = Lists(standing, log, waiting)
        self._answers = answers = Answers(standing, tally, waiting)
        self._guarding = guarding = GuardRunner(standing, tally, inflight, waiting, sending, ids)
        self._calls = calls = Calls(
            scope, standing, tally, waiting, timed, sending, guarding, answers
        )
        self._client = FromClient(
            standing, tally, inflight, waiting, timed, sending, calls, answers, lists
        )
        self._server = FromServer(
            standing, tally, inflight, unwanted, timed, guarding, answers, lists
        )
        self._heads = StreamedResponses(tally, inflight, unwanted, timed, guarding)

    @property
    def server(self) -> str | None:
        """The name that the server announced."""
        return self._standing.server

    @property
    def client(self) -> str | None:
        """The name that the client announced."""
        return self._standing.client

    @property
    def known(self) -> PeerInfo:
        """The facts learned so far of server and client."""
        return self._standing.known

    @property
    def scope(self) -> str:
        """The scope under which snapshots are stored."""
        return self._calls.scope

    @scope.setter
    def scope(self, scope: str) -> None:
        self._calls.scope = scope

    @property
    def deadline(self) -> float | None:
        """The seconds that a call may take without a response or progress, None for no limit."""
        return None if self._timing is None else self._timing.seconds

    @property
    def listed(self) -> bool:
        """True if the server's tools are known."""
        return self._standing.listed

    def recall(self, known: PeerInfo) -> None:
        """Adopt the facts that another session learned of the same server and client."""
        self._standing.recall(known)

    # Incoming messages. Nothing may be called outside of `try`: failures end here.

    def from_client(self, raw: bytes, exchange: bytes = b"") -> tuple[Output, ...]:
        """Process one line from the client."""
        mark = self._waiting.last
        try:
            return self._from_client(raw, exchange)
        except Exception as error:  # a message must never cost any request its answer
            said = self._failed(error, mark)
            return fallback.of_client(raw, exchange, self._inflight, said)

    def _from_client(self, raw: bytes, exchange: bytes) -> tuple[Output, ...]:
        try:
            read = message.read(raw)
        except DocumentError as cause:
            return garbled.from_client(raw, cause, exchange, self._standing, self._tally)
        if isinstance(read, Message):
            return self._client.take(raw, read, exchange, batched=self._batched)
        self._batched = True
        try:
            return batch.one_by_one(raw, read, lambda single: self.from_client(single, exchange))
        finally:
            self._batched = False

    def from_server(self, raw: bytes, exchange: bytes = b"") -> tuple[Output, ...]:
        """Process one line from the server."""
        mark, taken = self._waiting.last, self._server.taken
        try:
            return self._from_server(raw, exchange)
        except Exception as error:
            said = self._failed(error, mark)
            answered = taken or self._server.answered_by(raw, exchange)
            for pending in answered:
                self._inflight.retire(pending.exchange + pending.id)
                if pending.held is not None:
                    self._inflight.retire(pending.held.exchange + pending.held.id)
            # An unedited list would show hidden tools.
            closed = isinstance(error, RuleErrors) or self._standing.guards
            return fallback.of_server(raw, answered, said, closed=closed)
        finally:
            taken.clear()

    def _from_server(self, raw: bytes, exchange: bytes) -> tuple[Output, ...]:
        if len(raw) > _SMALL:
            outputs = self._server.by_ends(raw, exchange)
            if outputs is not None:
                return outputs
        try:
            read = message.read(raw)
        except DocumentError as cause:
            return self._unreadable(raw, exchange, cause)
        if b'"jsonrpc"' not in raw and not (isinstance(read, Message) and read.speaks):
            return (Noise(raw),)
        if isinstance(read, Message):
            return self._server.take(raw, read, exchange)
        return batch.one_by_one(raw, read, lambda single: self.from_server(single, exchange))

    def _unreadable(self, raw: bytes, exchange: bytes, cause: DocumentError) -> tuple[Output, ...]:
        """Separate a message that only the proxy cannot parse from noise on the server's stdout."""
        if not raw.strip():
            return ()
        end = message.behind_first(raw)
        if end is not None:
            outputs, rest = self._server.glued(raw, end, exchange)
            if len(rest) < len(raw):
                return (*outputs, *self.from_server(rest, exchange))
        begins = garbled.noise(raw)
        if begins == len(raw):
            return (Noise(raw),)
        if begins:
            return (Noise(raw[:begins]), *self.from_server(raw[begins:], exchange))
        return self._server.unreadable(raw, exchange, cause)

    def unanswered(self, token: bytes, cause: str = "") -> tuple[Output, ...]:
        """Continue a held call without a response to its Probe; relative to the client.

        `cause` is why none can come any more; without it the time is up, and the server gets a
        cancellation.
        """
        asked, mark = None, self._waiting.last
        try:
            asked = self._inflight.find(token)
            if asked is None or asked.held is None:
                return ()
            told = () if cause else (Forward(probe.cancellation(asked.id)),)
            found = QueryResult(failure=cause or "no answer in time")
            return (*told, *self._guarding.found(asked, found))
        except Exception as error:
            said = self._failed(error, mark)
            asked = asked or self._inflight.find(token)
            self._inflight.retire(token)
            held = None if asked is None else asked.held
            return () if held is None else (Reply(fallback.gave_up(held, self._inflight, said)),)

    def loaded(
        self, token: int, snapshot: Snapshot | None, failure: str | None = None
    ) -> tuple[Output, ...]:
        """Continue a call that waits for its snapshot; outputs are relative to the client.

        `failure` is the reason why the snapshot could not be looked up.
        """
        pending, mark = self._waiting[token], self._waiting.last
        del self._waiting[token]
        try:
            return self._calls.loaded(pending, snapshot, failure)
        except Exception as error:
            said = self._failed(error, mark)
            return (Reply(fallback.gave_up(pending, self._inflight, said)),)

    def shaped(self, job: ShapeJob, outcome: ShapeResult) -> tuple[Output, ...]:
        """Process the result of a Shape; relative to the server: Forward carries the response."""
        mark = self._waiting.last
        try:
            return self._answers.shaped(job, outcome, self._waiting.pop(job.token, None))
        except Exception as error:
            self._failed(error, mark)
            self._waiting.pop(job.token, None)
            return (Forward(outcome.raw),)

    def _failed(self, error: Exception, mark: int) -> str:
        return fallback.failed(error, mark, self._waiting, self._log)

    def given_up(self, output: LoadSnapshot | Shape) -> None:
        """Forget a call whose LoadSnapshot or Shape will not be run: no answer is expected."""
        token = output.token if isinstance(output, LoadSnapshot) else output.job.token
        self._waiting.pop(token, None)

    # Lines of the server that are too long to buffer

    def head(self, start: bytes, exchange: bytes = b"") -> bool:
        """Return True if a line of the server that begins with `start` may be streamed through."""
        return self._heads.passes(start, exchange)

    def streamed(self, start: bytes, end: bytes, size: int, exchange: bytes = b"") -> None:
        """Record the end of a streamed line: its first and last bytes, and its size."""
        self._heads.streamed(start, end, size, exchange)

    def discarded(self, start: bytes, size: int, limit: int) -> tuple[Output, ...]:
        """Answer the call whose response was discarded, see `message.thrown_away`."""
        return self._heads.discarded(start, size, limit)

    # Deadlines of calls

    def awaits(self, exchange: bytes, ids: Collection[bytes]) -> bool:
        """Return True if a request in an exchange with one of these ids is pending."""
        return any(self._inflight.holds(exchange + id) for id in ids)

    def withholds(self, exchange: bytes, ids: Collection[bytes]) -> bool:
        """Return True if one of these requests is pending and its rule withholds responses."""
        waiting = (self._inflight.find(exchange + id) for id in ids if self.awaits(exchange, (id,)))
        rules = [each.rule for each in waiting if each is not None and each.rule is not None]
        return any(rule.failure_policy.withholds for rule in rules)

    def sent(self, exchange: bytes, ids: Collection[bytes]) -> None:
        """Record that calls of an exchange are sent only now, and restart their time."""
        if self._timing is not None:
            for id in ids:
                self._timing.extend(exchange + id)

    def patience(self, exchange: bytes = b"", ids: Collection[bytes] | None = None) -> float | None:
        """Return the seconds until a call may be overdue, None if none can be.

        This covers all calls, or those in an exchange with these ids.
        """
        return None if self._timing is None else self._timing.patience(_slots(exchange, ids))

    def overdue(
        self, exchange: bytes = b"", ids: Collection[bytes] | None = None
    ) -> tuple[Output, ...]:
        """Answer calls without a response or progress for too long, and cancel them at the server.

        This covers all calls, or those in an exchange with these ids. Relative to the client.
        """
        if self._timing is None:
            return ()
        outputs: list[Output] = []
        for slot in self._timing.overdue(_slots(exchange, ids)):
            pending = self._inflight.retire(slot)
            assert pending is not None
            self._timing.give_up(slot)
            reason = f"no answer within {timing.lasting(self._timing.seconds)} and no progress"
            said = f"{reason}; the call was cancelled"
            self._log(f"{pending.tool}: {said}")
            said += ". Whether it took effect is not known: find out before you call again"
            outputs += reply(self._tally, pending, "late", refusal(self._tally, pending, said))
            outputs.append(Forward(probe.cancellation(pending.id, reason)))
        return tuple(outputs)

    # The end

    def ended(
        self,
        cause: str,
        exchange: bytes | None = None,
        ids: Collection[bytes] | None = None,
    ) -> tuple[Output, ...]:
        """Answer the pending requests that can have no other answer any more, for this cause.

        These are all requests, those of one exchange, or those in it with these ids.
        """
        return tuple(
            Forward(pending.failed(cause)) for pending in self._inflight.let_go(exchange, ids)
        )

    def rest(self) -> None:
        """Release answered requests and the rules of a session that was idle for long.

        The facts of the server, pending requests and the calls of tasks stay: a client may need
        them much later.
        """
        self._inflight.rest()
        self._standing.rest()

    def dropped(self, exchange: bytes, ids: Collection[bytes] | None = None) -> None:
        """Forget the pending requests of an exchange: no answer to them is expected any more."""
        self._inflight.let_go(exchange, ids)
        if self._timing is not None and exchange:
            # The exchange is over: no late response can come in it either.
            for id in ids or ():
                self._timing.forget(exchange + id)


def _slots(exchange: bytes, ids: Collection[bytes] | None) -> list[bytes] | None:
    return None if ids is None else [exchange + id for id in ids]
