import inspect
from pathlib import Path

import pytest
from mcp_abridge.errors import Refusal
from mcp_abridge.query.patterns import Expression
from mcp_abridge.ruleset.loading.rulefile import read
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.ruleset.rule_set import RuleFile, RuleSet
from mcp_abridge.transforms import TRANSFORMS


def load(text: str) -> RuleFile:
    file = read("r.yaml", f"version: 1\n{text}".encode()).rules
    assert file is not None
    return file


def rule(keys: str) -> Rule:
    [rule] = load(f"rules: [{{tools: t, {keys}}}]").rules
    return rule


def test_a_later_page_restarts_at_the_parse_before_the_first_cut() -> None:
    step = rule("response: [{parse: {as: lines}}, {keep: a}, {paginate: {at: a}}]")
    assert (step.snapshot_step.restart, step.snapshot_step.cut) == (0, 2)


@pytest.mark.parametrize(
    ("keys", "costly"),
    [
        ("response: [{sort: {at: a, by: b}}, {paginate: {at: a}}], max_bytes: 500", False),
        ("response: [{keep: a}, {jmespath: a}]", True),
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
        ("on_failure: refuse, max_bytes: 500", (True, False, True)),
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


def test_the_rules_for_a_tool_come_in_order_up_to_one_without_a_condition() -> None:
    file = load("rules: [{tools: 'a*', when: x}, {tools: [b, ab]}, {tools: '*b', when: x}]")
    ruleset = RuleSet((file, load("rules: [{tools: b}]")), Rule(name="budget", tools=("*",)))
    assert [each.name for each in ruleset.covering("ab")] == ["a*", "b, ab"]
    assert [each.name for each in ruleset.covering("a")] == ["a*", "budget"]
    assert [each.name for each in ruleset.covering("d")] == ["budget"]


def test_a_file_is_for_servers_that_have_the_tools_it_names() -> None:
    some, any_ = load("server: {tools: [a, 'b*']}\nrules: []"), load("rules: []")
    both = RuleSet((some, any_))
    assert both.fitting({"a", "bc", "d"}) is both
    assert both.fitting({"a"}).files == (any_,)
    assert both.fitting(()).files == (any_,)


def test_every_list_of_exposed_tools_must_let_a_tool_through() -> None:
    ruleset = RuleSet((load("expose: ['a*', b]"), load("expose: ['*b']"), load("rules: []")))
    assert [tool for tool in ("a", "ab", "b", "c") if not ruleset.withheld(tool)] == ["ab", "b"]
