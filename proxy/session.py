"""One client and one server: raw messages in from either side, outputs out. No I/O, no threads.

Every request is remembered by its id until its response has passed; a call that a rule covers is
answered from a snapshot, refused, or sent on and its response shaped. Everything else goes out as
the bytes that came in. Invariants: no id is made up, renumbered or retyped; each request gets
exactly one answer; nothing here raises for any input.
"""

from collections import OrderedDict
from collections.abc import Callable
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from proxy import arguments as argument
from proxy import definitions, message
from proxy.arguments import VIEW, Completed, Plan
from proxy.clients import client_for
from proxy.definitions import Seen
from proxy.document import ABSENT, Number, compact, encode, loads, text
from proxy.errors import DocumentError, Refusal
from proxy.message import Message, string_at
from proxy.meter import Meter, Sizes
from proxy.outputs import Forget, Forward, Keep, Load, Noise, Output, Reply, Shape
from proxy.pipeline import Job, Outcome
from proxy.rule import Rule, RuleSet
from proxy.snapshots import Snapshot

_REMEMBERED = 1000  # tools, tasks and cached plans kept at most, each
_PENDING = 20_000  # requests that wait for an answer at most; the oldest is forgotten first
_TRIES = 32  # places at which a message is looked for behind noise
_SMALL = 4096  # bytes: longer lines are told apart by their head and tail where that is certain

CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"


class Pending(Struct):
    """A request on its way: what must be known when its response comes."""

    id: bytes
    method: str
    tool: str = ""
    rule: Rule | None = None
    arguments: dict[str, Any] = {}
    names: dict[str, str] = {}
    view: str | None = None
    key: str = ""
    modern: bool = False
    cacheable: bool = True
    as_task: bool = False
    further: bool = False
    line: bytes = b""

    @property
    def plain(self) -> bool:
        """True where nothing in the response is of interest but its size."""
        return self.rule is None and not self.as_task and self.method not in _READ


_READ = frozenset({"initialize", "server/discover", "tools/list"})


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


