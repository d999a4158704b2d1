"""What the proxy checks other than the jsonschema library does, and that the rest is the same."""

from typing import Any

import jsonschema
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from proxy.document.tree import loads
from proxy.schema.keywords import DIALECTS, checker, errors, judge

NAMES = st.sampled_from(["a", "b", "x-1"])
SCALARS = st.none() | st.booleans() | st.integers(-3, 3) | st.floats(-2, 2) | st.sampled_from("ab")
VALUES = st.recursive(
    SCALARS, lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3)
)
SCHEMAS = st.fixed_dictionaries(
    {},
    optional={
        "required": st.lists(NAMES, unique=True, max_size=2),
        "properties": st.dictionaries(
            NAMES, st.sampled_from([{}, {"type": "integer"}]), max_size=2
        ),
        "patternProperties": st.just({"^x-": {"type": "string"}}),
        "additionalProperties": st.sampled_from([True, False, {"type": "null"}]),
        "dependentRequired": st.dictionaries(NAMES, st.lists(NAMES, max_size=2), max_size=2),
        "multipleOf": st.sampled_from([1, 2, 0.5, 0.1]),
        "pattern": st.sampled_from(["^a", "b$"]),
        "uniqueItems": st.booleans(),
    },
)


def fits(schema: dict[str, Any], value: Any) -> bool:
    return bool(checker(schema).is_valid(value))


@settings(max_examples=100)
@given(SCHEMAS, VALUES)
def test_a_value_fits_where_the_library_says_so(schema: dict[str, Any], value: Any) -> None:
    schema = {"items": schema, "anyOf": [schema]}
    assert fits(schema, value) is jsonschema.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_patterns_run_on_the_linear_time_engine(dialect: str) -> None:
    # On the engine of the library, either takes longer than the tests may.
    schema = {"$schema": dialect, "pattern": "(a*)*b", "patternProperties": {"(a*)*b": False}}
    assert not fits(schema, "a" * 40)
    assert fits(schema, {"a" * 40: 1})
    assert fits(schema | {"additionalProperties": False}, {}) is True
    assert not fits(schema | {"additionalProperties": False}, {"a" * 40: 1})


def test_patterns_stay_on_that_engine_behind_a_reference_to_the_root() -> None:
    schema = {
        "$schema": "https://json-schema.org/draft/2020-12/schema#",
        "pattern": "^(a*)*$",
        "properties": {"inner": {"$ref": "#"}},
    }
    assert not fits(schema, {"inner": {"inner": "a" * 40 + "b"}})


def test_a_reference_to_elsewhere_is_never_fetched() -> None:
    with pytest.raises(Exception, match="Unresolvable"):
        fits({"$ref": "http://127.0.0.1:9/schema.json"}, 1)


@pytest.mark.parametrize(
    ("value", "unique"),
    [
        ([{"a": 1, "b": 2}, {"b": 2, "a": 1}], False),
        ([1, 1.0], False),
        ([1, True], True),
        ([[1], [True]], True),
        ([0, False, None, "", []], True),
    ],
)
def test_elements_are_the_same_where_json_schema_says_so(value: Any, unique: bool) -> None:
    assert fits({"uniqueItems": True}, value) is unique


def test_many_objects_are_compared_in_linear_time() -> None:
    # Each with each, as the library does, they would take minutes.
    assert fits({"uniqueItems": True}, [{"id": number} for number in range(20_000)])


@pytest.mark.parametrize(
    ("value", "unit", "is_multiple"),
    [
        (b"1e400", 5, False),
        (b"1e400", 0.5, False),
        (b"1.0", 1, True),
        (b"7.5", 2.5, True),
        (b"1e300", 2.0**-500, True),
        (b"1" + b"0" * 400, 0.5, True),
        (b"1" + b"0" * 400, 5, True),
    ],
)
def test_a_number_beyond_those_of_clients_is_a_multiple_of_nothing(
    value: bytes, unit: float, is_multiple: bool
) -> None:
    assert fits({"multipleOf": unit}, loads(value)) is is_multiple


