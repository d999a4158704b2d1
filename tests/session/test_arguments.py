"""The arguments that rules add or bound: names, checks, defaults, and those of the server."""

import json
from random import Random
from typing import Any

import pytest
from mcp_abridge.errors import Refusal
from mcp_abridge.session.tools.arguments import ArgumentPlan, Completed, complete, plan

from tests.builders import rule

PAGES = "response: [{paginate: {limit: 20, max_limit: 50}}]"
RENAMED = "response: [{paginate: {arguments: {limit: rows, offset: row}}}]"
BOUND = "max_bytes: 1000"


def completed(text: str, arguments: dict[str, Any], own: tuple[str, ...] = ()) -> Completed:
    return complete(plan(rule(text), own), (), arguments)


def refusal(text: str, arguments: dict[str, Any]) -> str:
    with pytest.raises(Refusal) as caught:
        completed(text, arguments)
    return str(caught.value)


def names(argument_plan: ArgumentPlan) -> dict[str, str]:
    return {entry.name: entry.client_name for entry in argument_plan.entries}


OWN_LIMIT = f"arguments: {{limit: {{default: 10, upstream: false}}}}\n{PAGES}"


@pytest.mark.parametrize(
    ("text", "own", "expected"),
    [
        (PAGES, (), {"limit": "limit", "offset": "offset"}),
        # A default name gives way if the server has it.
        (PAGES, ("limit", "path"), {"limit": "page_limit", "offset": "offset"}),
        (BOUND, (), {"view": "view"}),
        (BOUND, ("view",), {"view": "abridged_view"}),
        # A name that the rule spells out is the rule's.
        (RENAMED, ("rows", "row"), {"rows": "rows", "row": "row"}),
        (OWN_LIMIT, ("limit",), {"limit": "limit", "offset": "offset"}),
        (f"{BOUND}\nview: false", (), {}),
    ],
)
def test_a_rule_adds_arguments_under_names_that_the_tool_does_not_use(
    text: str, own: tuple[str, ...], expected: dict[str, str]
) -> None:
    argument_plan = plan(rule(text), own)
    assert names(argument_plan) == expected
    assert argument_plan.names == {n: name for n, name in expected.items() if n != name}


DOTTED = "arguments: {filter.limit: {default: 20}}"
INSIDE = "response: [{paginate: {arguments: {limit: params.limit, offset: params.offset}}}]"
ALIAS = "arguments: {path: {alias_of: prefix}}"
FILTER = f"arguments: {{pattern: {{type: string, upstream: false}}}}\n{PAGES}"


@pytest.mark.parametrize(
    ("text", "arguments", "upstream", "whole"),
    [
        # What is ours is filled in, and never sent.
        (PAGES, {"path": "a"}, {"path": "a"}, {"path": "a", "limit": 20, "offset": 0}),
        (PAGES, {"limit": 5, "offset": 10}, {}, {"limit": 5, "offset": 10}),
        (PAGES, {"limit": None}, {}, {"limit": 20, "offset": 0}),
        (INSIDE, {"params": {"limit": 2}}, {"params": {}}, {"params": {"limit": 2, "offset": 0}}),
        # A default of the server's own argument is sent.
        ("arguments: {n: {default: 5}}", {"a": 1}, {"a": 1, "n": 5}, {"a": 1, "n": 5}),
        (DOTTED, {}, {"filter": {"limit": 20}}, {"filter": {"limit": 20}}),
        (DOTTED, {"filter": {"a": 1}}, {"filter": {"a": 1, "limit": 20}}, None),
        # An alias stands for the argument it names, and gives way to it.
        (ALIAS, {"path": "a", "prefix": "b"}, {"prefix": "b"}, {"prefix": "b"}),
        (FILTER, {"pattern": "*", "path": "a"}, {"path": "a"}, None),
    ],
)
def test_the_server_and_the_steps_get_the_arguments_that_are_meant_for_them(
    text: str, arguments: dict[str, Any], upstream: dict[str, Any], whole: dict[str, Any] | None
) -> None:
    original = json.loads(json.dumps(arguments))
    outcome = completed(text, arguments)
    assert arguments == original
    assert (outcome.upstream, outcome.changed) == (upstream, upstream != original)
    assert whole in (None, outcome.arguments)


