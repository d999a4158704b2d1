"""Rewrites tools/list: hidden tools go, added arguments and derived output schemas come.

Each page is edited alone; its cursor, its order and every tool that no rule touches stay the bytes
that came. What is seen of the tools on the way is kept as `Seen`.
"""

from collections.abc import Callable
from typing import Any

from msgspec import Raw, Struct

from proxy import schemas
from proxy.arguments import VIEW, Entry, Plan
from proxy.document import compact, encode, level, plain, text
from proxy.errors import DocumentError
from proxy.message import members
from proxy.notes import DROPPED, admitting
from proxy.paths import ROOT
from proxy.rule import Rule, RuleSet
from proxy.transforms.base import Schema, Transform


class Seen(Struct, frozen=True):
    """What a tool list said of one tool: its own arguments, whether it only reads.

    `structured`: it declares an outputSchema.
    """

    arguments: frozenset[str] = frozenset()
    reads_only: bool = False
    structured: bool = False


Log = Callable[[str], None]
Plans = Callable[[str, Seen], tuple[tuple[Rule, Plan], ...]]


def seen(tool: dict[str, Raw]) -> Seen:
    """Read the facts off a tool's definition; what cannot be read counts as absent."""
    structured = "outputSchema" in tool
    try:
        schema = members(tool["inputSchema"]) if "inputSchema" in tool else {}
        own = members(schema["properties"]) if "properties" in schema else {}
        notes = members(tool["annotations"]) if "annotations" in tool else {}
    except DocumentError:
        return Seen(structured=structured)
    names = set(own)
    for name, value in own.items():
        try:
            inner = members(members(value).get("properties", Raw(b"{}")))
        except DocumentError:
            continue
        names.update(f"{name}.{key}" for key in inner)
    reads_only = bytes(notes.get("readOnlyHint", b"")) == b"true"
    return Seen(frozenset(names), reads_only, structured)


def names(result: Raw) -> frozenset[str] | None:
    """Return the names of the tools of a list, None where it goes on at a cursor.

    Raises DocumentError where the result cannot be read.
    """
    held = members(result)
    tools = level(held["tools"]) if "tools" in held else None
    if not isinstance(tools, list) or bytes(held.get("nextCursor", b"null")) != b"null":
        return None
    return frozenset(name for _, name in map(_named, tools) if name is not None)


def rewrite(
    result: Raw, rules: RuleSet, plans: Plans, log: Log
) -> tuple[Raw | None, dict[str, Seen]]:
    """Return the edited result of tools/list, or None where nothing changes, and what was seen.

    Raises DocumentError where the result cannot be read.
    """
    held = members(result)
    tools = level(held["tools"]) if "tools" in held else None
    if not isinstance(tools, list):
        return None, {}
    facts: dict[str, Seen] = {}
    edited: list[Raw] = []
    changed = False
    for raw in tools:
        tool, name = _named(raw)
        if name is None:
            edited.append(raw)
            continue
        facts[name] = seen(tool)
        covering = plans(name, facts[name])
        if rules.withheld(name) or any(rule.hides for rule, _ in covering):
            changed = True
            continue
        update = _edits(name, tool, covering, log)
        update = {key: value for key, value in update.items() if value is not None or key in tool}
        if update:
            changed = True
            tool.update({key: value for key, value in update.items() if value is not None})
            for key in [key for key, value in update.items() if value is None]:
                tool.pop(key, None)
            edited.append(Raw(encode(tool)))
        else:
            edited.append(raw)
    if not changed:
        return None, facts
    return Raw(encode({**held, "tools": edited})), facts


def _named(raw: Raw) -> tuple[dict[str, Raw], str | None]:
    """Return the members of a tool and its name, None where no client could call it."""
    try:
        tool = members(raw)
        return tool, text(tool.get("name"))
    except DocumentError:
        return {}, None


