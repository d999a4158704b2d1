"""Derives the JSON Schema of changed documents; it never rejects a valid changed document.

Every function takes the schema of whole documents, does not modify it, and returns the schema of
the changed documents: a looser one if an exact one is hard to derive, None if a reference cannot be
followed. Dialects: 2020-12, draft-07.
"""

from collections.abc import Callable, Mapping
from typing import Any

from mcp_abridge.document.own_names import OWN_NAMES
from mcp_abridge.document.paths import Each, Name, Path, Step, fits
from mcp_abridge.schema.references import (
    DEFINITIONS,
    NOTES,
    Schema,
    Subschema,
    Unsupported,
    bundle,
    combine,
    drop_unused_definitions,
    lacking,
    may_be,
    split_definitions,
    target,
    types,
    whole,
    within,
)

Change = Callable[[Schema], Schema]
Steps = tuple[Step, ...]

# The keywords that still hold if anything is cut: a value that stays keeps its type, and a number.
_FIRM = {
    "$ref",
    "$schema",
    "allOf",
    "anyOf",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maximum",
    "minimum",
    "multipleOf",
    "oneOf",
    "properties",
    "type",
    *DEFINITIONS,
    *(NOTES - {"default", "examples"}),
}
_OF_MEMBERS = {
    "additionalProperties",
    "dependentRequired",
    "maxProperties",
    "minProperties",
    "patternProperties",
    "properties",
    "propertyNames",
    "required",
}
# Keywords that may no longer hold after a change inside, and are hard to derive again.
_FRAGILE = {
    "not",
    "if",
    "then",
    "else",
    "dependentSchemas",
    "dependencies",
    "contains",
    "minContains",
    "maxContains",
    "uniqueItems",
    "unevaluatedItems",
    "unevaluatedProperties",
    "default",
    "examples",
}
_GROUPS = ("allOf", "anyOf", "oneOf")
_WRAPPED: Schema = {
    "type": "object",
    "properties": {"items": {"type": "array"}},
    "required": ["items"],
}


def relaxed(schema: Schema, *replaced: str) -> Schema | None:
    """Return `schema` for documents that keep its types, and may have lost anything else.

    Members called `replaced` may be anything, and an array that is the whole document may be the
    `items` of an object.
    """
    others = {*OWN_NAMES, *replaced}

    def relax(node: Subschema) -> Subschema:
        if isinstance(node, bool):
            return node
        changed = within({word: value for word, value in node.items() if word in _FIRM}, relax)
        if _positional(node):
            changed.pop("items", None)
        if "properties" in changed:
            changed["properties"] = {
                name: inner for name, inner in changed["properties"].items() if name not in others
            }
        if "oneOf" in changed:
            _add_group(changed, "oneOf", changed.pop("oneOf"))
        return changed

    try:
        head, body = (relax(part) for part in split_definitions(bundle(schema)))
    except (Unsupported, RecursionError):
        return None
    assert isinstance(head, dict)
    assert isinstance(body, dict)
    return whole(head, body if types(body) == {"object"} else {"anyOf": [body, _WRAPPED]})


def at(schema: Schema, path: Path, change: Change, *, over: bool = False) -> Schema | None:
    """Return `schema` with `change` applied to the subschema that `path` names.

    `change` gets one plain schema at a time: references are followed, and it is called for each
    alternative of an `anyOf` separately. `over`: it is called for objects only, and if `path` names
    an array, for its elements.
    """

    def edit(node: Subschema, steps: Steps, trail: frozenset[str] = frozenset()) -> Subschema:
        if node is False:
            return False
        part, groups, trail = _resolve(node, root, trail)
        if not groups or part.keys() - NOTES:
            part = step(part, steps) if steps or over else change(dict(part))
        for keyword, branches in groups:
            _add_group(part, keyword, [edit(branch, steps, trail) for branch in branches])
        return part

    def step(part: Schema, steps: Steps) -> Schema:
        part, first, rest = _loosened(part), steps[0] if steps else None, steps[1:]
        if first is None and may_be(part, "object"):
            part = change(part)
        elif isinstance(first, Name):
            declared, rest = part.get("properties", {}), steps
            part = _named_only(part)
            if declared:
                part["properties"] = {
                    name: edit(inner, steps[1:]) if fits(first, name) else inner
                    for name, inner in declared.items()
                }
        elif not isinstance(first, Each | None):
            raise Unsupported("a step to one element, or to any depth")
        if _positional(part):
            return lacking(part, {"items", "prefixItems", "additionalItems"})
        return part | ({"items": edit(part["items"], rest)} if "items" in part else {})

    try:
        root = bundle(schema)
        head, body = split_definitions(root)
        edited = edit(body, path.steps)
    except (Unsupported, RecursionError):
        return None
    assert isinstance(edited, dict)
    return whole(head, edited)


def renamed(schema: Schema, path: Path, name: str) -> Schema | None:
    """Return `schema` for documents in which the member at `path` has another name."""
    *before, last = path.steps
    if not isinstance(last, Name) or last.glob:
        return None
    old = last.text

    def rename(part: Schema) -> Schema:
        changed = lacking(
            _named_only(part), {"dependentRequired", "minProperties", "propertyNames"}
        )
        declared, required = part.get("properties", {}), part.get("required", [])
        if old not in declared and changed.get("additionalProperties") is False:
            return part
        source = declared.get(old, True)
        if old not in required:
            # If there was no member to rename, the one that had the new name stays.
            source = _either(source, declared.get(name, True))
        inner = {(name if key == old else key): declared[key] for key in declared if key != name}
        changed["properties"] = inner | {name: source}
        if required:
            others_required = [name if key == old else key for key in required]
            changed["required"] = list(dict.fromkeys(others_required))
        return changed

    return at(schema, Path(steps=tuple(before)), rename, over=True)


