import inspect
import pickle
from pathlib import Path

import pytest

from proxy.document.patterns import Expression
from proxy.errors import Refusal
from proxy.ruleset.loading.rulefile import read
from proxy.ruleset.rule import Rule, RuleFile, RuleSet
from proxy.transforms import TRANSFORMS


def load(text: str) -> RuleFile:
    file = read("r.yaml", f"version: 1\n{text}".encode()).rules
    assert file is not None
    return file


def rule(keys: str) -> Rule:
    [rule] = load(f"rules: [{{tools: t, {keys}}}]").rules
    return rule


@pytest.mark.parametrize(
    ("response", "restart", "cut", "windows"),
    [
        ("[]", None, None, []),
        ("[{keep: a}, {drop: b}]", None, None, []),
        ("[{keep: a}, {paginate: {at: a}}, {clip: {max_chars: 5}}]", 1, 1, ["paginate"]),
        ("[{keep: a}, {elide: {at: a, first: 1}}, {truncate: {at: b}}]", 1, 1, ["truncate"]),
        ("[{abridge: 500}]", 0, 0, []),
        ("[{keep: a}, {parse: {as: lines, at: a}}, {paginate: {at: a}}]", 1, 2, ["paginate"]),
    ],
)
def test_a_later_page_restarts_before_the_first_cut_or_the_parse_before_it(
    response: str, restart: int | None, cut: int | None, windows: list[str]
) -> None:
    step = rule(f"response: {response}").snapshot_step
    names = [each.name for each in step.windows]
    assert (step.restart, step.cut, names) == (restart, cut, windows)
    assert step.is_used is (cut is not None)


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
def test_a_rule_is_costly_if_a_step_burns_fuel(keys: str, costly: bool) -> None:
    assert rule(keys).costly is costly


def test_every_transform_that_burns_fuel_is_known_to_be_costly() -> None:
    burning = {
        name
        for name, transform in TRANSFORMS.items()
        if "fuel" in Path(inspect.getfile(transform)).read_text(encoding="utf-8")
    }
    marked = {name for name, each in TRANSFORMS.items() if getattr(each, "burns", False)}
    assert burning == marked


@pytest.mark.fault(36, "inside")
def test_a_condition_that_takes_much_work_is_refused_since_others_wait() -> None:
    when = " | ".join(["[@, @]"] * 40) + " | to_string(@) == 'x'"
    costly = Rule(name="r", tools=("t",), when=Expression(when))
    with pytest.raises(Refusal, match=r"^it takes more than 20000 units of work$"):
        costly.applies({"a": 1})


@pytest.mark.parametrize(
    ("keys", "policy"),
    [
        ("response: [{drop: a}]", (False, False, False)),
        ("on_failure: pass, response: [{drop: a}]", (False, False, False)),
        ("on_failure: refuse", (True, False, True)),
        ("on_failure: refuse, max_bytes: 500", (True, False, True)),
        ("on_failure: refuse, response: [{drop: a}]", (True, True, True)),
        ("on_failure: refuse, response: [{drop: a}], max_bytes: 500", (True, True, True)),
        ("on_failure: refuse, response: [{drop: a}], mode: shadow", (False, False, False)),
        (
            "validate: refuse, output_schema: {type: object}, response: [{drop: a}]",
            (True, False, True),
        ),
        ("hide: true", (False, False, True)),
        ("arguments: {limit: {default: 1}}", (False, False, False)),
        ("arguments: {limit: {maximum: 5}}", (False, False, True)),
    ],
)
def test_a_rule_fails_closed_if_it_refuses_or_protects(
    keys: str, policy: tuple[bool, bool, bool]
) -> None:
    actual = rule(keys).failure_policy
    assert (actual.withholds, actual.withholds_misfits, actual.protects) == policy


def test_a_rule_keeps_its_circuit_breaker_and_one_that_is_loaded_again_has_another() -> None:
    first, again = rule("response: [{drop: a}]"), rule("response: [{drop: a}]")
    assert first.circuit_breaker is first.circuit_breaker
    assert first.circuit_breaker is not again.circuit_breaker
    assert pickle.loads(pickle.dumps(first)).circuit_breaker is not first.circuit_breaker


def test_the_rules_for_a_tool_come_in_order_and_the_budget_last() -> None:
    file = load("rules: [{tools: 'a*', when: x}, {tools: [b, ab]}, {tools: c, when: x}]")
    otherwise = Rule(name="budget", tools=("*",))
    ruleset = RuleSet((file,), otherwise)
    assert [each.name for each in ruleset.covering("ab")] == ["a*", "b, ab"]
    assert [each.name for each in ruleset.covering("a")] == ["a*", "budget"]
    assert [each.name for each in ruleset.covering("d")] == ["budget"]


def test_rules_after_one_without_a_condition_are_not_evaluated() -> None:
    first = load("rules: [{tools: a, when: x}, {tools: 'a*'}, {tools: '*', when: x}]")
    ruleset = RuleSet((first, load("rules: [{tools: a}]")))
    assert [each.name for each in ruleset.covering("a")] == ["a", "a*"]


def test_a_file_is_for_servers_that_have_the_tools_it_names() -> None:
    some, any_ = load("server: {tools: [a, 'b*']}\nrules: []"), load("rules: []")
    both = RuleSet((some, any_))
    assert both.fitting({"a", "bc", "d"}) is both
    assert both.fitting({"a"}).files == (any_,)
    assert both.fitting(()).files == (any_,)


def test_every_list_of_exposed_tools_must_let_a_tool_through() -> None:
    files = (load("expose: ['a*', b]"), load("expose: ['*b']"), load("rules: []"))
    ruleset = RuleSet(files)
    assert [tool for tool in ("a", "ab", "b", "c") if not ruleset.withheld(tool)] == ["ab", "b"]
