"""Messages of the client: calls are refused, answered from a snapshot, or sent on."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from mcp_abridge.document import message
from mcp_abridge.document.message import (
    CLIENT_CAPABILITIES,
    CLIENT_INFO,
    PROTOCOL_VERSION,
    Message,
    id_key,
    string_at,
    value_at,
)
from mcp_abridge.document.tree import ABSENT, encode, loads
from mcp_abridge.errors import DocumentError, Refusal
from mcp_abridge.ruleset.clients import client_for
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.session import effects, guards, responses, tasks
from mcp_abridge.session.inflight import PendingRequest, send_call
from mcp_abridge.session.outputs import Outputs, RunInBackground, Shape, ToServer
from mcp_abridge.session.state import SessionState
from mcp_abridge.session.tool_lists import announce_changes
from mcp_abridge.session.tools.arguments import VIEW, ArgumentPlan, Completed, complete, implied
from mcp_abridge.session.tools.definitions import Plans
from mcp_abridge.storage.snapshots import Key, Snapshot

_MOST_KEY = 500  # bytes of a call in a snapshot's key; a longer one is hashed
_NEEDS_NO_TASK = (
    "the tool has run, and its answer is kept: a part of it needs no task, call again without one"
)
_IN_BATCH = "rules guard calls here: send each call in a message of its own"


def may_call(raw: bytes) -> bool:
    """Return True if some reader may see a call or a list of tools; fast, and False is certain.

    >>> may_call(rb'{"method":"t\\u006fols/call"}'), may_call(b'{"method":"ping"}')
    (True, False)
    """
    return b"tools" in raw or b"\\u" in raw


def take(state: SessionState, raw: bytes, envelope: Message, exchange: bytes) -> Outputs:
    """Process one message, parsed as `envelope`."""
    if may_call(raw) and _guards_calls(state):
        # Imported late: only rules that guard calls need it, and it loads json.
        from mcp_abridge.session.ambiguity import ambiguous, refuse

        if ambiguous(raw):
            return refuse(state, envelope, exchange)
    method, key = envelope.verb, envelope.request_key
    if not method:
        return (ToServer(raw),)
    if key is None:
        return _notification(state, raw, envelope, exchange, method)
    pending = PendingRequest(exchange, key, method)
    if state.tracer is not None:
        state.trace(pending, envelope.params)
    if state.recorder is not None:
        pending.record = state.recorder.begin(raw, envelope)
    if method in ("tools/call", message.READ):
        outputs = call(state, raw, envelope, pending)
        return (*announce_changes(state), *outputs) if state.rules.outdated else outputs
    if method == "initialize":
        _name_client(state, value_at(envelope.params, "clientInfo"))
        state.rules.read_capabilities(value_at(envelope.params, "capabilities"))
    elif method in ("server/discover", "tools/list"):
        _read_client(state, value_at(envelope.params, "_meta"))
        pending.shows_widgets = state.rules.peer.shows_widgets
        pending.next_page = string_at(envelope.params, "cursor") is not None
    elif method == "prompts/get":
        pending.tool = method  # counted, and never cut: no request could ask for the rest
    elif method in tasks.GETS_RESULT:
        pending = tasks.awaits(state, envelope.params, pending, state.scope)
    return state.inflight.send(raw, pending)


def _guards_calls(state: SessionState) -> bool:
    state.rules.select()
    return state.rules.guards


def _notification(
    state: SessionState, raw: bytes, envelope: Message, exchange: bytes, method: str
) -> Outputs:
    if method == "notifications/cancelled":
        query = _cancel(state, envelope, exchange)
        if query is not None:
            # The server has not received the call yet.
            return (ToServer(guards.cancellation(query)),)
    if method == "tools/call":
        # It expects no response, but a server may run it all the same.
        outputs = call(state, raw, envelope, PendingRequest(exchange, b"null", method))
        state.inflight.retire(exchange + b"null")
        works = [each for each in outputs if isinstance(each, RunInBackground)]
        for each in works:
            state.inflight.suspended.pop(each.token, None)
        drops = [each for each in works if not each.token]
        return (*drops, *(each for each in outputs if isinstance(each, ToServer)))
    return (ToServer(raw),)


def _cancel(state: SessionState, envelope: Message, exchange: bytes) -> bytes | None:
    id = value_at(envelope.params, "requestId")
    slot = exchange + id_key(bytes(id))
    pending = state.inflight.find(slot)
    if pending is not None and pending.query:
        state.inflight.retire(slot)
        return pending.query.removeprefix(exchange)
    for token, each in state.inflight.suspended.items():
        if each.line and each.slot == slot:
            del state.inflight.suspended[token]
            break
    if pending is not None and pending.withholds:
        # The rule applies to a late response too.
        state.inflight.stop(slot)
    else:
        state.inflight.retire(slot)
    return None


class _Params(Struct):
    name: str | None = None
    arguments: Raw = ABSENT
    task: Raw = ABSENT
    meta: Raw = msgspec.field(default=ABSENT, name="_meta")
    answers: Raw = msgspec.field(default=ABSENT, name="inputResponses")
    state: Raw = msgspec.field(default=ABSENT, name="requestState")

    @property
    def begins(self) -> bool:
        """True for a first request, False for one that goes on with the server's questions."""
        return self.answers is ABSENT and self.state is ABSENT


