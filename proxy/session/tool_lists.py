"""The tool lists that a session sends on, and when the client must request them again."""

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

import msgspec
from msgspec import Raw, Struct

from proxy.document import message
from proxy.document.message import SERVER_INFO, Message, string_at
from proxy.errors import DocumentError
from proxy.ruleset.rule import RuleSet
from proxy.session import failures as fallback
from proxy.session.active_rules import ActiveRules, planned
from proxy.session.inflight import PendingRequest, SuspendedCalls
from proxy.session.outputs import LARGE, Forward, Notify, Output, RunInBackground
from proxy.session.tools import definitions
from proxy.session.tools.definitions import ToolFacts


class RewrittenToolList(Struct, frozen=True):
    """The outcome of editing `given`, a result of tools/list.

    `result` is None if nothing changes; `seen` are the facts of its tools; `said` are lines for the
    log; `error` is the failure, if any.
    """

    given: Raw
    result: Raw | None = None
    seen: dict[str, ToolFacts] = {}
    said: tuple[str, ...] = ()
    error: Exception | None = None


def edit(given: Raw, rules: RuleSet) -> RewrittenToolList:
    """Return the edited result of tools/list; never raises."""
    said: list[str] = []
    try:
        result, seen = definitions.rewrite(
            given, rules, lambda tool, fact: planned(rules, tool, fact), said.append
        )
    except Exception as error:  # a transform's own `reshape` may raise anything
        return RewrittenToolList(given, said=tuple(said), error=error)
    return RewrittenToolList(given, result, seen, tuple(said))


if TYPE_CHECKING:
    from proxy.session.tools.changes import ToolListHistory


class Lists(Struct, eq=False):
    """The editor of tool lists by the rules; `log` takes one line.

    `listing` is the list that the client received last, if the server declares that its list may
    change.
    """

    standing: ActiveRules
    log: Callable[[str], None]
    waiting: SuspendedCalls
    listing: "ToolListHistory | None" = None

    def introduced(self, result: Raw) -> None:
        """Process the result of initialize, which declares whether the list of tools may change."""
        self.listing = _listing(result)

    def answered(self, raw: bytes, read: Message, pending: PendingRequest) -> tuple[Output, ...]:
        """Process a response to tools/list; outputs are relative to the server.

        Raises the error of editing if the list is short.
        """
        self.standing.named(server=string_at(read.result, "_meta", SERVER_INFO, "name"))
        tools = None if pending.further else definitions.names(read.result)
        if tools is not None:
            self.standing.offers(tools)
        rules = self.standing.now()
        edited = partial(edit, read.result, rules)
        if len(raw) <= LARGE:
            return self._passed(raw, edited(), pending, rules)
        return (RunInBackground(edited, partial(self.passed_later, raw, pending, rules)),)

    def passed_later(
        self, raw: bytes, pending: PendingRequest, rules: RuleSet, edited: RewrittenToolList
    ) -> tuple[Output, ...]:
        """Send on a long list that was edited in the background. Never raises."""
        mark = self.waiting.last
        try:
            return self._passed(raw, edited, pending, rules)
        except (DocumentError, msgspec.DecodeError) as cause:
            self.log(f"{pending.method}: left as it came: {cause}")
            return (Forward(raw),)
        except Exception as error:
            said = fallback.failed(error, mark, self.waiting, self.log)
            return fallback.of_server(raw, [pending], said, closed=self.standing.guards)

    def _passed(
        self, raw: bytes, edited: RewrittenToolList, pending: PendingRequest, rules: RuleSet
    ) -> tuple[Output, ...]:
        """Send on a list of tools as edited by these rules; raises the error of editing, if any."""
        for said in edited.said:
            self.log(said)
        if edited.error is not None:
            raise edited.error
        self.standing.learn(edited.seen)
        if self.listing is not None:
            self.listing.told(edited.given, edited.result, further=pending.further)
            # The rules may have changed meanwhile; without a list the client got no notification.
            self.standing.outdated = rules is not self.standing.now()
        return (
            Forward(raw if edited.result is None else message.replaced(raw, result=edited.result)),
        )

    def news(self) -> tuple[Output, ...]:
        """Notify the client to list the tools again, if the current rules change the list."""
        self.standing.outdated = False
        if self.listing is None:
            return ()
        rules = self.standing.now()
        differ = partial(self.listing.differs, lambda result: edit(result, rules).result)
        if self.listing.size <= LARGE:
            return self._told_of(differ())
        return (RunInBackground(differ, self._told_of),)

    def _told_of(self, differ: bool) -> tuple[Output, ...]:
        if not differ or self.listing is None:
            return ()
        self.log("the tools look different with the new rules: the client was told")
        return (Notify(self.listing.CHANGED),)


def _listing(result: Raw) -> "ToolListHistory | None":
    """Return the history of the tool list, None unless the server declares that it may change."""
    try:
        tools = message.members(message.members(result)["capabilities"])["tools"]
        if bytes(message.members(tools)["listChanged"]) != b"true":
            return None
    except (DocumentError, KeyError):
        return None
    # Imported late: no other session needs it.
    from proxy.session.tools.changes import ToolListHistory

    return ToolListHistory()