def test_only_formats_that_need_no_further_package_are_checked() -> None:
    assert not fits({"format": "uuid"}, "x")
    assert fits({"format": "uuid"}, 5)
    assert fits({"format": "email"}, "x")
    assert fits({"format": "idn-hostname"}, "..")


@pytest.mark.parametrize("dialect", DIALECTS)
def test_a_schema_is_judged_by_its_own_dialect(dialect: str) -> None:
    schema = {"$schema": dialect, "items": [{}]}
    assert judge(schema).is_valid(schema) is ("draft-07" in dialect)


REFERENCE = {"$ref": "#/$defs/node"}
NODE = {"properties": {"inner": REFERENCE, "n": {"type": "integer"}}}
WAYS = [
    {"anyOf": [{**NODE, "required": ["a"]}, {**NODE, "required": ["b"]}]},
    {"oneOf": [{**NODE, "required": ["a"]}, {**NODE, "required": ["b"]}]},
    {"allOf": [NODE, {**NODE, "required": ["n"]}]},
    {"if": {**NODE, "required": ["a"]}, "then": NODE, "else": NODE, "not": {"not": NODE}},
]


def nested(depth: int, **members: Any) -> dict[str, Any]:
    value = dict(members)
    for _ in range(depth):
        value = {"inner": value, **members}
    return value


@pytest.mark.parametrize("node", WAYS)
def test_alternatives_that_hold_each_other_cost_no_time_by_the_depth_of_a_value(
    node: dict[str, Any],
) -> None:
    # By every way through them, it would take longer than the tests may.
    held = checker({**REFERENCE, "$defs": {"node": node}})
    assert any(True for _ in errors(held, nested(40, n="x")))


@settings(max_examples=60)
@given(
    st.sampled_from(WAYS),
    st.recursive(
        st.fixed_dictionaries({}, optional={"a": st.just(1), "n": st.sampled_from([1, "x"])}),
        lambda inner: st.fixed_dictionaries({"inner": inner}, optional={"b": st.just(1)}),
        max_leaves=3,
    ),
)
def test_a_value_behind_references_fits_where_the_library_says_so(node: Any, value: Any) -> None:
    schema = {**REFERENCE, "$defs": {"node": node}}
    fitting = not any(True for _ in errors(checker(schema), value))
    assert fitting is jsonschema.Draft202012Validator(schema).is_valid(value)


@pytest.mark.parametrize(
    ("schema", "value", "fits"),
    [
        ({"prefixItems": [{}], "unevaluatedItems": False}, [1], True),
        ({"prefixItems": [{}], "unevaluatedItems": False}, [1, 2], False),
        ({"prefixItems": [{}], "unevaluatedItems": {"type": "integer"}}, ["x", 2], True),
        ({"prefixItems": [{}], "unevaluatedItems": {"type": "integer"}}, ["x", "y"], False),
        ({"unevaluatedItems": False}, {"a": 1}, True),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1}, True),
        ({"properties": {"a": {}}, "unevaluatedProperties": False}, {"a": 1, "b": 2}, False),
        ({"unevaluatedProperties": {"type": "integer"}}, {"b": 2}, True),
        ({"unevaluatedProperties": {"type": "integer"}}, {"b": "x"}, False),
        ({"allOf": [{"required": ["a"]}], "unevaluatedProperties": False}, {"a": 1}, False),
        ({"unevaluatedProperties": False}, [1], True),
    ],
)
def test_what_no_schema_takes_is_what_the_library_says(schema: Any, value: Any, fits: bool) -> None:
    assert checker(schema).is_valid(value) is fits
    assert jsonschema.Draft202012Validator(schema).is_valid(value) is fits


@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize(
    ("keyword", "value"),
    [
        ("unevaluatedItems", list(range(100_000))),
        ("unevaluatedProperties", {str(n): n for n in range(100_000)}),
    ],
)
def test_what_no_schema_takes_is_found_in_linear_time(keyword: str, value: Any) -> None:
    # In quadratic time it would take longer than the tests may.
    assert checker({keyword: {"type": "integer"}}).is_valid(value)
