"""The view `kept`: the stored answers of a caller; the tool that was named does not run.

Without it, a model whose client has shortened their conversation cannot tell what it may look into.
"""

from msgspec import Raw
from msgspec.structs import replace

from mcp_abridge.document.tree import Document, encode, loads, opened
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.session import responses
from mcp_abridge.session.outputs import LoadSnapshot, Output, Shape
from mcp_abridge.session.state import PendingRequest, SessionState
from mcp_abridge.session.tools.arguments import VIEW
from mcp_abridge.shaping.result.read import locate
from mcp_abridge.storage import answer_list
from mcp_abridge.storage.snapshots import Key, Snapshot

NAME = "kept"


def load(
    state: SessionState, pending: PendingRequest, snapshot: Snapshot | None
) -> tuple[Output, ...] | None:
    """Ask for the list; None if the answer that is stored for the call has such a member."""
    if snapshot is not None:
        document = opened(Document.read(snapshot.document).cell[0])
        if isinstance(document, dict) and NAME in document:
            return None
    pending.lists = True
    return (LoadSnapshot(state.suspend(pending), Key(pending.scope, "", None)),)


def answer(
    state: SessionState, pending: PendingRequest, rule: Rule, snapshot: Snapshot
) -> tuple[Output, ...]:
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
    pending.rule = rule.for_no_document if bounded else replace(rule, pipeline=(), validate=None)
    pending.key, pending.view = None, NAME
    answers = Snapshot(located.frame.encode(), content)
    return (Shape(responses.job(state, pending, pending.rule, snapshot=answers)),)


def _row(each: answer_list.StoredAnswer, view: str) -> dict[str, object]:
    """Return one row of the list: the call that shows what is in an answer, its size, its age."""
    age = f"{each.age // 60} min" if each.age >= 120 else f"{each.age} s"
    size = {"bytes": each.size, "age": age}
    if not each.call:
        return {"tool": None, "arguments": "too long to be listed", **size}
    tool, arguments = loads(each.call.encode())
    return {"tool": tool, "arguments": {**arguments, view: "help"}, **size}
