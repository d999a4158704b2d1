"""Results that break the contract of a rule, and schemas that admit null."""

from random import Random
from typing import Any

import pytest
from mcp_abridge.document.fuel import LITTLE, Fuel
from mcp_abridge.document.tree import Document
from mcp_abridge.errors import OutOfFuel, Refusal
from mcp_abridge.query.call import Call, Warned
from mcp_abridge.schema.violations import Checker
from mcp_abridge.transforms.contract import Contract, normalised

from tests.builders import rule

JOBS: dict[str, Any] = {
    "type": "object",
    "properties": {
        "jobs": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"id": {"type": "string", "maxLength": 3}, "next": {"$ref": "#"}},
                "required": ["id"],
            },
        },
        "total": {"type": "integer"},
    },
    "required": ["jobs"],
    "additionalProperties": False,
}


def checked(
    raw: str, schema: dict[str, Any] = JOBS, refuses: bool = False, **options: Any
) -> list[Warned]:
    call = Call("list", warnings=[], **options)
    document = Document.read(raw.encode())
    Contract(schema, refuses)(document.root, call)
    assert not document.changed
    return call.warnings


def refusal(raw: str) -> str:
    with pytest.raises(Refusal) as caught:
        checked(raw, refuses=True)
    return str(caught.value)


def test_a_result_that_keeps_to_the_contract_passes_without_a_warning() -> None:
    raw = '{"jobs": [{"id": "a", "more": 1}], "total": 1.0}'
    assert checked(raw) == []
    assert checked(raw, refuses=True) == []


def test_violations_of_a_kind_are_one_warning_that_shows_the_first() -> None:
    raw = '{"jobs": [{"id": "long"}, {"id": "longer"}, {}], "total": "1"}'
    assert checked(raw) == [
        Warned(
            "contract: jobs.id maxLength",
            "jobs[0].id: 'long' is longer than 3 characters, and 1 more",
        ),
        Warned("contract: jobs.id required", "jobs[2].id: is missing"),
        Warned("contract: total type", "total: expected an integer, found '1'"),
    ]


def test_the_kind_of_a_violation_holds_no_text_of_the_server() -> None:
    raw = '{"jobs": [], "secret": 1, "jobs\\nof": 2}'
    assert checked(raw) == [
        Warned("contract: * additionalProperties", "secret: is none of the properties, and 1 more")
    ]
    inside = {"type": "object", "additionalProperties": {"properties": {"n": {"minimum": 1}}}}
    assert checked('{"k-1": {"n": 0}}', inside)[0].kind == "contract: *.n minimum"


def test_the_kinds_of_a_schema_that_holds_itself_come_to_an_end() -> None:
    raw = '{"jobs": [{"id": "a", "next": ' * 20 + '{"jobs": 0}' + "}]}" * 20
    assert [each.kind for each in checked(raw)] == ["contract: jobs.next.jobs.next.jobs.next… type"]


def test_violations_beyond_the_limit_are_reported_as_more() -> None:
    [warned] = checked('{"jobs": [' + ",".join(["{}"] * 2000) + "]}")
    assert warned.text == "jobs[0].id: is missing, and 999 or more"


def test_a_refusal_names_three_violations() -> None:
    assert refusal("{}") == "the response breaks its contract: jobs: is missing"
    assert refusal('{"jobs": [{}, {}, {}, {}, {}]}') == (
        "the response breaks its contract: jobs[0].id: is missing; jobs[1].id: is missing; "
        "jobs[2].id: is missing; and 2 more"
    )


@pytest.mark.parametrize(
    ("options", "text", "kinds"),
    [
        # Written as JSON, the text is that object, for clients too.
        ("as: python", "{'jobs': [], 'total': None}", ["contract: total type"]),
        # With words around it, the text stays one.
        ("as: json, after: 'is: '", 'It is: {"jobs": []}', ["contract: type"]),
        ("as: lines", "a\nb", ["contract: type"]),
    ],
)
def test_a_text_read_as_structure_counts_as_what_it_is_written_back_as(
    options: str, text: str, kinds: list[str]
) -> None:
    call, document = Call("list", warnings=[]), Document(text)
    [parse] = rule(f"response: [{{parse: {{{options}}}}}]").pipeline
    parse(document.root, call)
    Contract(JOBS, refuses=False)(document.root, call)
    assert [each.kind for each in call.warnings] == kinds


@pytest.mark.parametrize(
    ("own", "advertised"),
    [
        ({"type": "string"}, {"type": ["string", "null"]}),
        (
            {"type": "string", "enum": ["a", "b"]},
            {"type": ["string", "null"], "enum": ["a", "b", None]},
        ),
        ({"const": "a"}, {"anyOf": [{"const": "a"}, {"type": "null"}]}),
        (
            {"$ref": "#/$defs/a", "description": "which"},
            {"description": "which", "anyOf": [{"$ref": "#/$defs/a"}, {"type": "null"}]},
        ),
        # At any depth, but not as a property or in a value.
        (
            {"items": {"type": "string", "nullable": True}, "default": {"nullable": True}},
            {
                "default": {"nullable": True},
                "anyOf": [{"items": {"type": ["string", "null"]}}, {"type": "null"}],
            },
        ),
    ],
)
def test_a_nullable_schema_is_advertised_as_admitting_null(
    own: dict[str, Any], advertised: dict[str, Any]
) -> None:
    schema = {"type": "object", "properties": {"a": {**own, "nullable": True}}}
    assert normalised(schema) == {"type": "object", "properties": {"a": advertised}}
    checker = Checker({**advertised, "$defs": {"a": {"type": "string"}}})
    assert list(checker.violations(None, Fuel())) == []


@pytest.mark.fault(37, "inside")
def test_a_pattern_of_the_contract_burns_the_fuel_of_the_call() -> None:
    text = "".join(Random(1).choices("ab", k=100_000))
    schema = {"properties": {"a": {"pattern": "(?:a|b)*a(?:a|b){1000}c"}}}
    with pytest.raises(OutOfFuel):
        checked(f'{{"a": "{text}"}}', schema, fuel=Fuel(4 * LITTLE))
