"""The outputSchema of a tool as clients get it: what comes out of rules fits it."""

from typing import Any, ClassVar

import pytest
from msgspec import Struct
from msgspec.structs import replace

from proxy.ruleset.guard import Decision, QueryResult, Respond
from proxy.ruleset.rule import RuleSet
from proxy.transforms.base import Call, Parameter
from tests.given import rules
from tests.tool_list import PAGES, Listing, listed, tool

OWN = {
    "type": "object",
    "properties": {"items": {"type": "array", "items": {"type": "string"}}},
    "required": ["items"],
    "additionalProperties": False,
}


def test_an_output_schema_admits_what_the_rule_yields_and_what_passes_untouched() -> None:
    schema = listed(PAGES, tool(outputSchema=OWN)).tool["outputSchema"]

    assert schema["type"] == "object"
    assert "anyOf" not in schema
    assert accepts(schema, {"items": ["a"]})
    assert accepts(schema, {"items": ["a"], "pagination": {"total": 1}})
    assert not accepts(schema, {"items": "a"})


def test_a_tool_without_an_output_schema_gains_none() -> None:
    assert "outputSchema" not in listed(PAGES, tool()).tool


def test_an_output_schema_that_cannot_be_derived_goes() -> None:
    text = "- {tools: list, response: [{jmespath: 'items[0]'}]}"

    assert "outputSchema" not in listed(text, tool(outputSchema=OWN)).tool


def test_an_output_schema_goes_where_only_the_text_is_sent() -> None:
    text = "- {tools: list, copies: text, response: [{drop: a}]}"

    assert "outputSchema" not in listed(text, tool(outputSchema=OWN)).tool


def test_an_output_schema_that_goes_is_not_brought_back_by_dropping_keywords() -> None:
    text = """
        - tools: list
          copies: text
          definition: {drop: [title]}
          response: [{drop: a}]
    """

    assert "outputSchema" not in listed(text, tool(outputSchema=OWN)).tool


def test_the_answer_to_a_view_fits_the_output_schema() -> None:
    text = "- {tools: list, max_bytes: 1000}"

    schema = listed(text, tool(outputSchema=OWN)).tool["outputSchema"]

    assert accepts(schema, {"view": [1, 2]})


@pytest.mark.parametrize("own", [OWN, {"type": "object"}, {**OWN, "properties": {}}])
def test_the_author_of_a_script_sees_in_the_schema_that_elements_may_be_missing(own: Any) -> None:
    schema = listed("- {tools: list, max_bytes: 1000}", tool(outputSchema=own)).tool["outputSchema"]

    declared = schema["properties"]["_abridged"]["description"]
    assert declared.startswith("Present if elements or characters were left out of this result")


def test_a_schema_that_nothing_is_cut_of_declares_no_note() -> None:
    assert "_abridged" not in str(listed(PAGES, tool(outputSchema=OWN)).tool)


@pytest.mark.parametrize("response", ["", "response: [{drop: a}], "])
def test_an_output_schema_admits_the_note_on_blocks_that_were_dropped(response: str) -> None:
    strict = {**OWN, "additionalProperties": False}
    text = f"- {{tools: list, {response}blocks: {{drop: [image]}}}}"

    schema = listed(text, tool(outputSchema=strict)).tool["outputSchema"]

    assert accepts(schema, {"items": ["a"], "_dropped": {"image": 1}})
    assert not accepts(schema, {"items": "a"})


def test_a_text_held_in_a_member_may_be_cut_and_told_about() -> None:
    own = {
        "type": "object",
        "properties": {"content": {"type": "string"}},
        "required": ["content"],
        "additionalProperties": False,
    }
    text = "- {tools: list, response: [truncate]}"

    schema = listed(text, tool(outputSchema=own)).tool["outputSchema"]

    assert accepts(schema, {"content": "a", "truncation": {"truncated": True}})


def test_a_text_that_is_the_whole_output_may_be_cut_and_told_about() -> None:
    text = "- {tools: list, max_bytes: 1000}"

    schema = listed(text, tool(outputSchema={"type": "string"})).tool["outputSchema"]

    assert accepts(schema, "a")
    assert accepts(schema, {"text": "a", "_abridged": {"text": "1 of 2"}})
    assert not accepts(schema, 5)


@pytest.mark.parametrize("schema", [5, "object", [], None])
def test_an_output_schema_that_is_none_stays(schema: Any) -> None:
    assert listed(PAGES, tool(outputSchema=schema)).tool["outputSchema"] == schema


# Contracts

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
WRITTEN = """output_schema:
            type: object
            properties:
              id: {type: string}
              at: {type: string, nullable: true}
              log: {type: array, items: {type: string}, minItems: 1}
            required: [id]
            additionalProperties: false
"""
ALL = f"""
        - tools: list
          {WRITTEN}"""
