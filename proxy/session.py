"""One client and one server: raw messages in from either side, outputs out. No I/O, no threads.

Every request is remembered by its id until its response has passed; a call that a rule covers is
answered from a snapshot, refused, or sent on and its response shaped. Everything else goes out as
the bytes that came in. Invariants: no id is made up, renumbered or retyped; each request gets
exactly one answer; nothing here raises for any input.

Where one session stands for many exchanges, as for the stateless requests of one caller, equal ids
are told apart by the `exchange` that is given with each message; elsewhere that is b"".
"""

from collections import OrderedDict
from collections.abc import Callable, Collection, Iterable
from contextlib import suppress
from functools import partial
from time import monotonic
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import UNSET, Raw, Struct

from proxy import arguments as argument
from proxy import definitions, fallback, message, pipeline, probe, result, timing
from proxy.ambiguity import ambiguous, called, differs, disguised, doubled, may_call, repeated
from proxy.arguments import VIEW, Completed, Plan
from proxy.circuit import MOST as FAILURES
from proxy.clients import client_for
from proxy.document import ABSENT, Number, encode, loads, text
from proxy.edited import Edited, edit
from proxy.errors import DocumentError, Refusal, RuleErrors, raised
from proxy.guard import Answer, Ask, Found, Guard, decided
from proxy.guard import Forward as Onward
from proxy.inflight import Answered, InFlight, Pending
from proxy.message import Message, string_at
from proxy.meter import Meter, Sizes
from proxy.outputs import (
    Forget,
    Forward,
    Keep,
    Load,
    Noise,
    Output,
    Probe,
    Reply,
    Shape,
    Tell,
    Work,
    turned,
)
from proxy.pipeline import Job, Outcome
from proxy.rule import Rule
from proxy.snapshots import Key, Snapshot
from proxy.standing import Known, Rules, Standing
from proxy.surrogates import unmask
from proxy.timing import Timing
from proxy.transforms.base import Call, Warned

_REMEMBERED = 1000  # tools, tasks and cached plans kept at most, each
_LARGE = 256 << 10  # bytes from which it takes some time to look into a message
_LONGEST = 500  # bytes of a call by which its snapshot is known
_AMBIGUOUS = "the call is ambiguous: its name or its arguments are given twice"
_SMALL = 4096  # bytes: longer lines are told apart by their head and tail where that is certain

if TYPE_CHECKING:
    from proxy.listing import Listing

CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"


class _Call(Struct):
    """What is read of the params of tools/call."""

    name: Raw = ABSENT
    arguments: Raw = ABSENT
    task: Raw = ABSENT
    meta: Raw = msgspec.field(default=ABSENT, name="_meta")
    answers: Raw = msgspec.field(default=ABSENT, name="inputResponses")
    state: Raw = msgspec.field(default=ABSENT, name="requestState")


_CALL = msgspec.json.Decoder(_Call)

Meters = Callable[[str | None, str | None], Meter]


