"""Edits of tools/list: hidden tools are removed, arguments and derived output schemas added.

Each page is edited alone; its cursor, its order and every tool without an edit stay byte for byte.
"""

from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from msgspec import Raw, Struct

from mcp_abridge.document.message import members, string_at, value_at
from mcp_abridge.document.tree import ABSENT, compact, encode, level, plain, text
from mcp_abridge.errors import DocumentError
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.session.tools import arguments, diet, input_schema, output_schema
from mcp_abridge.session.tools.arguments import ArgumentPlan
from mcp_abridge.transforms.base import Schema

MOST_INPUT_SCHEMA = 16_384
"""Bytes of an inputSchema above which claude.ai silently drops the tool."""


class ToolFacts(Struct, frozen=True):
    """The facts of one tool in a tool list: its own arguments, whether a second run is harmless.

    `structured`: it declares an outputSchema. `app`: it has a widget for its results (MCP Apps), a
    program that reads them whole. Results of up to `author_bytes` belong together, by its author.
    """

    arguments: frozenset[str] = frozenset()
    repeatable: bool = False
    structured: bool = False
    app: bool = False
    reads_only: bool = False
    destructive: bool = False
    author_bytes: int = 0


_AUTHOR_BYTES = "anthropic/maxResultSizeChars"
_WIDGET = (("ui", "resourceUri"), ("ui/resourceUri",))  # in a tool's _meta

_LONGEST_NUMBER = 10  # digits

_SCHEMAS = ("inputSchema", "outputSchema")

Covering = Sequence[tuple[Rule, ArgumentPlan]]
Plans = tuple[tuple[Rule, ArgumentPlan], ...]


def facts_of(tool: dict[str, Raw]) -> ToolFacts:
    """Return the facts of a tool's definition; unreadable parts count as absent."""
    meta = tool.get("_meta", Raw(b"null"))
    hint = bytes(value_at(meta, _AUTHOR_BYTES))
    properties = _inside(_inside(tool.get("inputSchema")).get("properties"))
    names = set(properties)
    for name, value in properties.items():
        names.update(f"{name}.{key}" for key in _inside(_inside(value).get("properties")))
    annotations = _inside(tool.get("annotations"))
    hints = {hint for hint, value in annotations.items() if bytes(value) == b"true"}
    reads_only = "readOnlyHint" in hints
    return ToolFacts(
        arguments=frozenset(names),
        repeatable=reads_only or "idempotentHint" in hints,
        structured="outputSchema" in tool,
        app=any(string_at(meta, *path) is not None for path in _WIDGET),
        reads_only=reads_only,
        destructive="destructiveHint" in hints,
        author_bytes=int(hint) if hint.isdigit() and len(hint) < _LONGEST_NUMBER else 0,
    )


def _inside(raw: Raw | None) -> dict[str, Raw]:
    try:
        return {} if raw is None else members(raw)
    except DocumentError:
        return {}


def names(result: Raw) -> frozenset[str] | None:
    """Return the names of a list of tools, None if a cursor continues it. Raises DocumentError."""
    page = members(result)
    tools = _tools(page)
    if tools is None or bytes(page.get("nextCursor", b"null")) != b"null":
        return None
    return frozenset(name for _, name in map(_with_name, tools) if name is not None)


def _tools(page: dict[str, Raw]) -> list[Raw] | None:
    tools = level(page["tools"]) if "tools" in page else None
    return tools if isinstance(tools, list) else None


def _with_name(raw: Raw) -> tuple[dict[str, Raw], str | None]:
    """Return the members of a tool and its name, None if no client could call it."""
    try:
        tool = members(raw)
        return tool, text(tool.get("name"))
    except DocumentError:
        return {}, None


def facts_in(result: Raw) -> dict[str, ToolFacts]:
    """Return the facts of the tools in a list. Raises DocumentError if it cannot be read."""
    each = map(_with_name, _tools(members(result)) or [])
    return {name: facts_of(tool) for tool, name in each if name is not None}


def plans_for(rules: RuleSet, tool: str, facts: ToolFacts, *, shows_widgets: bool = False) -> Plans:
    """Return the rules for `tool`, each with its plan.

    The budget does not apply to an app if the client shows its widget, which would show wrong data
    of a part of a result. Any other client gives the result to its model alone.
    """
    return tuple(
        (
            rule,
            arguments.plan(rule, facts.arguments, structured=facts.structured)
            if rule.mode == "active"
            else ArgumentPlan(),
        )
        for rule in rules.covering(tool)
        if not (shows_widgets and facts.app and rule is rules.otherwise)
    )


