"""Loaded and checked rules, and the selection of the rule for a call."""

from collections.abc import Collection, Mapping
from functools import cached_property
from typing import Any, Literal

from msgspec import UNSET, Struct
from msgspec.structs import replace

from proxy.document.fuel import LITTLE, Fuel
from proxy.document.paths import matches
from proxy.document.patterns import Expression, Pattern, truthy
from proxy.errors import OutOfFuel, Refusal
from proxy.ruleset.circuit_breaker import CircuitBreaker
from proxy.ruleset.guard import Guard
from proxy.transforms.base import Parameter, Schema, Transform

BURNING = frozenset(("contract", "filter", "jmespath", "parse", "project", "recast", "replace"))
"""The steps that burn fuel, since the document's size does not bound their work."""


class Messages(Struct, frozen=True, kw_only=True):
    """Messages that replace the standard text of a refusal, by the bound that refuses."""

    minimum: str | None = None
    """For a lesser number."""
    maximum: str | None = None
    """For a greater number."""
    enum: str | None = None
    """For any other value."""
    max_length: str | None = None
    """For a longer text."""
    pattern: str | None = None
    """For a text that it does not match anywhere."""
    type: str | None = None
    """For a value of another type."""


class Bounds(Struct, frozen=True, kw_only=True):
    """The bounds of one argument (`arguments:` in a rule file)."""

    default: Any = UNSET
    """The argument's value if the call does not have it."""
    minimum: int | float | None = None
    """A lesser number is refused."""
    maximum: int | float | None = None
    """A greater number is refused."""
    enum: tuple[Any, ...] | None = None
    """Any other value is refused."""
    max_length: int | None = None
    """A text of more characters is refused."""
    pattern: Pattern | None = None
    """A text that it does not match anywhere is refused."""
    type: Literal["string", "integer", "number", "boolean", "array", "object"] | None = None
    """A value of another JSON type is refused."""
    clamp: bool = False
    """A value beyond `minimum`, `maximum` or `max_length` is moved to it, not refused."""
    alias_of: str | None = None
    """A further name for that argument; the server gets the value by that one."""
    upstream: bool = True
    """`false`: the argument is for the rule alone; the server never sees it."""
    message: str | Messages | None = None
    """The message of a refusal: one text for all bounds, or one for each."""
    description: str | None = None
    """The description of the argument for the client."""

    @property
    def limits(self) -> bool:
        """True if a value may be refused."""
        words = (self.minimum, self.maximum, self.enum, self.max_length, self.pattern, self.type)
        return any(word is not None for word in words)


class Hidden(Struct, frozen=True):
    """The error response to a call of a hidden tool; `{tool}` in `message` is the tool's name."""

    code: int = -32602
    """The code of the JSON-RPC error."""
    message: str = "Unknown tool: {tool}"
    """Its message; `{tool}` in it is the tool's name."""


class Definition(Struct, frozen=True, kw_only=True):
    """Edits of a tool's entry in tools/list (`definition:` in a rule file)."""

    description: str | None = None
    """The new description of the tool."""
    max_description: int | None = None
    """The most characters of the description."""
    drop: tuple[str, ...] = ()
    """Keywords to drop from the schemas, such as `examples`; properties always stay."""
    meta: dict[str, Any] | None = None
    """Members to put into the tool's `_meta`."""


