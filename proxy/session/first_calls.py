"""Calls for a page or a view without a stored answer, of a tool whose second run may do harm.

Such a tool runs if it does not declare itself destructive and nobody has made the call before. If
this session does not know the server's tools, it first asks the server for them.
"""

from functools import partial
from typing import Any

from msgspec import Raw, Struct

from proxy.document import message
from proxy.document.message import SERVER_INFO, Message, string_at
from proxy.document.tree import ABSENT
from proxy.errors import raised
from proxy.ruleset.guard import QueryResult
from proxy.session import guards, requests
from proxy.session.outputs import ClaimCall, Output
from proxy.session.state import PendingRequest, Question, SessionState
from proxy.session.tools import definitions
from proxy.session.tools.definitions import ToolFacts

_MOST_PAGES = 100  # of one tool list

_NOTHING = "nothing is kept of an earlier answer to this call (it expired, or was never given)"
_DESTRUCTIVE = "{} declares destructiveHint, so it does not run just to show a part of its answer"
_MADE_BEFORE = (
    "this call was made before, and its answer is not kept (it expired, or was short); {} does not "
    "run again just to show a part, since it declares neither readOnlyHint nor idempotentHint"
)
_ELSEWHERE = (
    "a part was asked for of an answer that this session does not have; if the client opens a "
    "session for each call, as LangChain's get_tools() does, add --store"
)


def decide(state: SessionState, pending: PendingRequest) -> tuple[Output, ...]:
    """Continue a call that has no stored answer and might do harm if it ran a second time."""
    facts = state.rules.facts(pending.tool)
    if facts is None and not (state.rules.listed or pending.searched_key):
        return _ask_for_tools(state, pending, pending.client_line)
    if facts is not None and facts.destructive:
        return _refuse(state, pending, _DESTRUCTIVE)
    if facts is None or state.calls is None:
        return _refuse(state, pending, _NOTHING)
    return (ClaimCall(state.suspend(pending), pending.caller, pending.call),)


def claimed(state: SessionState, pending: PendingRequest, *, first: bool) -> tuple[Output, ...]:
    """Send a call if nobody has made it before, else refuse it."""
    assert pending.rule is not None
    if not first:
        if pending.key not in state.stored:
            state.log(f"{pending.tool}: {_ELSEWHERE}")
        return _refuse(state, pending, _MADE_BEFORE)
    line, pending.line, pending.client_line = pending.line, b"", b""
    return requests.send_or_guard(state, line, pending, pending.rule)


def _refuse(state: SessionState, pending: PendingRequest, reason: str) -> tuple[Output, ...]:
    return state.refuse(pending, f"{reason.format(pending.tool)}; {pending.start_again}")


class ToolListPage(Struct, frozen=True):
    """One page of a tool list: all names if it is the only page, the cursor of the next if any."""

    facts: dict[str, ToolFacts]
    names: frozenset[str] | None
    cursor: str | None
    server: str | None


def _ask_for_tools(
    state: SessionState, pending: PendingRequest, line: bytes, cursor: str = "", page: int = 1
) -> tuple[Output, ...]:
    params: dict[str, Any] = {"cursor": cursor} if cursor else {}
    resume = partial(_listed, page=page)
    return guards.hold(state, line, pending, Question("tools/list", params, read_page, resume))


def read_page(raw: bytes) -> QueryResult:
    """Return the ToolListPage in a response, or the reason why there is none; never raises."""
    try:
        read = message.read(raw)
        if not isinstance(read, Message) or read.result is ABSENT:
            reason = string_at(Raw(raw), "error", "message")
            return QueryResult(failure=reason or "the answer is an error")
        facts, names = definitions.facts_in(read.result), definitions.names(read.result)
        cursor = string_at(read.result, "nextCursor")
        server = string_at(read.result, "_meta", SERVER_INFO, "name")
        return QueryResult(ToolListPage(facts, names, cursor, server))
    except Exception as error:  # unreadable, too deep, ...
        return QueryResult(failure=raised(error))


def _listed(
    state: SessionState, pending: PendingRequest, line: bytes, result: QueryResult, page: int
) -> tuple[Output, ...]:
    """Continue a call after a page of the tool list: as if it came only now, or with a next page.

    The tool may have a `view` of its own, and the rules for the server may be others.
    """
    tools = result.document
    if isinstance(tools, ToolListPage):
        state.rules.rename(server=tools.server)
        state.rules.learn(tools.facts)
        if tools.names is not None and page == 1:
            state.rules.offer(tools.names)
        if tools.cursor and pending.tool not in tools.facts and page < _MOST_PAGES:
            return _ask_for_tools(state, pending, line, tools.cursor, page + 1)
    else:
        state.log(f"{pending.tool}: the server was asked for its tools: {result.failure}")
    again = PendingRequest(pending.exchange, pending.id, pending.method)
    again.scope, again.searched_key = pending.scope, pending.key
    read = message.read(line)
    assert isinstance(read, Message)
    return requests.call(state, line, read, again)
