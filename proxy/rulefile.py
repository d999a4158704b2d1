"""One rule file: the keys it may have, and what they become."""

from collections.abc import Iterator
from typing import Annotated, Any, Literal

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType

from proxy import consistency, positions
from proxy.errors import Problem
from proxy.fields import BAD, MAPS, Fields, described, fields, found
from proxy.paths import Path
from proxy.patterns import Expression, Pattern
from proxy.positions import Node
from proxy.rule import Bounds, Definition, Hidden, Rule, RuleFile, Server
from proxy.transforms import TRANSFORMS
from proxy.transforms.base import Transform

Bytes = Annotated[int, Meta(ge=1)]
Count = Annotated[int, Meta(ge=0)]


class Steps(Struct, frozen=True):
    """The steps of a response, each with its place; a list in the list is spliced in."""

    placed: tuple[tuple[Node, Transform], ...] = ()


class Match(Struct, frozen=True):
    """A regular expression that a text is searched for."""

    match: Pattern


class Blocks(Struct, frozen=True):
    """What happens to the content blocks beside the document: blocks of these types go."""

    drop: tuple[Literal["text", "image", "audio", "resource", "resource_link"], ...]


class Case(Struct, frozen=True, kw_only=True):
    """A test of a rule: what was given, and what must come of it."""

    name: str | None = None
    tool: str | None = None
    arguments: dict[str, Any] = {}
    given: Any = UNSET
    given_text: str | None = None
    given_file: str | None = None
    given_result: dict[str, Any] | None = None
    expect: Any = UNSET
    expect_at: dict[str, Any] | None = None
    expect_keys: dict[str, Count] | None = None
    absent: tuple[Path, ...] = ()
    max_bytes: Bytes | None = None
    min_reduction: float | None = None
    untouched: bool = False
    refused: str | None = None
    upstream: dict[str, Any] | None = None
    rejoins: bool = False


class Written(Struct, frozen=True, kw_only=True):
    """A rule as it is written: the first one that matches a call applies."""

    tools: tuple[str, ...]
    name: str | None = None
    when: Expression | None = None
    response: Steps = Steps()
    arguments: dict[str, Bounds] = {}
    definition: Definition | None = None
    hide: bool | Hidden = False
    document: Literal["auto", "structured", "text", "blocks"] = "auto"
    blocks: Blocks | None = None
    layout: Literal["compact", "as_sent"] = "compact"
    error_if: Expression | Match | None = None
    copies: Literal["both", "text", "structured"] = "both"
    on_failure: Literal["pass", "refuse"] = "pass"
    mode: Literal["active", "shadow"] = "active"
    max_bytes: Bytes | None = None
    view: bool = True
    output_schema: dict[str, Any] | None = None
    tests: tuple[Case, ...] = ()


# What a file cannot say for all its rules at once.
NO_DEFAULTS = frozenset(("tools", "name", "when", "tests"))


class Rules(Struct, frozen=True):
    """The rules of a file as they stand there; they are read once the defaults are known."""

    nodes: tuple[Node, ...] = ()


class Defaults(Struct, frozen=True):
    """Keys that every rule of the file starts from."""

    node: Node | None = None


class Head(Struct, frozen=True, kw_only=True):
    """A rule file of mcp-abridge. Keys that begin with `x-` are yours, for anchors."""

    version: Literal[1]
    server: Server | None = None
    expose: tuple[str, ...] | None = None
    defaults: Defaults = Defaults()
    rules: Rules = Rules()


class Reading(Struct, frozen=True):
    """What came of one file: `rules` unless there are problems; `readable` unless it is no YAML."""

    rules: RuleFile | None
    problems: tuple[Problem, ...] = ()
    readable: bool = True


def read(file: str, raw: bytes) -> Reading:
    """Read the bytes of one rule file; `file` is its name in messages.

    >>> read("r.yaml", b"version: 1\\nrules: [{tools: a, respons: []}]").problems[0].message
    "unknown key 'respons' of a rule; did you mean 'response'?"
    """
    root, slips = positions.read(file, raw)
    if root is None:
        return Reading(None, tuple(slips), readable=False)
    notes = Fields(file, {Steps: _steps, Rules: _rules, Defaults: _defaults})
    made = _file(notes, root)
    problems = sorted({*slips, *notes.problems})
    return Reading(None if problems else made, tuple(problems))


def _file(notes: Fields, root: Node) -> RuleFile | None:
    if not isinstance(root.value, dict):
        notes.report(root, f"expected a mapping with version and rules, found {found(root)}")
        return None
    own = {word: node for word, node in root.value.items() if not word.startswith("x-")}
    known = msgspec.structs.replace(root, value=own)
    values = notes.members(known, Head, "a rule file", "key")
    if BAD in values.values():
        values = {word: value for word, value in values.items() if value is not BAD}
    defaults = values.get("defaults", Defaults()).node
    entries = [(node, _merged(node, defaults)) for node in values.get("rules", Rules()).nodes]
    read = [(node, _members(notes, merged)) for node, merged in entries]
    consistency.reachable(notes, [(node, members) for node, members in read])
    rules = [_rule(notes, node, members) for node, members in read]
    if notes.problems:
        return None
    return RuleFile(
        name=notes.file,
        rules=tuple(rules),
        server=values.get("server"),
        expose=values.get("expose"),
    )
