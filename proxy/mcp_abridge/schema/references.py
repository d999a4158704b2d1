"""Reads JSON Schema: which keywords hold schemas, and what a reference leads to."""

from collections.abc import Callable, Collection, Mapping
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
HOLDS_NAMED = {*DEFINITIONS, "dependencies", "dependentSchemas", "patternProperties", "properties"}
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


def within(schema: Schema, change: Callable[[Schema], Schema]) -> Schema:
    """Return `schema` with `change` applied to each object among the schemas directly in it.

    Raises Unsupported if the value of a keyword that holds schemas is not one.
    """
    return {word: _changed(word, value, change) for word, value in schema.items()}


def _changed(word: str, value: Any, change: Callable[[Schema], Schema]) -> Any:
    def inside(inner: Any) -> Any:
        return change(inner) if isinstance(inner, dict) else checked(inner)

    if word in HOLDS_LIST and isinstance(value, list):
        return [inside(inner) for inner in value]
    if word in HOLDS_ONE:
        return inside(value)
    if word in HOLDS_NAMED and isinstance(value, dict):
        return {
            name: inner if word == "dependencies" and isinstance(inner, list) else inside(inner)
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


def target(root: Mapping[str, Any], reference: Any) -> Subschema:
    """Return the target of a JSON Pointer in a fragment. Raises Unsupported if there is none."""
    value: Any = root
    for key in keys(reference):
        if isinstance(value, dict) and key in value:
            value = value[key]
        elif isinstance(value, list) and key.isdecimal() and int(key) < len(value):
            value = value[int(key)]
        else:
            raise Unsupported(f"nothing stands at {reference!r}")
    return checked(value)


def keys(reference: Any) -> list[str]:
    """Return the keys of a JSON Pointer in a fragment. Raises Unsupported if it is none."""
    if not isinstance(reference, str) or reference[:2] not in ("#", "#/"):
        raise Unsupported(f"a reference to {reference!r}")
    if "%" in reference:
        from urllib.parse import unquote

        reference = unquote(reference)
    return [key.replace("~1", "/").replace("~0", "~") for key in reference.split("/")[1:]]


def pointer(*keys: str) -> str:
    """Return the reference to what stands at these keys."""
    return "".join(["#", *(f"/{key.replace('~', '~0').replace('/', '~1')}" for key in keys)])


def lacking(schema: Schema, keywords: Collection[str]) -> Schema:
    """Return `schema` without these keywords."""
    return {keyword: value for keyword, value in schema.items() if keyword not in keywords}


def types(part: Schema) -> set[str]:
    """Return the types that `part` names; the empty set if it has no `type`."""
    kinds: Any = part.get("type", [])
    return {kinds} if isinstance(kinds, str) else set(kinds)
