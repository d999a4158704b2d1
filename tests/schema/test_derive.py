"""The schema of changed documents; with arbitrary changes, see tests/transforms."""

import copy
from collections.abc import Callable
from typing import Any

import pytest
from mcp_abridge.document.paths import ROOT, Path
from mcp_abridge.schema.derive import advertised, at, projected, relaxed, renamed
from mcp_abridge.schema.keywords import DIALECT
from mcp_abridge.schema.references import Schema, Unsupported, bundle, references

from tests.fitting import fits

STRING: Schema = {"type": "string"}
P = Path.parse


def closed(*required: str, **properties: Any) -> Schema:
    schema: Schema = {"type": "object", "properties": properties, "additionalProperties": False}
    return schema | ({"required": list(required)} if required else {})


def array(items: Any, **more: Any) -> Schema:
    return {"type": "array", "items": items, **more}


ISSUE = closed("id", "labels", id=STRING, labels=array(closed("name", name=STRING, color=STRING)))
DEFINED = {"$defs": {"user": closed("login", login=STRING)}}
Edit = Callable[[Schema], Schema | None]


def marked(path: str) -> Edit:
    return lambda schema: at(schema, P(path), lambda part: {**part, "title": "here"})


def rename(path: str, name: str) -> Edit:
    return lambda schema: renamed(schema, P(path), name)


# What is done to a schema, and the schema of the changed documents.
EDITS: dict[str, tuple[Edit, Schema, Schema | None]] = {
    "through arrays": (
        marked("a"),
        array({"properties": {"a": {}}}),
        array({"properties": {"a": {"title": "here"}}}),
    ),
    "one element": (marked("[0]"), array({}), None),
    "any depth": (marked("**.a"), ISSUE, None),
    "alternatives": (
        marked("a"),
        {"description": "d", "oneOf": [{"properties": {"a": {}}}, {"type": "null"}, False]},
        {
            "description": "d",
            "anyOf": [{"properties": {"a": {"title": "here"}}}, {"type": "null"}, False],
        },
    ),
    "a reference": (
        marked("login"),
        {"$ref": "#/$defs/user", "description": "who", **DEFINED},
        {
            **closed("login", login={**STRING, "title": "here"}),
            "description": "who",
            **DEFINED,
        },
    ),
    "a circle": (marked("a"), {"$ref": "#/$defs/a", "$defs": {"a": {"$ref": "#/$defs/a"}}}, None),
    "a renamed property is as it was by its new name": (
        rename("labels.name", "title"),
        ISSUE,
        closed("id", "labels", id=STRING,
               labels=array(closed("title", title=STRING, color=STRING))),
    ),
    "where the old name is optional, the holder of the new one may stay": (
        rename("a", "b"),
        closed("b", a=STRING, b={"type": "null"}),
        closed("b", b={"anyOf": [STRING, {"type": "null"}]}),
    ),
    "a pattern cannot be renamed": (rename("a*", "b"), ISSUE, None),
    "a projection has exactly its fields, with the schemas of their sources": (
        lambda schema: projected(
            schema,
            ROOT,
            {
                "key": (P("id"), None, False),
                "names": (P("labels.name"), [], False),
                "none": (P("nope"), 0, False),
                "full": (P("id"), "", True),
                "computed": (None, None, False),
            },
        ),
        ISSUE,
        closed("key", "names", "none", "full", "computed", key=STRING, names=array(STRING),
               none={"const": 0}, full={"anyOf": [STRING, {"const": ""}]}, computed=True),
    ),
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
        lambda schema: relaxed(schema, "id"),
        closed("id", id=STRING),
        {"type": "object", "properties": {}},
    ),
}  # fmt: skip


@pytest.mark.parametrize(("change", "schema", "expected"), EDITS.values(), ids=EDITS)
def test_a_change_of_documents_changes_their_schema(
    change: Edit, schema: Schema, expected: Schema | None
) -> None:
    before = copy.deepcopy(schema)
    assert change(schema) == expected
    assert schema == before


@pytest.mark.parametrize(
    "change",
    [
        marked("a"),
        rename("a", "b"),
        lambda schema: projected(schema, ROOT, {"a": (P("a"), None, False)}),
        relaxed,
        lambda schema: advertised(schema, [{"type": "object"}]),
        lambda schema: advertised({"type": "object"}, [schema]),
    ],
    ids=["at", "renamed", "projected", "relaxed", "own", "derived"],
)
def test_a_schema_that_cannot_be_followed_has_no_schema_of_changed_documents(change: Edit) -> None:
    assert change({"properties": {"a": {"$ref": "https://example.com/x"}}}) is None


OWN = closed("a", a={"$ref": "#/$defs/A"}) | {"$defs": {"A": STRING}}


