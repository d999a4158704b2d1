"""The arguments of rules in the inputSchema of a tool, as clients get it."""

import re
from typing import Any

import pytest

from tests.tool_list import PAGES, listed, properties, tool

RENAMED = "- {tools: list, response: [{paginate: {arguments: {limit: n, offset: at}}}]}"
INTEGER = {"type": "integer", "description": "own"}
BOUNDS = {"minimum": 1, "maximum": 9, "default": 5}
DOTTED = "- {tools: list, arguments: {filter.limit: {default: 20}}}"
OBJECT = {"type": "object", "properties": {"a": {}}}
LIMIT = {"limit": {"default": 20}}


@pytest.mark.parametrize(
    ("text", "own", "expected"),
    [
        # Bounds stand beside the server's own keywords.
        (
            "- {tools: list, arguments: {n: {minimum: 1, maximum: 9, default: 5}}}",
            {"n": INTEGER},
            {"n": {**INTEGER, **BOUNDS}},
        ),
        # A dotted name stands inside its object.
        (DOTTED, {"filter": OBJECT}, {"filter": {**OBJECT, "properties": {"a": {}, **LIMIT}}}),
        (DOTTED, {}, {"filter": {"type": "object", "properties": LIMIT}}),
        (
            "- {tools: list, arguments: {n: {default: 5}, m: {alias_of: n}}}",
            {},
            {"n": {"default": 5}},
        ),
    ],
)
def test_the_arguments_of_a_rule_are_advertised(text: str, own: Any, expected: Any) -> None:
    assert properties(text, {"type": "object", "properties": own}) == expected


@pytest.mark.parametrize("own", [{}, {"type": "object"}, {"properties": None}, {"required": 5}])
def test_a_schema_without_properties_gains_them(own: dict[str, Any]) -> None:
    schema = listed(PAGES, tool(inputSchema=own)).tool["inputSchema"]
    assert (list(schema["properties"]), schema["type"]) == (["limit", "offset"], "object")


def test_an_argument_that_a_rule_names_or_gives_a_default_is_not_required() -> None:
    own = {"type": "object", "properties": {"n": {"type": "string"}}, "required": ["n"]}
    schema = listed(RENAMED, tool(inputSchema=own)).tool["inputSchema"]
    assert (schema["properties"]["n"]["type"], "required" in schema) == ("integer", False)
    text = "- {tools: list, arguments: {n: {default: 5}}}"
    both = {"type": "object", "properties": {"n": {}, "m": {}}, "required": ["n", "m"]}
    assert listed(text, tool(inputSchema=both)).tool["inputSchema"]["required"] == ["m"]


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

    arguments = properties(text, {"type": "object"})

    assert list(arguments) == ["limit", "offset", "maxLength", "startIndex"]
    assert arguments["limit"]["maximum"] == 500
    assert "default" not in arguments["limit"]
    assert arguments["maxLength"]["description"].endswith("(where operation == 'read')")


def test_a_bound_that_holds_for_some_calls_only_is_not_advertised_for_all() -> None:
    text = "- {tools: list, when: \"op == 'a'\", arguments: {n: {maximum: 5, default: 1}}}"

    assert listed(text, tool()).raw is None


@pytest.mark.parametrize(
    "schema",
    [
        {"$ref": "#/$defs/a", "$defs": {"a": {}}},
        {"allOf": [{"type": "object", "additionalProperties": False}]},
        {"anyOf": [{"additionalProperties": False}, {}]},
        None,
    ],
)
def test_a_schema_that_leaves_no_place_stays_with_a_log_entry(schema: Any) -> None:
    listing = listed(PAGES, tool(inputSchema=schema))

    assert listing.tool["inputSchema"] == schema
    assert listing.log == ["list: its inputSchema leaves no place for the arguments of a rule"]


@pytest.mark.fault(50, "inside")
def test_a_schema_that_grows_beyond_what_a_client_takes_is_logged() -> None:
    own = {"type": "object", "properties": {"a": {"description": "x" * 16_384}}}

    [line] = listed(PAGES, tool(inputSchema=own)).log

    assert re.fullmatch(
        "list: its inputSchema is 16[0-9]{3} bytes, 16[0-9]{3} of them the server's own; claude.ai"
        " drops tools above 16384: give the rule fewer arguments, or `view: false`",
        line,
    )
