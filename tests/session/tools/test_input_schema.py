"""The arguments of rules in the inputSchema of a tool, as clients get it."""

import re
from typing import Any

import pytest

from tests.tool_list import PAGES, listed, properties, tool


@pytest.mark.parametrize("own", [{}, {"type": "object"}, {"properties": None}, {"required": 5}])
def test_a_schema_without_properties_gains_them(own: dict[str, Any]) -> None:
    schema = listed(PAGES, tool(inputSchema=own)).tool["inputSchema"]

    assert list(schema["properties"]) == ["limit", "offset"]
    assert schema["type"] == "object"


def test_an_argument_that_the_rule_spells_out_replaces_the_servers_and_is_not_required() -> None:
    text = "- {tools: list, response: [{paginate: {arguments: {limit: n, offset: at}}}]}"
    own = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}

    schema = listed(text, tool(inputSchema=own)).tool["inputSchema"]

    assert schema["properties"]["n"]["type"] == "integer"
    assert "required" not in schema


def test_bounds_are_advertised_beside_what_the_server_says() -> None:
    text = "- {tools: list, arguments: {n: {minimum: 1, maximum: 9, default: 5}}}"
    own = {"type": "object", "properties": {"n": {"type": "integer", "description": "own"}}}

    assert properties(text, own)["n"] == {
        "type": "integer",
        "description": "own",
        "minimum": 1,
        "maximum": 9,
        "default": 5,
    }


def test_what_has_a_default_is_no_longer_required() -> None:
    text = "- {tools: list, arguments: {n: {default: 5}}}"
    own = {"type": "object", "properties": {"n": {}, "m": {}}, "required": ["n", "m"]}

    assert listed(text, tool(inputSchema=own)).tool["inputSchema"]["required"] == ["m"]


def test_a_dotted_name_is_advertised_inside_its_object() -> None:
    text = "- {tools: list, arguments: {filter.limit: {default: 20}}}"
    own = {"type": "object", "properties": {"filter": {"type": "object", "properties": {"a": {}}}}}

    assert properties(text, own)["filter"]["properties"] == {"a": {}, "limit": {"default": 20}}
    assert properties(text, {"type": "object"})["filter"] == {
        "type": "object",
        "properties": {"limit": {"default": 20}},
    }


def test_an_alias_is_not_advertised() -> None:
    assert listed("- {tools: list, arguments: {path: {alias_of: prefix}}}", tool()).raw is None


def test_rules_with_different_conditions_show_the_union_of_their_arguments() -> None:
    text = """
        - tools: list
          when: "operation == 'list'"
          response: [{paginate: {at: files, limit: 100, max_limit: 100}}]
        - tools: list
          when: "operation == 'search'"
          response: [{paginate: {as: results, limit: 20, max_limit: 500}}]
        - tools: list
          when: "operation == 'read'"
          response: [truncate]
    """

    found = properties(text, {"type": "object"})

    assert list(found) == ["limit", "offset", "maxLength", "startIndex"]
    assert found["limit"]["maximum"] == 500
    assert "default" not in found["limit"]
    assert found["maxLength"]["description"].endswith("(where operation == 'read')")


def test_a_bound_that_holds_for_some_calls_only_is_not_advertised_for_all() -> None:
    text = "- {tools: list, when: \"op == 'a'\", arguments: {n: {maximum: 5, default: 1}}}"

    assert listed(text, tool()).raw is None


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {}}},
        {"allOf": [{"type": "object", "additionalProperties": False}]},
        {"anyOf": [{"additionalProperties": False}, {}]},
        5,
        None,
        "object",
    ],
)
def test_a_schema_that_leaves_no_place_stays_and_the_log_says_so(schema: Any) -> None:
    found = listed(PAGES, tool(inputSchema=schema))

    assert found.tool["inputSchema"] == schema
    assert found.log == ["list: its inputSchema leaves no place for the arguments of a rule"]


@pytest.mark.parametrize("branches", [None, 5, {"a": 1}, [5, None]])
def test_odd_branches_of_a_schema_do_no_harm(branches: Any) -> None:
    assert "limit" in properties(PAGES, {"type": "object", "anyOf": branches})


@pytest.mark.fault(50, "inside")
def test_a_schema_that_grows_beyond_what_a_client_takes_is_logged() -> None:
    own = {"type": "object", "properties": {"a": {"description": "x" * 16_384}}}

    [line] = listed(PAGES, tool(inputSchema=own)).log

    assert re.fullmatch(
        "list: its inputSchema is 16[0-9]{3} bytes, 16[0-9]{3} of them the server's own; claude.ai"
        " drops tools above 16384: give the rule fewer arguments, or `view: false`",
        line,
    )
