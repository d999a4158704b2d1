"""Which values fit a schema, and the messages for those that do not."""

from typing import Any

import pytest
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.errors import OutOfFuel
from mcp_abridge.schema.keywords import DIALECTS
from mcp_abridge.schema.violations import Checker, decoded

TEXT = {"type": "string"}
DRAFT_7 = {"$schema": "http://json-schema.org/draft-07/schema#"}


def messages(schema: dict[str, Any], value: Any) -> list[str]:
    return [each.text for each in Checker(schema).violations(value, Fuel())]


def fits(schema: dict[str, Any], value: Any) -> bool:
    return not messages(schema, value)


MESSAGES: list[tuple[dict[str, Any], Any, str]] = [
    ({"type": "object"}, "gone", "expected an object, found 'gone'"),
    ({"type": ["integer", "null"]}, True, "expected an integer or null, found true"),
    ({"enum": ["sent", "lost"]}, "sen",
     "expected one of 'sent', 'lost', found 'sen'; did you mean 'sent'?"),
    ({"enum": list(range(12))}, -1, "expected one of 0, 1, 2, 3, 4, 5, 6, 7, 8, 9, …, found -1"),
    ({"const": "a"}, 2.5, "expected 'a', found 2.5"),
    ({"minimum": 0}, -1, "-1 is less than the minimum of 0"),
    ({"maximum": 100}, 150, "150 is greater than the maximum of 100"),
    ({"exclusiveMinimum": 0}, 0, "0 is less than or equal to the minimum of 0"),
    ({"exclusiveMaximum": 1}, 1, "1 is greater than or equal to the maximum of 1"),
    ({"multipleOf": 5}, 7, "7 is not a multiple of 5"),
    ({"minLength": 3}, "ab", "'ab' is shorter than 3 characters"),
    ({"maxLength": 0}, "a", "'a' is longer than 0 characters"),
    ({"maxItems": 1}, [1, 2], "an array has more than 1 item"),
    ({"minProperties": 2}, {"a": 1}, "an object has less than 2 properties"),
    ({"uniqueItems": True}, [1, 1], "an array has non-unique elements"),
    ({"pattern": "^a$"}, "b", '\'b\' does not match "^a$"'),
    ({"format": "uuid"}, "x", '\'x\' is not a "uuid"'),
    # What few schemas have is named, and no more.
    ({"contains": TEXT}, [1], "an array breaks 'contains'"),
    ({"contains": TEXT, "maxContains": 1}, ["a", "b"],
     "an array breaks 'contains' or 'maxContains'"),
    ({"not": TEXT}, "a", "'a' breaks 'not'"),
    ({"patternProperties": {"^x": TEXT}}, {"x": 1}, "an object breaks 'patternProperties'"),
    ({"anyOf": [{"minimum": 5}, {"maximum": 3}]}, 4,
     "4 fits none of the 2 alternatives: 4 is less than the minimum of 5"),
    ({"oneOf": [TEXT, {"maxLength": 3}]}, "a", "'a' fits more than one alternative"),
    ({"anyOf": [{**TEXT, "enum": ["a", "b"]}, {"type": "null"}]}, "x",
     "expected one of 'a', 'b', found 'x'"),
    ({"anyOf": [TEXT, {"type": "null"}]}, 5, "expected a string or null, found 5"),
    ({"propertyNames": {"maxLength": 1}}, {"ab": 1}, "an object breaks 'propertyNames'"),
    ({"unevaluatedItems": False}, [1], "an array breaks 'unevaluatedItems'"),
    ({"unevaluatedProperties": False}, {"a": 1}, "an object breaks 'unevaluatedProperties'"),
    ({**DRAFT_7, "additionalItems": False, "items": [{}]}, [1, 2],
     "an array breaks 'additionalItems' or 'items'"),
    ({"allOf": [False]}, [], "nothing may stand here, found an array"),
    ({"if": {"minimum": 5}, "then": {"maximum": 7}}, 8, "8 is greater than the maximum of 7"),
    ({"dependentSchemas": {"a": {"minProperties": 2}}}, {"a": 1},
     "an object breaks 'dependentSchemas'"),
]  # fmt: skip


@pytest.mark.parametrize(("schema", "value", "text"), MESSAGES, ids=lambda each: str(each)[:40])
def test_a_violation_names_the_value_and_the_expectation(
    schema: dict[str, Any], value: Any, text: str
) -> None:
    assert messages(schema, value) == [f"the document: {text}"]


@pytest.mark.parametrize(
    ("schema", "value", "message"),
    [
        ({"required": ["id"]}, {}, "id: is missing"),
        ({"items": {"required": ["id"]}}, [{}], "[0].id: is missing"),
        ({"prefixItems": [{}, TEXT]}, [1, 2], "[1]: expected a string, found 2"),
        (
            {"prefixItems": [{}], "items": False},
            [1, 2],
            "[1]: nothing may stand here, found 2",
        ),
        ({"dependentRequired": {"a": ["b"]}}, {"a": 1}, "b: is missing"),
        ({"additionalProperties": False}, {"x y": 1}, '"x y": is none of the properties'),
        # Of alternatives, the one is meant that fits farthest.
        (
            {"anyOf": [{"properties": {"a": {"const": n}, "b": {"items": TEXT}}} for n in (1, 2)]},
            {"a": 2, "b": [3]},
            "b[0]: expected a string, found 3",
        ),
    ],
)
def test_a_violation_names_its_position(schema: dict[str, Any], value: Any, message: str) -> None:
    assert messages(schema, value) == [message]


