"""One client and one server: raw messages in from either side, outputs out. No I/O, no threads.

Every request is remembered by its id until its response has passed; a call that a rule covers is
answered from a snapshot, refused, or sent on and its response shaped. Everything else goes out as
the bytes that came in. Invariants: no id is made up, renumbered or retyped; each request gets
exactly one answer; nothing here raises for any input.

Where one session stands for many exchanges, as for the stateless requests of one caller, equal ids
are told apart by the `exchange` that is given with each message; elsewhere that is b"".
"""

from collections import OrderedDict
from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Literal

import msgspec
from msgspec import Raw, Struct

from proxy import arguments as argument
from proxy import definitions, message
from proxy.arguments import VIEW, Completed, Plan
from proxy.clients import client_for
from proxy.definitions import Seen
from proxy.document import ABSENT, Number, compact, encode, loads, text
from proxy.errors import DocumentError, Refusal
from proxy.inflight import InFlight, Pending
from proxy.message import Message, string_at
from proxy.meter import Meter, Sizes
from proxy.outputs import Forget, Forward, Keep, Load, Noise, Output, Reply, Shape, Tell
from proxy.pipeline import Job, Outcome
from proxy.rule import Rule, RuleSet
from proxy.snapshots import Key, Snapshot

_REMEMBERED = 1000  # tools, tasks and cached plans kept at most, each
_TRIES = 32  # places at which a message is looked for behind noise
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

Rules = Callable[[str | None, str | None], RuleSet]
Meters = Callable[[str | None, str | None], Meter]


class Known(Struct):
    """What a session has learned of its server and client, and another one may go on with."""

    server: str | None = None
    client: str | None = None
    tools: frozenset[str] | None = None
    seen: dict[str, Seen] = {}
    implied: dict[str, frozenset[str]] = {}