class Session:
    """The conversation of one client with one server.

    `rules` is called with the names of server and client, as far as they are known, whenever a
    message about tools passes; it may block until rule files are read. `log` takes one line.
    """

    def __init__(self, rules: Rules, meter: Meter, log: Callable[[str], None]) -> None:
        self._rules = rules
        self._meter = meter
        self._log = log
        self._pending: OrderedDict[bytes, Pending] = OrderedDict()
        self._held = 0  # how many of them have responses that must be looked into
        self._waiting: dict[int, Pending] = {}
        self._token = 0
        self._seen: dict[str, Seen] = {}
        self._implied: dict[str, frozenset[str]] = {}
        self._plans: dict[str, tuple[tuple[Rule, Plan], ...]] = {}
        self._given: RuleSet | None = None
        self._ruleset: RuleSet | None = None
        self._tools: frozenset[str] | None = None
        self._guards = False
        self._tasks: OrderedDict[str, Pending] = OrderedDict()
        self._kept: OrderedDict[str, str] = OrderedDict()
        self.server: str | None = None
        self.client: str | None = None

    # From the client

    def from_client(self, raw: bytes) -> tuple[Output, ...]:
        """Take one line of the client."""
        try:
            read = message.read(raw)
        except DocumentError as cause:
            return self._garbled(raw, cause)
        if isinstance(read, Message):
            return self._request(raw, read)
        return self._batch(raw, read, self.from_client)

    def _garbled(self, raw: bytes, cause: DocumentError) -> tuple[Output, ...]:
        """Pass on what we cannot read, unless it may be a call that a rule is there to stop."""
        import json

        try:
            read = json.loads(raw, parse_float=Number)
            call = read if isinstance(read, dict) and read.get("method") == "tools/call" else {}
            params = call.get("params")
            tool = params.get("name") if isinstance(params, dict) else None
        except (ValueError, RecursionError):
            return (Forward(raw),)
        if not isinstance(tool, str) or not self._guarded(tool):
            return (Forward(raw),)
        if "id" not in call:
            self._log(f"{tool}: a call without an id that cannot be read was dropped: {cause}")
            return ()
        pending = Pending(encode(call["id"]), "tools/call", tool)
        line = message.refusal(pending.id, f"the call cannot be read: {cause}", modern=False)
        return self._refused(pending, "refused", line)

    def _guarded(self, tool: str) -> bool:
        """Say whether a rule hides `tool`, bounds its arguments, or withholds its results."""
        if not self._rules_now().exposes(tool):
            return True
        return any(rule.protects for rule, _ in self._covering(tool))

    def _request(self, raw: bytes, read: Message) -> tuple[Output, ...]:
        if read.method is ABSENT:
            return (Forward(raw),)
        key = read.key
        try:
            method = read.verb or ""
        except DocumentError:
            return (Forward(raw),)
        if key is None or key == b"null":
            if method == "notifications/cancelled":
                self._cancelled(read)
            if method == "tools/call":
                # Nothing can answer it, but a server may run it all the same.
                outputs = self._call(raw, read, Pending(b"null", method))
                self._retired(b"null")
                for each in outputs:
                    if isinstance(each, Load):
                        del self._waiting[each.token]
                return tuple(each for each in outputs if isinstance(each, Forward | Forget))
            return (Forward(raw),)
        pending = Pending(key, method)
        if method == "tools/call":
            return self._call(raw, read, pending)
        if method == "initialize":
            self._named(client=string_at(read.params, "clientInfo", "name"))
        elif method == "server/discover":
            self._named(client=string_at(read.params, "_meta", CLIENT_INFO, "name"))
        elif method == "tools/list":
            pending.further = string_at(read.params, "cursor") is not None
        elif method == "tasks/result":
            task = self._tasks.get(string_at(read.params, "taskId") or "")
            if task is not None:
                pending = msgspec.structs.replace(task, id=key, method=method, as_task=False)
        return self._sent(raw, pending)

    def _sent(self, raw: bytes, pending: Pending) -> tuple[Output, ...]:
        """Remember a request before it goes upstream; its answer may be quick."""
        earlier = self._pending.pop(pending.id, None)
        if earlier is not None and not earlier.plain:
            self._held -= 1
        self._pending[pending.id] = pending
        if not pending.plain:
            self._held += 1
        if len(self._pending) > _PENDING:
            _, oldest = self._pending.popitem(last=False)
            self._held -= not oldest.plain
        return (Forward(raw),)

    def _retired(self, key: bytes) -> Pending | None:
        pending = self._pending.pop(key, None)
        if pending is not None and not pending.plain:
            self._held -= 1
        return pending

    def _cancelled(self, read: Message) -> None:
        try:
            held = message.members(read.params) if read.params is not ABSENT else {}
        except DocumentError:
            return
        if "requestId" in held:
            self._retired(message.id_key(bytes(held["requestId"])))

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
        if self._guards and _ambiguous(read.params):
            said = "the call is ambiguous: its name or its arguments are given twice"
            line = message.refusal(pending.id, said, pending.modern)
            return self._refused(pending, "refused", line)
        covering = self._covering(tool)
        hiding = next((rule for rule, _ in covering if rule.hides), None)
        if hiding is not None or not rules.exposes(tool):
            pending.rule = hiding
            return self._refused(pending, "hidden", _hidden(pending.id, tool, hiding))
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
            pending.key = _snapshot_key(pending.tool, rule, completed)
        if pending.cacheable and (pending.view is not None or completed.resumes):
            self._token += 1
            pending.line = raw
            self._waiting[self._token] = pending
            return (Load(self._token, pending.key),)
        return self._passed(raw, pending)

    def loaded(self, token: int, snapshot: Snapshot | None) -> tuple[Output, ...]:
        """Go on with a call that waits for its snapshot; outputs are relative to the client."""
        pending = self._waiting.pop(token)
        rule = pending.rule
        assert rule is not None
        if snapshot is not None:
            return (Shape(self._job(pending, snapshot=snapshot)),)
        tool_seen = self._seen.get(pending.tool, Seen())
        if tool_seen.reads_only or any(getattr(step, "refetch", None) for step in rule.pipeline):
            line, pending.line = pending.line, b""
            return self._passed(line, pending)
        said = (
            "nothing is kept of an earlier answer to this call (it expired, or was never given); "
            + _start_again(pending)
        )
        line = message.refusal(pending.id, said, pending.modern)
        return self._refused(pending, "refused", line)

    def _refused(
        self, pending: Pending, word: Literal["refused", "hidden"], line: bytes
    ) -> tuple[Output, ...]:
        rule = pending.rule.name if pending.rule is not None else None
        self._meter.count(pending.tool, rule, Sizes(0, len(line), 0, len(line)), word)
        return (Reply(line),)

    def _stale(self, tool: str) -> tuple[Output, ...]:
        """Drop the snapshots that a call of `tool` makes untrue (`drop_on`)."""
        if not self._kept:
            return ()
        rules = self._rules_now()
        droppers = {
            rule.name
            for file in rules.files
            for rule in file.rules
            if any(tool in (getattr(step, "drop_on", None) or ()) for step in rule.pipeline)
        }
        keys = tuple(key for key, owner in self._kept.items() if owner in droppers)
        for key in keys:
            del self._kept[key]
        return (Forget(keys),) if keys else ()

    # From the server

    def head(self, start: bytes) -> bool:
        """Say whether a line of the server that begins with `start` may be streamed through.

        Only what surely needs no look inside is streamed: a request or notification, or a response
        while no response is awaited that must be shaped or read.
        """
        if message.asks(start):
            return True
        if self._held == 0:
            return start.lstrip()[:1] == b"{"
        key = message.response_key(start, b"")
        if key is None:
            return False
        pending = self._pending.get(key)
        return pending is None or pending.plain

    def streamed(self, start: bytes, end: bytes, size: int) -> None:
        """Take note of a streamed line that is over: its first and last bytes, and its size."""
        key = message.response_key(start, end)
        if key is not None:
            pending = self._retired(key)
            if pending is not None:
                self._untouched(pending, size)

    def discarded(self, start: bytes, size: int, limit: int) -> tuple[Output, ...]:
        """Answer the call whose response was thrown away for being over `limit` bytes."""
        said = f"a message of {size} bytes from the server is over the limit of {limit} bytes"
        self._log(said)
        key = message.response_key(start, b"")
        if key is None and len(self._pending) == 1 and not message.asks(start):
            # Nothing else is awaited, so it was the answer to this.
            key = next(iter(self._pending))
        pending = None if key is None else self._retired(key)
        return () if pending is None else (Forward(_failed(pending, said)),)

    def from_server(self, raw: bytes) -> tuple[Output, ...]:
        """Take one line of the server."""
        if len(raw) > _SMALL:
            key = message.response_key(raw[:512], raw[-512:])
            if key is not None:
                pending = self._pending.get(key)
                if pending is None or pending.plain:
                    if pending is not None:
                        self._untouched(self._retired(key) or pending, len(raw))
                    return (Forward(raw),)
                if pending.rule is not None and not pending.as_task and message.succeeds(raw[:512]):
                    self._retired(key)
                    return self._answered(raw, pending, pending.rule)
        try:
            read = message.read(raw)
        except DocumentError:
            return self._unreadable(raw)
        if b'"jsonrpc"' not in raw and not (isinstance(read, Message) and read.speaks):
            return (Noise(raw),)
        if not isinstance(read, Message):
            return self._batch(raw, read, self.from_server)
        if not read.responds:
            return (Forward(raw),)
        key = read.key
        found = None if key is None else self._retired(key)
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
        return (Forward(raw if result is None else message.replaced(raw, result=result)),)

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
        before = 0 if job.raw is None else len(job.raw)
        sizes = Sizes(before, len(outcome.raw), outcome.visible_before, outcome.visible_after)
        self._meter.count(job.tool, job.rule.name, sizes, outcome.word)
        if outcome.said is not None:
            self._log(outcome.said)
        kept: tuple[Output, ...] = ()
        pending = self._waiting.pop(job.token, None)
        if outcome.snapshot is not None and pending is not None and pending.key:
            self._kept[pending.key] = job.rule.name
            if len(self._kept) > _REMEMBERED:
                self._kept.popitem(last=False)
            kept = (Keep(pending.key, outcome.snapshot),)
        elif (
            job.raw is not None
            and outcome.word != "error"
            and pending is not None
            and self._kept.pop(pending.key, None) is not None
        ):
            # The server has answered the same call anew: a view of the old answer would mislead.
            kept = (Forget((pending.key,)),)
        return (*kept, Forward(outcome.raw))

    def ended(self, cause: str) -> tuple[Output, ...]:
        """Answer everything in flight: the server is gone, for this cause."""
        waiting = list(self._pending.values())
        self._pending.clear()
        self._held = 0
        return tuple(Forward(_failed(pending, cause)) for pending in waiting)

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

    def _unreadable(self, raw: bytes) -> tuple[Output, ...]:
        """Tell a message that only looks broken to us from noise on the server's stdout."""
        if not raw.strip():
            return ()
        if b'"jsonrpc"' not in raw:
            return (Noise(raw),)
        at = _glued(raw)
        if at is not None:
            return (Noise(raw[:at]), *self.from_server(raw[at:]))
        if raw.lstrip()[:1] not in (b"{", b"["):
            return (Noise(raw),)
        key = message.response_key(raw[:512], raw[-512:])
        pending = None if key is None else self._retired(key)
        if pending is not None:
            if pending.rule is not None and pending.rule.on_failure == "refuse":
                said = f"the response was withheld: rule {pending.rule.name!r} cannot read it"
                return (Forward(message.refusal(pending.id, said, pending.modern)),)
            self._untouched(pending, len(raw))
        return (Forward(raw),)

    def _untouched(self, pending: Pending, size: int) -> None:
        if pending.tool:
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
        if client is not None and client != self.client:
            self.client, self._ruleset = client, None
            self._plans.clear()
        if server is not None and server != self.server:
            self.server, self._ruleset = server, None
            self._plans.clear()

    def _rules_now(self) -> RuleSet:
        given = self._rules(self.server, self.client)
        if self._ruleset is None or given is not self._given:
            self._given = given
            self._ruleset = given if self._tools is None else given.fitting(self._tools)
            for file in given.files:
                if file not in self._ruleset.files:
                    self._log(f"{file.name}: this server has other tools; none of its rules apply")
            self._guards = self._ruleset.guards
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

    def _plans_for(self, tool: str, fact: Seen) -> tuple[tuple[Rule, Plan], ...]:
        rules = self._rules_now().covering(tool)
        return tuple(
            (rule, argument.plan(rule, fact.arguments) if rule.mode == "active" else Plan())
            for rule in rules
        )


