"""Calls for a page or a view without a stored answer, of a tool whose second run may do harm.

Such a tool runs if it does not declare itself destructive and nobody has made the call before.
"""

from functools import partial
from typing import Any

from msgspec import Raw

from mcp_abridge.document.message import SERVER_INFO, string_at
from mcp_abridge.ruleset.guard import QueryResult
from mcp_abridge.session import effects, guards, requests
from mcp_abridge.session.inflight import PendingRequest
from mcp_abridge.session.outputs import Outputs
from mcp_abridge.session.own_requests import OwnRequest
from mcp_abridge.session.state import SessionState
from mcp_abridge.session.tools import definitions
from mcp_abridge.session.tools.arguments import VIEW
from mcp_abridge.session.tools.definitions import ToolFacts

_MOST_PAGES = 100  # of one tool list

_NOTHING = "nothing is kept of an earlier answer to this call (it expired, or was never given)"
_DESTRUCTIVE = "{} declares destructiveHint, so it does not run just to show a part of its answer"
_MADE_BEFORE = (
    "this call was made before, and its answer is not kept (it expired, or was short, and then all "
    "of it was shown); {} does not run again just to show a part, since it declares neither "
    "readOnlyHint nor idempotentHint"
)
_ELSEWHERE = (
    "a part was asked for of an answer that this session does not have; if the client opens a "
    "session for each call, as LangChain's get_tools() does, let its sessions share answers: in "
    "`run` by --store DIR, in `serve` by a token (MCP_ABRIDGE_TOKEN, or token_file in --config)"
)


def decide(state: SessionState, pending: PendingRequest, line: bytes) -> Outputs:
    """Decide on a call without a stored answer, which may do harm twice; the server gets `line`."""
    facts = state.rules.facts(pending.tool)
    if facts is None and not (state.rules.listed or pending.listed):
        return _ask_for_tools(state, pending, pending.line)
    if facts is not None and facts.destructive:
        return _refuse(state, pending, _DESTRUCTIVE)
    if facts is None or state.calls is None:
        return _refuse(state, pending, _NOTHING)
    pending.line = line
    # Other processes use the ledger, too.
    claim = partial(state.calls.claim, pending.caller, pending.call)
    return (effects.suspended(state, pending, claim, _claimed, long=True),)


def _claimed(state: SessionState, pending: PendingRequest, first: bool) -> Outputs:
    """Send a call if nobody has made it before, else refuse it."""
    assert pending.rule is not None
    if not first:
        if pending.key not in state.stored:
            state.log(f"{pending.tool}: {_ELSEWHERE}")
        return _refuse(state, pending, _MADE_BEFORE)
    line, pending.line = pending.line, b""
    return requests.send_or_guard(state, line, pending, pending.rule)


def start_again(pending: PendingRequest) -> str:
    """Return the advice to a client if there is no snapshot to continue in."""
    assert pending.rule is not None
    if pending.uri:
        return "read it without a view first"
    if pending.view is not None:
        view = pending.names.get(VIEW, VIEW)
        return f"call again without {view} first; an answer that is cut takes views for a while"
    positions = [
        pending.names.get(name, name)
        for step in pending.rule.snapshot_step.windows
        for name, parameter in step.parameters.items()
        if parameter.schema.get("default") == 0
    ]
    return f"call again with {' and '.join(f'{name}=0' for name in positions)} first"


def _refuse(state: SessionState, pending: PendingRequest, reason: str) -> Outputs:
    return state.refuse(pending, f"{reason.format(pending.tool)}; {start_again(pending)}")


def _ask_for_tools(
    state: SessionState, pending: PendingRequest, line: bytes, cursor: str = "", page: int = 1
) -> Outputs:
    params: dict[str, Any] = {"cursor": cursor} if cursor else {}
    resume = partial(_listed, page=page)
    return guards.hold(state, line, pending, OwnRequest("tools/list", params, _read_page, resume))


def _read_page(result: Raw) -> tuple[dict[str, ToolFacts], str | None, str | None]:
    server = string_at(result, "_meta", SERVER_INFO, "name")
    return definitions.facts_in(result), string_at(result, "nextCursor"), server


def _listed(
    state: SessionState, pending: PendingRequest, line: bytes, result: QueryResult, page: int
) -> Outputs:
    """Continue a call after a page of the tool list: as if it came only now, or with a next page.

    The tool may have a `view` of its own, and the rules for the server may be others.
    """
    if result.failure is None:
        facts, cursor, server = result.document
        state.rules.rename(server=server)
        state.rules.learn(facts)
        if cursor is None and page == 1:
            state.rules.offer(frozenset(facts))
        if cursor and pending.tool not in facts and page < _MOST_PAGES:
            return _ask_for_tools(state, pending, line, cursor, page + 1)
    else:
        state.log(f"{pending.tool}: the server was asked for its tools: {result.failure}")
    return requests.again(state, pending, line, listed=True)
