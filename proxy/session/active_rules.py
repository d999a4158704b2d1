"""The facts of one client and server, and the rules in force for them."""

from collections.abc import Callable
from functools import lru_cache
from typing import TypeVar

from msgspec import Struct

from proxy.ruleset.rule import Hidden, Rule, RuleSet
from proxy.session import arguments as argument
from proxy.session.arguments import ArgumentPlan
from proxy.session.tools.definitions import ToolFacts

_REMEMBERED = 1000  # tools and cached plans kept at most, each
_LONGEST_NAME = 200  # characters; long names must not fill the memory

Rules = Callable[[str | None, str | None], RuleSet]
Fact = TypeVar("Fact", ToolFacts, frozenset[str])
Planned = tuple[tuple[Rule, ArgumentPlan], ...]


class PeerInfo(Struct):
    """The facts of one client and server, from which another session may start."""

    server: str | None = None
    client: str | None = None
    tools: frozenset[str] | None = None
    seen: dict[str, ToolFacts] = {}
    implied: dict[str, frozenset[str]] = {}


class ActiveRules:
    """The rules of a session, selected by the facts of its client and server.

    `rules` is called with the names of server and client, as far as they are known, whenever the
    rules are needed; it may block while rule files are read. `log` takes one line. `renamed` is
    called with both names whenever one of them changes.
    """

    def __init__(
        self,
        rules: Rules,
        log: Callable[[str], None],
        renamed: Callable[[str | None, str | None], None] = lambda server, client: None,
    ) -> None:
        self._rules = rules
        self._log = log
        self._renamed = renamed
        self._seen: dict[str, ToolFacts] = {}
        self._implied: dict[str, frozenset[str]] = {}
        self._plans: dict[str, Planned] = {}
        self._given: RuleSet | None = None
        self._ruleset: RuleSet | None = None
        self._tools: frozenset[str] | None = None
        self._droppers: dict[str, tuple[str, ...]] = {}
        self._guards = False
        self._rested = False
        self.outdated = False
        """True if the rules may differ from those in force at their last use."""
        self.server: str | None = None
        self.client: str | None = None

    @property
    def known(self) -> PeerInfo:
        """The facts learned so far."""
        return PeerInfo(
            self.server, self.client, self._tools, dict(self._seen), dict(self._implied)
        )

    @property
    def listed(self) -> bool:
        """True if the server's tools are known."""
        return self._tools is not None

    def recall(self, known: PeerInfo) -> None:
        """Adopt the facts that another session learned of the same server and client."""
        self.named(client=known.client, server=known.server)
        if known.tools is not None:
            self.offers(known.tools)
        self._seen |= known.seen
        self._implied |= known.implied
        self._plans.clear()

    def named(self, *, client: str | None = None, server: str | None = None) -> None:
        """Record the names of client and server, as far as they are given."""
        server = self.server if server is None else server[:_LONGEST_NAME]
        client = self.client if client is None else client[:_LONGEST_NAME]
        if (server, client) == (self.server, self.client):
            return
        self.server, self.client, self._ruleset = server, client, None
        self._plans.clear()
        self._renamed(server, client)

    def offers(self, tools: frozenset[str]) -> None:
        """Record the names of the server's tools."""
        if tools != self._tools:
            self._tools, self._ruleset = _shared(tools), None

    def learn(self, seen: dict[str, ToolFacts]) -> None:
        """Record the facts of tools from a tool list."""
        for tool, fact in seen.items():
            if self._seen.get(tool) != fact:
                self._seen[tool] = _shared(fact)
                self._plans.pop(tool, None)
        while len(self._seen) > _REMEMBERED:
            del self._seen[next(iter(self._seen))]

    def seen(self, tool: str) -> ToolFacts | None:
        """Return the facts of `tool` from a tool list, None if it was not listed."""
        return self._seen.get(tool)

    def now(self) -> RuleSet:
        """Return the rules in force."""
        given = self._rules(self.server, self.client)
        if self._ruleset is None or given is not self._given:
            if self._rested or (self._given is not None and given is not self._given):
                self.outdated = True
            self._rested = False
            self._given = given
            self._ruleset = given if self._tools is None else given.fitting(self._tools)
            for file in given.files:
                if file not in self._ruleset.files:
                    self._log(f"{file.name}: this server has other tools; none of its rules apply")
            self._guards = self._ruleset.guards
            self._droppers = self._ruleset.droppers
            self._plans.clear()
        return self._ruleset

    def rest(self) -> None:
        """Release the rules: they may be replaced many times before their next use."""
        self._rested = self._rested or self._given is not None
        self._given = self._ruleset = None
        self._plans.clear()

    def protects(self) -> bool:
        """Return True if the rules now in force include one that a call must not bypass."""
        self.now()
        return self._guards

    # The following use the rules of the last call of `now`: one message uses one version of the
    # rule files.

    @property
    def guards(self) -> bool:
        """True if the rules include one that a call must not bypass."""
        return self._guards

    def guarded(self, tool: str) -> bool:
        """Return True if a rule hides `tool`, bounds its arguments, or withholds its results."""
        if self._held.withheld(tool) is not None:
            return True
        return any(rule.failure_policy.protects for rule, _ in self.covering(tool))

    @property
    def budget(self) -> Rule | None:
        """The rule for tools that no other rule covers."""
        return self._held.otherwise

    def dropped_by(self, tool: str) -> tuple[str, ...]:
        """Return the names of the rules whose snapshots a call of `tool` makes stale."""
        return self._droppers.get(tool, ())

    def covering(self, tool: str) -> Planned:
        """Return the rules for `tool`, each with its plan."""
        found = self._plans.get(tool)
        if found is None:
            fact = self._seen.get(tool) or ToolFacts(self._implied.get(tool, frozenset()))
            found = self.plans_for(tool, fact)
            if len(tool) > _LONGEST_NAME:
                return found
            if len(self._plans) > _REMEMBERED:
                self._plans.clear()
            self._plans[tool] = found
        return found

    def guessed(self, tool: str, own: frozenset[str]) -> Planned:
        """Return the rules for an unlisted tool that must have the arguments `own`."""
        if len(tool) > _LONGEST_NAME:
            return self.plans_for(tool, ToolFacts(own))
        known = self._implied.get(tool, frozenset())
        if not own <= known:
            self._implied[tool] = own | known
            self._plans.pop(tool, None)
            if len(self._implied) > _REMEMBERED:
                del self._implied[next(iter(self._implied))]
        return self.covering(tool)

    def hiding(self, tool: str) -> tuple[Rule | None, Hidden | None]:
        """Return the rule that hides `tool`, if any, and the error for calls of a hidden tool."""
        hiding = next((rule for rule, _ in self.covering(tool) if rule.hides), None)
        return hiding, self._held.withheld(tool) or (None if hiding is None else hiding.hide)

    def plans_for(self, tool: str, fact: ToolFacts) -> Planned:
        """Return the rules for `tool`, each with its plan, given the facts of the tool."""
        return planned(self._held, tool, fact)

    @property
    def _held(self) -> RuleSet:
        return self.now() if self._ruleset is None else self._ruleset


def planned(rules: RuleSet, tool: str, fact: ToolFacts) -> Planned:
    """Return the rules for `tool`, each with its plan.

    The budget never applies to an app: a widget that parses part of a result shows wrong data.
    """
    return tuple(
        (
            rule,
            argument.plan(rule, fact.arguments, objects=fact.objects)
            if rule.mode == "active"
            else ArgumentPlan(),
        )
        for rule in rules.covering(tool)
        if not (fact.app and rule is rules.otherwise)
    )


@lru_cache(4096)
def _shared(fact: Fact) -> Fact:
    """Return an equal object that already exists: thousands of sessions learn the same facts.

    >>> _shared(frozenset({"a"})) is _shared(frozenset({"a"}))
    True
    """
    return fact