def _snapshot_key(tool: str, rule: Rule, completed: Completed) -> str:
    """Name a call by its tool, its rule and what it asked for, windows and views left out."""
    asked = [completed.upstream, completed.own]
    said = encode(asked, ordered=True).decode()
    return f"{tool}\n{rule.name}\n{said}"


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


def _ambiguous(params: Raw) -> bool:
    """Say whether another reader of a call could see another tool or other arguments in it.

    Of a name that stands there twice some take the first; some do not tell `Name` from `name`.
    """
    names = [name.lower() for name in message.members(params)]
    return max(names.count("name"), names.count("arguments")) > 1 or _doubled(params)


def _doubled(held: Raw) -> bool:
    """Say whether members of an object may have the same name, however it is spelled."""
    try:
        return len(compact(bytes(held))) != len(encode(message.members(held)))
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


def _hidden(id: bytes, tool: str, rule: Rule | None) -> bytes:
    if rule is None or rule.hide is None:
        return message.error(id, -32602, f"Unknown tool: {tool}")
    return message.error(id, rule.hide.code, rule.hide.message.replace("{tool}", tool))


def _failed(pending: Pending, said: str) -> bytes:
    """Answer a request that can have no other answer any more."""
    if pending.method in ("tools/call", "tasks/result"):
        return message.refusal(pending.id, said, pending.modern)
    return message.error(pending.id, -1, said)
