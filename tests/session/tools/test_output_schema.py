"""The outputSchema of a tool as clients get it: the results of its rules fit it."""

import json
from typing import Any

import pytest
from mcp_abridge.ruleset.guard import Respond
from mcp_abridge.ruleset.rule_set import RuleSet
from msgspec.structs import replace

from tests.builders import rules
from tests.tool_list import PAGES, Listing, listed, tool
from tests.transports.guarded import ScriptedGuard

OWN = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "string"}}},
    "required": ["items"],
    "additionalProperties": False,
}


CUT = "- {tools: list, max_bytes: 1000}"
DROPS = "- {tools: list, blocks: {drop: [image]}}"
IN_MEMBER = {
    "type": "object",
    "properties": {"content": {"type": "string"}},
    "required": ["content"],
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    ("text", "own", "results", "others"),
    [
        (PAGES, OWN, [{"items": ["a"]}, {"items": ["a"], "pagination": {}}], [{"items": "a"}]),
        (CUT, OWN, [{"view": [1, 2]}], []),
        (DROPS, OWN, [{"items": ["a"], "_dropped": {"image": 1}}], [{"items": "a"}]),
        # A text may be cut, with a notice.
        (
            "- {tools: list, response: [truncate]}",
            IN_MEMBER,
            [{"content": "a", "truncation": {"truncated": True}}],
            [],
        ),
        (CUT, {"type": "string"}, ["a", {"text": "a", "_abridged": {"text": "1 of 2"}}], [5]),
    ],
)
def test_an_output_schema_admits_what_the_rule_yields_and_what_passes_untouched(
    text: str, own: dict[str, Any], results: list[Any], others: list[Any]
) -> None:
    schema = listed(text, tool(outputSchema=own)).tool["outputSchema"]
    assert [accepts(schema, each) for each in results] == [True] * len(results)
    assert [accepts(schema, each) for each in others] == [False] * len(others)
    assert "anyOf" not in schema or text is not PAGES


def test_new_names_are_declared_and_an_unchanged_result_fits() -> None:
    own = {**OWN, "properties": {"items": {"type": "array", "items": IN_MEMBER}}}
    text = "- {tools: list, max_bytes: 1000, response: [{rename: {items.content: text}}]}"
    schema = listed(text, tool(outputSchema=own)).tool["outputSchema"]
    assert "anyOf" not in schema
    assert schema["properties"]["items"]["items"]["properties"] == {
        "content": {"type": "string"},
        "text": {},
    }
    assert accepts(schema, {"items": [{"text": "a"}]})
    assert accepts(schema, {"items": [{"content": "a"}]})
    assert not accepts(schema, {"items": [{"content": 5}]})


@pytest.mark.parametrize(
    "text",
    [
        "- {tools: list, response: [{jmespath: 'items[0]'}]}",
        "- {tools: list, response: [{table: items}, {drop: a}]}",
        "- {tools: list, response: [{parse: {as: json, at: a}}]}",
        "- {tools: list, response: [{recast: {cases: [{match: a, to: {b: 1}}]}}]}",
        "- {tools: list, copies: text, response: [{drop: a}]}",
    ],
)
def test_an_output_schema_goes_if_it_cannot_be_derived_or_only_text_is_sent(text: str) -> None:
    assert "outputSchema" not in listed(text, tool(outputSchema=OWN)).tool
    assert "outputSchema" not in listed(PAGES, tool()).tool


VIEWS = {"type": "object", "properties": {"view": {"type": "string"}, "n": {"type": "integer"}}}


@pytest.mark.parametrize("own", [OWN, IN_MEMBER, {**OWN, "$defs": {"a": True}}, VIEWS])
def test_a_schema_that_admits_the_answers_of_views_stands_alone(own: Any) -> None:
    schema = listed(CUT, tool(outputSchema=own)).tool["outputSchema"]

    assert "anyOf" not in schema
    for result in ({"view": [1, 2], "_abridged": {}}, {"content": "a", "_abridged": {}}):
        assert accepts(schema, result)
    assert not accepts(schema, {"items": 5, "content": 5, "n": "a"})


@pytest.mark.parametrize("schema", [5, "object", [], None])
def test_a_malformed_output_schema_stays(schema: Any) -> None:
    assert listed(PAGES, tool(outputSchema=schema)).tool["outputSchema"] == schema


CONTRACT = {
    "type": "object",
    "properties": {
        "id": {"type": "string"},
        "at": {"type": ["string", "null"]},
        "log": {"type": "array", "items": {"type": "string"}, "minItems": 1},
    },
    "required": ["id"],
    "additionalProperties": False,
}
ALL = f"""
        - tools: list
          output_schema: {json.dumps(CONTRACT)}
"""
ENFORCED = f"{ALL}          validate: refuse\n"
ANYTHING = {"description": "What does not keep to the contract passes as the server sent it."}


