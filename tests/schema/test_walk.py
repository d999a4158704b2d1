from typing import Any

import pytest

from proxy.document.paths import Path
from proxy.schema.references import Schema, Subschema, Unclear
from proxy.schema.walk import (
    Walk,
    add_group,
    edit,
    either,
    found,
    loosened,
    may_be,
    opened,
    positional,
    types,
    unpatterned,
    without_null,
)

STRING: Schema = {"type": "string"}
ROOT: Schema = {
    "$defs": {
        "user": {
            "type": "object",
            "properties": {"login": STRING, "tags": {"type": "array", "items": STRING}},
            "required": ["login"],
        },
        "loop": {"$ref": "#/$defs/loop"},
    }
}


def marked(part: Schema) -> Schema:
    return {**part, "title": "here"}


# A schema, a path, and where the mark stands then.
EDITED: list[tuple[Schema, str, Schema]] = [
    ({"type": "string"}, "", {"type": "string", "title": "here"}),
    (
        {"properties": {"a": {}, "b": {}}},
        "a",
        {"properties": {"a": {"title": "here"}, "b": {}}},
    ),
    (
        {"properties": {"a": {}, "ab": {}, "b": {}}},
        "a*",
        {"properties": {"a": {"title": "here"}, "ab": {"title": "here"}, "b": {}}},
    ),
    (
        {"type": "array", "items": {"properties": {"a": {}}}},
        "a",
        {"type": "array", "items": {"properties": {"a": {"title": "here"}}}},
    ),
    (
        {"type": "array", "prefixItems": [{"properties": {"a": {}}}, {}], "items": False},
        "a",
        {
            "type": "array",
            "prefixItems": [{"properties": {"a": {"title": "here"}}}] * 2,
            "items": False,
        },
    ),
    ({"items": {}}, "[]", {"items": {"title": "here"}}),
    ({"items": STRING}, "[0]", {"items": {"anyOf": [STRING, {**STRING, "title": "here"}]}}),
    (
        {"additionalProperties": STRING},
        "a",
        {"additionalProperties": STRING, "properties": {"a": {**STRING, "title": "here"}}},
    ),
    ({"additionalProperties": False}, "a", {"additionalProperties": False}),
    ({"additionalProperties": STRING}, "a*", {"additionalProperties": True}),
    (
        {"patternProperties": {"^a": STRING}, "additionalProperties": False},
        "a",
        {"patternProperties": {"^a": True}, "additionalProperties": False},
    ),
    (
        {"description": "d", "anyOf": [{"properties": {"a": {}}}, {"type": "null"}]},
        "a",
        {
            "description": "d",
            "anyOf": [
                {"properties": {"a": {"title": "here"}}},
                {"type": "null"},
            ],
        },
    ),
    ({"oneOf": [STRING, False]}, "", {"anyOf": [{**STRING, "title": "here"}, False]}),
    (
        {"allOf": [STRING], "oneOf": [{}], "type": "string"},
        "",
        {
            "type": "string",
            "title": "here",
            "allOf": [{**STRING, "title": "here"}],
            "anyOf": [{"title": "here"}],
        },
    ),
    (
        {"const": {"a": 1}, "not": {}, "minProperties": 1, "uniqueItems": True},
        "a",
        {"minProperties": 1, "properties": {"a": {"title": "here"}}},
    ),
    (
        {"enum": ["x", None], "properties": {"a": {}}},
        "a",
        {"enum": ["x", None], "properties": {"a": {"title": "here"}}},
    ),
    (
        {"$ref": "#/$defs/user", "description": "who"},
        "login",
        {
            "type": "object",
            "properties": {
                "login": {**STRING, "title": "here"},
                "tags": {"type": "array", "items": STRING},
            },
            "required": ["login"],
            "description": "who",
        },
    ),
]


@pytest.mark.parametrize(("schema", "path", "expected"), EDITED)
def test_a_change_arrives_where_the_path_leads(schema: Schema, path: str, expected: Schema) -> None:
    assert edit(schema, Walk(ROOT, marked), Path.parse(path).steps) == expected


def test_a_change_to_objects_is_made_to_the_elements_of_arrays() -> None:
    walk = Walk(ROOT, marked, over=True)
    assert edit({"type": "array", "items": {"type": "object"}}, walk, ()) == {
        "type": "array",
        "items": {"type": "object", "title": "here"},
    }
    assert edit(STRING, walk, ()) == STRING


@pytest.mark.parametrize(("schema", "path"), [({"$ref": "#/$defs/loop"}, "a"), ({}, "**.a")])
def test_what_leads_nowhere_or_anywhere_is_unclear(schema: Schema, path: str) -> None:
    with pytest.raises(Unclear):
        edit(schema, Walk(ROOT, marked), Path.parse(path).steps)


USER: Schema = {"$ref": "#/$defs/user"}
FOUND: list[tuple[Subschema, str, Subschema, bool]] = [
    (USER, "", USER, True),
    (USER, "login", STRING, True),
    (USER, "tags", {"type": "array", "items": STRING}, False),
    (USER, "nope", True, False),
    ({**ROOT["$defs"]["user"], "type": ["object", "null"]}, "login", STRING, False),
    ({"type": "array", "items": USER}, "login", {"type": "array", "items": STRING}, True),
    ({"anyOf": [USER, {"type": "null"}]}, "login", STRING, False),
    ({"anyOf": [USER, USER]}, "login", STRING, True),
    ({"type": "object", "additionalProperties": False}, "a", False, False),
    ({"type": "object", "additionalProperties": STRING}, "a", STRING, False),
    ({"type": "object", "patternProperties": {"a": STRING}}, "a", True, False),
    ({"properties": {"a": STRING}, "required": ["a"]}, "a", True, False),
    ({"type": ["object", "array"], "properties": {"a": STRING}}, "a", True, False),
    ({"type": "object", "allOf": [USER]}, "login", True, False),
    (STRING, "a", False, False),
    (False, "a", False, False),
    (USER, "*", True, False),
    ({"type": "array", "items": STRING}, "[0]", True, False),
]


