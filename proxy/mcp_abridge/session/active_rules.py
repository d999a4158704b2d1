"""The facts of one client and server, and the rules in force for them."""

from collections.abc import Callable, Iterator
from functools import lru_cache
from typing import TypeVar

from msgspec import Raw, Struct, field

from mcp_abridge.document.message import APPS, LONGEST_NAME, value_at
from mcp_abridge.document.tree import ABSENT
from mcp_abridge.ruleset.rule import Hidden, Rule
from mcp_abridge.ruleset.rule_set import RuleFile, RuleSet, ServerMatch
from mcp_abridge.session.tools.definitions import Plans, ToolFacts, plans_for

_MOST_NAMES = 8  # of one server
_MOST_TOOLS = 1000  # tools whose facts and rules are remembered

Rules = Callable[[str | None, str | None, str | None], RuleSet]
Fact = TypeVar("Fact", ToolFacts, frozenset[str])


class PeerInfo(Struct):
    """The facts of one client and server, from which another session may start.

    `version` is the client's, which `shows_widgets` of tools (MCP Apps) or not. `tools` are the
    names of the server's, None if they are not known.
    """

    server: str | None = None
    client: str | None = None
    version: str | None = None
    tools: frozenset[str] | None = None
    facts: dict[str, ToolFacts] = {}
    shows_widgets: bool = False


class ToolRules(Struct, frozen=True):
    """The rules for one tool, each with its plan; of them the one that hides the tool.

    `refusal`: no call of the tool may run, for this reason. `guarded`: a rule hides the tool,
    bounds its arguments, or withholds its results. A call makes the snapshots of the rules in
    `drops` stale. An unlisted tool has the arguments `implied`.
    """

    plans: Plans
    hiding: Rule | None
    hidden_error: Hidden | None
    guarded: bool
    drops: tuple[str, ...] = ()
    implied: frozenset[str] = frozenset()
    refusal: str | None = None


