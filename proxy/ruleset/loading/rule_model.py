"""The keys of a rule file and its parts as they are written; rule.py has the loaded rules."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, field

from proxy.document.paths import Path
from proxy.document.patterns import Expression, Pattern
from proxy.document.sizes import Size
from proxy.ruleset.guard import Guard
from proxy.ruleset.loading.yaml_nodes import Node
from proxy.ruleset.rule import Bounds, Definition, Hidden, ServerMatch
from proxy.transforms.base import Transform

Count = Annotated[int, Meta(ge=0)]
Bytes = Annotated[Size, Meta(ge=0)]
# The same minimum as the option of `abridge`, to which it is converted.
Bound = Annotated[Size, Meta(ge=300)]


# For a key whose value may be null.
_NOT_SAID: Any = UNSET


class Steps(Struct, frozen=True):
    """The steps of a response, each with its position; a nested list is spliced in."""

    placed: tuple[tuple[Node, Transform], ...] = ()


class GuardSpec(Struct, frozen=True):
    """The guard of a rule, with its position: `{name: options}`, a name of `guards` at the top."""

    placed: tuple[Node, Guard] | None = None


class PluginClasses(Struct, frozen=True):
    """Python classes by the names that the file gives them, each as `module:Class`."""

    classes: Mapping[str, type] = {}


class Match(Struct, frozen=True):
    """A regular expression that a text is searched for."""

    match: Pattern


class Blocks(Struct, frozen=True):
    """The content blocks beside the document: blocks of the types in `drop` are removed."""

    drop: tuple[Literal["text", "image", "audio", "resource", "resource_link"], ...]


class QuerySpec(Struct, frozen=True):
    """The query of a guard to the server: a tool, and the arguments of the call."""

    tool: str
    arguments: dict[str, Any] = {}


class CaseSpec(Struct, frozen=True, kw_only=True):
    """A test of a rule: the input, and the expected result."""

    name: str | None = None
    tool: str | None = None
    arguments: dict[str, Any] | None = None
    given: Any = UNSET
    given_text: str | dict[str, Any] | None = None
    given_file: str | None = None
    given_result: dict[str, Any] | None = None
    given_error: str | dict[str, Any] | None = None
    found: Any = UNSET
    found_error: str | None = None
    found_nothing: bool = False
    expect: Any = UNSET
    expect_text: str | tuple[str, ...] | None = None
    expect_at: dict[str, Any] | None = None
    expect_keys: dict[str, Count] | None = None
    absent: tuple[Path, ...] = ()
    max_bytes: Bytes | None = None
    min_reduction: float | None = None
    expect_error: str | dict[str, Any] | None = None
    untouched: bool = False
    refused: str | dict[str, Any] | None = None
    asks: QuerySpec | None = None
    upstream: dict[str, Any] | None = _NOT_SAID
    warns: tuple[str, ...] | None = None
    rejoins: bool = False


class RuleSpec(Struct, frozen=True, kw_only=True):
    """A rule as it is written: the first one that matches a call applies."""

    tools: Annotated[tuple[str, ...], Meta(min_length=1)]
    name: str | None = None
    when: Expression | None = None
    response: Steps = Steps()
    errors: Steps = Steps()
    guard: GuardSpec = GuardSpec()
    arguments: dict[str, Bounds] = {}
    definition: Definition | None = None
    hide: bool | Hidden = False
    document: Literal["auto", "structured", "text", "blocks"] = "auto"
    blocks: Blocks | None = None
    layout: Literal["compact", "as_sent"] = "compact"
    error_if: Expression | Match | None = None
    copies: Literal["both", "text", "structured"] = "both"
    on_failure: Literal["pass", "refuse"] | None = None
    allow_growth: bool = True
    mode: Literal["active", "shadow"] = "active"
    max_bytes: Bound | None = None
    view: bool = True
    output_schema: dict[str, Any] | None = None
    validate: Literal["warn", "refuse"] | None = None
    tests: tuple[CaseSpec, ...] = ()


# Keys that a file cannot set for all its rules at once.
NO_DEFAULTS = frozenset(("tools", "name", "when", "tests"))


class RuleNodes(Struct, frozen=True):
    """The rules of a file, unread; they are read once the defaults are known."""

    nodes: tuple[Node, ...] = ()


class Defaults(Struct, frozen=True):
    """Keys that every rule of the file starts from."""

    node: Node = field(default_factory=lambda: Node({}, 1, 1))


class RuleFileSpec(Struct, frozen=True, kw_only=True):
    """A rule file of mcp-abridge. Keys that begin with `x-` are yours, for anchors."""

    version: Literal[1]
    server: ServerMatch | None = None
    transforms: PluginClasses = PluginClasses()
    guards: PluginClasses = PluginClasses()
    expose: tuple[str, ...] | None = None
    defaults: Defaults = field(default_factory=Defaults)
    rules: RuleNodes = RuleNodes()