class Rule(Struct, frozen=True, kw_only=True, dict=True):
    """The handling of calls of some tools, and of their responses.

    `pipeline` holds the steps of `response` in order, then the check of `validate`, and the
    `abridge` of `max_bytes` last. `errors` are the steps for error results.
    `place` is `file:line`, for logs. `foreign` is true if a step or the guard comes from Python
    that the rule file names: it may depend on this process, so it runs in no other.
    """

    name: str
    tools: tuple[str, ...]
    when: Expression | None = None
    pipeline: tuple[Transform, ...] = ()
    arguments: Mapping[str, Bounds] = {}
    definition: Definition | None = None
    hide: Hidden | None = None
    document: Literal["auto", "structured", "text", "blocks"] = "auto"
    drop_blocks: tuple[str, ...] = ()
    layout: Literal["compact", "as_sent"] = "compact"
    error_if: Expression | Pattern | None = None
    copies: Literal["both", "text", "structured"] = "both"
    errors: tuple[Transform, ...] = ()
    guard: Guard | None = None
    on_failure: Literal["pass", "refuse"] | None = None
    allow_growth: bool = True
    mode: Literal["active", "shadow"] = "active"
    max_bytes: int | None = None
    view: bool = True
    output_schema: Schema | None = None
    validate: Literal["warn", "refuse"] | None = None
    tests: tuple[dict[str, Any], ...] = ()
    test_lines: tuple[int, ...] = ()
    place: str = ""
    foreign: bool = False

    @property
    def restart(self) -> int | None:
        """The first step (index) that a later page runs again; the snapshot is taken before it.

        That is the first step that leaves something out, or the `parse` before that step.
        None if no step leaves anything out.
        """
        cut = self.cut
        if cut is None:
            return None
        opening = [at for at, step in enumerate(self.pipeline[:cut]) if step.name == "parse"]
        return opening[0] if opening else cut

    @property
    def cut(self) -> int | None:
        """The first step (index) that leaves something out; views show the document before it."""
        return next((at for at, step in enumerate(self.pipeline) if step.cuts), None)

    @cached_property
    def made(self) -> str:
        """A checksum of all that determines the document of a snapshot, equal in every process."""
        # hash() differs between processes, and hashlib takes 3 ms to import.
        from zlib import crc32

        steps = self.pipeline[: self.restart]
        how = (self.document, self.drop_blocks, self.layout, self.error_if, self.copies)
        return f"{crc32(repr((steps, how)).encode()):08x}"

    @cached_property
    def circuit(self) -> CircuitBreaker:
        """The circuit breaker, shared by all users of the rule until it is loaded again."""
        return CircuitBreaker()

    @cached_property
    def costly(self) -> bool:
        """True if the size of a response does not bound the work on it."""
        steps = (*self.pipeline, *self.errors)
        return self.error_if is not None or any(step.name in BURNING for step in steps)

    @property
    def windows(self) -> tuple[Transform, ...]:
        """The windows: steps whose remainder a later call can request."""
        return tuple(step for step in self.pipeline if step.window)

    @property
    def viewable(self) -> bool:
        """True if the tool gains the `view` argument."""
        return self.view and any(step.name == "abridge" for step in self.pipeline)

    @property
    def only_abridges(self) -> bool:
        """True if the pipeline is a single `abridge`."""
        return len(self.pipeline) == 1 and self.pipeline[0].name == "abridge"

    @property
    def only_bounds(self) -> bool:
        """True if the rule leaves every response within `max_bytes` unchanged."""
        return (
            self.only_abridges
            and self.max_bytes is not None
            and not self.drop_blocks
            and self.copies == "both"
            and not self.structures
            and not self.errors
        )

    @property
    def structures(self) -> bool:
        """True if each result must have structuredContent, to fit the advertised schema."""
        return self.output_schema is not None and self.copies != "text" and self.mode == "active"

    @property
    def closing(self) -> tuple[Transform, ...]:
        """The last steps, which apply to a document of any shape: `validate` and `max_bytes`."""
        count = (self.validate is not None) + (self.max_bytes is not None)
        return self.pipeline[len(self.pipeline) - count :]

    @property
    def hides(self) -> bool:
        """True if the tool is hidden; a rule in shadow mode changes nothing."""
        return self.hide is not None and self.mode == "active"

    @property
    def withholds(self) -> bool:
        """True if a response that the rule could not process is withheld (fail closed)."""
        return self.mode == "active" and "refuse" in (self.on_failure, self.validate)

    @property
    def exclusive(self) -> bool:
        """True if a response that the rule's own steps cannot process is withheld (fail closed)."""
        own = len(self.pipeline) > len(self.closing)
        return own and self.mode == "active" and self.on_failure == "refuse"

    @property
    def bounding(self) -> "Rule":
        """The rule for a document of any other shape: only the `closing` steps of this rule."""
        return replace(self, pipeline=self.closing, drop_blocks=(), copies="both")

    @property
    def bare(self) -> "Rule":
        """The rule for a result without a document: only the `max_bytes` of this rule."""
        assert self.max_bytes is not None
        return replace(self, pipeline=self.pipeline[-1:], validate=None)

    @property
    def of_errors(self) -> "Rule":
        """The rule for an error: only the `max_bytes` of this rule."""
        bounding = self.pipeline[-1:] if self.max_bytes is not None else ()
        return replace(
            self,
            pipeline=bounding,
            drop_blocks=(),
            copies="both",
            validate=None,
            output_schema=None,
            guard=None,
        )

    @property
    def protects(self) -> bool:
        """True if the rule fails closed: it refuses, rather than passes, when in doubt."""
        return self.mode == "active" and (
            self.hide is not None
            or self.guard is not None
            or self.withholds
            or any(bounds.limits for bounds in self.arguments.values())
        )

    def at(self, tool: str) -> str:
        """Return the names of the rule and the tool, the prefix of log lines."""
        return tool if self.name == tool else f"{self.name}: {tool}"

    def covers(self, tool: str) -> bool:
        """Return True if the rule is for `tool`, whatever the arguments."""
        return any(matches(pattern, tool) for pattern in self.tools)

    def applies(self, arguments: Mapping[str, Any]) -> bool:
        """Return True if `when` holds for the arguments; raises Refusal if it runs out of fuel."""
        if self.when is None:
            return True
        try:
            # Little fuel: all other calls wait for this decision.
            return truthy(self.when.search(arguments, Fuel(LITTLE)))
        except OutOfFuel as spent:
            raise Refusal(str(spent)) from spent