def test_a_violation_quotes_little_of_a_value_and_on_one_line() -> None:
    assert messages({"type": "null"}, "a\n" + "b" * 100) == [
        f"the document: expected null, found 'a\\n{'b' * 38}'…"
    ]
    [message] = messages({"additionalProperties": False}, {"\n" * 70: 1})
    assert message == '"' + "\\n" * 39 + '…": is none of the properties'


def test_a_number_is_shown_as_upstream_spelled_it() -> None:
    assert messages({"maximum": 5}, decoded(b"7.50")) == [
        "the document: 7.50 is greater than the maximum of 5"
    ]
    assert messages({"type": "string"}, decoded(b"1" * 5000)) == [
        f"the document: {'1' * 40}… breaks 'type'"
    ]
    assert messages({"anyOf": [{"type": "string"}, {"type": "null"}]}, decoded(b"1" * 5000)) == [
        f"the document: {'1' * 40}… fits none of the 2 alternatives: {'1' * 40}… breaks 'type'"
    ]


@pytest.mark.parametrize(
    ("raw", "schema", "fitting"),
    [
        (b"1.0", {"type": "integer"}, True),
        (b"12345678901234567890123", {"type": "integer"}, True),
        (b"0.10", {"type": "integer"}, False),
        (b"1" * 5000, {"maximum": 5}, False),
        (b"1e999999", {"maximum": 5}, False),
        (b"0.3", {"multipleOf": 0.1}, True),
    ],
)
def test_numbers_of_any_size_are_compared_exactly(
    raw: bytes, schema: dict[str, Any], fitting: bool
) -> None:
    assert fits(schema, decoded(raw)) is fitting


@pytest.mark.parametrize(
    ("name", "text", "other"),
    [
        ("date", "2024-02-29", "2023-02-29"),
        ("time", "09:00:00.123456-05:30", "09:00:00"),
        ("date-time", "2026-01-31t09:00:00.5+00:00", "2026-01-31 09:00:00Z"),
        ("uuid", "123e4567-e89b-12d3-a456-426614174000", "123e4567e89b12d3a456426614174000"),
        ("ipv4", "127.0.0.1", "01.2.3.4"),
        ("ipv6", "::1", "127.0.0.1"),
        ("email", "x", None),
        ("unheard-of", "x", None),
    ],
)
def test_only_the_formats_that_the_reference_names_are_checked(
    name: str, text: str, other: str | None
) -> None:
    assert fits({"format": name}, text)
    assert fits({"format": name}, 5)
    assert other is None or not fits({"format": name}, other)


@pytest.mark.parametrize("dialect", DIALECTS)
def test_patterns_take_linear_time(dialect: str) -> None:
    # An engine that goes back takes longer than the tests may.
    slow = {"pattern": "^(a*)*$"}
    schema = {"$schema": dialect, **slow, "patternProperties": {"(a*)*b": False}}
    assert not fits(schema, "a" * 40 + "b")
    assert fits(schema, {"a" * 40: 1})
    assert not fits({**schema, "additionalProperties": False}, {"a" * 40: 1})
    inner = {"$schema": dialect + "#", **slow, "properties": {"inner": {"$ref": "#"}}}
    assert not fits(inner, {"inner": {"inner": "a" * 40 + "b"}})


def test_a_reference_to_elsewhere_is_never_fetched() -> None:
    with pytest.raises(Exception, match="Retrieval is disabled"):
        Checker({"$ref": "http://127.0.0.1:9/schema.json"})


@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize(
    ("schema", "value"),
    [
        ({"uniqueItems": True}, [{"id": number} for number in range(20_000)]),
        ({"unevaluatedItems": {"type": "integer"}}, list(range(100_000))),
        ({"unevaluatedProperties": {"type": "integer"}}, {str(n): n for n in range(100_000)}),
    ],
)
def test_large_values_are_checked_in_linear_time(schema: dict[str, Any], value: Any) -> None:
    # In quadratic time it would take longer than the tests may.
    assert fits(schema, value)


REFERENCE = {"$ref": "#/$defs/node"}
NODE = {"properties": {"inner": REFERENCE, "n": {"type": "integer"}}}
WAYS = [
    {"anyOf": [{**NODE, "required": ["a"]}, {**NODE, "required": ["b"]}]},
    {"allOf": [NODE, {**NODE, "required": ["n"]}]},
    {"if": {**NODE, "required": ["a"]}, "then": NODE, "else": NODE, "not": {"not": NODE}},
]


@pytest.mark.parametrize("node", WAYS)
@pytest.mark.parametrize("members", [{"n": "x"}, {"n": "x", "a": 1, "b": 1}])
def test_alternatives_that_contain_each_other_cost_no_time_by_the_depth_of_a_value(
    node: dict[str, Any], members: dict[str, Any]
) -> None:
    # By every way through them, it would take longer than the tests may.
    value = members
    for _ in range(40):
        value = {"inner": value, **members}
    assert messages({**REFERENCE, "$defs": {"node": node}}, value)


@pytest.mark.fault(37, "inside")
def test_a_long_search_ends_when_the_fuel_does() -> None:
    value: Any = [1]
    for _ in range(50):
        value = [value, [1] * 1000]
    node = {"items": {"$ref": "#/$defs/a"}, "not": TEXT, "maxItems": 999}
    schema = {"$ref": "#/$defs/a", "$defs": {"a": node}}
    with pytest.raises(OutOfFuel):
        list(Checker(schema).violations(value, Fuel(1000)))


def test_a_value_too_deep_to_search_has_a_violation_all_the_same() -> None:
    value: Any = "a"
    for _ in range(500):
        value = [value]
    schema = {"items": {"$ref": "#"}, "type": "array"}
    assert messages(schema, value) == ["the document: does not fit, and is too deep to say where"]
