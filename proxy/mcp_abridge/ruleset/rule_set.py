"""Rule files in order: which rule takes a call, and which files are for the server at hand."""

from collections.abc import Callable, Collection

from msgspec import Struct
from msgspec.structs import replace

from mcp_abridge.document.paths import matches
from mcp_abridge.document.printable import quoted
from mcp_abridge.ruleset.rule import Hidden, Rule
from mcp_abridge.storage.rule_history import RuleHistory


class ServerMatch(Struct, frozen=True):
    """The server of a rule file: a glob on serverInfo.name, and tools that must exist."""

    name: str = "*"
    """A glob on the server's name (`serverInfo.name`)."""
    tools: tuple[str, ...] = ()
    """Tools (names or globs) that the server must have."""

    required: bool = False
    """`true`: if the server is another one, none of its tools runs."""

    def misfit(self, server: str | None, tools: Collection[str] | None) -> str | None:
        """Return why a server with this name and these tools is another one; None: not known."""
        if server is not None and not matches(self.name, server):
            return f"it is for server {self.name!r}, and this one is {quoted(server)}"
        for pattern in self.tools:
            if tools is not None and not any(matches(pattern, tool) for tool in tools):
                this = "this one" if server is None else quoted(server)
                return f"it is for a server with the tool {pattern!r}, which {this} lacks"
        return None

    def decidable(self, server: str | None, tools: Collection[str] | None) -> bool:
        """Return True if enough is known of a server to say whether it is the one."""
        return not (server is None and self.name != "*") and not (tools is None and self.tools)


class RuleFile(Struct, frozen=True, kw_only=True):
    """One loaded rule file; `unexposed` is the response to calls of tools not in `expose`."""

    name: str
    rules: tuple[Rule, ...] = ()
    server: ServerMatch | None = None
    expose: tuple[str, ...] | None = None
    unexposed: Hidden = Hidden()

    @property
    def protects(self) -> bool:
        return self.expose is not None or any(rule.failure_policy.protects for rule in self.rules)

    @property
    def required(self) -> bool:
        return self.server is not None and self.server.required

    def with_rules(self, change: Callable[[Rule], Rule]) -> "RuleFile":
        return replace(self, rules=tuple(map(change, self.rules)))

    def protects_calls(self, tool: str) -> bool:
        covering = RuleSet((self,)).covering(tool)
        return any(rule.failure_policy.protects for rule in covering)


class RuleSet(Struct, frozen=True):
    """Rule files in the order given, and the rule for tools that no file matches, if any.

    `candidates` are the files and, between them, those for other servers that protect calls: they
    may have to hold all the same, as far as `history` has them.
    """

    files: tuple[RuleFile, ...] = ()
    otherwise: Rule | None = None
    candidates: tuple[RuleFile, ...] = ()
    history: RuleHistory | None = None

    @property
    def guards(self) -> bool:
        return any(file.protects for file in self.files)

    def fitting(self, tools: Collection[str]) -> "RuleSet":
        """Return the rule set without the files for servers with other tools."""
        files = tuple(
            file for file in self.files if not (file.server and file.server.misfit(None, tools))
        )
        return self if len(files) == len(self.files) else RuleSet(files, self.otherwise)

    def with_rules(self, change: Callable[[Rule], Rule]) -> "RuleSet":
        """Return the rule set with another rule in place of each; without the candidates."""
        files = tuple(file.with_rules(change) for file in self.files)
        return RuleSet(files, self.otherwise and change(self.otherwise))

    def covering(self, tool: str) -> tuple[Rule, ...]:
        """Return every rule that may apply to `tool`, in order; the last may be `otherwise`."""
        rules: list[Rule] = []
        for rule in (rule for file in self.files for rule in file.rules if rule.covers(tool)):
            rules.append(rule)
            if rule.when is None:  # it applies to all calls that earlier rules leave
                return tuple(rules)
        return (*rules, self.otherwise) if self.otherwise is not None else tuple(rules)

    def of_resource(self, uri: str) -> Rule | None:
        rules = (rule for file in self.files for rule in file.rules)
        return next((rule for rule in rules if rule.covers_resource(uri)), None)

    def withheld(self, tool: str) -> Hidden | None:
        """Return the response to a call of `tool` if some `expose` list omits it, else None."""
        for file in self.files:
            if file.expose is not None and not any(matches(each, tool) for each in file.expose):
                return file.unexposed
        return None

    @property
    def droppers(self) -> dict[str, tuple[str, ...]]:
        """The names of rules whose snapshots a call invalidates, by the called tool (`drop_on`)."""
        names: dict[str, tuple[str, ...]] = {}
        for rule in (rule for file in self.files for rule in file.rules):
            for part in (rule, *rule.pipeline):
                for tool in getattr(part, "drop_on", None) or ():
                    names[tool] = (*names.get(tool, ()), rule.name)
        return names
