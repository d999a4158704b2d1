from typing import Any

import pytest

from proxy.errors import Refusal
from proxy.loading.rulefile import read
from proxy.patterns import Expression
from proxy.rule import Bounds, Hidden, Rule, RuleFile, RuleSet


def rules(text: str) -> RuleFile:
    file = read("r.yaml", f"version: 1\n{text}".encode()).rules
    assert file is not None
    return file


def rule(response: str, **keys: Any) -> Rule:
    return rules(f"rules: [{{tools: t, response: {response}}}]").rules[0]


@pytest.mark.parametrize(
    ("response", "restart", "cut"),
    [
        ("[]", None, None),
        ("[{keep: a}, {drop: b}]", None, None),
        ("[{keep: a}, {paginate: {at: a}}, {clip: {max_chars: 5}}]", 1, 1),
        ("[{keep: a}, {elide: {at: a, first: 1}}, {paginate: {at: a}}]", 1, 1),
        ("[{abridge: 500}]", 0, 0),
        ("[{keep: a}, {parse: {as: lines, at: a}}, {paginate: {at: a}}]", 1, 2),
    ],
)
def test_a_later_page_starts_again_before_the_first_cut_or_the_reading_it_works_on(
    response: str, restart: int | None, cut: int | None
) -> None:
    found = rule(response)
    assert (found.restart, found.cut) == (restart, cut)


def test_windows_are_the_steps_whose_rest_can_be_asked_for() -> None:
    found = rule("[{elide: {at: a, first: 1}}, {truncate: {at: b}}, {paginate: {at: a}}]")
    assert [step.name for step in found.windows] == ["truncate", "paginate"]


@pytest.mark.parametrize(
    ("keys", "protects"),
    [
        ({}, False),
        ({"on_failure": "refuse"}, True),
        ({"hide": Hidden()}, True),
        ({"arguments": {"limit": Bounds()}}, False),
        ({"arguments": {"limit": Bounds(maximum=5)}}, True),
    ],
)
def test_a_rule_protects_where_it_would_rather_refuse(keys: dict[str, Any], protects: bool) -> None:
    assert Rule(name="r", tools=("t",), **keys).protects is protects


def test_a_condition_sees_the_clients_arguments() -> None:
    conditional = Rule(name="r", tools=("t",), when=Expression("action == 'status'"))
    assert conditional.applies({"action": "status"})
    assert not conditional.applies({})
    assert Rule(name="r", tools=("t",)).applies({})


def test_a_condition_that_fails_says_so() -> None:
    failing = Rule(name="r", tools=("t",), when=Expression("starts_with(name, 'a')"))
    with pytest.raises(Refusal):
        failing.applies({})


def test_the_rules_for_a_tool_come_in_order_and_the_budget_last() -> None:
    file = rules("rules: [{tools: 'a*', when: x}, {tools: [b, ab]}, {tools: c, when: x}]")
    otherwise = Rule(name="budget", tools=("*",))
    found = RuleSet((file,), otherwise)
    assert [each.name for each in found.covering("ab")] == ["a*", "b, ab"]
    assert [each.name for each in found.covering("a")] == ["a*", "budget"]
    assert [each.name for each in found.covering("d")] == ["budget"]


def test_what_follows_a_rule_without_a_condition_is_not_asked() -> None:
    first = rules("rules: [{tools: a, when: x}, {tools: 'a*'}, {tools: '*', when: x}]")
    found = RuleSet((first, rules("rules: [{tools: a}]")))
    assert [each.name for each in found.covering("a")] == ["a", "a*"]


def test_a_file_is_for_servers_that_have_the_tools_it_names() -> None:
    some, any_ = rules("server: {tools: [a, 'b*']}\nrules: []"), rules("rules: []")
    both = RuleSet((some, any_))
    assert both.fitting({"a", "bc", "d"}) is both
    assert both.fitting({"a"}).files == (any_,)
    assert both.fitting(()).files == (any_,)


def test_every_list_of_exposed_tools_must_let_a_tool_through() -> None:
    files = (rules("expose: ['a*', b]"), rules("expose: ['*b']"), rules("rules: []"))
    found = RuleSet(files)
    assert [tool for tool in ("a", "ab", "b", "c") if not found.withheld(tool)] == ["ab", "b"]
