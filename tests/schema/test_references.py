import copy
from typing import Any

import pytest

from proxy.schema.references import (
    Schema,
    Unsupported,
    bundle,
    combine,
    drop_unused_definitions,
    references,
    target,
)
from tests.fitting import fits

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


UNCLEAR: list[tuple[Any, str]] = [
    ({"$ref": "other.json#/a"}, "a reference to 'other.json#/a'"),
    ({"$ref": 1}, "a reference to 1"),
    ({"$ref": "#name"}, "an anchor: '#name'"),
    ({"$ref": "#/$defs/missing"}, "nothing stands at '#/$defs/missing'"),
    ({"$ref": "#/required", "required": ["a"]}, "['a'] is no schema"),
    ({"items": {"$dynamicRef": "#a"}}, "references that depend on where they stand"),
    ({"properties": {"a": {"$id": "x"}}}, "references that depend on where they stand"),
    ({"properties": {"a": 1}}, "1 is no schema"),
    ({"properties": []}, "properties holds no schemas"),
    ({"anyOf": {}}, "anyOf holds no schemas"),
    (True, "no schema of an object"),
]


@pytest.mark.parametrize(("schema", "message"), UNCLEAR)
def test_what_cannot_be_moved_is_unclear(schema: Any, message: str) -> None:
    with pytest.raises(Unsupported) as unclear:
        bundle(schema)
    assert str(unclear.value) == message


def test_joined_schemas_share_equal_definitions_and_rename_others() -> None:
    one: Schema = {"$ref": "#/$defs/A", "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"const": 1}}}
    other: Schema = {
        "$ref": "#/$defs/A",
        "$defs": {"A": {"$ref": "#/$defs/B"}, "B": {"const": 2}, "C": {}},
    }
    both = combine([one, one, other], lambda parts: {"oneOf": parts})
    assert both == {
        "oneOf": [{"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A"}, {"$ref": "#/$defs/A_2"}],
        "$defs": {
            "A": {"$ref": "#/$defs/B"},
            "B": {"const": 1},
            "A_2": {"$ref": "#/$defs/B_2"},
            "B_2": {"const": 2},
            "C": {},
        },
    }
    assert fits(2, both)
    assert not fits(1, both)


def test_the_dialect_moves_to_the_root_and_two_of_them_are_unclear() -> None:
    draft = {"$schema": "http://json-schema.org/draft-07/schema#", "type": "object"}
    assert combine([draft, {}], lambda parts: {"anyOf": parts}) == {
        "$schema": "http://json-schema.org/draft-07/schema#",
        "anyOf": [{"type": "object"}, {}],
    }
    with pytest.raises(Unsupported, match="schemas of different dialects"):
        combine([draft, {"$schema": "https://json-schema.org/draft/2020-12/schema"}], lambda _: {})


def test_definitions_that_nothing_refers_to_are_pruned() -> None:
    defs: Schema = {"a": {"$ref": "#/$defs/b"}, "b": {}, "c": {"$ref": "#/$defs/a"}}
    kept = {"a": defs["a"], "b": {}}
    assert drop_unused_definitions({"$ref": "#/$defs/a", "$defs": defs}) == {
        "$ref": "#/$defs/a",
        "$defs": kept,
    }
    assert drop_unused_definitions({"type": "object", "$defs": defs}) == {"type": "object"}


def test_a_reference_names_its_target() -> None:
    root = {"$defs": {"a/b": {"anyOf": [True, {"const": 1}]}}}
    assert target(root, "#/$defs/a~1b/anyOf/1") == {"const": 1}
    assert target(root, "#") is root
