import inspect
import pickle
from pathlib import Path
from typing import Any

import pytest

from proxy.document.patterns import Expression
from proxy.errors import Refusal
from proxy.ruleset.loading.rulefile import read
from proxy.ruleset.rule import BURNING, Bounds, Hidden, Rule, RuleFile, RuleSet
from proxy.transforms import TRANSFORMS


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
    assert (found.snapshot_step.restart, found.snapshot_step.cut) == (restart, cut)


@pytest.mark.parametrize(
    ("keys", "costly"),
    [
        ("response: [{keep: a}, {sort: {at: a, by: b}}, {paginate: {at: a}}]", False),
        ("response: [], max_bytes: 500", False),
        ("response: [{keep: a}, {jmespath: a}]", True),
        ("response: [{filter: {at: a, glob: {argument: g}, field: b}}]", True),
        ("response: [{keep: a}], errors: [{replace: {pattern: a, with: b}}]", True),
        ("response: [{keep: a}], error_if: gone", True),
    ],
)
def test_a_rule_is_costly_where_a_step_burns_fuel(keys: str, costly: bool) -> None:
    [found] = rules(f"rules: [{{tools: t, {keys}}}]").rules
    assert found.costly is costly


def test_every_transform_that_burns_fuel_is_known_to_be_costly() -> None:
    burning = {
        name
        for name, transform in TRANSFORMS.items()
        if "fuel" in Path(inspect.getfile(transform)).read_text(encoding="utf-8")
    }
    assert burning | {"contract"} == BURNING


@pytest.mark.fault(36, "inside")
def test_a_condition_that_takes_much_work_is_refused_since_others_wait() -> None:
    when = " | ".join(["[@, @]"] * 40) + " | to_string(@) == 'x'"
    made = Rule(name="r", tools=("t",), when=Expression(when))
    with pytest.raises(Refusal, match=r"^it takes more than 20000 units of work$"):
        made.applies({"a": 1})


def test_windows_are_the_steps_whose_rest_can_be_asked_for() -> None:
    found = rule("[{elide: {at: a, first: 1}}, {truncate: {at: b}}, {paginate: {at: a}}]")
    assert [step.name for step in found.snapshot_step.windows] == ["truncate", "paginate"]


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
    assert Rule(name="r", tools=("t",), **keys).failure_policy.protects is protects


@pytest.mark.parametrize(
    ("keys", "exclusive"),
    [
        ("on_failure: refuse, response: [{drop: a}]", True),
        ("on_failure: refuse, response: [{drop: a}], max_bytes: 500", True),
        ("on_failure: refuse, max_bytes: 500", False),
        ("on_failure: refuse", False),
        ("on_failure: refuse, response: [{drop: a}], mode: shadow", False),
        ("on_failure: pass, response: [{drop: a}]", False),
        ("validate: refuse, output_schema: {type: object}, response: [{drop: a}]", False),
    ],
)
def test_nothing_else_goes_out_where_a_rule_with_steps_of_its_own_refuses(
    keys: str, exclusive: bool
) -> None:
    [made] = rules(f"rules: [{{tools: t, {keys}}}]").rules
    assert made.failure_policy.withholds_misfits is exclusive


def test_what_bounds_a_document_of_another_shape_is_the_last_steps_alone() -> None:
    text = "blocks: {drop: [image]}, copies: text, response: [{drop: a}], max_bytes: 500"
    [made] = rules(f"rules: [{{tools: t, {text}}}]").rules
    bounding = made.for_misfits
    assert [step.name for step in bounding.pipeline] == ["abridge"]
    assert (bounding.drop_blocks, bounding.copies, bounding.max_bytes) == ((), "both", 500)
    assert bounding.for_misfits == bounding


def test_a_rule_keeps_its_circuit_and_one_that_is_loaded_again_has_another() -> None:
    text = "rules: [{tools: t, response: [{drop: a}]}]"
    [made], [again] = rules(text).rules, rules(text).rules
    assert made.circuit_breaker is made.circuit_breaker
    assert made.circuit_breaker is not again.circuit_breaker
    assert pickle.loads(pickle.dumps(made)).circuit_breaker is not made.circuit_breaker


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
