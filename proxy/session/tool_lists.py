"""The lists of tools that a session passes on, and when the client is to ask for them again."""

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
    """What came of a result of tools/list that was `given`.

    `result` is None where nothing changes, `seen` what it said of its tools, `said` are lines for
    the log, and `error` is what went wrong.
    """

    given: Raw
    result: Raw | None = None
    seen: dict[str, ToolFacts] = {}
    said: tuple[str, ...] = ()
    error: Exception | None = None


def edit(given: Raw, rules: RuleSet) -> RewrittenToolList:
    """Return what becomes of a result of tools/list; never raises."""
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
    """Edits lists of tools by the rules; `log` takes one line.

    `listing` is what the client was told last, where the server says that its list may change.
    """

    standing: ActiveRules
    log: Callable[[str], None]
    waiting: SuspendedCalls
    listing: "ToolListHistory | None" = None

    def introduced(self, result: Raw) -> None:
        """Take the result of initialize, which declares whether the list of tools may change."""
        self.listing = _listing(result)

    def answered(self, raw: bytes, read: Message, pending: PendingRequest) -> tuple[Output, ...]:
        """Take an answer to tools/list; outputs are relative to the server.

        Raises what is wrong with a short one.
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
        """Pass on a long list that was edited meanwhile. Never raises."""
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
        """Pass on a list of tools, as it is by these rules; raises what it could not be for."""
        for said in edited.said:
            self.log(said)
        if edited.error is not None:
            raise edited.error
        self.standing.learn(edited.seen)
        if self.listing is not None:
            self.listing.told(edited.given, edited.result, further=pending.further)
            # Other rules may hold by now, and the client was told nothing: it had no list yet.
            self.standing.outdated = rules is not self.standing.now()
        return (
            Forward(raw if edited.result is None else message.replaced(raw, result=edited.result)),
        )

    def news(self) -> tuple[Output, ...]:
        """Tell the client to list the tools again, where other rules make another list of them."""
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
    """Return what remembers the list of tools, where the server declares that it may change."""
    try:
        tools = message.members(message.members(result)["capabilities"])["tools"]
        if bytes(message.members(tools)["listChanged"]) != b"true":
            return None
    except (DocumentError, KeyError):
        return None
    # Not loaded before it is needed: no other session has use for it.
    from proxy.session.tools.changes import ToolListHistory

    return ToolListHistory()
