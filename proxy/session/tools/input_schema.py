"""The advertised inputSchema of a tool: the server's, with the arguments of rules."""

from typing import Any

from proxy.ruleset.rule import Rule
from proxy.session.tools.arguments import ArgumentPlan, Entry
from proxy.transforms.base import Schema


def with_arguments(schema: Schema, covering: list[tuple[Rule, ArgumentPlan]]) -> Schema | None:
    """Return an input schema with the arguments of all rules, the loosest bounds if they differ.

    None if the schema leaves no place for them. No added argument is ever required.
    """
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
            # Other calls may give the server's own argument any value.
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
    """Return `schema` with a property at the end of a chain of objects; it is never required."""
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
