"""Makes the references of a JSON Schema movable, and combines schemas that have references.

A schema is bundled if every `$ref` names an entry of `$defs` or `definitions` at its root: then
any part of it can be changed or moved, and no reference loses its target.
"""

from collections.abc import Callable, Collection, Mapping
from itertools import count
from typing import Any

Schema = dict[str, Any]
Subschema = Schema | bool

# Which keywords hold schemas (2020-12 and draft-07), and how. All others hold plain values.
HOLDS_ONE = {
    "additionalItems",
    "additionalProperties",
    "contains",
    "contentSchema",
    "else",
    "if",
    "items",
    "not",
    "propertyNames",
    "then",
    "unevaluatedItems",
    "unevaluatedProperties",
}
HOLDS_LIST = {"allOf", "anyOf", "items", "oneOf", "prefixItems"}
DEFINITIONS = ("$defs", "definitions")
HOLDS_NAMED = {
    "$defs",
    "definitions",
    "dependencies",
    "dependentSchemas",
    "patternProperties",
    "properties",
}
_OF_THE_ROOT = ("$schema", *DEFINITIONS)
NOTES = {
    "title",
    "description",
    "default",
    "examples",
    "deprecated",
    "readOnly",
    "writeOnly",
    "$comment",
}
"""Keywords that only tell the reader something."""
DYNAMIC = {"$anchor", "$dynamicAnchor", "$dynamicRef", "$recursiveAnchor", "$recursiveRef"}


class Unsupported(Exception):
    """A schema that is too complex, or too wrong, to be rewritten."""


def within(schema: Schema, change: Callable[[Subschema], Subschema]) -> Schema:
    """Return `schema` with `change` applied to each of the schemas directly inside it.

    Raises Unsupported if the value of a keyword that holds schemas is not one.
    """
    return {word: _changed(word, value, change) for word, value in schema.items()}


def _changed(word: str, value: Any, change: Callable[[Subschema], Subschema]) -> Any:
    if word in HOLDS_LIST and isinstance(value, list):
        return [change(checked(inner)) for inner in value]
    if word in HOLDS_ONE:
        return change(checked(value))
    if word in HOLDS_NAMED and isinstance(value, dict):
        return {
            name: inner
            if word == "dependencies" and isinstance(inner, list)
            else change(checked(inner))
            for name, inner in value.items()
        }
    if word in HOLDS_LIST or word in HOLDS_NAMED:
        raise Unsupported(f"{word} holds no schemas")
    return value


def checked(value: Any) -> Subschema:
    """Return `value`, which must be a schema: an object or a boolean. Raises Unsupported if not."""
    if not isinstance(value, dict | bool):
        raise Unsupported(f"{value!r} is no schema")
    return value


def bundle(schema: Any) -> Schema:
    """Return `schema` with every reference naming a definition at the root.

    Any other target (`#`, `#/properties/a/items`) becomes a definition of its own. Raises
    Unsupported for references to other documents or anchors, and for dynamic references.
    """
    if not isinstance(schema, dict):
        raise Unsupported("no schema of an object")
    root = {word: value for word, value in schema.items() if word != "$id"}
    names_in_use = {
        name for words in DEFINITIONS if isinstance(root.get(words), dict) for name in root[words]
    }
    names: dict[str, str] = {}
    added: dict[str, Subschema] = {}

    def settle(node: Subschema) -> Subschema:
        if isinstance(node, bool):
            return node
        if DYNAMIC & node.keys() or "$id" in node:
            raise Unsupported("references that depend on where they stand")
        rewritten = within(node, settle)
        if "$ref" in node:
            rewritten["$ref"] = definition_of(node["$ref"])
        return rewritten

    def definition_of(reference: Any) -> str:
        if not isinstance(reference, str) or reference[:1] != "#":
            raise Unsupported(f"a reference to {reference!r}")
        every = target(root, reference)
        if (definition := _definition(reference)) is not None:
            return pointer(*definition)
        if reference not in names:
            name = _free(_unquoted(reference).rpartition("/")[2].strip("#") or "root", names_in_use)
            names_in_use.add(name)
            names[reference] = pointer("$defs", name)
            if every is root:
                every = lacking(root, _OF_THE_ROOT)
            added[name] = settle(every)
        return names[reference]

    rewritten = settle(root)
    assert isinstance(rewritten, dict)
    if added:
        rewritten["$defs"] = {**rewritten.get("$defs", {}), **added}
    return rewritten


def split_definitions(schema: Schema) -> tuple[Schema, Schema]:
    """Return the keywords that belong to any root (definitions, dialect), and the rest."""
    body = lacking(schema, _OF_THE_ROOT)
    return lacking(schema, body), body


