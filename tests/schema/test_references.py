import copy
from typing import Any

import pytest

from proxy.schema.references import Schema, Unsupported, bundle, combine, references
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


def test_schemas_of_two_dialects_cannot_be_joined() -> None:
    dialects = (
        "http://json-schema.org/draft-07/schema#",
        "https://json-schema.org/draft/2020-12/schema",
    )
    with pytest.raises(Unsupported, match="schemas of different dialects"):
        combine([{"$schema": each} for each in dialects], lambda parts: {"anyOf": parts})