PARAMS = msgspec.json.Decoder(_Params)
"""Decodes the params of calls, and of reads."""


def call(state: SessionState, raw: bytes, envelope: Message, pending: PendingRequest) -> Outputs:
    """Refuse a call, load its snapshot, or send it on, by the rules of the last `select`."""
    if pending.method == message.READ:
        from mcp_abridge.session import resources  # few sessions read one

        return resources.read(state, raw, envelope, pending)
    try:
        params = PARAMS.decode(envelope.params)
    except (msgspec.DecodeError, UnicodeDecodeError):
        return state.inflight.send(raw, pending)
    tool = params.name
    pending.tool, pending.scope = tool or "", pending.scope or state.scope
    pending.as_task = params.task is not ABSENT
    if params.meta is not ABSENT:
        read_meta(state, params.meta, pending)
    rules = state.rules
    if tool is None:
        return state.inflight.send(raw, pending)
    covering = rules.covering(tool)
    if covering.hidden_error is not None:
        pending.rule = covering.hiding
        reason = covering.hidden_error.message.replace("{tool}", tool)
        line = message.error(pending.id, covering.hidden_error.code, reason)
        return state.reply(pending, "hidden", line)
    if covering.refusal is not None:
        return state.refuse(pending, covering.refusal)
    if not covering.plans:
        return send_call(state, raw, pending)
    try:
        arguments = {} if params.arguments is ABSENT else loads(bytes(params.arguments))
        if not isinstance(arguments, dict):
            arguments = {}
        if arguments and rules.facts(tool) is None:
            covering = rules.covering(tool, implied(arguments))
        pending.rule, plan = _first_applicable(state, tool, covering.plans, arguments)
        pending.plan = plan
        completed = Completed(arguments, arguments)
        if any(each.entries for _, each in covering.plans):
            others = [other for _, other in covering.plans if other is not plan]
            completed = complete(plan, others, arguments)
        return _send_completed(state, raw, envelope, params, pending, completed)
    except Refusal as refusal:
        return state.refuse(pending, str(refusal))
    except (DocumentError, RecursionError) as error:
        if covering.guarded:
            return state.refuse(pending, f"the call cannot be read: {error}")
        pending.rule = None
        return send_call(state, raw, pending)


def _read_client(state: SessionState, meta: Raw) -> None:
    """Record what the `_meta` of a stateless request says of the client (MCP 2026-07-28)."""
    _name_client(state, value_at(meta, CLIENT_INFO))
    capabilities = value_at(meta, CLIENT_CAPABILITIES)
    if capabilities is not ABSENT:
        state.rules.read_capabilities(capabilities)


def _name_client(state: SessionState, info: Raw) -> None:
    state.rules.rename(client=string_at(info, "name"), version=string_at(info, "version"))


