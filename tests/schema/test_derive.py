"""The schema of changed documents; with arbitrary changes, see tests/transforms."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from mcp_abridge.document.paths import ROOT, Path
from mcp_abridge.schema.derive import any_of, extended, relaxed
from mcp_abridge.schema.keywords import DIALECT
from mcp_abridge.schema.references import Schema

from tests.fitting import fits

STRING: Schema = {"type": "string"}
NULL: Schema = {"type": "null"}
P = Path.parse


def closed(*required: str, **properties: Any) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


def loose(**properties: Any) -> Schema:
    return {"type": "object", "properties": properties}


def array(items: Any, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


ISSUE = closed("id", "labels", id=STRING, labels=array(closed("name", name=STRING, color=STRING)))
DEFINED = {"$defs": {"user": loose(login=STRING)}}
Edit = Callable[[Schema], Schema | None]


def with_new(path: str, *, stays: bool = False) -> Edit:
    """Return the declaration of a member `new` in the objects at `path`."""
    return lambda schema: extended(schema, P(path) if path else ROOT, {"new": stays})


# What is done to a schema, and the schema of the changed documents.
EDITS: dict[str, tuple[Edit, Schema, Schema | None]] = {
    "relaxed is all but the types": (
        relaxed,
        closed(
            "a",
            a={"type": "string", "minLength": 3, "enum": ["abc"], "description": "first"},
            d=array({"type": "integer", "minimum": 0}, minItems=1, maxItems=9, uniqueItems=True),
            e=array({}, prefixItems=[STRING]),
            _elided=STRING,
            pagination=STRING,
        )
        | {"oneOf": [{"required": ["a"]}, {"not": {}}], "patternProperties": {"^_": STRING}},
        {
            "type": "object",
            "properties": {
                "a": {"type": "string", "description": "first"},
                "d": array({"type": "integer", "minimum": 0}, maxItems=9),
                "e": {"type": "array"},
            },
            "anyOf": [{}, {}],
        },
    ),
    "members that are replaced may be anything": (
        lambda schema: relaxed(schema, "id"), closed("id", id=STRING), loose(),
    ),
    "what is no object may be in one": (
        relaxed, array(STRING), {"anyOf": [array(STRING), {"type": "object"}]},
    ),
    "one kind of alternatives stays": (
        relaxed,
        {"type": "object", "anyOf": [loose()], "oneOf": [{}, {}]},
        {"type": "object", "anyOf": [loose()]},
    ),
    "a reference stays if it leads anywhere, and a definition if it is used": (
        relaxed,
        {
            **loose(a=STRING, b={"$ref": "#/properties/a"}, c={"$ref": "#/$defs/user"},
                    d={"$ref": "#/properties/_elided"}, e={"$ref": "#"}, _elided=STRING,
                    f={"$ref": "https://example.com/x"}),
            "$defs": {**DEFINED["$defs"], "unused": STRING},
        },
        {
            **loose(a=STRING, b={"$ref": "#/properties/a"}, c={"$ref": "#/$defs/user"}, d={},
                    e={"$ref": "#"}, f={}),
            **DEFINED,
        },
    ),
    "definitions use each other": (
        relaxed,
        {
            **loose(a={"$ref": "#/$defs/b"}),
            "$defs": {"c": {"$ref": "#/$defs/b"}, "b": array({"$ref": "#/$defs/c"})},
        },
        {
            **loose(a={"$ref": "#/$defs/b"}),
            "$defs": {"c": {"$ref": "#/$defs/b"}, "b": array({"$ref": "#/$defs/c"})},
        },
    ),
    "what has a name of its own may be anything": (
        relaxed, {"$id": "x", **loose(a={"$id": "y", **array({"$ref": "#"})})}, loose(a={}),
    ),
    "a new name beside the old one": (
        with_new("labels"),
        ISSUE,
        loose(id=STRING, labels=array(loose(name=STRING, color=STRING, new={}))),
    ),
    "a name that is declared may be anything": (
        with_new(""), closed(a=STRING, new=STRING), loose(a=STRING, new={}),
    ),
    "or what it is declared as, or null": (
        with_new("", stays=True), loose(new=STRING), loose(new={"anyOf": [STRING, NULL]}),
    ),
    "one that is not declared may be anything": (
        with_new("", stays=True), loose(a=STRING), loose(a=STRING, new={}),
    ),
    "in each alternative": (
        with_new("a"),
        loose(a={"oneOf": [closed(b=STRING), NULL]}),
        loose(a={"anyOf": [loose(b=STRING, new={}), NULL]}),
    ),
    "behind a reference, here alone": (
        with_new("a"),
        {**loose(a={"$ref": "#/$defs/user"}, b={"$ref": "#/$defs/user"}), **DEFINED},
        {**loose(a=loose(login=STRING, new={}), b={"$ref": "#/$defs/user"}), **DEFINED},
    ),
    "a circle": (
        with_new("a"),
        {**loose(a={"$ref": "#/$defs/a"}), "$defs": {"a": {"$ref": "#/$defs/a"}}},
        loose(a={"properties": {"new": {}}}),
    ),
    "one element": (with_new("a[0]"), loose(a=array(ISSUE)), loose(a={"type": "array"})),
    "any depth": (with_new("**.a"), ISSUE, {"type": "object"}),
}  # fmt: skip


@pytest.mark.parametrize(("change", "schema", "expected"), EDITS.values(), ids=EDITS)
def test_a_change_of_documents_changes_their_schema(
    change: Edit, schema: Schema, expected: Schema | None
) -> None:
    before = copy.deepcopy(schema)
    assert change(schema) == expected
    assert schema == before


@pytest.mark.parametrize("change", [relaxed, with_new("a")], ids=["relaxed", "extended"])
@pytest.mark.parametrize("schema", [{"properties": 5}, {"properties": {"a": 1}}])
def test_what_is_no_schema_has_none_of_changed_documents(change: Edit, schema: Any) -> None:
    assert change({"type": "object", **schema}) is None


OWN = closed("a", a={"$ref": "#/$defs/A"}) | {"$defs": {"A": STRING}}
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}
OBJECT = {"type": "object"}


@pytest.mark.parametrize("dialect", [{}, DRAFT_7])
def test_a_schema_admits_what_any_of_several_does(dialect: Schema) -> None:
    other = closed("b", b={"$ref": "#/$defs/A"}) | {"$defs": {"A": {"type": "integer"}}}
    tree = {"$id": "x", **closed("c", c=array({"$ref": "#"}))}
    schema = any_of([{**dialect, **OWN}, other, {**dialect, **tree}], OBJECT)
    assert schema is not None
    assert schema["type"] == "object"
    assert schema.get("$schema") == dialect.get("$schema")
    for document, valid in [
        ({"a": "x"}, True),
        ({"b": 1}, True),
        ({"b": "x"}, False),
        ({"c": [{"c": []}]}, True),
        ({"c": [{"a": "x"}]}, False),
        ({}, False),
    ]:
        assert fits(document, schema) is valid


def test_equal_schemas_are_one_as_it_is() -> None:
    assert any_of([OWN, OWN], OBJECT) == OWN
    both = any_of([array(STRING), loose(), array(STRING)], {})
    assert both == {"anyOf": [array(STRING), loose()]}


@pytest.mark.parametrize(
    "schema",
    [
        {"$schema": DIALECT, **OBJECT},
        {**OBJECT, "properties": {"a": {"$ref": "https://example.com/x"}}},
        {**OBJECT, "properties": {"a": {"$ref": "#/$defs/missing"}}},
        {**OBJECT, "properties": {"a": {"$ref": "#name"}}},
        {**OBJECT, "properties": {"a": {"$id": "x"}}},
        {**OBJECT, "$dynamicAnchor": "node"},
        {**OBJECT, "properties": {"a": 1}},
    ],
)
def test_what_cannot_stand_elsewhere_is_combined_with_nothing(schema: Schema) -> None:
    assert any_of([{**DRAFT_7, **loose()}, schema], OBJECT) is None


def test_a_property_or_a_value_called_ref_is_no_reference() -> None:
    schema = closed(**{"$ref": STRING}) | {"const": {"$ref": "#/nowhere"}, "default": {"$ref": 1}}
    both = any_of([schema, OBJECT], OBJECT)
    assert both is not None
    assert both["anyOf"][0] == schema
    assert relaxed(schema) == loose(**{"$ref": STRING})
