"""Derives the JSON Schema of changed documents: no result, changed or not, ever breaks it.

No function modifies the schema that it takes. What is hard to follow may be anything afterwards;
None is returned if it is no schema. Dialects: 2020-12, draft-07.
"""

from collections.abc import Mapping

from mcp_abridge.document.own_names import OWN_NAMES
from mcp_abridge.document.paths import Each, Name, Path, Step, fits
from mcp_abridge.schema.references import (
    DEFINITIONS,
    DYNAMIC,
    NOTES,
    Schema,
    Subschema,
    Unsupported,
    keys,
    lacking,
    target,
    types,
    within,
)

_GROUPS = ("allOf", "anyOf", "oneOf")
# The keywords that still hold if anything is cut: a value that stays keeps its type, and a number.
_FIRM = {
    "$ref",
    "$schema",
    "exclusiveMaximum",
    "exclusiveMinimum",
    "items",
    "maxItems",
    "maximum",
    "minimum",
    "multipleOf",
    "properties",
    "type",
    *_GROUPS,
    *DEFINITIONS,
    *(NOTES - {"default", "examples"}),
}


def relaxed(schema: Schema, *replaced: str) -> Schema | None:
    """Return `schema` for documents that keep its types, and may have lost or gained the rest.

    Members called `replaced` may be anything. A document that is no object may be in one.
    """
    others = {*OWN_NAMES, *replaced}

    def relax(node: Schema) -> Schema:
        if "$id" in node and node is not schema:  # its references begin there
            return {}
        part = within({word: value for word, value in node.items() if word in _FIRM}, relax)
        if "prefixItems" in node or isinstance(node.get("items"), list):
            part.pop("items", None)
        if "properties" in part:
            part["properties"] = lacking(part["properties"], others)
        if "oneOf" in part:  # after a change, a value may fit several of them
            part.setdefault("anyOf", part.pop("oneOf"))
        return part

    try:
        changed = relax(schema)
        if types(changed) != {"object"}:
            body = lacking(changed, ("$schema", *DEFINITIONS))
            changed = lacking(changed, body) | {"anyOf": [body, {"type": "object"}]}
        return _settled(changed)
    except (Unsupported, RecursionError):
        return None


def _settled(schema: Schema) -> Schema:
    """Return `schema` without references that lead nowhere, and without unused definitions."""
    definitions: dict[str, Schema] = {}
    used: list[list[str]] = []

    def settle(node: Schema) -> Schema:
        part = within(lacking(node, DEFINITIONS) if node is schema else node, settle)
        try:
            if "$ref" in node and target(schema, node["$ref"]) is not schema:
                used.append(keys(node["$ref"]))
        except Unsupported:
            del part["$ref"]
        return part

    body = settle(schema)
    for words, *names in used:  # more of them, meanwhile
        if names and words in DEFINITIONS and names[0] not in definitions.setdefault(words, {}):
            inner = schema[words][names[0]]
            definitions[words][names[0]] = settle(inner) if isinstance(inner, dict) else inner
    return body | definitions


def extended(schema: Schema, path: Path, names: Mapping[str, bool]) -> Schema | None:
    """Return `schema`, relaxed, with further members declared in the objects at `path`.

    If `path` names an array, in its elements. A member is what was declared by its name, or null,
    if the mapping says so; else anything. All other members stay declared.
    """

    relaxation = relaxed(schema)
    if relaxation is None:
        return None
    loose: Schema = relaxation

    def extend(part: Schema) -> Schema:
        properties = part.get("properties", {})
        new: Schema = {
            name: {"anyOf": [properties[name], {"type": "null"}]}
            if stays and name in properties
            else {}
            for name, stays in names.items()
        }
        return part | {"properties": {**properties, **new}}

    def edit(
        node: Subschema, steps: tuple[Step, ...], trail: frozenset[str] = frozenset()
    ) -> Subschema:
        while isinstance(node, dict) and "$ref" in node:
            reference = node["$ref"]
            node = {} if reference in trail else target(loose, reference)
            trail |= {reference}
        if isinstance(node, bool):
            return node
        first, rest = (steps[0], steps[1:]) if steps else (None, ())
        if not isinstance(first, Name | Each | None):
            return {"type": node["type"]} if "type" in node else {}
        branches = [word for word in _GROUPS if word in node]
        part = node | {word: [edit(each, steps, trail) for each in node[word]] for word in branches}
        if "items" in part:
            part["items"] = edit(part["items"], rest if isinstance(first, Each) else steps, trail)
        if isinstance(first, Name) and "properties" in part:
            part["properties"] = {
                name: edit(inner, rest, trail) if fits(first, name) else inner
                for name, inner in part["properties"].items()
            }
        alone = not branches or "properties" in part
        objects = not types(part) or "object" in types(part)
        return extend(part) if first is None and alone and objects else part

    try:
        edited = edit(lacking(loose, DEFINITIONS), path.steps)
    except RecursionError:
        return None
    assert isinstance(edited, dict)
    return _settled(edited | {words: loose[words] for words in DEFINITIONS if words in loose})


def any_of(schemas: list[Schema], head: Schema) -> Schema | None:
    """Return a schema beginning with `head` that admits what any of these admits.

    None if they cannot stand in one: their dialects differ, or a name is for a whole document.
    """
    distinct = [each for number, each in enumerate(schemas) if each not in schemas[:number]]
    if len(distinct) == 1:
        return distinct[0]
    dialects = {each["$schema"] for each in distinct if "$schema" in each}
    if len(dialects) > 1:
        return None
    try:
        branches = [_moved(each, f"#/anyOf/{number}") for number, each in enumerate(distinct)]
    except (Unsupported, RecursionError):
        return None
    return {**({"$schema": dialects.pop()} if dialects else {}), **head, "anyOf": branches}


def _moved(schema: Schema, place: str) -> Schema:
    """Return `schema` with its references as they are if it stands at `place`."""

    def move(node: Schema) -> Schema:
        if node.keys() & {"$id", *DYNAMIC}:
            raise Unsupported("references that depend on where they stand")
        part = within(node, move)
        if "$ref" in node:
            target(schema, node["$ref"])
            part["$ref"] = place + node["$ref"][1:]
        return part

    return move(lacking(schema, ("$id", "$schema")))