def _edits(
    name: str,
    tool: dict[str, Raw],
    every: tuple[tuple[Rule, Plan], ...],
    log: Log,
) -> dict[str, Raw | None]:
    """Return the members of a tool's definition that change; None takes one away."""
    covering = [pair for pair in every if pair[0].mode == "active"]
    update: dict[str, Any] = {}
    said = text(tool.get("description", Raw(b'""'))) or ""
    description = _description(said, covering)
    if description != said:
        update["description"] = description
    entries = [(rule, entry) for rule, plan in covering for entry in plan.entries]
    if any(entry.alias_of is None for _, entry in entries):
        schema = _schema(tool, "inputSchema") if "inputSchema" in tool else {"type": "object"}
        added = None if schema is None else _with_arguments(schema, covering)
        if added is None:
            log(f"{name}: its inputSchema leaves no place for the arguments of a rule")
        elif added != schema:
            update["inputSchema"] = added
            _warn_of_size(name, added, log)
    own = _schema(tool, "outputSchema")
    if own is not None:
        output = _output(own, [rule for rule, _ in covering], log)
        if output != own:
            update["outputSchema"] = output
    elif "outputSchema" in tool:
        log(f"{name}: its outputSchema cannot be read, and is left as it is")
    elif any(rule.output_schema is not None for rule, _ in covering):
        # Clients refuse a result without structuredContent where an outputSchema promises one.
        unkept = _unkept([rule for rule, _ in every])
        promised = None if unkept else _promised([rule for rule, _ in covering], log)
        if promised is None:
            log(f"{name}: output_schema is not advertised: {unkept or 'two dialects'}")
        else:
            update["outputSchema"] = promised
    update.update(_definition_edits(tool, update, covering))
    return {
        key: None if value is None else Raw(compact(encode(value))) for key, value in update.items()
    }


def _schema(tool: dict[str, Raw], key: str) -> Schema | None:
    """Return a schema of a tool, None where it is none that could be edited."""
    try:
        found = plain(tool[key]) if key in tool else None
    except DocumentError:
        return None
    return found if isinstance(found, dict) else None


def _definition_edits(
    tool: dict[str, Raw], update: dict[str, Any], covering: list[tuple[Rule, Plan]]
) -> dict[str, Any]:
    edits: dict[str, Any] = {}
    for rule, _ in covering:
        definition = rule.definition
        if definition is None:
            continue
        if definition.drop:
            for key in ("inputSchema", "outputSchema"):
                schema = (update | edits).get(key, _schema(tool, key))
                if schema is not None:
                    edits[key] = _without_keywords(schema, definition.drop)
        if definition.meta is not None:
            meta = edits.get("_meta") or _schema(tool, "_meta") or {}
            edits["_meta"] = {**meta, **definition.meta}
    return edits


def _description(said: str, covering: list[tuple[Rule, Plan]]) -> str:
    for rule, _ in covering:
        definition = rule.definition
        if definition is not None and definition.description is not None:
            said = definition.description
        if definition is not None and definition.max_description is not None:
            limit = definition.max_description
            said = said if len(said) <= limit else said[: max(limit - 1, 0)].rstrip() + "…"
    for rule, plan in covering:
        for step in rule.windows:
            sentence = step.sentence(lambda own, plan=plan: plan.names.get(own, own))  # type: ignore[attr-defined]
            if rule.when is not None:
                sentence = f"Where {rule.when.text}: {sentence}"
            if sentence not in said:
                said = f"{said.rstrip()} {sentence}".strip()
    return said


