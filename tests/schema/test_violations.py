"""Each keyword's words, and which of several alternatives was meant."""

from typing import Any

import jsonschema
import pytest

from proxy.document.tree import loads
from proxy.schema.keywords import DIALECTS, checker
from proxy.schema.violations import MOST, violations

TEXT = {"type": "string"}


def said(schema: dict[str, Any], value: Any) -> list[str]:
    return [each.said for each in violations(checker(schema), value)]


WORDS: list[tuple[dict[str, Any], Any, str]] = [
    ({"type": "object"}, "gone", "expected an object, found 'gone'"),
    ({"type": ["integer", "null"]}, True, "expected an integer or null, found true"),
    ({"enum": ["sent", "lost"]}, "sen",
     "expected one of 'sent', 'lost', found 'sen'; did you mean 'sent'?"),
    ({"enum": [1]}, None, "expected 1, found null"),
    ({"enum": list(range(12))}, -1, "expected one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …, found -1"),
    ({"const": "a"}, 2.5, "expected 'a', found 2.5"),
    ({"minimum": 0}, -1, "-1 is less than the minimum of 0"),
    ({"maximum": 100}, 150, "150 is greater than the maximum of 100"),
    ({"exclusiveMinimum": 0}, 0, "0 is not more than 0"),
    ({"exclusiveMaximum": 1}, 1, "1 is not less than 1"),
    ({"multipleOf": 5}, 7, "7 is not a multiple of 5"),
    ({"minLength": 3}, "ab", "has 2 characters, fewer than 3"),
    ({"maxLength": 0}, "a", "has 1 character, more than 0"),
    ({"minItems": 1}, [], "has no elements, fewer than 1"),
    ({"maxItems": 1}, [1, 2], "has 2 elements, more than 1"),
    ({"minProperties": 2}, {"a": 1}, "has 1 member, fewer than 2"),
    ({"maxProperties": 0}, {"a": 1}, "has 1 member, more than 0"),
    ({"uniqueItems": True}, [1, 1], "has an element twice"),
    ({"pattern": "^a$"}, "b", "'b' does not match '^a$'"),
    ({"format": "uuid"}, "x", "'x' is not of the format 'uuid'"),
    ({"contains": TEXT}, [1], "too few or too many elements are such as 'contains' asks for"),
    ({"contains": TEXT, "minContains": 2}, ["a"],
     "fewer than 2 elements are such as 'contains' asks for"),
    ({"contains": TEXT, "maxContains": 1}, ["a", "b"],
     "more than 1 elements are such as 'contains' asks for"),
    ({"not": TEXT}, "a", "'a' is what it must not be"),
    ({"anyOf": [{"minimum": 5}, {"maximum": 3}]}, 4, "4 fits none of the alternatives"),
    ({"oneOf": [{"minimum": 5}, {"maximum": 3}]}, 4, "4 fits none of the alternatives"),
    ({"oneOf": [TEXT, {"maxLength": 3}]}, "a", "'a' fits more than one of the alternatives"),
    ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "has 2 characters, more than 1"),
    ({"prefixItems": [{}], "items": False}, [1, 2], "nothing more may stand in this array"),
    ({"unevaluatedItems": False}, [1], "has elements that no schema takes"),
    ({"unevaluatedProperties": False}, {"a": 1}, "has members that no schema takes"),
    ({"additionalItems": False, "items": [{}]}, [1, 2], "nothing more may stand in this array"),
    ({"dependencies": {"a": ["b"]}}, {"a": 1}, "a member is missing that another one asks for"),
    ({"allOf": [False]}, [], "nothing may stand here, found an array"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "words"), WORDS, ids=lambda each: str(each)[:40])
def test_a_violation_says_what_was_found_and_what_would_be_right(
    schema: dict[str, Any], value: Any, words: str
) -> None:
    older = {"$schema": "http://json-schema.org/draft-07/schema#"}
    dialect = older if schema.keys() & {"additionalItems", "dependencies"} else {}
    assert said(dialect | schema, value) == [f"the document: {words}"]


def test_every_keyword_has_its_words() -> None:
    # The others hold schemas, whose violations say where they are themselves.
    holding = {
        "$ref",
        "$dynamicRef",
        "allOf",
        "dependentSchemas",
        "if",
        "items",
        "patternProperties",
    }
    holding |= {"prefixItems", "properties", "propertyNames"}
    named = {"required", "dependentRequired", "additionalProperties"}
    known = set().union(*(getattr(jsonschema, each).VALIDATORS for each in DIALECTS.values()))
    tried = {word for schema, _, _ in WORDS for word in schema}
    assert known - holding - named - tried == set()


@pytest.mark.parametrize(
    ("schema", "value", "words"),
    [
        ({"required": ["id"]}, {}, "id: is missing"),
        ({"items": {"required": ["id"]}}, [{}], "[0].id: is missing"),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "b: is missing beside 'a'"),
        ({"additionalProperties": False}, {"x y": 1}, "'x y': is none of the properties"),
        ({"additionalProperties": TEXT}, {"a-b": 1}, "a-b: expected a string, found 1"),
        ({"patternProperties": {"^x": TEXT}}, {"x": 1}, "x: expected a string, found 1"),
        (
            {"properties": {"jobs": {"items": {"properties": {"n": TEXT}}}}},
            {"jobs": [{}, {"n": {}}]},
            "jobs[1].n: expected a string, found an object",
        ),
    ],
)
def test_a_violation_says_where_it_is(schema: dict[str, Any], value: Any, words: str) -> None:
    assert said(schema, value) == [words]


def test_of_alternatives_the_one_that_was_meant_is_named() -> None:
    null = {"type": "null"}
    assert said({"anyOf": [{**TEXT, "enum": ["a", "b"]}, null]}, "x") == [
        "the document: expected one of 'a', 'b', found 'x'"
    ]
    assert said({"anyOf": [TEXT, null]}, 5) == ["the document: expected a string or null, found 5"]


def test_little_is_shown_of_what_upstream_wrote_and_on_one_line() -> None:
    assert said({"type": "null"}, "a\n" + "b" * 100) == [
        f"the document: expected null, found 'a\\n{'b' * 58}'…"
    ]
    [named] = said({"additionalProperties": False}, {"\n" * 70: 1})
    assert named == "'" + "\\n" * 60 + "'…: is none of the properties"


def test_a_number_is_shown_as_upstream_spelled_it() -> None:
    assert said({"maximum": 5}, loads(b"7.50")) == [
        "the document: 7.50 is greater than the maximum of 5"
    ]
    assert said({"type": "integer"}, loads(b"1" * 5000)) == [
        f"the document: expected an integer, found {'1' * 60}…"
    ]


@pytest.mark.parametrize(
    ("raw", "kind"),
    [(b"1.0", "integer"), (b"-0", "integer"), (b"12345678901234567890123", "integer"),
     (b"1e2", "integer"), (b"1e400", "number"), (b"0.10", "number")],
)  # fmt: skip
def test_a_number_that_keeps_its_spelling_has_its_type(raw: bytes, kind: str) -> None:
    assert said({"type": kind}, loads(raw)) == []


def test_no_more_than_a_thousand_violations_are_looked_at() -> None:
    assert len(said({"items": TEXT}, [1] * (MOST + 5))) == MOST