KEPT = f"{ALL}          validate: refuse\n"
ANYTHING = {"description": "What does not keep to the contract passes as the server sent it."}


def promised(text: str, **members: Any) -> dict[str, Any]:
    found = listed(text, tool(**members))
    assert found.log == []
    schema = found.tool["outputSchema"]
    assert isinstance(schema, dict)
    return schema


def test_a_contract_that_is_always_kept_is_advertised_as_it_is() -> None:
    assert promised(KEPT) == CONTRACT


@pytest.mark.parametrize("text", [ALL, f"{ALL}          validate: warn\n"])
def test_a_contract_that_may_be_broken_stands_beside_what_breaks_it(text: str) -> None:
    assert promised(text) == {"type": "object", "anyOf": [CONTRACT, ANYTHING]}


def test_what_is_abridged_or_viewed_fits_a_contract_that_is_always_kept() -> None:
    schema = promised(f"{KEPT}          max_bytes: 500\n")

    assert schema["type"] == "object"
    assert accepts(schema, {"id": "a", "log": [], "_abridged": {"log": "0 of 9"}})
    assert accepts(schema, {"view": ["a"]})
    assert not accepts(schema, {"id": 5})
    assert len(schema["anyOf"]) == 2
    assert "anyOf" not in promised(f"{KEPT}          max_bytes: 500\n          view: false\n")


def test_the_note_on_dropped_blocks_fits_a_contract() -> None:
    schema = promised(f"{KEPT}          blocks: {{drop: [image]}}\n")

    assert accepts(schema, {"id": "a", "_dropped": {"image": 1}})
    assert not accepts(schema, {"id": 5})


def test_the_answers_of_a_guard_fit_what_is_advertised() -> None:
    class Closed(Struct, frozen=True):
        name: ClassVar[str] = "closed"
        shorthand: ClassVar[str | None] = None
        parameters: ClassVar[dict[str, Parameter]] = {}

        def __call__(self, call: Call, found: QueryResult | None) -> Decision:
            return Respond({"status": "closed"})

    [held] = rules(KEPT).files
    guarded = replace(held, rules=tuple(replace(each, guard=Closed()) for each in held.rules))

    schema = Listing(RuleSet((guarded,)), {"tools": [tool()]}).tool["outputSchema"]

    assert schema["anyOf"][0] == CONTRACT
    assert accepts(schema, {"status": "closed"})
    assert not accepts(schema, "closed")
    own = Listing(RuleSet((guarded,)), {"tools": [tool(outputSchema=OWN)]}).tool["outputSchema"]
    assert accepts(own, {"status": "closed"})


def test_rules_for_the_calls_of_a_tool_promise_what_either_of_them_does() -> None:
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
        (
            """
            - tools: list
              when: a
              output_schema: {type: object, $schema: "http://json-schema.org/draft-07/schema#"}
            - tools: list
              output_schema:
                {type: object, $schema: "https://json-schema.org/draft/2020-12/schema", title: b}
            """,
            "two dialects",
        ),
    ],
)
def test_what_not_every_result_could_keep_is_not_advertised(text: str, why: str) -> None:
    found = listed(text, tool())

    assert found.raw is None
    assert found.log == [f"list: output_schema is not advertised: {why}"]


def test_a_rule_in_shadow_mode_promises_nothing() -> None:
    found = listed("- {tools: list, output_schema: {type: object}, mode: shadow}", tool())

    assert (found.raw, found.log) == (None, [])


def test_a_contract_stands_beside_what_the_server_declares() -> None:
    schema = promised(KEPT, outputSchema=OWN)

    assert schema == {"type": "object", "anyOf": [CONTRACT, OWN]}
    warned = promised(f"{ALL}          validate: warn\n", outputSchema=OWN)
    assert warned == {"type": "object", "anyOf": [CONTRACT, ANYTHING, OWN]}
    # Where some calls are no rule's, their results are what the server declares.
    assert promised(KEPT.replace("tools: list", "tools: list\n          when: a"), outputSchema=OWN)


def test_what_is_abridged_after_it_fits_a_contract_beside_the_servers_schema() -> None:
    schema = promised(f"{KEPT}          max_bytes: 500\n", outputSchema=OWN)

    assert accepts(schema, {"id": "a", "log": [], "_abridged": {"log": "0 of 9"}})


def test_keywords_are_dropped_from_an_advertised_contract_too() -> None:
    text = """
        - tools: list
          definition: {drop: [examples]}
          validate: refuse
          output_schema: {type: object, examples: [{}], properties: {examples: {type: array}}}
    """

    assert promised(text) == {"type": "object", "properties": {"examples": {"type": "array"}}}


def accepts(schema: dict[str, Any], value: Any) -> bool:
    import jsonschema

    return jsonschema.Draft202012Validator(schema).is_valid(value)
