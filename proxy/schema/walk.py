"""Walks a JSON Schema along a path, and drops the keywords that a change inside puts in doubt.

Helpers of `proxy.schema.derive`: in doubt, a changed schema is looser rather than too strict.
"""

from collections.abc import Callable, Collection
from typing import Any

from msgspec import Struct

from proxy.document.paths import Each, Index, Name, Step, fits
from proxy.schema.references import Schema, Subschema, Unclear, target

Change = Callable[[Schema], Schema]

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
OF_NAMES = {"minProperties", "dependentRequired", "propertyNames"}
OF_OBJECTS = {
    "properties",
    "required",
    "additionalProperties",
    "patternProperties",
    "maxProperties",
} | OF_NAMES
OF_WHOLENESS = {
    "required",
    "minItems",
    "maxProperties",
    "minLength",
    "pattern",
    "format",
} | OF_NAMES
OF_PLACES = {"items", "prefixItems", "additionalItems"}


class Walk(Struct, frozen=True):
    """The change that `edit` makes at the path; with `over`, only to objects there or in arrays."""

    root: Schema
    change: Change
    over: bool = False


def edit(
    node: Subschema, walk: Walk, steps: tuple[Step, ...], trail: frozenset[str] = frozenset()
) -> Subschema:
    """Return `node` with the change of `walk` applied to the subschemas that `steps` name."""
    if node is False:
        return False
    own, groups, trail = opened(node, walk.root, trail)
    if not groups or own.keys() - NOTES:
        own = _step(own, walk, steps) if steps else _arrive(own, walk)
    for word, branches in groups:
        add_group(own, word, [edit(branch, walk, steps, trail) for branch in branches])
    return own


def _arrive(own: Schema, walk: Walk) -> Schema:
    if not walk.over:
        return dict(walk.change(own))
    own = loosened(own)
    if may_be(own, "object"):
        own = walk.change(own)
    return elements(own, lambda inner: edit(inner, walk, ()))


def _step(own: Schema, walk: Walk, steps: tuple[Step, ...]) -> Schema:
    first, *rest = steps
    further = tuple(rest)
    own = loosened(own)
    if isinstance(first, Name):
        if may_be(own, "object"):
            own = _members(own, first, lambda inner: edit(inner, walk, further))
        return elements(own, lambda inner: edit(inner, walk, steps))
    if isinstance(first, Each):
        return elements(own, lambda inner: edit(inner, walk, further))
    if isinstance(first, Index):
        return elements(own, lambda inner: either(inner, edit(inner, walk, further)))
    raise Unclear("'**' may lead anywhere")


def _members(own: Schema, step: Name, change: Callable[[Subschema], Subschema]) -> Schema:
    """Change the members of an object that `step` names."""
    declared = own.get("properties", {})
    rest = own.get("additionalProperties", True)
    properties = {
        name: change(inner) if fits(step, name) else inner for name, inner in declared.items()
    }
    own = unpatterned(own)
    if step.glob and isinstance(rest, dict):
        own["additionalProperties"] = True
    elif not step.glob and step.text not in declared and rest is not False:
        edited = change(rest)
        if isinstance(rest, dict) or edited not in (True, {}):
            properties[step.text] = edited
    return own | ({"properties": properties} if properties or declared else {})


def elements(own: Schema, change: Callable[[Subschema], Subschema]) -> Schema:
    """Change the elements of an array."""
    changed = dict(own)
    for word in OF_PLACES & own.keys():
        held = own[word]
        several = isinstance(held, list)
        changed[word] = [change(inner) for inner in held] if several else change(held)
    return changed


def found(node: Subschema, steps: tuple[Step, ...], root: Schema) -> tuple[Subschema, bool]:
    """Return the schema at `steps` below a value, and True if a value is there for certain."""
    if not steps or node is False:
        return node, not steps
    own, groups, _ = opened(node, root, frozenset())
    kinds = types(own)
    if [word for word, _ in groups] == ["anyOf"] and not own.keys() - NOTES:
        either_of: Subschema = False
        certain = True
        for branch in groups[0][1]:
            inner, sure = found(branch, steps, root)
            either_of, certain = either(either_of, inner), certain and sure
        return either_of, certain
    first = steps[0]
    clear = isinstance(first, Name) and not first.glob and "patternProperties" not in own
    if groups or not kinds or {"object", "array"} <= kinds or not clear or positional(own):
        return True, False
    if "array" in kinds:
        inner, _ = found(own.get("items", True), steps, root)
        return {"type": "array", "items": inner}, kinds == {"array"}
    if "object" not in kinds:
        return False, False
    assert isinstance(first, Name)
    if first.text not in own.get("properties", {}):
        return found(own.get("additionalProperties", True), steps[1:], root)[0], False
    inner, sure = found(own["properties"][first.text], steps[1:], root)
    return inner, sure and kinds == {"object"} and first.text in own.get("required", ())