def promised(text: str, **members: Any) -> dict[str, Any]:
    listing = listed(text, tool(**members))
    assert listing.log == []
    schema = listing.tool["outputSchema"]
    assert isinstance(schema, dict)
    return schema


def test_an_enforced_contract_is_advertised_as_it_is() -> None:
    assert promised(ENFORCED) == CONTRACT
    schema = {"type": "object", "properties": {"id": {"type": "string"}}}
    as_text = f"- {{tools: list, validate: text, output_schema: {json.dumps(schema)}}}"
    assert promised(as_text) == schema


@pytest.mark.parametrize("text", [ALL, f"{ALL}          validate: warn\n"])
def test_a_contract_that_may_be_broken_stands_beside_what_breaks_it(text: str) -> None:
    assert promised(text) == {"type": "object", "anyOf": [CONTRACT, ANYTHING]}


def test_abridged_results_and_views_fit_an_enforced_contract() -> None:
    schema = promised(f"{ENFORCED}          max_bytes: 500\n          blocks: {{drop: [image]}}\n")
    assert schema["type"] == "object"
    assert accepts(schema, {"id": "a", "_dropped": {"image": 1}})
    beside = promised(f"{ENFORCED}          max_bytes: 500\n", outputSchema=OWN)
    assert accepts(beside, {"id": "a", "log": [], "_abridged": {"log": "0 of 9"}})
    assert accepts(schema, {"id": "a", "log": [], "_abridged": {"log": "0 of 9"}})
    assert accepts(schema, {"view": ["a"]})
    assert not accepts(schema, {"id": 5})
    assert "anyOf" not in schema
    assert "anyOf" not in promised(f"{ENFORCED}          max_bytes: 500\n          view: false\n")


def test_the_answers_of_a_guard_fit_what_is_advertised() -> None:
    guard = ScriptedGuard(lambda call, query_result: Respond({"status": "closed"}))
    [own_file] = rules(ENFORCED).files
    guarded = replace(own_file, rules=tuple(replace(each, guard=guard) for each in own_file.rules))

    schema = Listing(RuleSet((guarded,)), {"tools": [tool()]}).tool["outputSchema"]

    assert schema["anyOf"][0] == CONTRACT
    assert accepts(schema, {"status": "closed"})
    assert not accepts(schema, "closed")
    own = Listing(RuleSet((guarded,)), {"tools": [tool(outputSchema=OWN)]}).tool["outputSchema"]
    assert accepts(own, {"status": "closed"})


def test_two_rules_of_a_tool_advertise_the_contracts_of_both() -> None:
    text = """
        - {tools: list, when: a, validate: refuse, output_schema: {type: object, required: [a]}}
        - {tools: list, validate: refuse, output_schema: {type: object, required: [b]}}
    """

    assert promised(text) == {
        "type": "object",
        "anyOf": [{"type": "object", "required": ["a"]}, {"type": "object", "required": ["b"]}],
    }


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("- {tools: list, output_schema: {type: object}, mode: shadow}", ""),
        (
            "- {tools: list, when: a, output_schema: {type: object}}",
            "no rule takes the calls for which each 'when' is false",
        ),
        (
            """
            - {tools: list, when: a, output_schema: {type: object}}
            - {tools: list, name: rest}
            """,
            "the rule 'rest' of the same tool has none",
        ),
        (
            """
            - {tools: list, when: a, name: try, output_schema: {type: object}, mode: shadow}
            - {tools: list, output_schema: {type: object}}
            """,
            "the rule 'try' changes nothing (mode: shadow)",
        ),
        (
            "- {tools: list, output_schema: {type: object}, copies: text}",
            "the rule 'list' sends only texts (copies: text)",
        ),
    ],
)
def test_a_contract_that_some_results_cannot_keep_is_not_advertised(text: str, why: str) -> None:
    listing = listed(text, tool())
    assert listing.raw is None
    assert listing.log == ([f"list: output_schema is not advertised: {why}"] if why else [])


def test_a_contract_stands_beside_what_the_server_declares() -> None:
    schema = promised(ENFORCED, outputSchema=OWN)

    assert schema == {"type": "object", "anyOf": [CONTRACT, OWN]}
    warned = promised(f"{ALL}          validate: warn\n", outputSchema=OWN)
    assert warned == {"type": "object", "anyOf": [CONTRACT, ANYTHING, OWN]}
    # Results of calls without a rule are those that the server declares.
    assert promised(
        ENFORCED.replace("tools: list", "tools: list\n          when: a"), outputSchema=OWN
    )


def accepts(schema: dict[str, Any], value: Any) -> bool:
    import jsonschema

    return jsonschema.Draft202012Validator(schema).is_valid(value)