@pytest.mark.parametrize(
    ("bounds", "value", "reason"),
    [
        ("maximum: 100", 101, "n: 101 is greater than the maximum of 100"),
        ("minimum: 1", 0, "n: 0 is less than the minimum of 1"),
        # Many servers read numbers in texts.
        ("maximum: 100", "101", 'n: "101" is greater than the maximum of 100'),
        ("maximum: 100", " 1e9 ", 'n: " 1e9 " is greater than the maximum of 100'),
        ("minimum: 1", "-0x1", 'n: "-0x1" is less than the minimum of 1'),
        ("maximum: 100", "nan", 'n: "nan" is greater than the maximum of 100'),
        ("enum: [a, b]", "c", 'n: "c" is not one of "a", "b"'),
        ("max_length: 3", "abcd", "n: 4 characters are more than the maximum of 3"),
        ("pattern: '^a+$'", "b", "n: \"b\" does not match '^a+$'"),
        ("type: integer", "5", 'n: "5" is not an integer'),
        ("type: integer", True, "n: true is not an integer"),
        ("type: number", False, "n: false is not a number"),
        ("type: string", 5, "n: 5 is not a string"),
        ("type: boolean", 1, "n: 1 is not true or false"),
        ("type: array", {}, "n: {} is not an array"),
        ("type: object", [], "n: [] is not an object"),
        ("{maximum: 3, message: too many}", 4, "too many"),
        (
            "{minimum: 0, maximum: 3, message: {maximum: too many}}",
            -1,
            "n: -1 is less than the minimum of 0",
        ),
        ("{type: integer, message: {type: a count}}", "4", "a count"),
        ("type: integer", "x" * 100, f'n: "{"x" * 76}... is not an integer'),
    ],
)
def test_a_value_out_of_bounds_is_refused_with_a_reason(
    bounds: str, value: Any, reason: str
) -> None:
    bounds = bounds if bounds.startswith("{") else f"{{{bounds}}}"

    assert refusal(f"arguments: {{n: {bounds}}}", {"n": value}) == reason


@pytest.mark.parametrize(
    ("bounds", "value"),
    [
        ("minimum: 1, maximum: 100", 100),
        ("enum: [1, 2]", 2),
        ("max_length: 1", "\U0001d4b3"),
        ("pattern: b", "abc"),
        ("type: number", 5),
        ("type: boolean", False),
        ("maximum: 5", "a text, which has no maximum"),
        ("maximum: 5", "5.0"),
    ],
)
def test_a_value_within_bounds_reaches_the_server_unchanged(bounds: str, value: Any) -> None:
    outcome = completed(f"arguments: {{n: {{{bounds}}}}}", {"n": value})

    assert (outcome.upstream, outcome.changed) == ({"n": value}, False)


def test_no_other_case_of_a_name_evades_its_bounds() -> None:
    """A server may ignore the case of names, and take the last of two."""
    for name, twin, arguments in (
        ("n", "N", {"n": 1, "N": 9}),
        ("n", "N", {"N": 1}),
        ("a.key", "\u212aey", {"a": {"key": 1, "\u212aey": 9}}),
    ):
        assert refusal(f"arguments: {{{name}: {{maximum: 5}}}}", arguments) == (
            f"{twin}: the argument is called {name!r}"
        )
    both = {"n": 1, "N": 9}  # if they are two of the tool's own
    assert completed("arguments: {n: {maximum: 5}}", both, ("n", "N")).upstream == both
    alias = "arguments: {n: {maximum: 5}, N: {alias_of: n}}"
    assert completed(alias, {"N": 4}).upstream == {"n": 4}
    assert completed("arguments: {n: {default: 5}}", {"n": 1, "N": 9}).upstream == both


def test_a_whole_number_may_be_written_as_a_fraction() -> None:
    assert completed(PAGES, {"limit": 5.0}).arguments["limit"] == 5


@pytest.mark.fault(37, "inside")
def test_a_value_that_takes_too_much_work_to_match_is_refused() -> None:
    slow, value = "(?:a|b)*a(?:a|b){1000}c", "".join(Random(1).choices("ab", k=100_000))
    reason = f'a: "{value[:76]}... takes too much work to match with {slow!r}'
    assert refusal(f"arguments: {{a: {{pattern: '{slow}'}}}}", {"a": value}) == reason
    own = f"arguments: {{a: {{pattern: '{slow}', message: no}}}}"
    assert refusal(own, {"a": value}) == "no"


@pytest.mark.parametrize(
    ("bounds", "value", "clamped"),
    [
        ("minimum: 1, maximum: 100", 0, 1),
        ("minimum: 1, maximum: 100", 500, 100),
        ("max_length: 3", "abcd", "abc"),
    ],
)
def test_a_clamped_value_is_moved_to_the_nearest_bound(
    bounds: str, value: Any, clamped: Any
) -> None:
    text = f"arguments: {{n: {{{bounds}, clamp: true}}}}"
    assert completed(text, {"n": value}).upstream == {"n": clamped}