def target(root: Mapping[str, Any], reference: str) -> Subschema:
    """Return the target of a JSON Pointer in a fragment. Raises Unsupported if there is none."""
    value: Any = root
    for token in _unquoted(reference[1:]).split("/")[1:]:
        key = token.replace("~1", "/").replace("~0", "~")
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise Unsupported(f"nothing stands at {reference!r}")
    if reference[1:2] not in ("", "/"):
        raise Unsupported(f"an anchor: {reference!r}")
    return checked(value)


def combine(roots: list[Schema], build: Callable[[list[Schema]], Schema]) -> Schema:
    """Combine bundled schemas into one: `build` gets them without their definitions, in order.

    Their definitions move to the new root, renamed if two of the same name differ. Raises
    Unsupported if the schemas have different dialects.
    """
    own: dict[str, dict[str, Subschema]] = {words: {} for words in DEFINITIONS}
    dialects = {root["$schema"] for root in roots if "$schema" in root}
    if len(dialects) > 1:
        raise Unsupported("schemas of different dialects")
    bodies = []
    for root in roots:
        renamed = _renamed(root, own)
        for words in DEFINITIONS:
            own[words].update(renamed.get(words, {}))
        bodies.append(split_definitions(renamed)[1])
    head: Schema = {words: defs for words, defs in own.items() if defs}
    return whole(head | ({"$schema": dialects.pop()} if dialects else {}), build(bodies))


def _renamed(root: Schema, own: dict[str, dict[str, Subschema]]) -> Schema:
    """Return `root` with other names for its definitions if one differs from that in `own`."""
    every = [(words, name) for words in DEFINITIONS for name in root.get(words, {})]
    if all(own[words].get(name, root[words][name]) == root[words][name] for words, name in every):
        return root
    free = {(words, name): name for words, name in every}
    for words, name in every:
        if name in own[words]:
            free[words, name] = _free(name, {*own[words], *root[words]})
    names = {pointer(words, name): pointer(words, free[words, name]) for words, name in every}

    def renamed(node: Subschema) -> Subschema:
        if isinstance(node, bool):
            return node
        rewritten = within(node, renamed)
        if node.get("$ref") in names:
            rewritten["$ref"] = names[node["$ref"]]
        return rewritten

    rewritten = renamed(root)
    assert isinstance(rewritten, dict)
    for words in DEFINITIONS:
        if words in rewritten:
            rewritten[words] = {free[words, name]: body for name, body in rewritten[words].items()}
    return rewritten


def drop_unused_definitions(root: Schema) -> Schema:
    """Return a bundled schema without its unused definitions."""
    head, body = split_definitions(root)
    reachable: set[str] = set()
    waiting = references(body)
    while waiting:
        reachable |= waiting
        waiting = set().union(*(references(target(root, each)) for each in waiting)) - reachable
    for words in DEFINITIONS:
        unused = [name for name in head.get(words, ()) if pointer(words, name) not in reachable]
        if definitions := lacking(head.pop(words, {}), unused):
            head[words] = definitions
    return whole(head, body)


def whole(head: Schema, body: Schema) -> Schema:
    """Return the schema that `split_definitions` split."""
    dialect = {"$schema": head["$schema"]} if "$schema" in head else {}
    return dialect | body | {words: head[words] for words in DEFINITIONS if words in head}


def references(schema: Subschema) -> set[str]:
    """Return every `$ref` in `schema`."""
    every: set[str] = set()

    def note(node: Subschema) -> Subschema:
        if isinstance(node, dict):
            if isinstance(node.get("$ref"), str):
                every.add(node["$ref"])
            within(node, note)
        return node

    note(schema)
    return every


def _definition(reference: str) -> tuple[str, str] | None:
    parts = _unquoted(reference).split("/")
    if len(parts) != 3 or parts[0] != "#" or parts[1] not in DEFINITIONS:
        return None
    return parts[1], parts[2].replace("~1", "/").replace("~0", "~")


def pointer(words: str, name: str) -> str:
    """Return the reference to the definition `name` at the root, under the keyword `words`."""
    escaped = name.replace("~", "~0").replace("/", "~1").replace("%", "%25")
    return f"#/{words}/{escaped}"


def _unquoted(reference: str) -> str:
    if "%" not in reference:
        return reference
    from urllib.parse import unquote

    return unquote(reference)


def _free(name: str, names_in_use: Collection[str]) -> str:
    if name not in names_in_use:
        return name
    return next(free for number in count(2) if (free := f"{name}_{number}") not in names_in_use)


def lacking(schema: Schema, keywords: Collection[str]) -> Schema:
    """Return `schema` without these keywords."""
    return {keyword: value for keyword, value in schema.items() if keyword not in keywords}


def types(part: Schema) -> set[str]:
    """Return the types that `part` names; the empty set if it has no `type`."""
    kinds: Any = part.get("type", [])
    return {kinds} if isinstance(kinds, str) else set(kinds)


def may_be(part: Schema, kind: str) -> bool:
    """Return True if a value of the type `kind` may fit `part`."""
    return not (kinds := types(part)) or kind in kinds