def test_the_advertised_schema_admits_results_of_rules_and_unchanged_ones() -> None:
    derived = closed("b", b={"$ref": "#/$defs/A"}) | {"$defs": {"A": {"type": "integer"}}}
    schema = advertised(OWN, [derived])
    assert schema is not None
    assert schema["type"] == "object"
    assert len(schema["anyOf"]) == 2
    assert schema["$defs"] == {"A": STRING, "A_2": {"type": "integer"}}
    for document, valid in [({"a": "x"}, True), ({"b": 1}, True), ({"b": "x"}, False), ({}, False)]:
        assert fits(document, schema) is valid


DERIVED = closed(b=STRING) | {"$defs": {"B": STRING}}
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}


@pytest.mark.parametrize(
    ("own", "derived", "expected"),
    [
        # Equal schemas once, and unused definitions not at all.
        (OWN, [DERIVED, DERIVED, OWN], {
            "type": "object",
            "anyOf": [closed(b=STRING), closed("a", a={"$ref": "#/$defs/A"})],
            "$defs": {"A": STRING},
        }),
        (OWN, [OWN, None], None),
        # What is relaxed admits the unchanged results.
        (OWN, [relaxed(OWN)], relaxed(OWN)),
        # The dialect stays at the root.
        ({**DRAFT_7, **closed(a=STRING)}, [{**DRAFT_7, **closed()}], {
            **DRAFT_7,
            "type": "object",
            "anyOf": [closed(), closed(a=STRING)],
        }),
        ({**DRAFT_7, **closed(a=STRING)}, [{"$schema": DIALECT, **closed()}], None),
        # If the server sends arrays, the root is no object.
        (array(STRING), [closed(items=array(STRING))], {
            "anyOf": [closed(items=array(STRING)), array(STRING)],
        }),
    ],
)  # fmt: skip
def test_the_advertised_schema_combines_own_and_derived_ones(
    own: Schema, derived: list[Schema | None], expected: Schema | None
) -> None:
    assert advertised(own, derived) == expected


TREE: Schema = {
    "type": "object",
    "properties": {"name": {"type": "string"}, "inner": {"type": "array", "items": {"$ref": "#"}}},
    "required": ["name"],
}


def test_a_reference_to_the_root_becomes_a_definition() -> None:
    before = copy.deepcopy(TREE)
    after = bundle(TREE)
    assert before == TREE
    assert references(after) == {"#/$defs/root"}
    for document, valid in [
        ({"name": "a", "inner": [{"name": "b", "inner": []}]}, True),
        ({"name": "a", "inner": [{"inner": []}]}, False),
    ]:
        assert fits(document, TREE) is valid
        assert fits(document, after) is valid


def test_a_reference_into_the_root_becomes_a_definition_by_a_free_name() -> None:
    schema = {
        "properties": {"a": {"type": "string"}, "b": {"$ref": "#/properties/a"}},
        "$defs": {"a": {}},
    }
    assert bundle(schema) == {
        "properties": {"a": {"type": "string"}, "b": {"$ref": "#/$defs/a_2"}},
        "$defs": {"a": {}, "a_2": {"type": "string"}},
    }


def test_references_to_definitions_stay_and_are_spelled_alike() -> None:
    schema = {
        "anyOf": [{"$ref": "#/$defs/Page%5BItem%5D"}, {"$ref": "#/definitions/a~1b"}],
        "$defs": {"Page[Item]": {"type": "null"}},
        "definitions": {"a/b": True},
    }
    assert references(bundle(schema)) == {"#/$defs/Page[Item]", "#/definitions/a~1b"}
    assert fits(None, bundle(schema))


def test_a_property_or_a_value_called_ref_is_no_reference() -> None:
    schema = {
        "properties": {"$ref": {"type": "string"}},
        "const": {"$ref": "#/nowhere"},
        "default": {"$ref": 1},
    }
    assert bundle(schema) == schema
    assert references({"items": {"$ref": ["#/nowhere"]}}) == set()


UNCLEAR: list[tuple[Any, str]] = [
    ({"$ref": "other.json#/a"}, "a reference to 'other.json#/a'"),
    ({"$ref": "#name"}, "an anchor: '#name'"),
    ({"$ref": "#/$defs/missing"}, "nothing stands at '#/$defs/missing'"),
    ({"properties": {"a": {"$id": "x"}}}, "references that depend on where they stand"),
    ({"properties": {"a": 1}}, "1 is no schema"),
    (True, "no schema of an object"),
]


@pytest.mark.parametrize(("schema", "message"), UNCLEAR)
def test_a_change_that_cannot_be_derived_is_unsupported(schema: Any, message: str) -> None:
    with pytest.raises(Unsupported) as unclear:
        bundle(schema)
    assert str(unclear.value) == message