class ActiveRules(Struct, eq=False):
    """The rules of a session, selected by the facts of its client and server.

    `_rules` and `_renamed` are called with the names of server and client, `_rules` also with the
    version of the client; `_rules` may block.
    """

    _rules: Rules
    _log: Callable[[str], None]
    _renamed: Callable[[str | None, str | None], None] = lambda server, client: None
    peer: PeerInfo = field(default_factory=PeerInfo)
    _by_tool: dict[str, ToolRules] = {}
    _selected: RuleSet | None = None
    _ruleset: RuleSet | None = None  # the rule files of `_selected` that fit the tools
    # Of this session: the first names of the server, and all tools that it listed.
    _servers: list[str] = []
    _all_tools: frozenset[str] | None = None
    _misfits: list[tuple[RuleFile, str]] = []  # files that must hold, but do not fit
    _remarks: dict[str, str] = {}  # the last one logged on a file
    guards: bool = False
    """True if the rules at the last use include one that a call must not bypass."""
    outdated: bool = False
    """True if the rules may differ from those in force at their last use."""

    @property
    def listed(self) -> bool:
        return self.peer.tools is not None

    def recall(self, info: PeerInfo) -> None:
        """Adopt the facts that another session learned of the same server and client."""
        self.rename(client=info.client, server=info.server, version=info.version)
        if info.tools is not None:
            self.offer(info.tools)
        self.peer.facts |= info.facts
        self._by_tool.clear()
        self.peer.shows_widgets |= info.shows_widgets

    def rename(
        self, *, client: str | None = None, server: str | None = None, version: str | None = None
    ) -> None:
        """Record the names of client and server, and the client's version, as far as given."""
        server = self.peer.server if server is None else server[:LONGEST_NAME]
        client = self.peer.client if client is None else client[:LONGEST_NAME]
        version = self.peer.version if version is None else version[:LONGEST_NAME]
        if (server, client, version) == (self.peer.server, self.peer.client, self.peer.version):
            return
        if server is not None and server != self.peer.server and len(self._servers) < _MOST_NAMES:
            self._servers.append(server)
        self.peer.server, self.peer.client, self.peer.version = server, client, version
        self._ruleset = None
        self._by_tool.clear()
        self._renamed(server, client)

    def read_capabilities(self, capabilities: Raw) -> None:
        """Record what a client's capabilities say, of a session or of its next request alone."""
        # Revisions before 2026-07-28 have no `extensions`: some clients declare in `experimental`.
        places = ("extensions", "experimental")
        shows_widgets = any(value_at(capabilities, each, APPS) is not ABSENT for each in places)
        if shows_widgets != self.peer.shows_widgets:
            self.peer.shows_widgets = shows_widgets
            self._by_tool.clear()

    def offer(self, tools: frozenset[str]) -> None:
        if tools != self.peer.tools:
            self.peer.tools, self._ruleset = _shared(tools), None
            if self._all_tools is None or len(self._all_tools) < _MOST_TOOLS:
                self._all_tools = _shared(tools | (self._all_tools or tools))

    def learn(self, facts: dict[str, ToolFacts]) -> None:
        for tool, fact in facts.items():
            if self.peer.facts.get(tool) != fact:
                self.peer.facts[tool] = _shared(fact)
                self._by_tool.pop(tool, None)
        while len(self.peer.facts) > _MOST_TOOLS:
            del self.peer.facts[next(iter(self.peer.facts))]

    def facts(self, tool: str) -> ToolFacts | None:
        """Return the facts of `tool` from a tool list, None if it was not listed."""
        return self.peer.facts.get(tool)

    def select(self) -> RuleSet:
        """Select the rules for the next message; may block while files are read."""
        selected = self._rules(self.peer.server, self.peer.client, self.peer.version)
        if self._ruleset is None or selected is not self._selected:
            if self._selected is not None and selected is not self._selected:
                self.outdated = True
            self._selected = selected
            files = tuple(self._in_force(selected))
            # Not a new one without need: equal rules would count as a change.
            fits = files == selected.files
            self._ruleset = selected if fits else RuleSet(files, selected.otherwise)
            self.guards = self._ruleset.guards or bool(self._misfits)
            self._by_tool.clear()
        return self._ruleset

    def _in_force(self, selected: RuleSet) -> Iterator[RuleFile]:
        """Yield the files that are for this server, and those that must hold although it changed.

        What protects calls must not end because the server says that it is another one.
        """
        history = selected.history
        self._misfits = []
        for file in selected.candidates or selected.files:
            match = file.server
            misfit = None if match is None else match.misfit(self.peer.server, self.peer.tools)
            if match is None or misfit is None:
                if (
                    match is not None
                    and history is not None
                    and file.protects
                    and match.decidable(self.peer.server, self.peer.tools)
                ):
                    history.add(file.name)
                yield file
                continue
            holds = True
            if file.required:
                self._misfits.append((file, misfit))
                remark = "no tool runs until `server` in it is right"
            elif file.protects and self._did_fit(match):
                remark = "it was the right one before, so its rules stay in force"
            elif file.protects and history is not None and file.name in history:
                self._misfits.append((file, misfit))
                remark = (
                    "it was the right one in an earlier session, so the calls that it protects are "
                    "refused until `server` in it is right; or, if it never was meant for this "
                    f"server, delete {history.record(file.name)}"
                )
            else:
                holds, remark = False, "none of its rules apply"
            if self._remarks.get(file.name) != remark:
                self._remarks[file.name] = remark
                self._log(f"{file.name}: {misfit}; {remark}")
            if holds:
                yield file

    def _did_fit(self, match: ServerMatch) -> bool:
        return any(match.misfit(name, self._all_tools) is None for name in self._servers or (None,))

    def rest(self) -> None:
        """Release the rules: they may be replaced many times before their next use."""
        self.outdated = True
        self._selected = self._ruleset = None
        self._by_tool.clear()

    # The following use the rules of the last `select`: one message uses one version of the files.

    @property
    def budget(self) -> Rule | None:
        """The rule for tools that no other rule covers."""
        return self._ruleset_in_use.otherwise

    def of_resource(self, uri: str) -> Rule | None:
        return self._ruleset_in_use.of_resource(uri)

    def covering(self, tool: str, implied: frozenset[str] = frozenset()) -> ToolRules:
        """Return the rules for `tool`, which has the arguments `implied` if it was not listed."""
        rules = self._by_tool.get(tool)
        if rules is not None:
            if implied <= rules.implied:
                return rules
            implied |= rules.implied
        ruleset = self._ruleset_in_use
        facts = self.peer.facts.get(tool) or ToolFacts(implied)
        plans = plans_for(ruleset, tool, facts, shows_widgets=self.peer.shows_widgets)
        hiding = next((rule for rule, _ in plans if rule.hides), None)
        error = ruleset.withheld(tool)
        guarded = error is not None or any(rule.failure_policy.protects for rule, _ in plans)
        if error is None and hiding is not None:
            error = hiding.hide
        refusal = next(
            (
                f"{tool} does not run: {file.name} protects its calls, but {misfit}. If the server "
                "was changed on purpose, check that these rules still fit it, and correct `server` "
                "in that file"
                for file, misfit in self._misfits
                if file.required or file.protects_calls(tool)
            ),
            None,
        )
        drops = ruleset.droppers.get(tool, ())
        rules = ToolRules(plans, hiding, error, guarded, drops, implied, refusal)
        if len(tool) <= LONGEST_NAME:
            if len(self._by_tool) > _MOST_TOOLS:
                self._by_tool.clear()
            self._by_tool[tool] = rules
        return rules

    @property
    def _ruleset_in_use(self) -> RuleSet:
        return self.select() if self._ruleset is None else self._ruleset


@lru_cache(4096)
def _shared(fact: Fact) -> Fact:
    """Return an equal object that already exists: thousands of sessions learn the same facts."""
    return fact
