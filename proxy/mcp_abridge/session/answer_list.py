"""The view `kept`: the stored answers of a caller; the tool that was named does not run.

Without it, a model whose client has shortened their conversation cannot tell what it may look into.
"""

import re

from msgspec import Raw
from msgspec.structs import replace

from mcp_abridge.document.masks import MASK
from mcp_abridge.document.message import READ
from mcp_abridge.document.tree import Document, encode, loads, opened
from mcp_abridge.query.fragment import end_for
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.session import effects, requests, responses
from mcp_abridge.session.inflight import PendingRequest
from mcp_abridge.session.outputs import Outputs, Shape
from mcp_abridge.session.state import SessionState
from mcp_abridge.session.tools.arguments import VIEW
from mcp_abridge.shaping.result.read import locate
from mcp_abridge.storage import answer_list
from mcp_abridge.storage.snapshots import Key, Snapshot, age_in_words

NAME = "kept"
_ASKS = re.compile(r"\s*kept(?:\(\s*\))?\s*(?=$|[|\[])")


def outputs(
    state: SessionState, pending: PendingRequest, rule: Rule, snapshot: Snapshot | None
) -> Outputs | None:
    """Ask for the list, or answer with it if `snapshot` is one; None if a view asks for no list.

    It asks for none if the answer that is stored for the call has a member of that name.
    """
    match = _ASKS.match(pending.view or "")
    if match is None:
        return None
    if pending.lists:
        return None if snapshot is None else _answer(state, pending, rule, snapshot, match)
    if snapshot is not None:
        document = opened(Document.read(snapshot.raw).cell[0])
        if isinstance(document, dict) and NAME in document:
            return None
    if pending.as_task:
        return state.refuse(pending, _NEEDS_NO_TASK)
    pending.lists = True
    return effects.load(state, pending, Key(pending.scope, "", None), requests.loaded)


def _answer(
    state: SessionState,
    pending: PendingRequest,
    rule: Rule,
    snapshot: Snapshot,
    match: re.Match[str],
) -> Outputs:
    """Answer a call with the list in a snapshot, as if the tool had sent it."""
    view, facts = pending.names.get(VIEW, VIEW), state.rules.facts(pending.tool)
    rows = [_row(each, view) for each in answer_list.read(snapshot)]
    content = encode({NAME: rows})
    members = {"content": Raw(encode([{"type": "text", "text": content.decode()}]))}
    if facts is not None and facts.structured:
        members["structuredContent"] = Raw(content)
    located = locate(members, "auto")
    assert located is not None
    bounded = rule.max_bytes is not None
    own = rule.for_no_document if bounded else replace(rule, pipeline=(), validate=None)
    # In brief, the rows of different tools would lose their arguments.
    pending.rule = replace(own, breadth=False)
    pending.key, pending.view = None, NAME + match.string[match.end() :]
    answers = Snapshot(located.frame.encode(), content)
    return (Shape(responses.job(state, pending, pending.rule, snapshot=answers)),)


def _row(each: answer_list.StoredAnswer, view: str) -> dict[str, object]:
    """Return one row of the list: the call that shows what is in an answer, its size, its age."""
    tool, *own = loads(each.call.encode())
    row = {"tool": tool, "arguments": _HASHED, "bytes": each.size, "age": age_in_words(each.age)}
    if own and MASK in each.call:
        return row | {"arguments": own[0], "masked": _MASKED.format(view)}
    if own and tool == READ:
        uri = own[0]["uri"]
        return row | {"arguments": {"uri": uri + end_for(uri, "help")}}
    return row | {"arguments": {**own[0], view: "help"}} if own else row


_NEEDS_NO_TASK = "the list of what is kept needs no task: call again without one"
_HASHED = "too long to be listed"
_MASKED = "to look into it, call with the value that *** hides and {}='help'"
