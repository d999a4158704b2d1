"""The tool lists that a session sends on, and when the client must request them again."""

from collections.abc import Callable
from functools import lru_cache, partial

from msgspec import Raw, Struct

from mcp_abridge.document import message
from mcp_abridge.document.message import SERVER_INFO, Message, string_at
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.session.inflight import PendingRequest
from mcp_abridge.session.outputs import LARGE, Outputs, RunInBackground, ToClient
from mcp_abridge.session.state import SessionState
from mcp_abridge.session.tools import definitions
from mcp_abridge.session.tools.definitions import ToolFacts

CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
"""The notification that the list of tools changed (MCP: Tools, List Changed Notification)."""

_MOST_SIZE = 4 << 20  # bytes; a list that is longer is not stored, and counts as changed


class RewrittenToolList(Struct, frozen=True):
    """The outcome of editing a tools/list result; `result` is None if nothing changes."""

    original: Raw
    result: Raw | None = None
    facts: dict[str, ToolFacts] = {}
    log_lines: tuple[str, ...] = ()
    error: Exception | None = None


def edit(original: Raw, rules: RuleSet, *, shows_widgets: bool = False) -> RewrittenToolList:
    """Return the edited result of tools/list; never raises.

    `shows_widgets`: the client that gets it shows the widgets of tools (MCP Apps).
    """
    log_lines: list[str] = []
    try:
        result, facts = definitions.rewrite(
            original, rules, log_lines.append, shows_widgets=shows_widgets
        )
    except Exception as error:  # the `parameters` of a step may raise anything
        return RewrittenToolList(original, log_lines=tuple(log_lines), error=error)
    return RewrittenToolList(original, result, facts, tuple(log_lines))


def listed(state: SessionState, raw: bytes, envelope: Message, pending: PendingRequest) -> Outputs:
    """Process a response to tools/list."""
    state.rules.rename(server=string_at(envelope.result, "_meta", SERVER_INFO, "name"))
    tools = None if pending.next_page else definitions.names(envelope.result)
    if tools is not None:
        state.rules.offer(tools)
    rules = state.rules.select()
    send = partial(_send, state, raw, pending, rules)
    edit_it = partial(edit, envelope.result, rules, shows_widgets=pending.shows_widgets)
    return (RunInBackground(edit_it, send, len(raw) > LARGE),)


def _send(
    state: SessionState,
    raw: bytes,
    pending: PendingRequest,
    rules: RuleSet,
    edited: RewrittenToolList,
) -> Outputs:
    try:
        for line in edited.log_lines:
            state.log(line)
        if edited.error is not None:
            raise edited.error
        state.rules.learn(edited.facts)
        after = edited.original if edited.result is None else edited.result
        sizes = len(memoryview(edited.original)), len(memoryview(after))
        last = string_at(edited.original, "nextCursor") is None
        state.counts.tools(*sizes, first=not pending.next_page, last=last)
        if state.tool_list is not None:
            state.tool_list.record(edited.original, edited.result, next_page=pending.next_page)
            # The rules may have changed meanwhile; without a list the client got no notification.
            state.rules.outdated = rules is not state.rules.select()
        if edited.result is not None:
            raw = message.replaced(raw, result=edited.result)
    except Exception as error:
        return state.unprocessed(raw, pending, error)
    return (ToClient(raw),)


def announce_changes(state: SessionState) -> Outputs:
    """Notify the client to list the tools again, if the current rules change the list."""
    state.rules.outdated = False
    tool_list = state.tool_list
    if tool_list is None:
        return ()
    rules = state.rules.select()
    now = partial(edit, rules=rules, shows_widgets=state.rules.peer.shows_widgets)
    differs = partial(tool_list.differs, lambda result: now(result).result)
    return (RunInBackground(differs, partial(_announce, state), tool_list.size > LARGE),)


def _announce(state: SessionState, differs: bool) -> Outputs:
    if not differs or state.tool_list is None:
        return ()
    state.log("the tools look different with the new rules: the client was told")
    return (ToClient(CHANGED),)


@lru_cache(16)
def _shared(raw: bytes) -> bytes:
    """Return equal bytes that already exist: thousands of sessions receive the same list."""
    return raw


class ToolListHistory:
    """The pages of the last tools/list, each with a digest of the client's version of it."""

    def __init__(self) -> None:
        self._pages: dict[bytes, int] = {}
        self.size = 0
        """Bytes of the list as the server sent it."""

    def record(self, original: Raw, edited: Raw | None, *, next_page: bool) -> None:
        """Record a page that was sent as `edited`, or unchanged if that is None.

        `next_page`: it follows the previous page.
        """
        if not next_page:
            self._pages.clear()
            self.size = 0
        raw = bytes(original)
        if raw not in self._pages:
            self.size += len(raw)
        if self.size <= _MOST_SIZE:
            self._pages[_shared(raw)] = _digest(raw, edited)

    def differs(self, rewrite: Callable[[Raw], Raw | None]) -> bool:
        """Return True if the client would receive another list now, as edited by `rewrite`."""
        pages = list(self._pages.items())  # pages may be recorded meanwhile
        return self.size > _MOST_SIZE or any(
            _digest(page, rewrite(Raw(page))) != digest for page, digest in pages
        )


def new_history(result: Raw) -> ToolListHistory | None:
    """Return a history if the result of initialize declares that the tool list may change."""
    changes = bytes(message.value_at(result, "capabilities", "tools", "listChanged"))
    return ToolListHistory() if changes == b"true" else None


def _digest(page: bytes, edited: Raw | None) -> int:
    return hash(page if edited is None else bytes(edited))
