"""The session of one client with one server: lines in, outputs out. No I/O, no threads.

Invariants: no id is invented, renumbered or retyped; each request gets exactly one answer; nothing
here raises for any input. If one session serves many exchanges, as for the stateless requests of
one caller, equal ids are distinguished by the `exchange` of each message; otherwise that is b"".
"""

from collections.abc import Iterable

from mcp_abridge.document import message
from mcp_abridge.document.message import Message
from mcp_abridge.errors import DocumentError
from mcp_abridge.session import guards, requests, responses, tasks
from mcp_abridge.session.inflight import PendingOwnRequest
from mcp_abridge.session.outputs import Noise, Output, Outputs, ToClient, ToServer
from mcp_abridge.session.state import SessionState
from mcp_abridge.shaping.job import ShapeJob, ShapeResult

_SMALL = 4096  # bytes; longer lines are identified by their head and tail if that is certain


class Session:
    """The conversation of one client with one server; its parts are in `state`."""

    def __init__(self, state: SessionState) -> None:
        self.state = state
        self.rules = state.rules

    # Incoming messages. Nothing may be called outside of `try`: failures end here.

    def from_client(self, raw: bytes, exchange: bytes = b"") -> Outputs:
        try:
            try:
                envelope = message.read(raw)
            except DocumentError as error:
                return requests.take_irregular(self.state, raw, exchange, error)
            if isinstance(envelope, Message):
                return requests.take(self.state, raw, envelope, exchange)
            return requests.take_irregular(self.state, raw, exchange)
        except Exception as error:  # a message must never cost any request its answer
            return self._failed(raw, exchange, error)

    def _failed(self, raw: bytes, exchange: bytes, error: Exception) -> Outputs:
        reason = self.state.fail(error)
        pending = requests.requests_in(raw, exchange)
        if not pending:
            return () if requests.may_call(raw) else (ToServer(raw),)
        for each in pending:
            self.state.inflight.retire(each.slot)
        return tuple(
            ToClient(message.error(each.id, message.PROXY_ERROR, reason)) for each in pending
        )

    def from_server(self, raw: bytes, exchange: bytes = b"") -> Outputs:
        try:
            return self._from_server(raw, exchange)
        except Exception as error:
            return responses.unprocessed(self.state, raw, exchange, error)

    def _from_server(self, raw: bytes, exchange: bytes) -> Outputs:
        try:
            ends = responses.read_ends(self.state, raw, exchange) if len(raw) > _SMALL else None
            envelope = message.read(raw) if ends is None else ends
        except DocumentError as error:
            return self._unreadable(raw, exchange, error)
        if b'"jsonrpc"' not in raw and not (isinstance(envelope, Message) and envelope.is_message):
            return (Noise(raw),)
        if isinstance(envelope, Message):
            return responses.take(self.state, raw, envelope, exchange)
        batch = [each for each in map(bytes, envelope) if each[:1] == b"{"]
        outputs = [output for each in batch for output in self.from_server(each, exchange)]
        unchanged = [output for output in outputs if isinstance(output, ToClient | Noise)]
        if len(unchanged) == len(outputs) and [each.raw for each in unchanged] == batch:
            return (ToClient(raw),)
        return tuple(outputs)

    def _unreadable(self, raw: bytes, exchange: bytes, error: DocumentError) -> Outputs:
        if not raw.strip():
            return ()
        outputs: Outputs = ()
        if len(parts := message.texts(raw)) > 1:
            withheld = False
            for part in parts:
                if withheld:
                    part = responses.other_response(self.state, part, exchange)
                withheld |= responses.is_withheld(self.state, part, exchange)
                outputs += self.from_server(part, exchange)
            return outputs
        size = responses.noise_size(raw)
        if size == len(raw):
            return (Noise(raw),)
        if size:
            outputs, rest = responses.take_half(self.state, raw, size, exchange)
            return (*outputs, *self.from_server(rest, exchange))
        return responses.unprocessed(self.state, raw, exchange, error)

    def unanswered(self, token: bytes, cause: str) -> Outputs:
        """Continue a held call if its Probe has this token, which can have no response."""
        query = self.state.inflight.find(token)
        if not isinstance(query, PendingOwnRequest):
            return ()
        return guards.give_up(self.state, query, cause)

    def shaped(self, job: ShapeJob, result: ShapeResult) -> Outputs:
        """Process the result of a Shape: the response for the client."""
        try:
            pending = self.state.inflight.suspended.pop(job.token, None)
            return responses.shaped(self.state, job, result, pending)
        except Exception as error:
            self.state.fail(error)
            return (ToClient(result.raw),)

    def given_up(self, token: int) -> None:
        """Forget a call whose output will not be carried out: no answer is expected."""
        self.state.inflight.suspended.pop(token, None)

    # Lines of the server that are too long to buffer: where there is one exchange

    def may_stream(self, start: bytes) -> bool:
        """Return True if a line of the server that begins with `start` needs no inspection."""
        inflight = self.state.inflight
        if message.asks(start):
            shapes = tasks.NEWS.encode() in start
            return not shapes and (
                inflight.deadline is None or responses.PROGRESS.encode() not in start
            )
        key = message.response_key(start, b"")
        if key is None or inflight.is_stray(b"", key):
            return False
        pending = inflight.find(key)
        streams = pending is None or pending.may_stream
        # The response has begun: a call whose answer is partly sent must not get another one.
        (inflight.stop if streams else inflight.renew)(key)
        return streams

    def streamed(self, start: bytes, size: int) -> None:
        """Record the end of a streamed line: its first bytes, and its size."""
        key = message.response_key(start, b"")
        pending = None if key is None else self.state.inflight.retire(key)
        if pending is not None:
            self.state.counts.untouched(pending, size)

    # Pending requests and their deadlines

    def awaits(self, slots: Iterable[bytes]) -> bool:
        return any(slot in self.state.inflight.pending for slot in slots)

    @property
    def holds_calls(self) -> bool:
        """True while the server has yet to get a call that waits for something."""
        inflight = self.state.inflight
        return bool(inflight.suspended) or any(each.query for each in inflight.pending.values())

    def withholds(self, slots: Iterable[bytes]) -> bool:
        """Return True if one of these requests is pending and its rule withholds responses."""
        pending = map(self.state.inflight.pending.get, slots)
        return any(each is not None and each.withholds for each in pending)

    def restart_deadlines(self, slots: Iterable[bytes]) -> None:
        """Record that calls are sent only now, and restart their time."""
        for slot in slots:
            self.state.inflight.renew(slot)

    def time_left(self, slots: Iterable[bytes] | None = None) -> float | None:
        """Return the seconds until a call, of all or of these, or its query may be overdue."""
        return self.state.inflight.time_left(slots)

    def expire(self, slots: Iterable[bytes] | None = None) -> Outputs:
        """Answer and cancel calls, of all or of these, without a response or progress for long.

        A call whose query has no response goes on.
        """
        outputs: list[Output] = []
        for pending in self.state.inflight.expire(slots):
            if isinstance(pending, PendingOwnRequest):
                outputs.append(ToServer(guards.cancellation(pending.id)))
                outputs += guards.give_up(self.state, pending, guards.LATE)
                continue
            reason = (
                f"no answer within {_in_words(self.state.inflight.deadline or 0.0)} and no progress"
            )
            text = f"{reason}; the call was cancelled"
            self.state.log(f"{pending.tool}: {text}")
            text += ". Whether it took effect is not known: find out before you call again"
            outputs += self.state.reply(pending, "late", self.state.refusal(pending, text))
            outputs.append(ToServer(guards.cancellation(pending.id, reason)))
        return tuple(outputs)

    # The end

    def fail_pending(self, cause: str, slots: Iterable[bytes] | None = None) -> list[bytes]:
        """Forget pending requests, all or these, and return an error for each."""
        return [pending.error(cause) for pending in self.state.inflight.release(slots)]

    def rest(self) -> None:
        """Release answered requests and the rules; facts of the server and pending calls stay."""
        self.state.inflight.rest()
        self.rules.rest()

    def forget_pending(self, slots: Iterable[bytes]) -> None:
        """Forget pending requests without an error: nobody expects an answer."""
        self.state.inflight.release(slots)


def _in_words(seconds: float) -> str:
    return f"{seconds:.12g} second" + "s" * (seconds != 1)
