"""The keys of a rule file and its parts as they are written; rule.py has the loaded rules."""

from collections.abc import Mapping
from typing import Annotated, Any, Literal

from msgspec import UNSET, Meta, Struct, field

from mcp_abridge.document.paths import Path
from mcp_abridge.document.sizes import LEAST_BOUND, Size
from mcp_abridge.query.patterns import Expression, Pattern
from mcp_abridge.ruleset.guard import Guard
from mcp_abridge.ruleset.loading.yaml_nodes import Node
from mcp_abridge.ruleset.rule import Bounds, Definition, Hidden
from mcp_abridge.ruleset.rule_set import ServerMatch
from mcp_abridge.transforms.base import Transform

Count = Annotated[int, Meta(ge=0)]
Bytes = Annotated[Size, Meta(ge=0)]
Bound = Annotated[Size, Meta(ge=LEAST_BOUND)]
_ABSENT: Any = UNSET  # for a key whose value may be null


class Steps(Struct, frozen=True):
    """The steps of a response, each with its position; a nested list is spliced in."""

    pairs: tuple[tuple[Node, Transform], ...] = ()


# Types with a notation of their own; the titles tell them apart.
GuardSpec = Annotated[Guard | None, Meta(title="a guard of `guards` at the top")]
PluginClasses = Annotated[Mapping[str, type], Meta(title="classes, each as `module:Class`")]
# The rules of a file, unread; they are read once the defaults are known.
RuleNodes = Annotated[tuple[Node, ...], Meta(title="rules")]
Defaults = Annotated[Node, Meta(title="the keys that every rule starts from")]


class Match(Struct, frozen=True):
    """A regular expression that a text is searched for."""

    match: Pattern
    """Searched for anywhere in the text."""


class Blocks(Struct, frozen=True):
    """The content blocks beside the document: blocks of the types in `drop` are removed."""

    drop: tuple[Literal["text", "image", "audio", "resource", "resource_link"], ...]
    """The types of the blocks to drop."""


class QuerySpec(Struct, frozen=True):
    """The query of a guard to the server: a tool, and the arguments of the call."""

    tool: str
    """The tool that is called."""
    arguments: dict[str, Any] = {}
    """The arguments of that call."""


class CaseSpec(Struct, frozen=True, kw_only=True):
    """A test of a rule: the input, and the expected result."""

    name: str | None = None
    """Shown if the test fails."""
    tool: str | None = None
    """The tool to call; required if `tools` has several, or a glob."""
    arguments: dict[str, Any] | None = None
    """The arguments of the call."""
    resource: str | None = None
    """The URI that is read, with a view if that is tested; required if `resources` has several, or
    a glob."""
    given: Any = UNSET
    """The server's answer: a JSON value as one text block. In it, `{$repeat: value, times: 3}` is
    an array of 3 such values; `{n}` in its texts is the number of each, from 0."""
    given_text: str | dict[str, Any] | None = None
    """The server's answer as a text; or `{$repeat: text, times: 3}`, which is joined."""
    given_file: str | None = None
    """A recorded response, result or exchange, or any other JSON, beside the rule file."""
    given_result: dict[str, Any] | None = None
    """The whole CallToolResult, if `structuredContent` or blocks matter."""
    given_error: str | dict[str, Any] | None = None
    """An error result with this text, or with a document as its text."""
    found: Any = UNSET
    """The server's answer to the query of a guard: a document or a text."""
    found_error: str | None = None
    """The text of the server's error for the query."""
    found_nothing: bool = False
    """`true`: the server does not answer the query."""
    expect: Any = UNSET
    """The document that the client gets, member order aside."""
    expect_text: str | tuple[str, ...] | None = None
    """The first text that the client gets; of a list, all texts."""
    expect_at: dict[str, Any] | None = None
    """Values in that document, by path."""
    expect_keys: dict[str, Count] | None = None
    """The number of keys of objects in that document, by path."""
    absent: tuple[Path, ...] = ()
    """Paths that name nothing in that document."""
    max_bytes: Bytes | None = None
    """The most bytes that the model sees."""
    min_reduction: float | None = None
    """The answer is at least this many times smaller, in bytes that the model sees."""
    expect_error: str | dict[str, Any] | None = None
    """The answer is an error with this text, or this document as its text."""
    untouched: bool = False
    """The response passes byte for byte."""
    refused: str | dict[str, Any] | None = None
    """The call does not reach the server; the refusal is exactly this text, or this document."""
    asks: QuerySpec | None = None
    """The query of a guard to the server, before the call."""
    upstream: dict[str, Any] | None = _ABSENT
    """Exactly the arguments that the server gets; `null`: the server gets no call."""
    warns: tuple[str, ...] | None = None
    """The kinds of all warnings, each once."""
    rejoins: bool = False
    """All pages or windows together give the original."""


