"""Derives the JSON Schema of changed documents; it never rejects a valid changed document.

Every function takes the schema of whole documents, does not modify it, and returns the schema of
the changed documents: a looser one if an exact one is hard to derive, None if a reference cannot be
followed. Dialects: 2020-12, draft-07.
"""

from collections.abc import Mapping
from typing import Any

from proxy.document.paths import Name, Path
from proxy.schema.references import (
    DEFINITIONS,
    Schema,
    Subschema,
    Unsupported,
    bundle,
    combine,
    drop_unused_definitions,
    split_definitions,
    whole,
    within,
)
from proxy.schema.walk import (
    NOTES,
    Change,
    Walk,
    add_group,
    edit,
    either,
    lacking,
    named_only,
    positional,
    schema_at,
    types,
)

OWN_MEMBERS = ("_abridged", "_dropped", "_elided", "pagination", "truncation")
"""The members that steps add beside what they cut; with a `_` more if there is one already."""

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
_WRAPPED: Schema = {
    "type": "object",
    "properties": {"items": {"type": "array"}},
    "required": ["items"],
}


def relaxed(schema: Schema, *replaced: str) -> Schema | None:
    """Return `schema` for documents that keep its types, and may have lost anything else.

    Members may be missing or added, arrays shorter or sorted, texts any texts; members called
    `replaced` may be anything, and an array that is the whole document may be the `items` of an
    object.
    """
    others = {*OWN_MEMBERS, *(name.rstrip("_") for name in replaced)}

    def relax(node: Subschema) -> Subschema:
        if isinstance(node, bool):
            return node
        changed = within({word: value for word, value in node.items() if word in _FIRM}, relax)
        if positional(node):
            changed.pop("items", None)
        if "properties" in changed:
            changed["properties"] = {
                name: inner
                for name, inner in changed["properties"].items()
                if name.rstrip("_") not in others
            }
        if "oneOf" in changed:
            add_group(changed, "oneOf", changed.pop("oneOf"))
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
    try:
        root = bundle(schema)
        head, body = split_definitions(root)
        edited = edit(body, Walk(root, change, over), path.steps)
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
        changed = lacking(named_only(part), {"dependentRequired", "minProperties", "propertyNames"})
        declared, required = part.get("properties", {}), part.get("required", [])
        if old not in declared and changed.get("additionalProperties") is False:
            return part
        source = declared.get(old, True)
        if old not in required:
            # If there was no member to rename, the one that had the new name stays.
            source = either(source, declared.get(name, True))
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
            value: Subschema = True
            certain = False
            if source is not None:
                value, certain = schema_at(part, source.steps, root)
            fallback = {"type": "null"} if default is None else {"const": default}
            exact = certain and not over_null
            properties[name] = value if exact else either(value, fallback)
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

    Clients up to revision 2025-11-25 accept only `type: object` at the root, which the schema of a
    contract has. None if a derived schema is None, or its references cannot be kept.
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