def read_meta(state: SessionState, meta: Raw, pending: PendingRequest) -> None:
    """Record what the `_meta` of a request says of the client and of the request."""
    _read_client(state, meta)
    pending.modern = (string_at(meta, PROTOCOL_VERSION) or "") >= "2026"
    if state.inflight.deadline is not None:
        token = responses.progress_token(meta)
        pending.progress_token = pending.exchange + token if token else b""


def _first_applicable(
    state: SessionState, tool: str, plans: Plans, arguments: dict[str, Any]
) -> tuple[Rule | None, ArgumentPlan]:
    for rule, plan in plans:
        try:
            if rule.when is None or rule.applies(arguments):
                return rule, plan
        except Refusal as error:
            reason = f"{rule.name}: `when` failed: {error}"
            if rule.failure_policy.protects:
                raise Refusal(reason) from error
            state.log(f"{tool}: {reason}")
    return None, ArgumentPlan()


def _send_completed(
    state: SessionState,
    raw: bytes,
    envelope: Message,
    params: _Params,
    pending: PendingRequest,
    completed: Completed,
) -> Outputs:
    rule, view = pending.rule, completed.steering.get(VIEW)
    if rule is not None and rule.abridges and _of_script(state, params.meta):
        passes = rule is state.rules.budget and view is None
        whole = rule.unabridged if view is None else rule.unbounded
        rule = pending.rule = None if passes else whole
    client_line = raw
    if completed.changed:
        raw = message.with_arguments(raw, envelope.params, completed.upstream)
    pending.call = call_key(encode([pending.tool, completed.upstream], ordered=True), pending.tool)
    pending.cacheable = params.begins
    if rule is None:
        return send_call(state, raw, pending)
    pending.arguments = completed.arguments
    pending.view = view
    if rule.snapshot_step.restart is not None:
        # Without windows and views; a snapshot of an earlier rule of the same name may hold more.
        own = call_key(encode(completed.own, ordered=True)) if completed.own else ""
        pending.key = Key(pending.scope, rule.name, pending.call + own + rule.snapshot_key)
    keeps = pending.key is not None and pending.cacheable
    if keeps and pending.as_task and not pending.may_list and _is_repeatable(state, pending, rule):
        keeps = False  # the client expects a task: its result is what a view is cut from
    if pending.key is not None and keeps:
        continues = view is not None or completed.resumes
        pending.max_age = None if continues or pending.as_task else rule.max_age
        searched = pending.searched_key == pending.key
        if not searched and (continues or pending.max_age is not None):
            pending.line = client_line
            return effects.load(state, pending, pending.key, loaded)
        if continues and not _is_repeatable(state, pending, rule):
            # Imported late: few calls come this far.
            from mcp_abridge.session import first_calls

            pending.line = client_line
            return first_calls.decide(state, pending, raw)
    return send_or_guard(state, raw, pending, rule)


def send_or_guard(state: SessionState, raw: bytes, pending: PendingRequest, rule: Rule) -> Outputs:
    """Send a call on, unless its rule's guard decides otherwise."""
    if rule.guard is not None and rule.mode == "active":
        return guards.decide(state, raw, pending, rule.guard, None)
    return send_call(state, raw, pending)


def _of_script(state: SessionState, meta: Raw) -> bool:
    """Return True if a script gets the result: it would not notice that parts are missing."""
    mark = None if meta is ABSENT else client_for(state.rules.peer.client).code_mode
    return mark is not None and (string_at(meta, *mark[0]) or "").startswith(mark[1])


def call_key(call: bytes, tool: str = "") -> str:
    """Return a call as a part of a key; a long one is hashed behind the name of its `tool`."""
    if len(call) <= _MOST_KEY:
        return call.decode()
    label = encode([tool]).decode() if 0 < len(tool) < _MOST_KEY // 2 else ""
    # Imported late: it takes 3 ms, and few calls are as long.
    from hashlib import sha256

    return label + sha256(call).hexdigest()


