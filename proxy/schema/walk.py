"""Changes the parts of a JSON Schema that a path names.

Helpers of `proxy.schema.derive`: in doubt, a changed schema is looser rather than too strict.
"""

from collections.abc import Callable, Collection
from typing import Any

from msgspec import Struct

from proxy.document.paths import Each, Name, Step, fits
from proxy.schema.references import Schema, Subschema, Unsupported, target

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
_GROUPS = ("allOf", "anyOf", "oneOf")


class Walk(Struct, frozen=True):
    """The change that `edit` makes at a path; with `over`, to the objects there and in arrays."""

    root: Schema
    change: Change
    over: bool = False


def edit(
    node: Subschema, walk: Walk, steps: tuple[Step, ...], trail: frozenset[str] = frozenset()
) -> Subschema:
    """Return `node` with the change of `walk` applied to the subschemas that `steps` name.

    Raises Unsupported for `**`, and for references that lead to themselves.
    """
    if node is False:
        return False
    part, groups, trail = resolve(node, walk.root, trail)
    if not groups or part.keys() - NOTES:
        part = _step(part, walk, steps) if steps else _arrive(part, walk)
    for keyword, branches in groups:
        add_group(part, keyword, [edit(branch, walk, steps, trail) for branch in branches])
    return part


def _arrive(part: Schema, walk: Walk) -> Schema:
    if not walk.over:
        return walk.change(dict(part))
    part = _loosened(part)
    if may_be(part, "object"):
        part = walk.change(part)
    return _elements(part, lambda inner: edit(inner, walk, ()))


def _step(part: Schema, walk: Walk, steps: tuple[Step, ...]) -> Schema:
    first, *rest = steps
    further = tuple(rest)
    part = _loosened(part)
    if isinstance(first, Name):
        declared = part.get("properties", {})
        part = named_only(part)
        if declared:
            part["properties"] = {
                name: edit(inner, walk, further) if fits(first, name) else inner
                for name, inner in declared.items()
            }
        return _elements(part, lambda inner: edit(inner, walk, steps))
    if isinstance(first, Each):
        return _elements(part, lambda inner: edit(inner, walk, further))
    raise Unsupported("a step to one element, or to any depth")


def _elements(part: Schema, change: Callable[[Subschema], Subschema]) -> Schema:
    if positional(part):
        return lacking(part, {"items", "prefixItems", "additionalItems"})
    return part | ({"items": change(part["items"])} if "items" in part else {})


def schema_at(node: Subschema, steps: tuple[Step, ...], root: Schema) -> tuple[Subschema, bool]:
    """Return the schema at `steps` below a value, and True if a value is there for certain."""
    if not steps or isinstance(node, bool):
        return node, not steps
    part, groups, _ = resolve(node, root, frozenset())
    first, kinds, certain = steps[0], types(part) - {"null"}, "null" not in types(part)
    clear = isinstance(first, Name) and not first.glob and "patternProperties" not in part
    if groups or not clear or positional(part) or kinds not in ({"array"}, {"object"}):
        return True, False
    if kinds == {"array"}:
        return {
            "type": "array",
            "items": schema_at(part.get("items", True), steps, root)[0],
        }, certain
    assert isinstance(first, Name)
    inner = part.get("properties", {}).get(first.text, part.get("additionalProperties", True))
    value, sure = schema_at(inner, steps[1:], root)
    return value, certain and sure and first.text in part.get("required", ())


def resolve(
    node: Subschema, root: Schema, trail: frozenset[str]
) -> tuple[Schema, list[tuple[str, list[Subschema]]], frozenset[str]]:
    """Return the own keywords of `node`, references followed, and its groups of other schemas.

    `trail` has the references followed since the last step into a value.
    """
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


def add_group(part: Schema, keyword: str, branches: list[Subschema]) -> None:
    """Add a group of schemas to `part`, which may already have that keyword.

    A `oneOf` becomes an `anyOf`: after a change, a value may fit several of its schemas.
    """
    keyword = "anyOf" if keyword == "oneOf" else keyword
    if keyword == "allOf":
        part["allOf"] = [*part.get("allOf", ()), *branches]
    elif keyword in part:
        part["allOf"] = [*part.get("allOf", ()), {keyword: branches}]
    else:
        part[keyword] = branches


def _loosened(part: Schema) -> Schema:
    values = [*part.get("enum", ()), *([part["const"]] if "const" in part else [])]
    whole = {"enum", "const"} if any(isinstance(value, dict | list) for value in values) else set()
    return lacking(part, _FRAGILE | whole)


def named_only(part: Schema) -> Schema:
    """Return a copy of `part` without the schemas of members that it does not name.

    Any of them may be the one that is changed.
    """
    rest = part.get("additionalProperties", True)
    if "patternProperties" in part or isinstance(rest, dict):
        return lacking(part, {"additionalProperties", "patternProperties"})
    return dict(part)


def either(one: Subschema, other: Subschema) -> Subschema:
    """Return the schema of values that fit one of the two."""
    if one is False or one == other:
        return other
    if other is False:
        return one
    return True if True in (one, other) or {} in (one, other) else {"anyOf": [one, other]}


def lacking(part: Schema, keywords: Collection[str]) -> Schema:
    """Return `part` without these keywords."""
    return {keyword: value for keyword, value in part.items() if keyword not in keywords}


def positional(part: Schema) -> bool:
    """Return True if an array's elements have schemas by their position."""
    return "prefixItems" in part or isinstance(part.get("items"), list)


def types(part: Schema) -> set[str]:
    """Return the types that `part` names; the empty set if it has no `type`."""
    kinds: Any = part.get("type", [])
    return {kinds} if isinstance(kinds, str) else set(kinds)


def may_be(part: Schema, kind: str) -> bool:
    """Return True if a value of the type `kind` may fit `part`."""
    return not (kinds := types(part)) or kind in kinds
