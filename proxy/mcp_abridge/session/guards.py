"""Guards: a call is sent, answered, or held while the server answers a query of the proxy's own."""

from collections.abc import Callable
from functools import partial
from typing import Any

from msgspec import UNSET, Raw

from mcp_abridge.document import message
from mcp_abridge.document.message import Message, members
from mcp_abridge.document.tree import ABSENT, encode, loads, plain, text
from mcp_abridge.errors import Refusal, raised
from mcp_abridge.query.call import Call
from mcp_abridge.ruleset.guard import Allow, Guard, Query, QueryResult, Respond, run_guard
from mcp_abridge.session.inflight import ID_IN_USE, PendingOwnRequest, PendingRequest, send_call
from mcp_abridge.session.outputs import LARGE, Outputs, Probe, RunInBackground, ToClient
from mcp_abridge.session.own_requests import OwnRequest
from mcp_abridge.session.state import SessionState
from mcp_abridge.session.tools.arguments import with_value, without, without_ours
from mcp_abridge.shaping.result.read import is_error, is_final, locate
from mcp_abridge.shaping.result.write import own_result

LATE = "no answer in time"
"""The failure of a query without a response in its time."""


def decide(
    state: SessionState,
    raw: bytes,
    pending: PendingRequest,
    guard: Guard,
    result: QueryResult | None,
) -> Outputs:
    """Apply a guard's decision to a call."""
    rule = pending.rule
    assert rule is not None
    call = Call(pending.tool, pending.arguments, names=pending.names, warnings=[])
    try:
        decision = run_guard(guard, call, result)
        state.counts.warn(pending.tool, rule, call.warnings)
        if isinstance(decision, Respond):
            return _respond(state, pending, decision)
        if isinstance(decision, Allow):
            return _allow(state, raw, pending, decision)
        return _query(state, raw, pending, decision)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # a guard may raise anything
        failure = f"{rule.at(pending.tool)}: the guard {guard.name!r} failed: {raised(error)}"
        state.log(failure)
        state.inflight.retire(pending.slot)
    if rule.on_failure == "pass":
        return send_call(state, raw, pending)
    # A guard fails closed unless the rule says otherwise.
    reason = f"the call was withheld: the guard of rule {rule.name!r} failed"
    return state.refuse(pending, reason)


def _allow(state: SessionState, raw: bytes, pending: PendingRequest, decision: Allow) -> Outputs:
    pending.facts = decision.facts
    if decision.arguments:
        params = message.envelope(raw).params
        own = members(params).get("arguments")
        upstream = {} if own is None else loads(bytes(own))
        upstream = upstream if isinstance(upstream, dict) else {}  # as the guard saw them
        for name, value in decision.arguments.items():
            if value is UNSET:
                pending.arguments = without(pending.arguments, name)
                upstream = without(upstream, name)
            else:
                pending.arguments = with_value(pending.arguments, name, value)
                upstream = with_value(upstream, name, value)
        # The current rules, too: they may have changed while the call was held.
        plans = [plan for _, plan in state.rules.covering(pending.tool).plans]
        for plan in (pending.plan, *plans):
            upstream = without_ours(plan, upstream)
        raw = message.with_arguments(raw, params, upstream)
    return send_call(state, raw, pending)


def _respond(state: SessionState, pending: PendingRequest, decision: Respond) -> Outputs:
    facts = state.rules.facts(pending.tool)
    # A client may know from an earlier session that the tool has an outputSchema.
    declared = facts is None or facts.structured
    structured = declared or (pending.rule is not None and pending.rule.structures)
    value = own_result(
        decision.document, error=decision.error, structured=structured and not decision.error
    )
    line = message.completed(pending.id, value, pending.modern)
    return state.reply(pending, "answered", line)


def _query(state: SessionState, raw: bytes, pending: PendingRequest, query: Query) -> Outputs:
    params = {"name": query.tool, "arguments": query.arguments}
    resume = partial(_decide_again, tool=query.tool)
    return hold(
        state, raw, pending, OwnRequest("tools/call", params, _document, resume, query.seconds)
    )