class ServerMatch(Struct, frozen=True):
    """The server of a rule file: a glob on serverInfo.name, and tools that must exist."""

    name: str = "*"
    """A glob on the server's name (`serverInfo.name`)."""
    tools: tuple[str, ...] = ()
    """Tools (names or globs) that the server must have."""

    def fits(self, tools: Collection[str]) -> bool:
        """Return True if a server with these tools has every tool that the file requires."""
        return all(any(matches(pattern, tool) for tool in tools) for pattern in self.tools)


class RuleFile(Struct, frozen=True, kw_only=True):
    """One loaded rule file; `unexposed` is the response to calls of tools not in `expose`."""

    name: str
    rules: tuple[Rule, ...] = ()
    server: ServerMatch | None = None
    expose: tuple[str, ...] | None = None
    unexposed: Hidden = Hidden()


class RuleSet(Struct, frozen=True):
    """Rule files in the order given, and the rule for tools that no file matches, if any."""

    files: tuple[RuleFile, ...] = ()
    otherwise: Rule | None = None

    @property
    def guards(self) -> bool:
        """True if a file has an `expose` list, or any rule protects."""
        return any(
            file.expose is not None or any(rule.protects for rule in file.rules)
            for file in self.files
        )

    def fitting(self, tools: Collection[str]) -> "RuleSet":
        """Return the rule set without the files for servers with other tools."""
        files = tuple(file for file in self.files if not file.server or file.server.fits(tools))
        return self if len(files) == len(self.files) else RuleSet(files, self.otherwise)

    def covering(self, tool: str) -> tuple[Rule, ...]:
        """Return every rule that may apply to `tool`, in order; the last may be `otherwise`."""
        found: list[Rule] = []
        for file in self.files:
            for rule in file.rules:
                if rule.covers(tool):
                    found.append(rule)
                    if rule.when is None:
                        # It applies to all calls that earlier rules leave.
                        return tuple(found)
        return (*found, self.otherwise) if self.otherwise is not None else tuple(found)

    def withheld(self, tool: str) -> Hidden | None:
        """Return the response to a call of `tool` if some `expose` list omits it, else None."""
        for file in self.files:
            if file.expose is not None and not any(matches(each, tool) for each in file.expose):
                return file.unexposed
        return None

    @property
    def droppers(self) -> dict[str, tuple[str, ...]]:
        """The names of rules whose snapshots a call invalidates, by the called tool (`drop_on`)."""
        found: dict[str, tuple[str, ...]] = {}
        for file in self.files:
            for rule in file.rules:
                for step in rule.pipeline:
                    for tool in getattr(step, "drop_on", None) or ():
                        found[tool] = (*found.get(tool, ()), rule.name)
        return found


EMPTY = RuleSet()

__all__ = [
    "EMPTY",
    "Bounds",
    "Definition",
    "Hidden",
    "Parameter",
    "Rule",
    "RuleFile",
    "RuleSet",
    "ServerMatch",
]