class RuleSpec(Struct, frozen=True, kw_only=True):
    """A rule as it is written: the first one that matches a call applies."""

    tools: Annotated[tuple[str, ...], Meta(min_length=1)] = ()
    """A tool's name, a glob, or a list of them. A rule has `tools` or `resources`."""
    resources: Annotated[tuple[str, ...], Meta(min_length=1)] = ()
    """The URI of a resource, a glob, or a list of them, in place of `tools`: the rule is for reads
    of these. Without `response` and `max_bytes` they have the budget."""
    name: str | None = None
    """Shown by explain, report and in errors; by default the tools, or the resources."""
    when: Expression | None = None
    """A condition over the call's arguments as the client sent them, such as `action == 'status'`.
    If its evaluation fails, the rule does not apply; a rule with bounds, a guard, `on_failure:
    refuse` or `validate: refuse` refuses the call instead."""
    response: Steps = Steps()
    """Transforms, in the order in which they run; a list in the list is spliced in."""
    errors: Steps = Steps()
    """The transforms for errors, in order: results with `isError` or that `error_if` matches,
    JSON-RPC errors, and the proxy's own refusals. No windows."""
    guard: GuardSpec = None
    """Decides on each call before it reaches the server: a name from `guards` at the top of the
    file, with its options (`{name: options}`) or alone; `null` for none."""
    arguments: dict[str, Bounds] = {}
    """Bounds, defaults and aliases of arguments, by name or dotted path (`filter.limit`). They are
    checked and completed before the call is sent."""
    definition: Definition | None = None
    """Edits of the tool's entry in `tools/list`. Not beside `when`."""
    hide: bool | Hidden = False
    """The tool is not listed, and a call of it gets the answer for an unknown tool without reaching
    the server. Not beside `when`."""
    document: Literal["auto", "structured", "text", "blocks"] = "auto"
    """The part of the result that the transforms work on."""
    blocks: Blocks | None = None
    """Content blocks beside the document to drop; a note counts them."""
    layout: Literal["compact", "as_sent"] = "compact"
    """JSON is written compact, or with the server's indentation."""
    error_if: Expression | Match | None = None
    """Results that count as errors, which `errors` handles in place of `response`: a JMESPath
    condition, or `{match: regular expression}` for a text."""
    copies: Literal["both", "text", "structured"] = "both"
    """The copies to send of a document that the server sent twice."""
    on_failure: Literal["pass", "refuse"] | None = None
    """If a step fails, or does not fit the response: `pass` the untouched response (the default),
    or `refuse`: withhold it, and answer with an error that names the rule. If the guard fails:
    `pass` the call on, or `refuse` it (the default)."""
    allow_growth: bool = True
    """`false`: if the model would see more bytes than the server sent, the response passes
    unchanged. By default it may grow: a fixed shape makes a small result larger."""
    mode: Literal["active", "shadow"] = "active"
    """`shadow` measures what the rule would save, and changes nothing."""
    max_bytes: Bound | Literal["auto"] | None = None
    """The most bytes that the model sees; a longer response is abridged as a last step. `auto` is
    the budget, as for a tool without a rule (`--budget`)."""
    view: bool = True
    """`false`: the tool gains no argument that shows what `abridge` left out."""
    refetch: bool = False
    """Call the server again for a view if no snapshot is left, even if the tool may have side
    effects."""
    drop_on: tuple[str, ...] = ()
    """Tools whose calls make the snapshots of this rule stale: a view after them runs the tool."""
    breadth: bool = True
    """`false`: of an array that is too long, `abridge` shows the first objects in full; by default
    it shows all of them in brief."""
    images: bool = True
    """`false`: images pass as they came. By default, those of more than 1,568 pixels on a
    side, or of 1 MB, are made smaller if the extra `images` is installed."""
    output_schema: dict[str, Any] | None = None
    """The JSON Schema of the rule's results: if it cannot be derived, or as a contract. It is
    advertised, and every result that is not an error then has `structuredContent`. Its root is
    `type: object`; `nullable: true` admits null."""
    validate: Literal["warn", "text", "refuse"] | None = None
    """Checks every response against `output_schema`: `warn` counts and logs violations, `refuse`
    answers with an error that names them. `text` sends a response that violates it all the same,
    with `structuredContent: {text: ...}`: the schema is advertised as it is, and no client refuses
    the response."""
    tests: tuple[CaseSpec, ...] = ()
    """Cases that `mcp-abridge test` runs."""


# Keys that a file cannot set for all its rules at once.
NO_DEFAULTS = frozenset(("tools", "resources", "name", "when", "tests"))
# Keys of rules for tools alone: a read has no arguments, no schema and no errors in its results.
OF_TOOLS = frozenset((
    *("when", "errors", "guard", "arguments", "definition", "hide", "error_if", "copies"),
    *("output_schema", "validate", "refetch"),
))  # fmt: skip


class RuleFileSpec(Struct, frozen=True, kw_only=True):
    """A rule file of mcp-abridge. Keys that begin with `x-` are yours, for anchors."""

    version: Literal[1]
    """The version of the rule language: 1."""
    server: ServerMatch | None = None
    """The server that the file is for; its rules do not apply to another one. What protects calls
    (`hide`, `expose`, guards, bounds of arguments, `refuse`) does not end with a change of name or
    tools: in a session in which it was in force, it stays so; in a later one of the same command or
    URL, the calls that it protects are refused until `server` is right."""
    transforms: PluginClasses = {}
    """Transforms of your own, in Python: the name of each, and its class as `module:Class`. The
    module is a file beside the rule file (`module.py`), or an installed one; it runs only with
    `--allow-python`."""
    guards: PluginClasses = {}
    """Guards, in Python, named in the same way; a rule's `guard` is one of them."""
    expose: tuple[str, ...] | None = None
    """Only these tools (names or globs) are shown and may be called."""
    defaults: Defaults = field(default_factory=lambda: Node({}, 1, 1))
    """Keys that every rule of the file starts from; a rule that has the key itself wins. Not
    `tools`, `resources`, `name`, `when` and `tests`."""
    rules: RuleNodes = ()
    """The first rule that matches a call applies."""