class Session:
    """The conversation of one client with one server.

    `rules` and `meters` are called with the names of server and client, as far as they are known;
    `rules` whenever a message about tools passes, and it may block until rule files are read. `log`
    takes one line. Snapshots are kept under `scope`. Where the answers are `resumable`, a response
    may come again. With a `deadline`, in seconds by `clock`, a call that the server leaves without
    an answer or progress for so long is `overdue`.
    """

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
        self._standing = Standing(rules, log)
        self._meters = meters
        self._meter = meters(None, None)
        self._log = log
        self.scope = scope
        self._timing = None if deadline is None else Timing(deadline, clock)
        self._inflight = InFlight(resumable=resumable, timing=self._timing)
        self._waiting: dict[int, Pending] = {}
        self._token = 0
        self._listing: Listing | None = None  # where the server says that its list may change
        self._ids = probe.Ids()
        self._batched = False
        self._taken: list[Pending] = []  # the requests that the message at hand answers
        self._guessed: OrderedDict[bytes, None] = OrderedDict()  # answered, though in doubt
        self._told: set[tuple[str, str]] = set()  # the warnings that were logged
        self._tasks = Answered()  # by the names of their tasks
        self._kept: OrderedDict[Key, None] = OrderedDict()

    @property
    def server(self) -> str | None:
        """The name that the server gave."""
        return self._standing.server

    @property
    def client(self) -> str | None:
        """The name that the client gave."""
        return self._standing.client

    @property
    def known(self) -> Known:
        """What was learned so far."""
        return self._standing.known

    @property
    def deadline(self) -> float | None:
        """How many seconds a call may go without an answer or progress."""
        return None if self._timing is None else self._timing.seconds

    @property
    def listed(self) -> bool:
        """True where it is known which tools there are."""
        return self._standing.listed

    def recall(self, known: Known) -> None:
        """Learn what another session has learned of the same server and client."""
        self._standing.recall(known)
        self._meter = self._meters(self.server, self.client)

    # From the client

    def from_client(self, raw: bytes, exchange: bytes = b"") -> tuple[Output, ...]:
        """Take one line of the client."""
        mark = self._token
        try:
            return self._from_client(raw, exchange)
        except Exception as error:  # one message must never cost an answer to it, or to others
            said = self._failed(error, mark)
            return fallback.of_client(raw, exchange, self._inflight, said)

    def _failed(self, error: Exception, mark: int) -> str:
        """Forget what waits since `mark`, where we failed; return what is to be said of that."""
        for token in range(mark + 1, self._token + 1):
            self._waiting.pop(token, None)
        said = fallback.said_of(error)
        if not isinstance(error, RuleErrors):
            with suppress(Exception):  # it may be the log that failed
                self._log(said)
        return said

    def _from_client(self, raw: bytes, exchange: bytes) -> tuple[Output, ...]:
        try:
            read = message.read(raw)
        except DocumentError as cause:
            return self._garbled(raw, cause, exchange)
        if isinstance(read, Message):
            return self._request(raw, read, exchange)
        self._batched = True
        try:
            return self._batch(raw, read, lambda element: self.from_client(element, exchange))
        finally:
            self._batched = False

    def _garbled(self, raw: bytes, cause: DocumentError, exchange: bytes) -> tuple[Output, ...]:
        """Pass on what we cannot read, unless it may be a call that a rule is there to stop."""
        import json

        try:
            read = json.loads(raw, parse_float=Number)
        except (ValueError, RecursionError):
            read = UNSET
        elements = read if isinstance(read, list) else [read]
        messages = [each for each in elements if isinstance(each, dict)]
        twofold = may_call(raw) and (repeated(Raw(raw)) or any(map(differs, messages)))
        if read is UNSET or twofold:
            if not (may_call(raw) and self._protects()):
                return (Forward(raw),)
            # Another reader may get further, and find the call of a tool in it.
            id = message.request_id(raw[:512], raw[-512:]) or b"null"
            line = message.error(id, -32700, f"the message cannot be read: {cause}")
            return self._answer(Pending(exchange, id, ""), "refused", line)
        self._standing.now()
        if not any(
            self._standing.guarded(tool) for tool in map(called, messages) if tool is not None
        ):
            return (Forward(raw),)
        outputs: list[Output] = []
        for each in messages:
            if "id" not in each or "method" not in each:
                self._log(f"a message that cannot be read and has no id was dropped: {cause}")
                continue
            pending = Pending(exchange, encode(each["id"]), "", called(each) or "")
            said = f"the call cannot be read: {cause}"
            line = message.refusal(pending.id, said, modern=False)
            if not pending.tool:
                line = message.error(pending.id, -32700, f"the batch cannot be read: {cause}")
            outputs += self._answer(pending, "refused", line)
        return tuple(outputs)

    def _request(self, raw: bytes, read: Message, exchange: bytes) -> tuple[Output, ...]:
        key = read.key
        if (
            may_call(raw)
            and bytes(read.method) != b'"tools/call"'
            and self._protects()
            and (
                disguised(Raw(raw), "method", "params")
                or (read.method is not ABSENT and doubled(Raw(raw)))
            )
        ):
            # Another reader might take it for the call of a tool.
            said = "the message has two members of one name"
            if key is None or read.responds:
                self._log(f"{said}, and was dropped")
                return ()
            return (Reply(message.error(key, -32600, said)),)
        if read.method is ABSENT:
            return (Forward(raw),)
        try:
            method = read.verb or ""
        except DocumentError:
            return (Forward(raw),)
        if key is None or key == b"null":
            if method == "notifications/cancelled":
                asked = self._cancelled(read, exchange)
                if asked is not None:
                    # The server knows nothing of the call yet.
                    return (Forward(probe.cancellation(asked)),)
            if method == "tools/call":
                # Nothing can answer it, but a server may run it all the same.
                outputs = self._call(raw, read, Pending(exchange, b"null", method))
                self._inflight.retire(exchange + b"null")
                for each in outputs:
                    if isinstance(each, Load):
                        del self._waiting[each.token]
                return tuple(each for each in outputs if isinstance(each, Forward | Forget))
            return (Forward(raw),)
        pending = Pending(exchange, key, method, batched=self._batched)
        if method == "tools/call":
            outputs = self._call(raw, read, pending)
            return (*self._news(), *outputs) if self._standing.outdated else outputs
        if method == "initialize":
            self._named(client=string_at(read.params, "clientInfo", "name"))
        elif method == "server/discover":
            self._named(client=string_at(read.params, "_meta", CLIENT_INFO, "name"))
        elif method == "tools/list":
            self._named(client=string_at(read.params, "_meta", CLIENT_INFO, "name"))
            pending.further = string_at(read.params, "cursor") is not None
        elif method == "tasks/result":
            task = self._tasks.get(_name(string_at(read.params, "taskId") or ""))
            if task is not None:
                pending = msgspec.structs.replace(
                    task, exchange=exchange, id=key, method=method, as_task=False
                )
        return self._sent(raw, pending)

    def _protects(self) -> bool:
        """Say whether there is a rule now that a call must not get around."""
        self._standing.now()
        return self._standing.guards

    def _sent(self, raw: bytes, pending: Pending) -> tuple[Output, ...]:
        """Remember a request before it goes upstream; its answer may be quick."""
        pending.size = len(raw)
        self._inflight.add(pending)
        if self._guessed:
            self._guessed.pop(pending.exchange + pending.id, None)
        if self._timing is not None and pending.method == "tools/call":
            self._timing.begin(pending.exchange + pending.id, pending.token)
        return (Forward(raw),)

    def _cancelled(self, read: Message, exchange: bytes) -> bytes | None:
        """Forget what the client gives up; return the id of a Probe that is to be given up too."""
        try:
            held = message.members(read.params) if read.params is not ABSENT else {}
        except DocumentError:
            return None
        if "requestId" in held:
            slot = exchange + message.id_key(bytes(held["requestId"]))
            pending = self._inflight.find(slot)
            # What such a rule withholds, it withholds from a late answer too.
            rule = None if pending is None else pending.rule
            if pending is not None and pending.probe:
                self._inflight.retire(slot)
                return pending.probe.removeprefix(exchange)
            if rule is None or not rule.withholds:
                self._inflight.retire(slot)
            elif self._timing is not None:
                self._timing.end(slot)
        return None

    def _call(self, raw: bytes, read: Message, pending: Pending) -> tuple[Output, ...]:
        try:
            params = _CALL.decode(read.params) if read.params is not ABSENT else _Call()
            tool = None if params.name is ABSENT else text(params.name)
        except (msgspec.DecodeError, DocumentError):
            return self._sent(raw, pending)
        pending.tool, pending.scope = tool or "", self.scope
        if params.meta is not ABSENT:
            self._named(client=string_at(params.meta, CLIENT_INFO, "name"))
            pending.modern = (string_at(params.meta, PROTOCOL_VERSION) or "") >= "2026"
            if self._timing is not None and (token := timing.token(params.meta)):
                pending.token = pending.exchange + token
        standing = self._standing
        if self._protects() and (
            disguised(Raw(raw), "method", "params")
            or (tool is None and disguised(read.params, "name", "arguments"))
            or (tool is not None and (doubled(Raw(raw)) or ambiguous(read.params)))
        ):
            self._log(f"{tool or 'a tool'}: refused: {_AMBIGUOUS}")
            return self._refuse(pending, _AMBIGUOUS)
        if tool is None:
            return self._sent(raw, pending)
        hiding, hidden = standing.hiding(tool)
        if hidden is not None:
            pending.rule = hiding
            said = hidden.message.replace("{tool}", tool)
            return self._answer(pending, "hidden", message.error(pending.id, hidden.code, said))
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
            if not self._standing.guarded(tool):
                pending.rule = None
                return self._passed(raw, pending)
            said = f"the call cannot be read: {cause}"
        return self._refuse(pending, said)

    def _passed(self, raw: bytes, pending: Pending) -> tuple[Output, ...]:
        """Send a call on, unless its rule's guard decides otherwise; relative to the client."""
        rule = pending.rule
        if rule is not None and rule.guard is not None and rule.mode == "active":
            return self._decided(raw, pending, rule.guard, None)
        return self._sent_on(raw, pending)

    def _sent_on(self, raw: bytes, pending: Pending) -> tuple[Output, ...]:
        """Send a call on, which may make snapshots untrue."""
        return (*self._stale(pending), *self._sent(raw, pending))

    # Guards

    def _decided(
        self, raw: bytes, pending: Pending, guard: Guard, found: Found | None
    ) -> tuple[Output, ...]:
        """Do with a call what its guard decides; outputs are relative to the client."""
        rule = pending.rule
        assert rule is not None
        pending.masked |= message.masked(raw)
        call = Call(pending.tool, pending.arguments, names=pending.names, warnings=[])
        try:
            decision = decided(guard, call, found)
            self._warned(pending.tool, rule, call.warnings)
            if isinstance(decision, Answer):
                return self._replied(pending, decision)
            if isinstance(decision, Onward):
                return self._onward(raw, pending, decision)
            return self._asked(raw, pending, decision)
        except KeyboardInterrupt:
            raise
        except BaseException as error:  # it may raise anything
            said = f"{rule.at(pending.tool)}: the guard {guard.name!r} failed: "
            self._log(f"{said}{raised(error)}")
            self._inflight.retire(pending.exchange + pending.id)
        if rule.on_failure == "pass":
            return self._sent_on(raw, pending)
        # What protects something does not let it go where nothing else is said.
        said = f"the call was withheld: the guard of rule {rule.name!r} failed"
        return self._refuse(pending, said)

    def _onward(self, raw: bytes, pending: Pending, decision: Onward) -> tuple[Output, ...]:
        pending.facts = decision.facts
        if decision.arguments:
            params = message.params(raw)
            held = message.members(params)
            sent = loads(bytes(held["arguments"])) if "arguments" in held else {}
            sent = sent if isinstance(sent, dict) else {}  # as the guard has seen them
            for name, value in decision.arguments.items():
                if value is UNSET:
                    pending.arguments = argument.without(pending.arguments, name)
                    sent = argument.without(sent, name)
                else:
                    pending.arguments = argument.put(pending.arguments, name, value)
                    sent = argument.put(sent, name, value)
            # Those of the rules that hold now, too: they may have changed while the call was held.
            now = [plan for _, plan in self._standing.covering(pending.tool)]
            for plan in (pending.plan, *now):
                sent = argument.without_ours(plan, sent)
            raw = message.with_arguments(raw, params, sent)
            raw = unmask(raw) if pending.masked else raw
        return self._sent_on(raw, pending)

    def _replied(self, pending: Pending, decision: Answer) -> tuple[Output, ...]:
        """Answer a call with what its guard says."""
        rule = pending.rule
        seen = self._standing.seen(pending.tool)
        # A client may know from an earlier session that the tool has an outputSchema.
        declared = seen is None or seen.structured
        structured = declared or (rule is not None and rule.structures)
        value = result.made(
            decision.document,
            error=decision.error,
            structured=structured and not decision.error,
        )
        line = message.completed(pending.id, value, pending.modern)
        return self._answer(pending, "answered", unmask(line) if pending.masked else line)

    def _asked(self, raw: bytes, pending: Pending, ask: Ask) -> tuple[Output, ...]:
        """Hold a call and ask the server something first, under an id that no client can pick."""
        if pending.batched:
            said = "the server must be asked something before this call: send it alone"
            return self._refuse(pending, said)
        id = self._ids.new()
        asked = Pending(pending.exchange, id, "tools/call", ask.tool, held=pending)
        line = probe.request(id, ask, message.params(raw))
        line = unmask(line) if pending.masked else line
        pending.line, pending.probe = raw, pending.exchange + id
        self._inflight.add(pending)
        self._inflight.add(asked)
        return (Probe(line, pending.probe, ask.seconds),)

    def unanswered(self, token: bytes, cause: str = "") -> tuple[Output, ...]:
        """Go on with a held call without an answer to its Probe; relative to the client.

        `cause` says why none can come any more; else its time is up, and the server is told so.
        """
        asked, mark = None, self._token
        try:
            asked = self._inflight.find(token)
            if asked is None or asked.held is None:
                return ()
            told = () if cause else (Forward(probe.cancellation(asked.id)),)
            return (*told, *self._found(asked, Found(failure=cause or "no answer in time")))
        except Exception as error:
            said = self._failed(error, mark)
            asked = asked or self._inflight.find(token)
            self._inflight.retire(token)
            held = None if asked is None else asked.held
            return () if held is None else (Reply(self._gave_up(held, said)),)

    def _gave_up(self, pending: Pending, said: str) -> bytes:
        """Return the answer to a call that we failed on, and forget it."""
        self._inflight.retire(pending.exchange + pending.id)
        return pending.failed(said)

    def _found(self, asked: Pending, found: Found) -> tuple[Output, ...]:
        """Go on with a held call after its Probe; outputs are relative to the client."""
        pending = asked.held
        assert pending is not None
        assert pending.rule is not None
        assert pending.rule.guard is not None
        pending.probe = b""
        self._inflight.retire(asked.exchange + asked.id)
        if self._inflight.find(pending.exchange + pending.id) is not pending:
            return ()  # given up, or another request has its id by now
        self._inflight.retire(pending.exchange + pending.id)
        if found.failure is not None:
            said = f"{pending.rule.at(pending.tool)}: what the guard asked of {asked.tool!r} failed"
            self._log(f"{said}: {found.failure}")
        line, pending.line = pending.line, b""
        return self._decided(line, pending, pending.rule.guard, found)

    def _heard(self, asked: Pending, heard: tuple[Found, bool]) -> tuple[Output, ...]:
        """Take what a Probe was answered, and whether surrogates are masked in it."""
        found, masked = heard
        assert asked.held is not None
        asked.held.masked |= masked
        mark = self._token
        try:
            return self._probed(asked, found)
        except Exception as error:
            return (Forward(self._gave_up(asked.held, self._failed(error, mark))),)

    def _probed(self, asked: Pending, found: Found) -> tuple[Output, ...]:
        """Take what came of a Probe; outputs are relative to the server."""
        return tuple(map(turned, self._found(asked, found)))

    def _applying(
        self, tool: str, covering: tuple[tuple[Rule, Plan], ...], sent: dict[str, Any]
    ) -> tuple[Rule | None, Plan]:
        """Return the first rule that applies; raises Refusal if one that protects cannot tell."""
        for rule, plan in covering:
            try:
                if rule.applies(sent):
                    return rule, plan
            except Refusal as cause:
                said = f"{rule.name}: `when` failed: {cause}"
                if rule.protects:
                    raise Refusal(said) from cause
                self._log(f"{tool}: {said}")
        return None, Plan()

    def _completed(
        self,
        raw: bytes,
        read: Message,
        params: _Call,
        pending: Pending,
        plan: Plan,
        completed: Completed,
    ) -> tuple[Output, ...]:
        rule = pending.rule
        # Who takes another one of two members must not get around a rule, nor around its `when`.
        twofold = (
            params.arguments is not ABSENT
            and self._standing.guarded(pending.tool)
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
        pending.view = completed.steering.get(VIEW)
        if rule.restart is not None:
            pending.key = self._snapshot_key(pending.tool, rule, completed)
        asks = pending.view is not None or completed.resumes
        if pending.key is not None and pending.cacheable and asks:
            self._token += 1
            pending.line = raw
            self._waiting[self._token] = pending
            return (Load(self._token, pending.key),)
        return self._passed(raw, pending)

    def loaded(
        self, token: int, snapshot: Snapshot | None, failure: str | None = None
    ) -> tuple[Output, ...]:
        """Go on with a call that waits for its snapshot; outputs are relative to the client.

        `failure` says why nobody can tell whether there is one.
        """
        pending, mark = self._waiting[token], self._token
        del self._waiting[token]
        try:
            return self._loaded(pending, snapshot, failure)
        except Exception as error:
            return (Reply(self._gave_up(pending, self._failed(error, mark))),)

    def _loaded(
        self, pending: Pending, snapshot: Snapshot | None, failure: str | None
    ) -> tuple[Output, ...]:
        rule = pending.rule
        assert rule is not None
        if rule.circuit.open:
            again = pending.start_again.removesuffix(" first")
            said = f"nothing is shown in parts while rule {rule.name!r} is out of service; {again}"
            return self._refuse(pending, said)
        if snapshot is not None:
            return (Shape(self._job(pending, snapshot=snapshot)),)
        if failure is not None:
            # Called anew, the tool might give other pages than those that were read before, or do
            # for a second time what it does.
            said = f"what was kept of the earlier answer is out of reach: {failure}; "
            said += "try again later"
            if self._repeatable(pending, rule):
                said += f", or {pending.start_again}"
            return self._refuse(pending, said)
        if self._repeatable(pending, rule):
            line, pending.line = pending.line, b""
            return self._passed(line, pending)
        said = (
            "nothing is kept of an earlier answer to this call (it expired, or was never given); "
            + pending.start_again
        )
        return self._refuse(pending, said)

    def _repeatable(self, pending: Pending, rule: Rule) -> bool:
        seen = self._standing.seen(pending.tool)
        if seen is not None and seen.reads_only:
            return True
        return any(getattr(step, "refetch", None) for step in rule.pipeline)

    def _refuse(self, pending: Pending, said: str) -> tuple[Output, ...]:
        return self._answer(pending, "refused", self._refusal(pending, said))

    def _refusal(self, pending: Pending, said: str) -> bytes:
        """Return the error result that says `said`, in the form that the rule gives its errors."""
        rule = pending.rule
        if rule is None or rule.mode != "active" or not rule.errors:
            return message.refusal(pending.id, said, pending.modern)
        call = Call(pending.tool, pending.told, names=pending.names, warnings=[])
        line = pipeline.refusal(rule, call, pending.id, said, pending.modern)
        self._warned(pending.tool, rule, call.warnings)
        return line

    def _answer(
        self, pending: Pending, word: Literal["refused", "answered", "hidden", "late"], line: bytes
    ) -> tuple[Output, ...]:
        rule = pending.rule.name if pending.rule is not None else None
        self._meter.count(pending.tool, rule, Sizes(0, len(line), 0, len(line)), word)
        return (Reply(line),)

    def _stale(self, pending: Pending) -> tuple[Output, ...]:
        """Drop the snapshots that a call makes untrue (`drop_on`)."""
        dropped = self._standing.dropped_by(pending.tool)
        return tuple(Forget(Key(pending.scope, rule, None)) for rule in dropped)

    # From the server

    def head(self, start: bytes, exchange: bytes = b"") -> bool:
        """Say whether a line of the server that begins with `start` may be streamed through.

        Only what surely needs no look inside is streamed: a request or notification, or a response
        while no response is awaited that must be shaped or read.
        """
        if message.asks(start):
            return self._timing is None or timing.PROGRESS.encode() not in start
        unwanted = self._ids.used or self._guessed or self._timing is not None
        if self._inflight.watched == 0 and not unwanted:
            # One whose id cannot be told would never be over.
            return message.answers(start)
        key = message.response_key(start, b"")
        if key is None or self._unwanted(exchange, key):
            return False
        pending = self._inflight.find(exchange + key)
        passes = pending is None or pending.plain
        if self._timing is not None:
            # Its answer has begun; what the client has a part of must not be answered otherwise.
            (self._timing.end if passes else self._timing.extend)(exchange + key)
        return passes

    def streamed(self, start: bytes, end: bytes, size: int, exchange: bytes = b"") -> None:
        """Take note of a streamed line that is over: its first and last bytes, and its size."""
        key = message.response_key(start, end)
        if key is not None:
            pending = self._inflight.retire(exchange + key)
            if pending is not None:
                self._untouched(pending, size)

    def discarded(self, start: bytes, size: int, limit: int) -> tuple[Output, ...]:
        """Answer the call whose response was thrown away, see `message.thrown_away`."""
        said = message.thrown_away(size, limit, " from the server")
        self._log(said)
        key = message.response_key(start, b"")
        if key is None and message.answers(start):
            # Where nothing else is awaited, it was the answer to this, most likely.
            key = self._inflight.only()
            if key is not None:
                self._guessed[key] = None
                if len(self._guessed) > _REMEMBERED:
                    self._guessed.popitem(last=False)
        pending = None if key is None else self._inflight.retire(key)
        if pending is not None and pending.held is not None:
            return self._probed(pending, Found(failure=said))
        return () if pending is None else (Forward(pending.failed(said)),)

    def from_server(self, raw: bytes, exchange: bytes = b"") -> tuple[Output, ...]:
        """Take one line of the server."""
        mark, before = self._token, 0
        try:
            before = len(self._taken)
            return self._from_server(raw, exchange)
        except Exception as error:
            said = self._failed(error, mark)
            taken = self._taken[before:] or self._answered_by(raw, exchange)
            for pending in taken:
                self._inflight.retire(pending.exchange + pending.id)
                if pending.held is not None:
                    self._inflight.retire(pending.held.exchange + pending.held.id)
            # Hidden tools would be in a list that goes on as it came.
            closed = isinstance(error, RuleErrors) or self._standing.guards
            return fallback.of_server(raw, taken, said, closed=closed)
        finally:
            if not before:
                del self._taken[:]

    def _answered_by(self, raw: bytes, exchange: bytes) -> list[Pending]:
        """Find the request that a message answers, which could not be read."""
        key = message.response_key(raw[:512], raw[-512:])
        found = None if key is None else self._inflight.answer(exchange + key)
        return [] if found is None else [found]

    def _taking(self, slot: bytes) -> Pending | None:
        """Return the request whose response has come, which is then answered."""
        pending = self._inflight.find(slot)
        if pending is not None:
            self._taken.append(pending)
        return self._inflight.answer(slot)

    def _from_server(self, raw: bytes, exchange: bytes) -> tuple[Output, ...]:
        if len(raw) > _SMALL:
            key = message.response_key(raw[:512], raw[-512:])
            if key is not None:
                slot = exchange + key
                pending = self._inflight.find(slot)
                if pending is None and self._unwanted(exchange, key):
                    return ()
                if pending is None or pending.plain:
                    if pending is not None:
                        self._untouched(self._inflight.retire(slot) or pending, len(raw))
                    return (Forward(raw),)
                if pending.rule is not None and not pending.as_task and message.succeeds(raw[:512]):
                    self._taking(slot)
                    return self._answered(raw, pending, pending.rule)
        try:
            read = message.read(raw)
        except DocumentError as cause:
            return self._unreadable(raw, exchange, cause)
        if b'"jsonrpc"' not in raw and not (isinstance(read, Message) and read.speaks):
            return (Noise(raw),)
        if not isinstance(read, Message):
            return self._batch(raw, read, lambda element: self.from_server(element, exchange))
        if not read.responds:
            if self._timing is not None and (token := timing.progressing(read)):
                self._timing.progressed(exchange + token)
            return (Forward(raw),)
        key = read.key
        found = None if key is None else self._taking(exchange + key)
        if found is None:
            unwanted = key is not None and self._unwanted(exchange, key)
            return () if unwanted else (Forward(raw),)
        if found.held is not None:
            heard, then = partial(probe.heard, raw), partial(self._heard, found)
            return then(heard()) if len(raw) <= _LARGE else (Work(heard, then),)
        failed = read.result is ABSENT or read.error is not ABSENT
        if found.plain or (failed and not self._minds_failures(found, read)):
            self._untouched(found, len(raw))
            return (Forward(raw),)
        return self._response(raw, read, found)

    def _unwanted(self, exchange: bytes, key: bytes) -> bool:
        """Say whether an answer that nothing waits for is no concern of the client's.

        It is to a question of our own, or comes after ours.
        """
        slot = exchange + key
        late = self._timing is not None and self._timing.late(slot)
        return late or slot in self._guessed or self._ids.hold(key)

    def _minds_failures(self, pending: Pending, read: Message) -> bool:
        """Say whether a rule has to do with an answer that carries an error."""
        rule = pending.rule
        if rule is None:
            return False
        # Nobody must find in the one of two members what is withheld in the other.
        return bool(rule.errors) or (rule.withholds and read.result is not ABSENT)

    def _response(self, raw: bytes, read: Message, pending: Pending) -> tuple[Output, ...]:
        try:
            if pending.method == "initialize":
                self._named(server=string_at(read.result, "serverInfo", "name"))
                self._listing = _listing(read.result)
            elif pending.method == "server/discover":
                self._named(server=string_at(read.result, "_meta", SERVER_INFO, "name"))
            elif pending.method == "tools/list":
                return self._listed(raw, read, pending)
            elif pending.as_task and self._tasked(read, pending):
                pass
            elif pending.rule is not None:
                return self._answered(raw, pending, pending.rule)
        except (DocumentError, msgspec.DecodeError) as cause:
            if pending.rule is not None and pending.rule.withholds:
                return self._unread(pending, pending.rule, cause)
            self._log(f"{pending.method}: left as it came: {cause}")
        self._untouched(pending, len(raw))
        return (Forward(raw),)

    def _unread(self, pending: Pending, rule: Rule, cause: Exception) -> tuple[Output, ...]:
        self._log(f"{rule.at(pending.tool)}: withheld: {cause}")
        said = f"the response was withheld: rule {rule.name!r} cannot read it"
        return (Forward(self._refusal(pending, said)),)

    def _answered(self, raw: bytes, pending: Pending, rule: Rule) -> tuple[Output, ...]:
        """Have an answer shaped, unless it is sure to be short enough and that is all there is."""
        # What a model sees of a line is never longer than the line.
        short = rule.max_bytes is not None and len(raw) <= rule.max_bytes and rule.only_bounds
        asked = pending.view is not None or pending.key in self._kept
        if short and not asked and not rule.withholds:
            self._untouched(pending, len(raw))
            return (Forward(raw),)
        return (Shape(self._job(pending, raw=raw)),)

    def _listed(self, raw: bytes, read: Message, pending: Pending) -> tuple[Output, ...]:
        self._named(server=string_at(read.result, "_meta", SERVER_INFO, "name"))
        tools = None if pending.further else definitions.names(read.result)
        if tools is not None:
            self._standing.offers(tools)
        edited = partial(edit, read.result, self._standing.now())
        if len(raw) <= _LARGE:
            return self._passed_list(raw, edited(), pending)
        return (Work(edited, partial(self._passed_later, raw, pending)),)

    def _passed_later(self, raw: bytes, pending: Pending, edited: Edited) -> tuple[Output, ...]:
        try:
            return self._passed_list(raw, edited, pending)
        except (DocumentError, msgspec.DecodeError) as cause:
            self._log(f"{pending.method}: left as it came: {cause}")
            return (Forward(raw),)
        except Exception as error:
            said = self._failed(error, self._token)
            return fallback.of_server(raw, [pending], said, closed=self._standing.guards)

    def _passed_list(self, raw: bytes, edited: Edited, pending: Pending) -> tuple[Output, ...]:
        """Pass on a list of tools, as it is for the client; raises what it could not be for."""
        for said in edited.said:
            self._log(said)
        if edited.error is not None:
            raise edited.error
        self._standing.learn(edited.seen)
        if self._listing is not None:
            self._listing.told(edited.given, edited.result, further=pending.further)
            self._standing.outdated = False
        return (
            Forward(raw if edited.result is None else message.replaced(raw, result=edited.result)),
        )

    def _news(self) -> tuple[Output, ...]:
        """Tell the client to list the tools again, where other rules make another list of them."""
        self._standing.outdated = False
        if self._listing is None:
            return ()
        rules = self._standing.now()
        differ = partial(self._listing.differs, lambda result: edit(result, rules).result)
        if self._listing.size <= _LARGE:
            return self._told_of(differ())
        return (Work(differ, self._told_of),)

    def _told_of(self, differ: bool) -> tuple[Output, ...]:
        if not differ or self._listing is None:
            return ()
        self._log("the tools look different with the new rules: the client was told")
        return (Tell(self._listing.CHANGED),)

    def _tasked(self, read: Message, pending: Pending) -> bool:
        """Remember which call a task works for: tasks/result brings its result (MCP 2025-11-25).

        Says whether the response names a task: a server may answer at once instead.
        """
        task = message.members(read.result).get("task")
        name = None if task is None else string_at(task, "taskId")
        if name is not None:
            self._tasks.put(_name(name), pending)
        return task is not None

    def shaped(self, job: Job, outcome: Outcome) -> tuple[Output, ...]:
        """Take what came of a Shape; outputs are relative to the server: Forward is the answer."""
        try:
            return self._shaped(job, outcome, self._waiting.pop(job.token, None))
        except Exception as error:
            self._failed(error, self._token)
            self._waiting.pop(job.token, None)
            return (Forward(outcome.raw),)

    def _shaped(self, job: Job, outcome: Outcome, pending: Pending | None) -> tuple[Output, ...]:
        if pending is None or not pending.again:
            before = 0 if job.raw is None else len(job.raw)
            sizes = Sizes(before, len(outcome.raw), outcome.visible_before, outcome.visible_after)
            self._meter.count(job.tool, job.rule.name, sizes, outcome.word)
            if outcome.said is not None:
                self._log(outcome.said)
            self._warned(job.tool, job.rule, outcome.warnings)
            self._note(job, outcome)
        kept: tuple[Output, ...] = ()
        key = None if pending is None else pending.key
        if key is not None and outcome.snapshot is not None:
            self._kept[key] = None
            if len(self._kept) > _REMEMBERED:
                self._kept.popitem(last=False)
            kept = (Keep(key, outcome.snapshot),)
        elif (
            key is not None
            and key in self._kept
            and job.raw is not None
            and outcome.word != "error"
        ):
            # The server has answered the same call anew: a view of the old one would mislead.
            del self._kept[key]
            kept = (Forget(key),)
        return (*kept, Forward(outcome.raw))

    def _note(self, job: Job, outcome: Outcome) -> None:
        """Take note of whether the rule failed, which may put it out of service."""
        rule = job.rule
        # What a view asks for is no doing of the rule's, and what withholds must go on with it.
        if job.view is not None or rule.withholds or outcome.word in ("error", "refused"):
            return
        if outcome.word != "failed":
            rule.circuit.worked()
        elif not outcome.blameless and rule.circuit.failed():
            said = f"rule {rule.name!r} is out of service after {FAILURES} failures in a row"
            said += ", until the rules are loaded again; its responses go out as they came"
            self._log(said)
            self._meter.warned(job.tool, rule.name, "out of service")

    def _warned(self, tool: str, rule: Rule, warnings: Iterable[Warned]) -> None:
        """Count warnings, and log the first of each kind."""
        for warned in warnings:
            self._meter.warned(tool, rule.name, warned.kind)
            kind = rule.name, warned.kind
            if kind not in self._told and len(self._told) < _REMEMBERED:
                self._told.add(kind)
                self._log(f"{rule.at(tool)}: {warned.said}")

    def given_up(self, output: Load | Shape) -> None:
        """Forget a call whose Load or Shape will not be carried out: nobody waits any more."""
        token = output.token if isinstance(output, Load) else output.job.token
        self._waiting.pop(token, None)

    def awaits(self, exchange: bytes, ids: Collection[bytes]) -> bool:
        """Say whether any request in an exchange with one of these ids has no answer yet."""
        return any(self._inflight.holds(exchange + id) for id in ids)

    def sent(self, exchange: bytes, ids: Collection[bytes]) -> None:
        """Take note that the calls of an exchange go to the server only now: their time begins."""
        if self._timing is not None:
            for id in ids:
                self._timing.extend(exchange + id)

    def patience(self, exchange: bytes = b"", ids: Collection[bytes] | None = None) -> float | None:
        """Return in how many seconds a call may be overdue, None where none will.

        That is any call, or those in an exchange with these ids.
        """
        return None if self._timing is None else self._timing.patience(_slots(exchange, ids))

    def overdue(
        self, exchange: bytes = b"", ids: Collection[bytes] | None = None
    ) -> tuple[Output, ...]:
        """Answer calls that the server has left alone for too long, and have it give them up.

        These are of all, or of those in an exchange with these ids. Relative to the client.
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
            outputs += self._answer(pending, "late", self._refusal(pending, said))
            outputs.append(Forward(probe.cancellation(pending.id, reason)))
        return tuple(outputs)

    def ended(
        self,
        cause: str,
        exchange: bytes | None = None,
        ids: Collection[bytes] | None = None,
    ) -> tuple[Output, ...]:
        """Answer what is in flight and cannot be answered otherwise any more, for this cause.

        That is everything, or what is of one exchange, or the requests in it with these ids.
        """
        return tuple(
            Forward(pending.failed(cause)) for pending in self._inflight.let_go(exchange, ids)
        )

    def rest(self) -> None:
        """Forget what answers have come: nobody has asked for anything for long.

        What was learned of the server, what waits for an answer, and what tasks are for, a client
        may still need much later.
        """
        self._inflight.rest()

    def dropped(self, exchange: bytes, ids: Collection[bytes] | None = None) -> None:
        """Forget what is in flight of an exchange: nobody waits for its answers any more."""
        self._inflight.let_go(exchange, ids)
        if self._timing is not None and exchange:
            # It is over: no late answer can come in it either.
            for id in ids or ():
                self._timing.forget(exchange + id)

    # Both

    def _batch(
        self, raw: bytes, elements: list[Raw], take: Callable[[bytes], tuple[Output, ...]]
    ) -> tuple[Output, ...]:
        """Take the messages of a batch one by one (MCP 2025-03-26); what goes on stays together."""
        forwarded: list[Raw] = []
        rest: list[Output] = []
        changed = False
        for element in elements:
            single = bytes(element)
            outputs = take(single) if single[:1] == b"{" else (Forward(single),)
            changed |= not outputs
            for output in outputs:
                if isinstance(output, Forward | Noise):
                    changed |= output.raw != single
                    forwarded.append(Raw(output.raw))
                else:
                    changed = True
                    rest.append(output)
        if not changed:
            return (Forward(raw),)
        return (*((Forward(encode(forwarded)),) if forwarded else ()), *rest)

    def _unreadable(self, raw: bytes, exchange: bytes, cause: DocumentError) -> tuple[Output, ...]:
        """Tell a message that only looks broken to us from noise on the server's stdout."""
        if not raw.strip():
            return ()
        if b'"jsonrpc"' not in raw:
            return (Noise(raw),)
        at = message.behind_noise(raw)
        if at is not None:
            return (Noise(raw[:at]), *self.from_server(raw[at:], exchange))
        if raw.lstrip()[:1] not in (b"{", b"["):
            return (Noise(raw),)
        key = message.response_key(raw[:512], raw[-512:])
        pending = None if key is None else self._taking(exchange + key)
        unwanted = key is not None and self._unwanted(exchange, key)
        if pending is None and (unwanted or self._ids.within(raw)):
            return ()
        if pending is not None:
            if pending.held is not None:
                return self._probed(pending, Found(failure="the answer cannot be read"))
            if pending.rule is not None and pending.rule.withholds:
                return self._unread(pending, pending.rule, cause)
            if pending.rule is not None:
                self._log(f"{pending.rule.at(pending.tool)}: left as it came: {cause}")
            self._untouched(pending, len(raw))
        return (Forward(raw),)

    def _untouched(self, pending: Pending, size: int) -> None:
        if pending.tool and not pending.again:
            self._meter.passed(pending.tool, size)

    def _job(
        self, pending: Pending, *, raw: bytes | None = None, snapshot: Snapshot | None = None
    ) -> Job:
        rule = pending.rule
        assert rule is not None
        self._token += 1
        self._waiting[self._token] = pending
        return Job(
            rule=rule,
            tool=pending.tool,
            id=pending.id,
            raw=raw,
            snapshot=snapshot,
            arguments=pending.told,
            names=pending.names,
            view=pending.view,
            viewable=pending.cacheable,
            keep=pending.cacheable and bool(rule.windows or rule.viewable),
            shows=client_for(self.client).shows,
            modern=pending.modern,
            token=self._token,
            aside=rule.circuit.open,
        )

    def _named(self, *, client: str | None = None, server: str | None = None) -> None:
        if self._standing.named(client=client, server=server):
            self._meter = self._meters(self.server, self.client)

    def _snapshot_key(self, tool: str, rule: Rule, completed: Completed) -> Key:
        """Name a call by its tool, its rule and what it asked for, windows and views left out.

        The rule as it is now: what an earlier one with its name kept may be more than it would.
        """
        asked = [tool, completed.upstream, completed.own, rule.made]
        return Key(self.scope, rule.name, _shortly(encode(asked, ordered=True)))


def _slots(exchange: bytes, ids: Collection[bytes] | None) -> list[bytes] | None:
    return None if ids is None else [exchange + id for id in ids]


def _name(task: str) -> bytes:
    # A text that came in JSON may hold half of a pair of surrogates.
    return task.encode("utf-8", "surrogatepass")


def _shortly(raw: bytes) -> str:
    """Return a text that stands for this one alone, and is not long."""
    if len(raw) <= _LONGEST:
        return raw.decode()
    # Its import takes 3 ms, and few calls are as long.
    from hashlib import sha256

    return sha256(raw).hexdigest()


def _listing(result: Raw) -> "Listing | None":
    """Return what remembers the list of tools, where the server declares that it may change."""
    try:
        tools = message.members(message.members(result)["capabilities"])["tools"]
        if bytes(message.members(tools)["listChanged"]) != b"true":
            return None
    except (DocumentError, KeyError):
        return None
    # Not loaded before it is needed: no other session has use for it.
    from proxy.listing import Listing

    return Listing()