class Session:
    """The conversation of one client with one server.

    `rules` and `meters` are called with the names of server and client, as far as they are known;
    `rules` whenever a message about tools passes, and it may block until rule files are read. `log`
    takes one line. Snapshots are kept under `scope`. Where the answers are `resumable`, a response
    may come again.
    """

    def __init__(
        self,
        rules: Rules,
        meters: Meters,
        log: Callable[[str], None],
        *,
        scope: str = "",
        resumable: bool = False,
    ) -> None:
        self._rules = rules
        self._meters = meters
        self._meter = meters(None, None)
        self._log = log
        self.scope = scope
        self._inflight = InFlight(resumable=resumable)
        self._waiting: dict[int, Pending] = {}
        self._token = 0
        self._seen: dict[str, Seen] = {}
        self._implied: dict[str, frozenset[str]] = {}
        self._plans: dict[str, tuple[tuple[Rule, Plan], ...]] = {}
        self._given: RuleSet | None = None
        self._ruleset: RuleSet | None = None
        self._tools: frozenset[str] | None = None
        self._guards = False
        self._listing: Listing | None = None  # where the server says that its list may change
        self._outdated = False
        self._droppers: dict[str, tuple[str, ...]] = {}
        self._tasks: OrderedDict[str, Pending] = OrderedDict()
        self._kept: OrderedDict[Key, None] = OrderedDict()
        self.server: str | None = None
        self.client: str | None = None

    @property
    def known(self) -> Known:
        """What was learned so far."""
        return Known(self.server, self.client, self._tools, dict(self._seen), dict(self._implied))

    @property
    def listed(self) -> bool:
        """True where it is known which tools there are."""
        return self._tools is not None

    def recall(self, known: Known) -> None:
        """Learn what another session has learned of the same server and client."""
        self._named(client=known.client, server=known.server)
        if known.tools is not None:
            self._tools, self._ruleset = known.tools, None
        self._seen |= known.seen
        self._implied |= known.implied
        self._plans.clear()

    # From the client

    def from_client(self, raw: bytes, exchange: bytes = b"") -> tuple[Output, ...]:
        """Take one line of the client."""
        try:
            read = message.read(raw)
        except DocumentError as cause:
            return self._garbled(raw, cause, exchange)
        if isinstance(read, Message):
            return self._request(raw, read, exchange)
        return self._batch(raw, read, lambda element: self.from_client(element, exchange))

    def _garbled(self, raw: bytes, cause: DocumentError, exchange: bytes) -> tuple[Output, ...]:
        """Pass on what we cannot read, unless it may be a call that a rule is there to stop."""
        import json

        try:
            read = json.loads(raw, parse_float=Number)
        except (ValueError, RecursionError):
            return (Forward(raw),)
        elements = read if isinstance(read, list) else [read]
        messages = [each for each in elements if isinstance(each, dict)]
        if not any(self._guarded(tool) for tool in map(_called, messages) if tool is not None):
            return (Forward(raw),)
        outputs: list[Output] = []
        for each in messages:
            if "id" not in each or "method" not in each:
                self._log(f"a message that cannot be read and has no id was dropped: {cause}")
                continue
            pending = Pending(exchange, encode(each["id"]), "", _called(each) or "")
            said = f"the call cannot be read: {cause}"
            line = message.refusal(pending.id, said, modern=False)
            if not pending.tool:
                line = message.error(pending.id, -32700, f"the batch cannot be read: {cause}")
            outputs += self._refused(pending, "refused", line)
        return tuple(outputs)

    def _guarded(self, tool: str) -> bool:
        """Say whether a rule hides `tool`, bounds its arguments, or withholds its results."""
        if self._rules_now().withheld(tool) is not None:
            return True
        return any(rule.protects for rule, _ in self._covering(tool))

    def _request(self, raw: bytes, read: Message, exchange: bytes) -> tuple[Output, ...]:
        if read.method is ABSENT:
            return (Forward(raw),)
        key = read.key
        try:
            method = read.verb or ""
        except DocumentError:
            return (Forward(raw),)
        if key is None or key == b"null":
            if method == "notifications/cancelled":
                self._cancelled(read, exchange)
            if method == "tools/call":
                # Nothing can answer it, but a server may run it all the same.
                outputs = self._call(raw, read, Pending(exchange, b"null", method))
                self._inflight.retire(exchange + b"null")
                for each in outputs:
                    if isinstance(each, Load):
                        del self._waiting[each.token]
                return tuple(each for each in outputs if isinstance(each, Forward | Forget))
            return (Forward(raw),)
        pending = Pending(exchange, key, method)
        if method != "tools/call" and b"call" in raw and self._twofold(raw):
            # Another reader might take it for the call of a tool.
            return (Reply(message.error(key, -32600, "the message has two members of one name")),)
        if method == "tools/call":
            outputs = self._call(raw, read, pending)
            return (*self._news(), *outputs) if self._outdated else outputs
        if method == "initialize":
            self._named(client=string_at(read.params, "clientInfo", "name"))
        elif method == "server/discover":
            self._named(client=string_at(read.params, "_meta", CLIENT_INFO, "name"))
        elif method == "tools/list":
            self._named(client=string_at(read.params, "_meta", CLIENT_INFO, "name"))
            pending.further = string_at(read.params, "cursor") is not None
        elif method == "tasks/result":
            task = self._tasks.get(string_at(read.params, "taskId") or "")
            if task is not None:
                pending = msgspec.structs.replace(
                    task, exchange=exchange, id=key, method=method, as_task=False
                )
        return self._sent(raw, pending)

    def _twofold(self, raw: bytes) -> bool:
        self._rules_now()
        return self._guards and _doubled(Raw(raw))

    def _sent(self, raw: bytes, pending: Pending) -> tuple[Output, ...]:
        """Remember a request before it goes upstream; its answer may be quick."""
        self._inflight.add(pending)
        return (Forward(raw),)

    def _cancelled(self, read: Message, exchange: bytes) -> None:
        try:
            held = message.members(read.params) if read.params is not ABSENT else {}
        except DocumentError:
            return
        if "requestId" in held:
            slot = exchange + message.id_key(bytes(held["requestId"]))
            pending = self._inflight.find(slot)
            # What such a rule withholds, it withholds from a late answer too.
            if pending is None or pending.rule is None or pending.rule.on_failure != "refuse":
                self._inflight.retire(slot)

    def _call(self, raw: bytes, read: Message, pending: Pending) -> tuple[Output, ...]:
        try:
            params = _CALL.decode(read.params) if read.params is not ABSENT else _Call()
            tool = None if params.name is ABSENT else text(params.name)
        except (msgspec.DecodeError, DocumentError):
            return self._sent(raw, pending)
        if tool is None:
            return self._sent(raw, pending)
        pending.tool = tool
        if params.meta is not ABSENT:
            self._named(client=string_at(params.meta, CLIENT_INFO, "name"))
            pending.modern = (string_at(params.meta, PROTOCOL_VERSION) or "") >= "2026"
        rules = self._rules_now()
        if self._guards and (_ambiguous(read.params) or _doubled(Raw(raw))):
            said = "the call is ambiguous: its name or its arguments are given twice"
            line = message.refusal(pending.id, said, pending.modern)
            return self._refused(pending, "refused", line)
        covering = self._covering(tool)
        hiding = next((rule for rule, _ in covering if rule.hides), None)
        hidden = rules.withheld(tool) or (None if hiding is None else hiding.hide)
        if hidden is not None:
            pending.rule = hiding
            said = hidden.message.replace("{tool}", tool)
            return self._refused(pending, "hidden", message.error(pending.id, hidden.code, said))
        if not covering:
            return self._passed(raw, pending)
        try:
            sent = {} if params.arguments is ABSENT else loads(bytes(params.arguments))
            if not isinstance(sent, dict):
                sent = {}
            if tool not in self._seen and (own := argument.implied(sent)):
                covering = self._guessed(tool, own)
            rule, plan = self._applying(tool, covering, sent)
            pending.rule = rule
            others = [other for owner, other in covering if owner is not rule]
            completed = argument.complete(plan, others, sent)
            return self._completed(raw, read, params, pending, plan, completed)
        except Refusal as cause:
            said = str(cause)
        except (DocumentError, RecursionError) as cause:
            if not self._guarded(tool):
                pending.rule = None
                return self._passed(raw, pending)
            said = f"the call cannot be read: {cause}"
        return self._refused(pending, "refused", message.refusal(pending.id, said, pending.modern))

    def _guessed(self, tool: str, own: frozenset[str]) -> tuple[tuple[Rule, Plan], ...]:
        """Return the rules for a tool that was not listed yet, and must have these arguments."""
        known = self._implied.get(tool, frozenset())
        if not own <= known:
            self._implied[tool] = own | known
            self._plans.pop(tool, None)
            if len(self._implied) > _REMEMBERED:
                del self._implied[next(iter(self._implied))]
        return self._covering(tool)

    def _passed(self, raw: bytes, pending: Pending) -> tuple[Output, ...]:
        """Send a call on, which may make snapshots untrue."""
        return (*self._stale(pending.tool), *self._sent(raw, pending))

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
        doubled = rule is not None and rule.protects and _doubled(params.arguments)
        if completed.changed or doubled:
            changed = Raw(encode(completed.upstream))
            raw = message.replaced(
                raw, params=Raw(message.replaced(bytes(read.params), arguments=changed))
            )
        pending.as_task = params.task is not ABSENT
        pending.cacheable = params.answers is ABSENT and params.state is ABSENT
        if rule is None:
            return self._passed(raw, pending)
        pending.arguments = completed.arguments
        pending.names = plan.names
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
        pending = self._waiting.pop(token)
        rule = pending.rule
        assert rule is not None
        if snapshot is not None:
            return (Shape(self._job(pending, snapshot=snapshot)),)
        if failure is not None:
            # Called anew, the tool might give other pages than those that were read before, or do
            # for a second time what it does.
            said = f"what was kept of the earlier answer is out of reach: {failure}; "
            said += "try again later"
            if self._repeatable(pending, rule):
                said += f", or {_start_again(pending)}"
            line = message.refusal(pending.id, said, pending.modern)
            return self._refused(pending, "refused", line)
        if self._repeatable(pending, rule):
            line, pending.line = pending.line, b""
            return self._passed(line, pending)
        said = (
            "nothing is kept of an earlier answer to this call (it expired, or was never given); "
            + _start_again(pending)
        )
        line = message.refusal(pending.id, said, pending.modern)
        return self._refused(pending, "refused", line)

    def _repeatable(self, pending: Pending, rule: Rule) -> bool:
        if self._seen.get(pending.tool, Seen()).reads_only:
            return True
        return any(getattr(step, "refetch", None) for step in rule.pipeline)

    def _refused(
        self, pending: Pending, word: Literal["refused", "hidden"], line: bytes
    ) -> tuple[Output, ...]:
        rule = pending.rule.name if pending.rule is not None else None
        self._meter.count(pending.tool, rule, Sizes(0, len(line), 0, len(line)), word)
        return (Reply(line),)

    def _stale(self, tool: str) -> tuple[Output, ...]:
        """Drop the snapshots that a call of `tool` makes untrue (`drop_on`)."""
        if not self._droppers:
            return ()
        return tuple(Forget(Key(self.scope, rule, None)) for rule in self._droppers.get(tool, ()))

    # From the server

    def head(self, start: bytes, exchange: bytes = b"") -> bool:
        """Say whether a line of the server that begins with `start` may be streamed through.

        Only what surely needs no look inside is streamed: a request or notification, or a response
        while no response is awaited that must be shaped or read.
        """
        if message.asks(start):
            return True
        if self._inflight.held == 0:
            return start.lstrip()[:1] == b"{"
        key = message.response_key(start, b"")
        if key is None:
            return False
        pending = self._inflight.find(exchange + key)
        return pending is None or pending.plain

    def streamed(self, start: bytes, end: bytes, size: int, exchange: bytes = b"") -> None:
        """Take note of a streamed line that is over: its first and last bytes, and its size."""
        key = message.response_key(start, end)
        if key is not None:
            pending = self._inflight.retire(exchange + key)
            if pending is not None:
                self._untouched(pending, size)

    def discarded(self, start: bytes, size: int, limit: int) -> tuple[Output, ...]:
        """Answer the call whose response was thrown away for being over `limit` bytes."""
        said = f"a message of {size} bytes from the server is over the limit of {limit} bytes"
        self._log(said)
        key = message.response_key(start, b"")
        if key is None and not message.asks(start):
            # Where nothing else is awaited, it was the answer to this.
            key = self._inflight.only()
        pending = None if key is None else self._inflight.retire(key)
        return () if pending is None else (Forward(_failed(pending, said)),)

    def from_server(self, raw: bytes, exchange: bytes = b"") -> tuple[Output, ...]:
        """Take one line of the server."""
        if len(raw) > _SMALL:
            key = message.response_key(raw[:512], raw[-512:])
            if key is not None:
                slot = exchange + key
                pending = self._inflight.find(slot)
                if pending is None or pending.plain:
                    if pending is not None:
                        self._untouched(self._inflight.retire(slot) or pending, len(raw))
                    return (Forward(raw),)
                if pending.rule is not None and not pending.as_task and message.succeeds(raw[:512]):
                    self._inflight.answer(slot)
                    return self._answered(raw, pending, pending.rule)
        try:
            read = message.read(raw)
        except DocumentError:
            return self._unreadable(raw, exchange)
        if b'"jsonrpc"' not in raw and not (isinstance(read, Message) and read.speaks):
            return (Noise(raw),)
        if not isinstance(read, Message):
            return self._batch(raw, read, lambda element: self.from_server(element, exchange))
        if not read.responds:
            return (Forward(raw),)
        key = read.key
        found = None if key is None else self._inflight.answer(exchange + key)
        if found is None:
            return (Forward(raw),)
        if found.plain or read.result is ABSENT or read.error is not ABSENT:
            self._untouched(found, len(raw))
            return (Forward(raw),)
        return self._response(raw, read, found)

    def _response(self, raw: bytes, read: Message, pending: Pending) -> tuple[Output, ...]:
        try:
            if pending.method == "initialize":
                self._named(server=string_at(read.result, "serverInfo", "name"))
                self._listing = _listing(read.result)
            elif pending.method == "server/discover":
                self._named(server=string_at(read.result, "_meta", SERVER_INFO, "name"))
            elif pending.method == "tools/list":
                return self._listed(raw, read, further=pending.further)
            elif pending.as_task and self._tasked(read, pending):
                pass
            elif pending.rule is not None:
                return self._answered(raw, pending, pending.rule)
        except (DocumentError, msgspec.DecodeError) as cause:
            self._log(f"{pending.method}: left as it came: {cause}")
        self._untouched(pending, len(raw))
        return (Forward(raw),)

    def _answered(self, raw: bytes, pending: Pending, rule: Rule) -> tuple[Output, ...]:
        """Have an answer shaped, unless it is sure to be short enough and that is all there is."""
        # What a model sees of a line is never longer than the line.
        short = rule.max_bytes is not None and len(raw) <= rule.max_bytes and rule.only_bounds
        asked = pending.view is not None or pending.key in self._kept
        if short and not asked and rule.on_failure == "pass":
            self._untouched(pending, len(raw))
            return (Forward(raw),)
        return (Shape(self._job(pending, raw=raw)),)

    def _listed(self, raw: bytes, read: Message, *, further: bool) -> tuple[Output, ...]:
        self._named(server=string_at(read.result, "_meta", SERVER_INFO, "name"))
        tools = None if further else definitions.names(read.result)
        if tools is not None and tools != self._tools:
            self._tools, self._ruleset = tools, None
        rules = self._rules_now()
        result, facts = definitions.rewrite(read.result, rules, self._plans_for, self._log)
        for tool, fact in facts.items():
            if self._seen.get(tool) != fact:
                self._seen[tool] = fact
                self._plans.pop(tool, None)
        while len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]
        if self._listing is not None:
            self._listing.told(read.result, result, further=further)
            self._outdated = False
        return (Forward(raw if result is None else message.replaced(raw, result=result)),)

    def _news(self) -> tuple[Output, ...]:
        """Tell the client to list the tools again, where other rules make another list of them."""
        self._outdated = False
        if self._listing is None or not self._listing.differs(self._rewritten):
            return ()
        self._log("the tools look different with the new rules: the client was told")
        return (Tell(self._listing.CHANGED),)

    def _rewritten(self, result: Raw) -> Raw | None:
        return definitions.rewrite(result, self._rules_now(), self._plans_for, lambda said: None)[0]

    def _tasked(self, read: Message, pending: Pending) -> bool:
        """Remember which call a task works for: tasks/result brings its result (MCP 2025-11-25).

        Says whether the response names a task: a server may answer at once instead.
        """
        task = message.members(read.result).get("task")
        name = None if task is None else string_at(task, "taskId")
        if name is not None:
            self._tasks[name] = pending
            if len(self._tasks) > _REMEMBERED:
                self._tasks.popitem(last=False)
        return task is not None

    def shaped(self, job: Job, outcome: Outcome) -> tuple[Output, ...]:
        """Take what came of a Shape; outputs are relative to the server: Forward is the answer."""
        pending = self._waiting.pop(job.token, None)
        if pending is None or not pending.again:
            before = 0 if job.raw is None else len(job.raw)
            sizes = Sizes(before, len(outcome.raw), outcome.visible_before, outcome.visible_after)
            self._meter.count(job.tool, job.rule.name, sizes, outcome.word)
            if outcome.said is not None:
                self._log(outcome.said)
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

    def given_up(self, output: Load | Shape) -> None:
        """Forget a call whose Load or Shape will not be carried out: nobody waits any more."""
        token = output.token if isinstance(output, Load) else output.job.token
        self._waiting.pop(token, None)

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
            Forward(_failed(pending, cause)) for pending in self._inflight.let_go(exchange, ids)
        )

    def dropped(self, exchange: bytes, ids: Collection[bytes] | None = None) -> None:
        """Forget what is in flight of an exchange: nobody waits for its answers any more."""
        self._inflight.let_go(exchange, ids)

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
            for output in take(single) if single[:1] == b"{" else (Forward(single),):
                if isinstance(output, Forward | Noise):
                    changed |= output.raw != single
                    forwarded.append(Raw(output.raw))
                else:
                    changed = True
                    rest.append(output)
        if not changed:
            return (Forward(raw),)
        return (*((Forward(encode(forwarded)),) if forwarded else ()), *rest)

    def _unreadable(self, raw: bytes, exchange: bytes) -> tuple[Output, ...]:
        """Tell a message that only looks broken to us from noise on the server's stdout."""
        if not raw.strip():
            return ()
        if b'"jsonrpc"' not in raw:
            return (Noise(raw),)
        at = _glued(raw)
        if at is not None:
            return (Noise(raw[:at]), *self.from_server(raw[at:], exchange))
        if raw.lstrip()[:1] not in (b"{", b"["):
            return (Noise(raw),)
        key = message.response_key(raw[:512], raw[-512:])
        pending = None if key is None else self._inflight.answer(exchange + key)
        if pending is not None:
            if pending.rule is not None and pending.rule.on_failure == "refuse":
                said = f"the response was withheld: rule {pending.rule.name!r} cannot read it"
                return (Forward(message.refusal(pending.id, said, pending.modern)),)
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
            arguments=pending.arguments,
            names=pending.names,
            view=pending.view,
            viewable=pending.cacheable,
            keep=pending.cacheable and bool(rule.windows or rule.viewable),
            shows=client_for(self.client).shows,
            modern=pending.modern,
            token=self._token,
        )

    def _named(self, *, client: str | None = None, server: str | None = None) -> None:
        server = self.server if server is None else server
        client = self.client if client is None else client
        if (server, client) != (self.server, self.client):
            self.server, self.client, self._ruleset = server, client, None
            self._plans.clear()
            self._meter = self._meters(server, client)

    def _rules_now(self) -> RuleSet:
        given = self._rules(self.server, self.client)
        if self._ruleset is None or given is not self._given:
            self._outdated = self._given is not None and given is not self._given
            self._given = given
            self._ruleset = given if self._tools is None else given.fitting(self._tools)
            for file in given.files:
                if file not in self._ruleset.files:
                    self._log(f"{file.name}: this server has other tools; none of its rules apply")
            self._guards = self._ruleset.guards
            self._droppers = self._ruleset.droppers
            self._plans.clear()
        return self._ruleset

    def _covering(self, tool: str) -> tuple[tuple[Rule, Plan], ...]:
        """Return the rules for `tool`, each with its plan."""
        found = self._plans.get(tool)
        if found is None:
            if len(self._plans) > _REMEMBERED:
                self._plans.clear()
            fact = self._seen.get(tool) or Seen(self._implied.get(tool, frozenset()))
            found = self._plans[tool] = self._plans_for(tool, fact)
        return found

    def _snapshot_key(self, tool: str, rule: Rule, completed: Completed) -> Key:
        """Name a call by its tool, its rule and what it asked for, windows and views left out.

        The rule as it is now: what an earlier one with its name kept may be more than it would.
        """
        asked = [tool, completed.upstream, completed.own, rule.made]
        return Key(self.scope, rule.name, encode(asked, ordered=True).decode())

    def _plans_for(self, tool: str, fact: Seen) -> tuple[tuple[Rule, Plan], ...]:
        rules = self._rules_now().covering(tool)
        return tuple(
            (rule, argument.plan(rule, fact.arguments) if rule.mode == "active" else Plan())
            for rule in rules
        )


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