def _with_arguments(schema: Schema, covering: list[tuple[Rule, Plan]]) -> Schema | None:
    """Return an input schema with the arguments of all rules, loosest bounds where they differ."""
    if "$ref" in schema or any(
        isinstance(branch, dict) and branch.get("additionalProperties") is False
        for word in ("allOf", "anyOf", "oneOf")
        for branch in _branches(schema, word)
    ):
        return None
    joined: dict[str, Schema] = {}
    alone: dict[str, list[tuple[Rule, Entry]]] = {}
    for rule, plan in covering:
        for entry in plan.entries:
            if entry.alias_of is None:
                alone.setdefault(entry.shown, []).append((rule, entry))
    everywhere = [rule for rule, _ in covering if not rule.hide]
    always = any(rule.when is None for rule in everywhere)
    for shown, owners in alone.items():
        holds = always and len(owners) == len(everywhere)
        if not holds and not any(entry.ours for _, entry in owners):
            # Other calls may give the server's own argument whatever value they like.
            continue
        merged = _loosest([entry.schema for _, entry in owners], len(owners) == len(everywhere))
        conditions = [rule.when.text for rule, _ in owners if rule.when is not None]
        if len(conditions) == len(owners):
            note = f"(where {' or '.join(dict.fromkeys(conditions))})"
            merged["description"] = f"{merged.get('description', '')} {note}".strip()
        joined[shown] = merged
    changed = schema
    for shown, added in joined.items():
        ours = any(entry.ours for _, entry in alone[shown])
        changed = _put(changed, shown.split("."), added, replace=ours)
    return changed


def _branches(schema: Schema, word: str) -> list[Any]:
    found = schema.get(word)
    return found if isinstance(found, list) else []


def _put(schema: Schema, names: list[str], added: Schema, *, replace: bool) -> Schema:
    """Return `schema` with a property at the end of a chain of objects; never a required one."""
    first, *rest = names
    properties = schema.get("properties")
    properties = dict(properties) if isinstance(properties, dict) else {}
    own = properties.get(first)
    own = own if isinstance(own, dict) else {}
    if rest:
        properties[first] = _put(own or {"type": "object"}, rest, added, replace=replace)
    elif replace:
        properties[first] = added
    else:
        kept = {word: value for word, value in added.items() if word != "description" or not own}
        properties[first] = {**own, **kept}
    changed = {**schema, "properties": properties}
    required = schema.get("required")
    if isinstance(required, list) and first in required and (replace or "default" in added):
        left = [name for name in required if name != first]
        changed["required"] = left
        if not left:
            del changed["required"]
    changed.setdefault("type", "object")
    return changed


def _loosest(found: list[Schema], everywhere: bool) -> Schema:
    merged = dict(found[0])
    for other in found[1:]:
        for word, pick in (("minimum", min), ("maximum", max), ("maxLength", max)):
            if word in merged and word in other:
                merged[word] = pick(merged[word], other[word])
            else:
                merged.pop(word, None)
        for word in ("enum", "pattern", "type"):
            if merged.get(word) != other.get(word):
                merged.pop(word, None)
        if merged.get("default") != other.get("default"):
            merged.pop("default", None)
    if not everywhere:
        merged.pop("default", None)
    return merged


_VIEWED: Schema = {"type": "object", "properties": {VIEW: {}}, "required": [VIEW]}
_UNKEPT: Schema = {
    "description": "What does not keep to the contract passes as the server sent it."
}
_GUARDED: Schema = {"description": "What is answered in place of the server."}


def _output(own: Schema, rules: list[Rule], log: Log) -> Schema | None:
    """Return the output schema that fits whatever the rules yield and what passes untouched."""
    derived: list[Schema | None] = []
    for rule in rules:
        if rule.copies == "text":
            return None
        if rule.output_schema is not None:
            derived.append(_ended(rule.output_schema, rule, log))
        elif rule.pipeline or rule.drop_blocks:
            derived.extend(_derived(own, rule, log))
        derived += [_VIEWED] * rule.viewable
        # The server's own fits what no step touched, but not what one did that breaks the contract.
        derived += [_UNKEPT] * (rule.validate == "warn")
        derived += [_GUARDED] * (rule.guard is not None)
    return schemas.advertised(own, derived) if derived else own


