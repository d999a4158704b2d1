"""tools/list as clients get it: tools hidden, described otherwise, and seen on the way."""

from typing import Any

import pytest
from mcp_abridge.document.tree import encode
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.session.tools.definitions import ToolFacts

from tests.builders import file, rule, rules
from tests.tool_list import PAGES, Listing, listed, tool


def test_a_tool_without_a_rule_stays_byte_for_byte() -> None:
    untouched = b'{ "name" : "kept", "x": 1.0, "inputSchema": {"type": "object"} }'
    raw = b'{"tools": [' + untouched + b', {"name": "gone"}], "nextCursor": ""}'

    listing = Listing(rules("- {tools: gone, hide: true}"), raw)

    assert listing.raw is not None
    assert bytes(listing.raw) == b'{"tools":[' + untouched + b'],"nextCursor":""}'


@pytest.mark.parametrize("odd", [None, 5, [], {}, {"name": None}, {"name": 5}])
def test_an_entry_that_is_no_tool_stays_beside_tools_that_are_edited(odd: Any) -> None:
    listing = listed("- {tools: gone, hide: true}", odd, tool("gone"))

    assert listing.result["tools"] == [odd]


def test_a_tool_in_shadow_mode_is_neither_hidden_nor_given_arguments() -> None:
    assert listed("- {tools: list, hide: true, mode: shadow}", tool()).raw is None
    shadow = "- {tools: list, mode: shadow, response: [{paginate: {at: items}}]}"
    assert listed(shadow, tool()).raw is None


def test_only_exposed_tools_are_shown() -> None:
    ruleset = RuleSet((file("version: 1\nexpose: [get_*]\nrules: []"),))

    listing = Listing(ruleset, {"tools": [tool("get_a"), tool("set_a"), tool("get_b")]})

    assert [each["name"] for each in listing.result["tools"]] == ["get_a", "get_b"]


def test_the_description_gains_a_sentence_on_how_to_go_on() -> None:
    assert listed(PAGES, tool(description="Lists.")).tool["description"] == (
        "Lists. Returns `items` in pages of 20 (`limit`, at most 200); while "
        "`pagination.hasMore` is true, call again with `offset` = `pagination.nextOffset`."
    )


def test_a_description_can_be_replaced_and_shortened() -> None:
    text = "- {tools: list, definition: {description: Lists documents.}}"
    assert listed(text, tool(description="long")).tool["description"] == "Lists documents."
    text = "- {tools: list, definition: {max_description: 6}}"
    assert listed(text, tool(description="Lists documents.")).tool["description"] == "Lists…"
    assert listed(text, tool(description="Lists.")).raw is None


def test_keywords_are_dropped_at_any_depth_but_never_properties_of_that_name() -> None:
    text = "- {tools: list, definition: {drop: [examples, title]}}"
    own = {
        "title": "t",
        "type": "object",
        "properties": {
            "examples": {"type": "array", "items": {"title": "i", "examples": [1]}},
            "title": {"title": "t", "default": {"title": "kept"}},
        },
        "anyOf": [{"title": "t"}, True],
    }

    schema = listed(text, tool(inputSchema=own, outputSchema={"title": "o"})).tool["inputSchema"]

    assert schema == {
        "type": "object",
        "properties": {
            "examples": {"type": "array", "items": {}},
            "title": {"default": {"title": "kept"}},
        },
        "anyOf": [{}, True],
    }


def test_a_diet_shortens_prose_and_nothing_else() -> None:
    plain = {"type": "string", "enum": ["a"]}
    inner = {**plain, "title": "T", "description": "One. Two.", "examples": ["a"]}
    own = {
        "type": "object",
        "properties": {"description": inner, "o": {"properties": {"x": inner}}},
        "required": ["o"],
    }
    described = tool(description="Lists things. " * 50, inputSchema=own)
    text = "- {tools: list, definition: {max_bytes: %d}}"
    slim = listed(text % 30, described).tool
    assert len(slim["description"]) < 30
    assert slim["description"].endswith("Lists things.")
    brief = {**plain, "description": "One."}
    assert slim["inputSchema"] == {
        **own,
        "properties": {"description": brief, "o": {"properties": {"x": brief}}},
    }
    none = listed(text % 17, described).tool
    assert none["description"] == "Lists things."
    assert none["inputSchema"]["properties"] == {
        "description": brief,
        "o": {"properties": {"x": plain}},
    }
    assert listed(text % 5000, described).raw is None


def test_members_of_meta_are_added_to_those_that_are_there() -> None:
    text = '- {tools: list, definition: {meta: {"anthropic/maxResultSizeChars": 500000}}}'

    assert listed(text, tool(_meta={"a": 1})).tool["_meta"] == {
        "a": 1,
        "anthropic/maxResultSizeChars": 500000,
    }


BUDGET = RuleSet((), otherwise=rule("max_bytes: 8000"))


STRICT = {
    "type": "object",
    "properties": {"n": {"type": "integer"}},
    "additionalProperties": False,
}


@pytest.mark.parametrize(
    "own",
    [
        {},
        {"description": "Lists what there is.", "_meta": {"a": 1}, "annotations": {}},
        {"outputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        {"inputSchema": {"type": "object", "properties": {"n": {"type": "integer"}}}},
        {"inputSchema": STRICT, "outputSchema": STRICT},
    ],
)
def test_the_budget_costs_at_most_a_hundred_bytes_a_tool(own: Any) -> None:
    before = {"tools": [tool(f"tool_{n}", **own) for n in range(46)]}
    listing = Listing(BUDGET, before)
    assert listing.raw is not None
    assert 0 < len(bytes(listing.raw)) - len(encode(before)) <= 46 * 100
    edited = listing.result["tools"]
    untouched = [key for key in own if not key.endswith("Schema")]
    assert all(each[key] == own[key] for each in edited for key in untouched)


def test_the_facts_of_each_tool_hold_its_arguments_and_hints() -> None:
    own = {"properties": {"a": {}, "p": {"type": "object", "properties": {"limit": {}}}}}

    listing = listed(
        "- {tools: x, hide: true}",
        tool("a", inputSchema=own, annotations={"readOnlyHint": True}),
        tool("b", annotations={"readOnlyHint": False, "idempotentHint": False}),
        tool("x", annotations={"destructiveHint": True}),
        {"name": "c"},
        tool("d", inputSchema=5, annotations=7, outputSchema={"type": "object"}),
        tool("e", inputSchema={"properties": {"a": 5}}),
    )

    assert listing.facts == {
        "a": ToolFacts(frozenset({"a", "p", "p.limit"}), True, reads_only=True),
        "b": ToolFacts(),
        "x": ToolFacts(destructive=True),
        "c": ToolFacts(),
        "d": ToolFacts(structured=True),
        "e": ToolFacts(frozenset({"a"})),
    }