@pytest.mark.parametrize(("schema", "path", "expected", "certain"), FOUND)
def test_what_stands_at_a_path_is_found(
    schema: Subschema, path: str, expected: Subschema, certain: bool
) -> None:
    assert found(schema, Path.parse(path).steps, ROOT) == (expected, certain)


def test_a_schema_is_opened_into_itself_and_its_groups() -> None:
    node = {"$ref": "#/$defs/user", "title": "t", "required": ["x"]}
    own, groups, trail = opened(node, ROOT, frozenset())
    assert own == ROOT["$defs"]["user"] | {"title": "t"}
    assert not groups
    assert set(trail) == {"#/$defs/user"}
    assert opened({"oneOf": [True], "type": "null"}, ROOT, trail) == (
        {"type": "null"},
        [("anyOf", [True])],
        trail,
    )
    assert opened(False, ROOT, trail) == ({"not": {}}, [], trail)


def test_a_second_group_of_alternatives_holds_besides_the_first() -> None:
    own: Schema = {"anyOf": [True]}
    add_group(own, "anyOf", [False])
    add_group(own, "allOf", [STRING])
    assert own == {"anyOf": [True], "allOf": [{"anyOf": [False]}, STRING]}


EITHER: list[tuple[Subschema, Subschema, Subschema]] = [
    (STRING, False, STRING),
    (False, STRING, STRING),
    (STRING, STRING, STRING),
    (STRING, True, True),
    ({}, STRING, True),
    (STRING, {"type": "null"}, {"anyOf": [STRING, {"type": "null"}]}),
]


@pytest.mark.parametrize(("one", "other", "both"), EITHER)
def test_one_or_the_other(one: Subschema, other: Subschema, both: Subschema) -> None:
    assert either(one, other) == both


LOOSENED: list[tuple[Schema, int | None, Schema]] = [
    ({"enum": ["a", 1, None]}, None, {"enum": ["a", 1, None]}),
    ({"enum": ["a", []]}, None, {}),
    ({"const": {"a": 1}}, None, {}),
    ({"const": "abc"}, 2, {}),
    ({"const": "abc"}, 3, {"const": "abc"}),
    ({"if": {}, "then": {}, "contains": {}, "default": 1, "minItems": 1}, None, {"minItems": 1}),
]


@pytest.mark.parametrize(("schema", "longest", "expected"), LOOSENED)
def test_what_a_change_puts_in_doubt_goes(
    schema: Schema, longest: int | None, expected: Schema
) -> None:
    assert loosened(schema, longest) == expected


NULLS: list[tuple[Subschema, Subschema, bool]] = [
    (True, True, True),
    (False, False, False),
    ({}, {}, True),
    ({"$ref": "#/$defs/a"}, {"$ref": "#/$defs/a"}, True),
    (STRING, STRING, False),
    ({"type": "null"}, False, True),
    ({"type": ["null"]}, False, True),
    ({"type": ["string", "null"], "minLength": 1}, STRING | {"minLength": 1}, True),
    ({"type": ["string", "null", "integer"]}, {"type": ["string", "integer"]}, True),
    ({"type": "string", "enum": ["a", None]}, {"type": "string", "enum": ["a", None]}, False),
    ({"enum": ["a", None]}, {"enum": ["a"]}, True),
    ({"enum": ["a"]}, {"enum": ["a"]}, False),
    ({"enum": [None]}, False, True),
    ({"const": None}, False, True),
    ({"const": 0}, {"const": 0}, False),
    ({"anyOf": [STRING, {"type": "null"}]}, STRING, True),
    (
        {"anyOf": [STRING, {"const": 1}, {"type": "null"}], "title": "t"},
        {"anyOf": [STRING, {"const": 1}], "title": "t"},
        True,
    ),
    ({"anyOf": [STRING, {"const": 1}]}, {"anyOf": [STRING, {"const": 1}]}, False),
    ({"anyOf": [{"type": "null"}, {"const": None}]}, False, True),
]


@pytest.mark.parametrize(("schema", "rest", "null"), NULLS)
def test_what_a_schema_says_of_values_other_than_null(
    schema: Subschema, rest: Subschema, null: bool
) -> None:
    assert without_null(schema) == (rest, null)


def test_small_questions_about_a_plain_schema() -> None:
    assert positional({"prefixItems": []})
    assert positional({"items": []})
    assert not positional({"items": {}})
    assert types({"type": "string"}) == {"string"}
    assert types({"type": ["string", "null"]}) == {"string", "null"}
    assert types({}) == set()
    assert may_be({}, "object")
    assert may_be({"type": ["object", "null"]}, "object")
    assert not may_be(STRING, "object")
    patterns: Any = {"patternProperties": {"a": STRING}}
    assert unpatterned(patterns) == {"patternProperties": {"a": True}}
    assert unpatterned(STRING) == STRING
