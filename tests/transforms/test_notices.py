import jsonschema

from proxy.document.paths import Path
from proxy.transforms.notices import admitting, any_text, free, kinds

CLOSED = {
    "type": "object",
    "properties": {"a": {"type": "object", "additionalProperties": False}},
    "additionalProperties": False,
}


def test_a_note_takes_the_first_free_name() -> None:
    assert free({"note": 1, "note_": 2}, "note") == "note__"
    assert free({}, "note") == "note"


def test_a_schema_admits_the_note_in_the_objects_at_the_path() -> None:
    schema = admitting(CLOSED, Path.parse("a"), "note", "what it says")
    assert schema is not None
    jsonschema.validate({"a": {"note": {"n": 1}}}, schema)
    assert schema["properties"]["a"]["properties"]["note"]["description"] == "what it says"


def test_where_the_name_is_taken_the_next_one_is_admitted_too() -> None:
    own = {"type": "object", "properties": {"note": {"type": "string"}}}
    schema = admitting({**own, "additionalProperties": False}, Path(), "note", "x")
    assert schema is not None
    jsonschema.validate({"note": "theirs", "note_": {}}, schema)


def test_any_text_leaves_other_values_as_they_are_described() -> None:
    own = {"type": "object", "required": ["a"]}
    assert any_text(own) is own
    assert any_text({"enum": ["a"]}) == {}
    assert any_text({"type": "array", "items": {"enum": ["a"]}}) == {"type": "array"}


def test_kinds_of_a_schema_without_a_type_are_all() -> None:
    assert "array" in kinds({"minItems": 1})
    assert kinds({"type": ["string", "null"]}) == {"string", "null"}
