"""Schemas of rule files; the wrong ones stand in cases/bad/schema-*.yaml, each with its message."""

import subprocess
import sys
from textwrap import dedent
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.ruleset.loading.output_schema import problems
from mcp_abridge.schema import keywords
from mcp_abridge.schema.derive import any_of
from mcp_abridge.schema.violations import Checker
from mcp_abridge.transforms.contract import normalised

DRAFT_7 = "http://json-schema.org/draft-07/schema#"


@pytest.mark.parametrize(
    "members",
    [
        {},
        {"$schema": DRAFT_7, "properties": {"a": {"items": [{}], "dependencies": {"b": ["c"]}}}},
        {"$schema": "https://json-schema.org/draft/2020-12/schema", "$id": "https://e.com/a"},
        {"properties": {"a": True, "b": {"pattern": r"^[\w.-]+\\z$"}}, "required": ["c"]},
        {"patternProperties": {"^a": {}}, "additionalProperties": False, "required": ["ab"]},
        {"default": {"$ref": "x", "type": 5}, "examples": [{"pattern": "("}]},
        {"properties": {"$ref": {}, "pattern": {}, "required": {}, "nullable": {}}},
        {"allOf": [{"$ref": "#/$defs/a"}], "$defs": {"a": {"properties": {"b": {"$ref": "#"}}}}},
        {"x-order": 1, "discriminator": {"propertyName": "a"}, "if": {}, "then": {}, "else": {}},
    ],
)
def test_a_right_schema_has_no_problems(members: dict[str, Any]) -> None:
    assert problems({"type": "object", **members}) == []


def test_a_rule_file_without_a_schema_loads_no_checker() -> None:
    code = """
        import sys
        from mcp_abridge.ruleset.loading.rulefile import read
        for keys in ("", ", output_schema: {type: object}"):
            reading = read("r.yaml", ("version: 1\\nrules: [{tools: a%s}]" % keys).encode())
            assert reading.rules is not None
            print("jsonschema_rs" in sys.modules)
    """
    output = subprocess.check_output([sys.executable, "-c", dedent(code)], text=True)
    assert output.split() == ["False", "True"]


JUNK = st.sampled_from([None, True, 0, -1, 1.5, "", "a", "(", "#", "#/a", [], ["a"], {}, {"a": 1}])
WORDS = st.sampled_from(sorted({*keywords.words(keywords.DIALECT), "nullable"}))
SCHEMAS = st.recursive(
    st.just({}) | st.booleans() | JUNK,
    lambda inner: (
        st.dictionaries(WORDS, inner, max_size=3)
        | st.builds(lambda a, b: {"properties": {"a": a}, "items": b}, inner, inner)
        | st.builds(lambda a: {"anyOf": [a], "$defs": {"a": a}}, inner)
    ),
    max_leaves=8,
)


@pytest.mark.slow
@settings(max_examples=150)
@given(st.dictionaries(WORDS, SCHEMAS, max_size=3), SCHEMAS)
def test_any_output_schema_is_a_problem_or_a_usable_schema(
    members: dict[str, Any], inner: Any
) -> None:
    schema = {"type": "object", "properties": {"a": inner}, **members}
    if not problems(schema):
        usable = normalised(schema)
        assert any_of([usable, {}], {}) is not None
        for value in ({}, {"a": None}, {"a": [1, {}]}):
            list(Checker(usable).violations(value, Fuel()))