def _glued(raw: bytes) -> int | None:
    """Return where in `raw` a message begins that noise stands in front of."""
    at = raw.find(b"{", 1)
    for _ in range(_TRIES):
        if at < 0:
            break
        try:
            read = message.read(raw[at:])
        except DocumentError:
            pass
        else:
            if isinstance(read, Message) and read.speaks:
                return at
        at = raw.find(b"{", at + 1)
    return None


def _called(message: dict[str, Any]) -> str | None:
    """Return the tool that a message calls."""
    params = message.get("params") if message.get("method") == "tools/call" else None
    tool = params.get("name") if isinstance(params, dict) else None
    return tool if isinstance(tool, str) else None


def _ambiguous(params: Raw) -> bool:
    """Say whether another reader of a call could see another tool or other arguments in it.

    Of a name that stands there twice some take the first; some do not tell `Name` from `name`.
    """
    try:
        names = [name.lower() for name in message.members(params)]
    except DocumentError:
        return True  # what we cannot read others may
    return max(names.count("name"), names.count("arguments")) > 1 or _doubled(params)


def _doubled(held: Raw) -> bool:
    """Say whether members of an object may have the same name, however it is spelled."""
    try:
        written = compact(bytes(held))
        return len(written) != len(encode(message.members(Raw(written))))
    except (DocumentError, msgspec.DecodeError):
        return False


def _start_again(pending: Pending) -> str:
    rule = pending.rule
    assert rule is not None
    positions = [
        pending.names.get(name, name)
        for step in rule.windows
        for name, parameter in step.parameters.items()
        if parameter.schema.get("default") == 0
    ]
    if pending.view is not None:
        return f"call again without {pending.names.get(VIEW, VIEW)} first"
    return f"call again with {' and '.join(f'{name}=0' for name in positions)} first"


def _failed(pending: Pending, said: str) -> bytes:
    """Answer a request that can have no other answer any more."""
    if pending.method in ("tools/call", "tasks/result"):
        return message.refusal(pending.id, said, pending.modern)
    return message.error(pending.id, -1, said)