def opened(
    node: Subschema, root: Schema, trail: frozenset[str]
) -> tuple[Schema, list[tuple[str, list[Subschema]]], frozenset[str]]:
    """Return the own keywords of `node`, references followed, and its groups of other schemas.

    `trail` has the references followed since the last step into a value.
    """
    if isinstance(node, bool):
        return ({} if node else {"not": {}}), [], trail
    while "$ref" in node:
        held = node["$ref"]
        if held in trail:
            raise Unclear(f"{held} leads to itself")
        trail |= {held}
        named = target(root, held)
        # In draft-07, keywords beside a reference do not count: dropping them is right in both.
        notes = {word: node[word] for word in node if word in NOTES}
        node = (named if isinstance(named, dict) else {} if named else {"not": {}}) | notes
    own = lacking(node, _GROUPS.keys())
    return own, [(_GROUPS[word], node[word]) for word in _GROUPS if word in node], trail


# After a change, a value that fitted one alternative may fit several.
_GROUPS = {"allOf": "allOf", "anyOf": "anyOf", "oneOf": "anyOf"}


def add_group(own: Schema, word: str, branches: list[Subschema]) -> None:
    """Add an `allOf` or `anyOf` to a schema, which may already have that keyword."""
    if word == "allOf":
        own["allOf"] = [*own.get("allOf", ()), *branches]
    elif word in own:
        own["allOf"] = [*own.get("allOf", ()), {word: branches}]
    else:
        own[word] = branches


def loosened(part: Schema, longest: int | None = None) -> Schema:
    """Return `part` without the keywords that may no longer hold after a change inside."""

    def rigid(value: Any) -> bool:
        long = longest is not None and isinstance(value, str) and len(value) > longest
        return long or isinstance(value, dict | list)

    values = [*part.get("enum", ()), *([part["const"]] if "const" in part else [])]
    return lacking(part, _FRAGILE | ({"enum", "const"} if any(map(rigid, values)) else set()))


def unpatterned(part: Schema) -> Schema:
    """Return a copy of `part` in which members whose names fit a pattern may be anything."""
    if "patternProperties" not in part:
        return dict(part)
    return part | {"patternProperties": dict.fromkeys(part["patternProperties"], True)}


def either(one: Subschema, other: Subschema) -> Subschema:
    """Return the schema of values that fit one of the two."""
    if one is False or one == other:
        return other
    if other is False:
        return one
    return True if True in (one, other) or {} in (one, other) else {"anyOf": [one, other]}


def without_null(node: Subschema) -> tuple[Subschema, bool]:
    """Return `node` for values other than null, and True if it may admit null.

    >>> without_null({"type": ["string", "null"]}), without_null({"type": "integer"})
    (({'type': 'string'}, True), ({'type': 'integer'}, False))
    """
    if isinstance(node, bool):
        return node, node
    kinds = types(node)
    held = node.get("const") is not None or None not in node.get("enum", [None])
    if held or (kinds and "null" not in kinds):
        return node, False
    left = dict(node)
    if kinds:
        others = [kind for kind in node["type"] if kind != "null"] if len(kinds) > 1 else []
        left["type"] = others[0] if len(others) == 1 else others
    if "enum" in node:
        left["enum"] = [value for value in node["enum"] if value is not None]
    if "anyOf" in node:
        branches = [without_null(each) for each in node["anyOf"]]
        if not any(null for _, null in branches):
            return node, False
        left["anyOf"] = [each for each, _ in branches if each is not False]
        if len(left["anyOf"]) == len(left) == 1:
            return left["anyOf"][0], True
    nothing = "const" in node or any(left.get(word) == [] for word in ("type", "enum", "anyOf"))
    return (False if nothing else left), True


def lacking(part: Schema, words: Collection[str]) -> Schema:
    """Return `part` without these keywords."""
    return {word: value for word, value in part.items() if word not in words}


def positional(part: Schema) -> bool:
    """Return True if an array's elements have schemas by their position."""
    return "prefixItems" in part or isinstance(part.get("items"), list)


def types(part: Schema) -> set[str]:
    """Return the types that `part` names; the empty set if it has no `type`."""
    kinds = part.get("type", [])
    return {kinds} if isinstance(kinds, str) else set(kinds)


def may_be(part: Schema, kind: str) -> bool:
    """Return True if a value of the type `kind` may fit `part`."""
    return not (kinds := types(part)) or kind in kinds