def loaded(state: SessionState, pending: PendingRequest, lookup: effects.Lookup) -> Outputs:
    """Continue a call that waited for its snapshot."""
    # Imported late: few calls come this far.
    from mcp_abridge.session import first_calls

    rule, (snapshot, failure) = pending.rule, lookup
    assert rule is not None
    advice = first_calls.start_again(pending)
    if pending.may_list:
        # Imported late: few sessions need it.
        from mcp_abridge.session import answer_list

        outputs = answer_list.outputs(state, pending, rule, snapshot)
        if outputs is not None:
            return outputs
    if pending.max_age is not None:
        if snapshot is None or snapshot.age > pending.max_age or rule.circuit_breaker.open:
            return again(state, pending, pending.line)
    elif rule.circuit_breaker.open:
        reason = f"nothing is shown in parts while rule {rule.name!r} is out of service; "
        return state.refuse(pending, reason + advice.removesuffix(" first"))
    if snapshot is not None and pending.as_task:
        return state.refuse(pending, _NEEDS_NO_TASK)
    if snapshot is not None and (pending.view is not None or not _is_error(snapshot)):
        return (Shape(responses.job(state, pending, rule, snapshot=snapshot)),)
    if failure is not None:
        # A second run of the tool might give other pages than those already read, or repeat its
        # side effects.
        reason = f"what was kept of the earlier answer is out of reach: {failure}; try again later"
        repeatable = _is_repeatable(state, pending, rule)
        return state.refuse(pending, f"{reason}, or {advice}" if repeatable else reason)
    return again(state, pending, pending.line)


def again(
    state: SessionState, pending: PendingRequest, line: bytes, *, listed: bool = False
) -> Outputs:
    """Process a call anew by its line: its snapshot was searched, perhaps the tools listed."""
    anew = PendingRequest(pending.exchange, pending.id, pending.method, scope=pending.scope)
    anew.searched_key, anew.listed = pending.key, listed
    anew.trace, anew.record = pending.trace, pending.record
    state.rules.select()
    return call(state, line, message.envelope(line), anew)


def _is_repeatable(state: SessionState, pending: PendingRequest, rule: Rule) -> bool:
    facts = state.rules.facts(pending.tool)
    if pending.uri or (facts is not None and facts.repeatable):
        return True
    return any(getattr(part, "refetch", None) for part in (rule, *rule.pipeline))


def _is_error(snapshot: Snapshot) -> bool:
    """Return True if the snapshot is of an error, which has no pages: a new call may succeed."""
    from mcp_abridge.shaping.result.frame import Frame

    return Frame.decode(snapshot.frame).error


def take_irregular(
    state: SessionState, raw: bytes, exchange: bytes, error: DocumentError | None = None
) -> Outputs:
    """Process a batch, or a line that cannot be read for the reason `error`.

    It is forwarded unless it may hold a call that a rule must stop; then each request in it is
    refused. Batches exist in revision 2025-03-26 alone: their calls are counted, not shaped.
    """
    requests = requests_in(raw, exchange)
    refuses = may_call(raw) and _guards_calls(state)
    if not refuses and not any(map(state.inflight.collides, requests)):
        for pending in requests if error is None else ():
            state.inflight.begin(pending)
        return (ToServer(raw),)
    code, reason = message.INVALID_REQUEST, _IN_BATCH
    if error is not None:
        code, reason = message.PARSE_ERROR, f"the message cannot be read: {error}"
    state.log(f"refused: {reason}")
    replies = (
        state.reply(pending, "refused", message.error(pending.id, code, reason))
        for pending in requests or [PendingRequest(exchange, b"null", "")]
    )
    return tuple(output for reply in replies for output in reply)


def requests_in(raw: bytes, exchange: bytes) -> list[PendingRequest]:
    """Return the requests in a line: one, those of a batch, or one whose id an end shows."""
    batch = message.messages(raw)
    if not batch:
        id = message.request_id(raw[: message.ENDS], raw[-message.ENDS :])
        return [] if id is None else [PendingRequest(exchange, id, "")]
    requests: list[PendingRequest] = []
    for each in batch:
        tool = string_at(each.params, "name") if each.verb == "tools/call" else None
        if each.method is not ABSENT and each.key not in (None, b"null"):
            requests.append(PendingRequest(exchange, each.key or b"", "", tool or ""))
    return requests