def _decide_again(
    state: SessionState, pending: PendingRequest, line: bytes, result: QueryResult, tool: str
) -> Outputs:
    assert pending.rule is not None
    assert pending.rule.guard is not None
    if result.failure is not None:
        source = f"{pending.rule.at(pending.tool)}: what the guard asked of {tool!r} failed"
        state.log(f"{source}: {result.failure}")
    return decide(state, line, pending, pending.rule.guard, result)


def hold(
    state: SessionState, raw: bytes, pending: PendingRequest, own_request: OwnRequest
) -> Outputs:
    """Hold a call with the line `raw`, and ask the server under an id that no client can choose."""
    if state.inflight.collides(pending):
        return (ToClient(pending.error(ID_IN_USE)),)
    id = state.inflight.queries.new()
    request = PendingOwnRequest(
        pending.exchange, id, own_request.method, held_call=pending, own_request=own_request
    )
    params = dict(own_request.params)
    meta = members(message.envelope(raw).params).get("_meta")
    if meta is not None:
        # The stateless protocol requires it of every request. The progress is not the call's.
        params["_meta"] = {
            key: value for key, value in members(meta).items() if key != message.PROGRESS_TOKEN
        }
    line = encode({"jsonrpc": "2.0", "id": Raw(id), "method": own_request.method, "params": params})
    if pending.trace is not None:
        line = pending.trace.forward(line)
    pending.line, pending.query = raw, request.slot
    state.inflight.add(pending)
    state.inflight.add(request, own_request.seconds)
    return (Probe(line, request.slot),)


def cancellation(id: bytes, reason: str | None = None) -> bytes:
    """Return the notification that cancels a request at the server."""
    params: dict[str, Any] = {"requestId": Raw(id)}
    if reason is not None:
        params["reason"] = reason
    return encode({"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params})


def query_answered(state: SessionState, query: PendingOwnRequest, raw: bytes) -> Outputs:
    """Process the response to a query."""
    read = partial(read_answer, query.own_request.read, raw)
    return (RunInBackground(read, partial(resume, state, query), len(raw) > LARGE),)


def read_answer(read: Callable[[Raw], Any], raw: bytes) -> QueryResult:
    """Return the document that `read` makes of a response's result, or the reason for none."""
    try:
        response = message.read(raw)
        if (
            not isinstance(response, Message)
            or response.result is ABSENT
            or response.error is not ABSENT
        ):
            reason = message.string_at(Raw(raw), "error", "message")
            return QueryResult(failure=reason or "the answer is an error")
        return QueryResult(read(response.result))
    except Refusal as refusal:
        return QueryResult(failure=str(refusal))
    except Exception as error:  # unreadable, too deep, too large, ...
        return QueryResult(failure=f"the answer cannot be read: {raised(error)}")


def give_up(state: SessionState, pending: PendingRequest, reason: str) -> Outputs:
    """Answer a request whose response cannot be used, or continue the call held for it."""
    if isinstance(pending, PendingOwnRequest):
        return resume(state, pending, QueryResult(failure=reason))
    return (ToClient(pending.error(reason)),)


def resume(state: SessionState, query: PendingOwnRequest, result: QueryResult) -> Outputs:
    """Continue a held call after its query. Never raises."""
    pending = query.held_call
    pending.query = b""
    state.inflight.retire(query.slot)
    if state.inflight.find(pending.slot) is not pending:
        return ()  # cancelled, or another request has its id by now
    state.inflight.retire(pending.slot)
    line, pending.line = pending.line, b""
    try:
        return query.own_request.resume(state, pending, line, result)
    except Exception as error:
        return (ToClient(state.give_up(pending, error)),)


def _document(raw: Raw) -> Any:
    result = members(raw)
    if not is_final(result):
        raise Refusal("the server wants to know something first")
    located = locate(result, "auto")
    document = None if located is None else located.document
    content = None if document is None else text(document.cell[0])
    if is_error(result):
        if content is None and document is not None:
            content = document.encode().decode()
        raise Refusal(content or "the answer is an error")
    if document is None:
        raise Refusal("the answer has no document")
    return plain(document.cell[0]) if content is None else content