def projected(
    schema: Schema, path: Path, fields: Mapping[str, tuple[Path | None, Any, bool]]
) -> Schema | None:
    """Return `schema` for documents whose objects at `path` were rebuilt with these fields.

    Each field has the path of its source (None if it is computed), its default, and a flag: the
    default replaces a null too.
    """
    try:
        root = bundle(schema)
    except (Unsupported, RecursionError):
        return None

    def project(part: Schema) -> Schema:
        properties: Schema = {}
        for name, (source, default, over_null) in fields.items():
            value, certain = _schema_at(part, source.steps, root) if source else (True, False)
            fallback = {"type": "null"} if default is None else {"const": default}
            exact = certain and not over_null
            properties[name] = value if exact else _either(value, fallback)
        return lacking(part, _OF_MEMBERS) | {
            "properties": properties,
            "required": list(fields),
            "additionalProperties": False,
        }

    return at(root, path, project, over=True)


def nullable(schema: Schema) -> Schema:
    """Return `schema` for a value that may also be null."""
    return {"anyOf": [schema, {"type": "null"}]}


def advertised(own: Schema | None, derived: list[Schema | None]) -> Schema | None:
    """Return the `outputSchema` to advertise for a tool with rules: any derived one, or its own.

    None if a derived schema is None, or its references cannot be kept.
    """
    try:
        # The server's schema comes first, so that its definitions keep their names.
        roots = [] if own is None or relaxed(own) in derived else [bundle(own)]
        first = len(roots)
        for schema in derived:
            if schema is None:
                return None
            root = bundle(schema)
            if root not in roots and (root := drop_unused_definitions(root)) not in roots:
                roots.append(root)
        if len(roots) == 1:
            return roots[0]
        head = {"type": "object"} if own is None or own.get("type") == "object" else {}
        return combine(roots, lambda parts: {**head, "anyOf": [*parts[first:], *parts[:first]]})
    except (Unsupported, RecursionError):
        return None


def _schema_at(node: Subschema, steps: Steps, root: Schema) -> tuple[Subschema, bool]:
    """Return the schema at `steps` below a value, and True if a value is there for certain."""
    if not steps or isinstance(node, bool):
        return node, not steps
    part, groups, _ = _resolve(node, root, frozenset())
    first, kinds, certain = steps[0], types(part) - {"null"}, "null" not in types(part)
    clear = isinstance(first, Name) and not first.glob and "patternProperties" not in part
    if groups or not clear or _positional(part) or kinds not in ({"array"}, {"object"}):
        return True, False
    if kinds == {"array"}:
        items, _ = _schema_at(part.get("items", True), steps, root)
        return {"type": "array", "items": items}, certain
    assert isinstance(first, Name)
    inner = part.get("properties", {}).get(first.text, part.get("additionalProperties", True))
    value, sure = _schema_at(inner, steps[1:], root)
    return value, certain and sure and first.text in part.get("required", ())


def _resolve(
    node: Subschema, root: Schema, trail: frozenset[str]
) -> tuple[Schema, list[tuple[str, list[Subschema]]], frozenset[str]]:
    """Return the own keywords of `node`, references followed, its groups, and the longer trail."""
    if isinstance(node, bool):
        return ({} if node else {"not": {}}), [], trail
    while "$ref" in node:
        reference = node["$ref"]
        if reference in trail:
            raise Unsupported(f"{reference} leads to itself")
        trail |= {reference}
        definition = target(root, reference)
        # In draft-07, keywords beside a reference do not count: dropping them is right in both.
        notes = {keyword: node[keyword] for keyword in node if keyword in NOTES}
        if isinstance(definition, bool):
            definition = {} if definition else {"not": {}}
        node = definition | notes
    groups = [(keyword, node[keyword]) for keyword in _GROUPS if keyword in node]
    return lacking(node, _GROUPS), groups, trail


def _add_group(part: Schema, keyword: str, branches: list[Subschema]) -> None:
    # A `oneOf` becomes an `anyOf`: after a change, a value may fit several of its schemas.
    keyword = "anyOf" if keyword == "oneOf" else keyword
    if keyword in part or keyword == "allOf":
        more = branches if keyword == "allOf" else [{keyword: branches}]
        part["allOf"] = [*part.get("allOf", ()), *more]
    else:
        part[keyword] = branches


def _loosened(part: Schema) -> Schema:
    values = [*part.get("enum", ()), *([part["const"]] if "const" in part else [])]
    whole = {"enum", "const"} if any(isinstance(value, dict | list) for value in values) else set()
    return lacking(part, _FRAGILE | whole)


def _named_only(part: Schema) -> Schema:
    """Return a copy without the schemas of unnamed members: each may be the one that changes."""
    rest = part.get("additionalProperties", True)
    if "patternProperties" in part or isinstance(rest, dict):
        return lacking(part, {"additionalProperties", "patternProperties"})
    return dict(part)


def _either(one: Subschema, other: Subschema) -> Subschema:
    if one is False or one == other:
        return other
    if other is False:
        return one
    return True if True in (one, other) or {} in (one, other) else {"anyOf": [one, other]}


def _positional(part: Schema) -> bool:
    return "prefixItems" in part or isinstance(part.get("items"), list)