def rewrite(
    result: Raw, rules: RuleSet, log: Callable[[str], None], *, shows_widgets: bool = False
) -> tuple[Raw | None, dict[str, ToolFacts]]:
    """Return the edited tools/list, None if unchanged, and its facts; may raise DocumentError."""
    page = members(result)
    tools = _tools(page)
    if tools is None:
        return None, {}
    facts: dict[str, ToolFacts] = {}
    edited: list[Raw] = []
    for raw in tools:
        tool, name = _with_name(raw)
        if name is None:
            edited.append(raw)
            continue
        facts[name] = facts_of(tool)
        covering = plans_for(rules, name, facts[name], shows_widgets=shows_widgets)
        if rules.withheld(name) or any(rule.hides for rule, _ in covering):
            continue
        changes = _changes(name, tool, covering, log)
        if changes:
            definition = {**tool, **changes}
            remaining = {key: value for key, value in definition.items() if value is not ABSENT}
            raw = Raw(encode(remaining))
        edited.append(raw)
    if edited == tools:
        return None, facts
    return Raw(encode({**page, "tools": edited})), facts


def _changes(
    name: str, tool: dict[str, Raw], every: Covering, log: Callable[[str], None]
) -> dict[str, Raw]:
    covering = [pair for pair in every if pair[0].mode == "active"]
    definitions = [rule.definition for rule, _ in covering if rule.definition is not None]
    own: dict[str, Any] = {key: _schema(tool, key) for key in (*_SCHEMAS, "_meta")}
    own["description"] = text(tool.get("description", Raw(b'""'))) or ""
    now = dict(own)
    limits = [each.max_bytes for each in definitions if each.max_bytes is not None]
    if limits:
        schemas = {key: now[key] for key in _SCHEMAS if now[key] is not None}
        now["description"], fitted = diet.fitted(now["description"], schemas, min(limits))
        now |= fitted
    now["description"] = _description(now["description"], covering)
    if any(entry.alias_of is None for _, plan in covering for entry in plan.entries):
        before = now["inputSchema"] if "inputSchema" in tool else {"type": "object"}
        added = None if before is None else input_schema.with_arguments(before, covering)
        if added is None:
            log(f"{name}: its inputSchema leaves no place for the arguments of a rule")
        elif added != before:
            now["inputSchema"] = added
            _warn_of_size(name, before, added, log)
    if "outputSchema" in tool and own["outputSchema"] is None:
        log(f"{name}: its outputSchema cannot be read, and is left as it is")
    else:
        now["outputSchema"] = _output_schema(name, now["outputSchema"], [*every], log)
    for definition in definitions:
        for key in _SCHEMAS if definition.drop else ():
            if now[key] is not None:
                now[key] = diet.edited(now[key], partial(_without, definition.drop))
        if definition.meta is not None:
            now["_meta"] = {**(now["_meta"] or {}), **definition.meta}
    return {
        key: ABSENT if value is None else Raw(compact(encode(value)))
        for key, value in now.items()
        if value != own[key]
    }


def _output_schema(
    name: str, own: Schema | None, every: Covering, log: Callable[[str], None]
) -> Schema | None:
    rules = [rule for rule, _ in every if rule.mode == "active"]
    if own is not None:
        return output_schema.derived(own, rules)
    if all(rule.output_schema is None for rule in rules):
        return None
    # Clients refuse a result without structuredContent if an outputSchema promises one.
    unkept = output_schema.unkept([rule for rule, _ in every])
    promised = None if unkept else output_schema.derived(None, rules)
    if promised is None:
        log(f"{name}: output_schema is not advertised: {unkept or 'two dialects'}")
    return promised


def _schema(tool: dict[str, Raw], key: str) -> Schema | None:
    try:
        schema = plain(tool[key]) if key in tool else None
    except DocumentError:
        return None
    return schema if isinstance(schema, dict) else None


def _without(keywords: tuple[str, ...], node: Schema, _: int) -> Schema:
    return {keyword: value for keyword, value in node.items() if keyword not in keywords}


def _description(description: str, covering: Covering) -> str:
    for definition in (rule.definition for rule, _ in covering if rule.definition is not None):
        if definition.description is not None:
            description = definition.description
        limit = definition.max_description
        if limit is not None and len(description) > limit:
            description = description[: max(limit - 1, 0)].rstrip() + "…"
    for rule, plan in covering:
        for step in plan.windows:
            sentence = step.sentence(lambda own, plan=plan: plan.names.get(own, own))  # type: ignore[attr-defined]
            if rule.when is not None:
                sentence = f"Where {rule.when.text}: {sentence}"
            if sentence not in description:
                description = f"{description.rstrip()} {sentence}".strip()
    return description


def _warn_of_size(name: str, own: Schema, added: Schema, log: Callable[[str], None]) -> None:
    size = len(encode(added))
    if size > MOST_INPUT_SCHEMA:
        log(
            f"{name}: its inputSchema is {size} bytes, {len(encode(own))} of them the server's own;"
            f" claude.ai drops tools above {MOST_INPUT_SCHEMA}: give the rule fewer arguments, or"
            " `view: false`"
        )
