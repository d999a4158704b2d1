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
from proxy.document.tree import ABSENT
from proxy.errors import DocumentError, RuleErrors
from proxy.ruleset.guard import QueryResult
from proxy.session import guards, requests, responses
from proxy.session.active_rules import PeerInfo, Rules
from proxy.session.inflight import Deadlines, InFlight
from proxy.session.outputs import Forward, LoadSnapshot, Noise, Output, Reply, Shape
from proxy.session.state import Meters, SessionState
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

    __slots__ = ("_state",)

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
        inflight = InFlight(resumable=resumable, deadlines=Deadlines(deadline, clock))
        self._state = SessionState(rules, meters, log, scope, inflight)

    @property
    def server(self) -> str | None:
        """The name that the server announced."""
        return self._state.rules.server

    @property
    def client(self) -> str | None:
        """The name that the client announced."""
        return self._state.rules.client

    @property
    def peer_info(self) -> PeerInfo:
        """The facts learned so far of server and client."""
        return self._state.rules.peer_info

    @property
    def scope(self) -> str:
        """The scope under which snapshots are stored."""
        return self._state.scope

    @scope.setter
    def scope(self, scope: str) -> None:
        self._state.scope = scope

    @property
    def deadline(self) -> float | None:
        """The seconds that a call may take without a response or progress, None for no limit."""
        return self._state.inflight.deadlines.seconds

    @property
    def listed(self) -> bool:
        """True if the server's tools are known."""
        return self._state.rules.listed

    def recall(self, info: PeerInfo) -> None:
        """Adopt the facts that another session learned of the same server and client."""
        self._state.rules.recall(info)

    # Incoming messages. Nothing may be called outside of `try`: failures end here.

    def from_client(self, raw: bytes, exchange: bytes = b"") -> tuple[Output, ...]:
        """Process one line from the client."""
        state = self._state
        mark = state.suspended.last
        try:
            try:
                read = message.read(raw)
            except DocumentError as error:
                return requests.take_irregular(state, raw, exchange, error)
            if isinstance(read, Message):
                return requests.take(state, raw, read, exchange)
            return requests.take_irregular(state, raw, exchange)
        except Exception as error:  # a message must never cost any request its answer
            return self._answer_all(raw, exchange, state.fail(error, mark))

    def _answer_all(self, raw: bytes, exchange: bytes, reason: str) -> tuple[Output, ...]:
        """Answer every request in a client's message; drop anything else that may be a call."""
        try:
            read = message.read(raw)
        except DocumentError:
            id = message.request_id(raw[: message.ENDS], raw[-message.ENDS :])
            return () if id is None else (Reply(message.error(id, -1, reason)),)
        outputs: list[Output] = []
        for each in (read,) if isinstance(read, Message) else map(_element, read):
            if each is not None and each.method is not ABSENT and each.key not in (None, b"null"):
                self._state.inflight.retire(exchange + (each.key or b""))
                outputs.append(Reply(message.error(each.id, -1, reason)))
            elif each is read and not requests.may_call(raw):
                outputs.append(Forward(raw))
        return tuple(outputs)

    def from_server(self, raw: bytes, exchange: bytes = b"") -> tuple[Output, ...]:
        """Process one line from the server."""
        state = self._state
        mark, answering = state.suspended.last, state.answering
        try:
            return self._from_server(raw, exchange)
        except Exception as error:
            reason = state.fail(error, mark)
            answering = answering or responses.request_answered_by(state, raw, exchange)
            for pending in answering:
                state.inflight.retire(pending.slot)
                if pending.held_call is not None:
                    state.inflight.retire(pending.held_call.slot)
            # An unedited list would show hidden tools.
            lists = isinstance(error, RuleErrors) or state.rules.guards
            return state.withhold(raw, answering, reason, lists=lists)
        finally:
            state.answering.clear()

    def _from_server(self, raw: bytes, exchange: bytes) -> tuple[Output, ...]:
        state = self._state
        if len(raw) > _SMALL:
            outputs = responses.take_long(state, raw, exchange)
            if outputs is not None:
                return outputs
        try:
            read = message.read(raw)
        except DocumentError as error:
            return self._unreadable(raw, exchange, error)
        if b'"jsonrpc"' not in raw and not (isinstance(read, Message) and read.speaks):
            return (Noise(raw),)
        if isinstance(read, Message):
            return responses.take(state, raw, read, exchange)
        if responses.is_plain_batch(state, read, exchange):
            return (Forward(raw),)
        messages = [raw for raw in map(bytes, read) if raw[:1] == b"{"]
        return tuple(output for each in messages for output in self.from_server(each, exchange))

    def _unreadable(self, raw: bytes, exchange: bytes, error: DocumentError) -> tuple[Output, ...]:
        """Separate a message that only the proxy cannot parse from noise on the server's stdout."""
        if not raw.strip():
            return ()
        end = message.behind_first(raw)
        if end is not None:
            outputs, rest = responses.take_first(self._state, raw, end, exchange)
            if len(rest) < len(raw):
                return (*outputs, *self.from_server(rest, exchange))
        size = responses.noise_size(raw)
        if size == len(raw):
            return (Noise(raw),)
        if size:
            return (Noise(raw[:size]), *self.from_server(raw[size:], exchange))
        return responses.take_unreadable(self._state, raw, exchange, error)

    def unanswered(self, token: bytes, cause: str = "") -> tuple[Output, ...]:
        """Continue a held call without a response to its Probe; relative to the client.

        `cause` is why none can come any more; without it the time is up, and the server gets a
        cancellation.
        """
        state = self._state
        query, mark = None, state.suspended.last
        try:
            query = state.inflight.find(token)
            if query is None or query.held_call is None:
                return ()
            cancel = () if cause else (Forward(guards.cancellation(query.id)),)
            result = QueryResult(failure=cause or "no answer in time")
            return (*cancel, *guards.resume(state, query, result))
        except Exception as error:
            reason = state.fail(error, mark)
            query = query or state.inflight.find(token)
            state.inflight.retire(token)
            pending = None if query is None else query.held_call
            return () if pending is None else (Reply(state.give_up(pending, reason)),)

    def loaded(
        self, token: int, snapshot: Snapshot | None, failure: str | None = None
    ) -> tuple[Output, ...]:
        """Continue a call that waits for its snapshot; outputs are relative to the client.

        `failure` is the reason why the snapshot could not be looked up.
        """
        state = self._state
        pending, mark = state.suspended[token], state.suspended.last
        del state.suspended[token]
        try:
            return requests.loaded(state, pending, snapshot, failure)
        except Exception as error:
            return (Reply(state.give_up(pending, state.fail(error, mark))),)

    def shaped(self, job: ShapeJob, result: ShapeResult) -> tuple[Output, ...]:
        """Process the result of a Shape; relative to the server: Forward carries the response."""
        state = self._state
        mark = state.suspended.last
        try:
            return responses.shaped(state, job, result, state.suspended.pop(job.token, None))
        except Exception as error:
            state.fail(error, mark)
            state.suspended.pop(job.token, None)
            return (Forward(result.raw),)

    def given_up(self, output: LoadSnapshot | Shape) -> None:
        """Forget a call whose LoadSnapshot or Shape will not be run: no answer is expected."""
        token = output.token if isinstance(output, LoadSnapshot) else output.job.token
        self._state.suspended.pop(token, None)

    # Lines of the server that are too long to buffer

    def may_stream(self, start: bytes, exchange: bytes = b"") -> bool:
        """Return True if a line of the server that begins with `start` may be streamed through."""
        return responses.may_stream(self._state, start, exchange)

    def streamed(self, start: bytes, end: bytes, size: int, exchange: bytes = b"") -> None:
        """Record the end of a streamed line: its first and last bytes, and its size."""
        responses.streamed(self._state, start, end, size, exchange)

    def discarded(self, start: bytes, size: int, limit: int) -> tuple[Output, ...]:
        """Answer the call whose response was discarded, see `message.thrown_away`."""
        return responses.discarded(self._state, start, size, limit)

    # Pending requests and their deadlines

    def awaits(self, exchange: bytes, ids: Collection[bytes]) -> bool:
        """Return True if a request in an exchange with one of these ids is pending."""
        return any(self._state.inflight.holds(exchange + id) for id in ids)

    def withholds(self, exchange: bytes, ids: Collection[bytes]) -> bool:
        """Return True if one of these requests is pending and its rule withholds responses."""
        inflight = self._state.inflight
        slots = [exchange + id for id in ids]
        pending = [inflight.find(slot) for slot in slots if inflight.holds(slot)]
        return any(each is not None and each.withholds for each in pending)

    def restart_deadlines(self, exchange: bytes, ids: Collection[bytes]) -> None:
        """Record that calls of an exchange are sent only now, and restart their time."""
        for id in ids:
            self._state.inflight.deadlines.renew(exchange + id)

    def patience(self, exchange: bytes = b"", ids: Collection[bytes] | None = None) -> float | None:
        """Return the seconds until a call may be overdue, None if none can be.

        This covers all calls, or those in an exchange with these ids.
        """
        return self._state.inflight.deadlines.time_left(_slots(exchange, ids))

    def overdue(
        self, exchange: bytes = b"", ids: Collection[bytes] | None = None
    ) -> tuple[Output, ...]:
        """Answer calls without a response or progress for too long, and cancel them at the server.

        This covers all calls, or those in an exchange with these ids. Relative to the client.
        """
        state = self._state
        outputs: list[Output] = []
        for slot in state.inflight.deadlines.expired(_slots(exchange, ids)):
            pending = state.inflight.retire(slot)
            assert pending is not None
            state.inflight.replace_response(slot, expected=True)
            seconds = _in_words(self.deadline or 0.0)
            reason = f"no answer within {seconds} and no progress"
            text = f"{reason}; the call was cancelled"
            state.log(f"{pending.tool}: {text}")
            text += ". Whether it took effect is not known: find out before you call again"
            outputs += state.reply(pending, "late", state.refusal(pending, text))
            outputs.append(Forward(guards.cancellation(pending.id, reason)))
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
        requests = self._state.inflight.release(exchange, ids)
        return tuple(Forward(pending.error(cause)) for pending in requests)

    def rest(self) -> None:
        """Release answered requests and the rules of a session that was idle for long.

        The facts of the server, pending requests and the calls of tasks stay: a client may need
        them much later.
        """
        self._state.inflight.rest()
        self._state.rules.rest()

    def dropped(self, exchange: bytes, ids: Collection[bytes] | None = None) -> None:
        """Forget the pending requests of an exchange: no answer to them is expected any more."""
        self._state.inflight.release(exchange, ids)
        if exchange:
            # The exchange is over: no late response can come in it either.
            for id in ids or ():
                self._state.inflight.forget_response(exchange + id)


def _slots(exchange: bytes, ids: Collection[bytes] | None) -> list[bytes] | None:
    return None if ids is None else [exchange + id for id in ids]


def _element(raw: bytes) -> Message | None:
    """Return a readable message of a batch, None for any other element."""
    try:
        read = message.read(bytes(raw))
    except DocumentError:
        return None
    return read if isinstance(read, Message) else None


def _in_words(seconds: float) -> str:
    """Return a duration in words.

    >>> _in_words(30.0), _in_words(1.0), _in_words(0.25)
    ('30 seconds', '1 second', '0.25 seconds')
    """
    return f"{seconds:.12g} second" + "s" * (seconds != 1)


def error_in_place_of(raw: bytes, reason: str, *, answers: bool) -> bytes | None:
    """Return the error that answers a request or, with `answers`, replaces a response.

    None for any other message. For drivers whose session could not identify the request.
    """
    try:
        read = message.read(raw)
    except Exception:
        return None
    if not isinstance(read, Message) or read.id is ABSENT or read.responds != answers:
        return None
    return message.error(read.id, -1, reason)
