"""The advertised inputSchema of a tool: the server's, with the arguments of rules."""

from typing import Any

from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.session.tools.arguments import ArgumentPlan, Entry
from mcp_abridge.transforms.base import Schema


def with_arguments(schema: Schema, covering: list[tuple[Rule, ArgumentPlan]]) -> Schema | None:
    """Return an input schema with the arguments of all rules, the loosest bounds if they differ.

    None if the schema leaves no place for them. No added argument is ever required.
    """
    if "$ref" in schema or any(
        isinstance(branch, dict) and branch.get("additionalProperties") is False
        for keyword in ("allOf", "anyOf", "oneOf")
        for branch in _branches(schema, keyword)
    ):
        return None
    arguments: dict[str, list[tuple[Rule, Entry]]] = {}
    for rule, plan in covering:
        for entry in plan.entries:
            if entry.alias_of is None:
                arguments.setdefault(entry.client_name, []).append((rule, entry))
    visible = [rule for rule, _ in covering if not rule.hide]
    always = any(rule.when is None for rule in visible)
    for name, owners in arguments.items():
        everywhere = len(owners) == len(visible)
        ours = any(entry.ours for _, entry in owners)
        if not (always and everywhere) and not ours:
            # Other calls may give the server's own argument any value.
            continue
        merged = _loosest([entry.schema for _, entry in owners], everywhere)
        conditions = [rule.when.text for rule, _ in owners if rule.when is not None]
        if len(conditions) == len(owners):
            note = f"(where {' or '.join(dict.fromkeys(conditions))})"
            merged["description"] = f"{merged.get('description', '')} {note}".strip()
        schema = _with_property(schema, name.split("."), merged, replace=ours)
    return schema


def _branches(schema: Schema, keyword: str) -> list[Any]:
    branches = schema.get(keyword)
    return branches if isinstance(branches, list) else []


def _with_property(schema: Schema, names: list[str], added: Schema, *, replace: bool) -> Schema:
    first, *rest = names
    properties = schema.get("properties")
    properties = dict(properties) if isinstance(properties, dict) else {}
    own = properties.get(first)
    own = own if isinstance(own, dict) else {}
    if rest:
        inner = own or {"type": "object"}
        properties[first] = _with_property(inner, rest, added, replace=replace)
    elif replace:
        properties[first] = added
    else:
        bounds = {key: value for key, value in added.items() if key != "description" or not own}
        properties[first] = {**own, **bounds}
    changed = {**schema, "properties": properties}
    required = schema.get("required")
    if isinstance(required, list) and first in required and (replace or "default" in added):
        changed["required"] = [name for name in required if name != first]
        if not changed["required"]:
            del changed["required"]
    changed.setdefault("type", "object")
    return changed


def _loosest(schemas: list[Schema], everywhere: bool) -> Schema:
    merged = dict(schemas[0])
    for other in schemas[1:]:
        for keyword, pick in (("minimum", min), ("maximum", max), ("maxLength", max)):
            if keyword in merged and keyword in other:
                merged[keyword] = pick(merged[keyword], other[keyword])
            else:
                merged.pop(keyword, None)
        for keyword in ("enum", "pattern", "type", "default"):
            if merged.get(keyword) != other.get(keyword):
                merged.pop(keyword, None)
    if not everywhere:
        merged.pop("default", None)
    return merged