def _promised(rules: list[Rule], log: Log) -> Schema | None:
    """Return the output schema of a tool that declares none, and whose every rule has one."""
    derived: list[Schema | None] = []
    for rule in rules:
        assert rule.output_schema is not None
        derived.append(_ended(rule.output_schema, rule, log))
        derived += [_VIEWED] * rule.viewable
    derived += [_UNKEPT] * any(rule.validate != "refuse" for rule in rules)
    derived += [_GUARDED] * any(rule.guard is not None for rule in rules)
    return schemas.advertised(None, derived)


def _unkept(rules: list[Rule]) -> str | None:
    """Say which calls of a tool would go without structuredContent; None where there are none."""
    for rule in rules:
        if rule.output_schema is None:
            return f"the rule {rule.name!r} of the same tool has none"
        if rule.mode == "shadow":
            return f"the rule {rule.name!r} changes nothing (mode: shadow)"
        if rule.copies == "text":
            return f"the rule {rule.name!r} sends only texts (copies: text)"
    if all(rule.when is not None for rule in rules):
        return "no rule takes the calls for which each 'when' is false"
    return None


def _ended(contract: Schema, rule: Rule, log: Log) -> Schema | None:
    """Return what becomes of a document that keeps to a contract: it may be abridged after that."""
    return _run(contract, rule, rule.pipeline[-1:] if rule.max_bytes is not None else (), log)


def _derived(own: Schema, rule: Rule, log: Log) -> list[Schema | None]:
    """Return what a rule makes of a document: of the value itself, and of a text held in it."""
    shapes: list[Schema | None] = [_run(own, rule, rule.pipeline, log)]
    if own.get("type") == "string":
        shapes.append(_holding("text"))
    properties = own.get("properties")
    if isinstance(properties, dict) and len(properties) == 1:
        [(member, inner)] = properties.items()
        if isinstance(inner, dict) and inner.get("type") == "string":
            # The text may be cut, or be JSON that is; what the model is told stands beside it.
            shapes.append(_holding(member))
    return shapes


def _holding(member: str) -> Schema:
    return {"type": "object", "properties": {member: {"type": "string"}}, "required": [member]}


def _run(
    schema: Schema | None, rule: Rule, steps: tuple[Transform, ...], log: Log
) -> Schema | None:
    for step in steps:
        if schema is None:
            return None
        schema = _reshaped(schema, step, rule, log)
    if schema is not None and rule.drop_blocks:
        schema = admitting(schema, ROOT, DROPPED, "How many blocks of each type were left out.")
    return schema


def _reshaped(schema: Schema, step: Transform, rule: Rule, log: Log) -> Schema | None:
    if not rule.foreign:
        return step.reshape(schema)
    try:
        reshaped = step.reshape(schema)
        if reshaped is None or isinstance(plain(Raw(encode(reshaped))), dict):
            return reshaped
        said = f"{reshaped!r} is no schema"
    except (Exception, SystemExit) as error:  # it may raise anything
        said = f"{type(error).__name__}: {error}"
    log(f"{rule.name}: what {step.name!r} makes of an outputSchema is not known: {said}")
    return None


def _without_keywords(schema: Any, words: tuple[str, ...]) -> Any:
    """Return a schema without these keywords, at any depth; properties of that name stay."""
    if isinstance(schema, list):
        return [_without_keywords(item, words) for item in schema]
    if not isinstance(schema, dict):
        return schema
    kept: dict[str, Any] = {}
    for word, value in schema.items():
        if word in words:
            continue
        if word in ("properties", "patternProperties", "$defs", "definitions", "dependentSchemas"):
            kept[word] = (
                {name: _without_keywords(inner, words) for name, inner in value.items()}
                if isinstance(value, dict)
                else value
            )
        elif word in ("const", "enum", "default", "examples"):
            kept[word] = value
        else:
            kept[word] = _without_keywords(value, words)
    return kept


def _warn_of_size(name: str, schema: Schema, log: Log) -> None:
    size = len(encode(schema))
    if size > 16_384:
        log(f"{name}: inputSchema is {size} bytes; claude.ai drops tools above 16384")
