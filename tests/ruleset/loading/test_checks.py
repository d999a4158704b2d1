"""What a rule file must be in itself; the wrong ones stand in cases/bad, each with its message."""

from typing import Any

import pytest

from proxy.ruleset.loading.rulefile import read


def problems(text: str) -> list[str]:
    found = read("r.yaml", f"version: 1\nrules:\n{text}".encode()).problems
    return [f"{problem.line}:{problem.message}" for problem in found]


def rule(**keys: Any) -> list[str]:
    written = ", ".join(f"{word}: {value}" for word, value in keys.items())
    return problems(f"  - {{tools: t, {written}}}")


@pytest.mark.parametrize(
    "text",
    [
        "  - {tools: [a, b], when: x}\n  - {tools: a}\n  - {tools: '*'}",
        "  - {tools: 'a_*'}\n  - {tools: [a_b, c]}",
        "  - {tools: 'a*b'}\n  - {tools: 'a*'}",
        "  - {tools: a, when: x}\n  - {tools: a, when: y}\n  - {tools: a}",
        "  - {tools: '*_a'}\n  - {tools: 'a_*'}",
    ],
)
def test_a_rule_that_some_call_can_reach_is_right(text: str) -> None:
    assert problems(text) == []


@pytest.mark.parametrize(
    ("text", "line"),
    [
        ("  - {tools: a}\n  - {tools: a, when: x}", 3),
        ("  - {tools: '*'}\n  - {tools: 'a*'}", 3),
        ("  - {tools: 'a*c'}\n  - {tools: 'ab*bc'}", 3),
        ("  - {tools: 'a*', when: x}\n  - {tools: ab, when: x}", 3),
    ],
)
def test_a_rule_behind_one_that_takes_all_its_calls_is_an_error(text: str, line: int) -> None:
    message = f"this rule can never match: the rule in line {line} takes its calls"
    assert problems(text) == [f"4:{message}"]


def test_rules_that_take_the_calls_together_are_all_named() -> None:
    assert problems("  - {tools: a}\n  - {tools: 'b*'}\n  - {tools: [a, bc]}") == [
        "5:this rule can never match: the rule in line 3 and line 4 takes its calls"
    ]


@pytest.mark.parametrize(
    "response",
    [
        "[{keep: a}, {paginate: {at: a}}, {clip: {max_chars: 5}}, table]",
        "[{truncate: {max_length: 5}}, {replace: {pattern: x, with: y}}]",
        "[{truncate: {max_length: 5}}, {truncate: {at: content, max_length: 5}}]",
        "[{paginate: {at: a}}, {truncate: {at: b}}]",
        "[{paginate: {at: a}}, {paginate: {at: b, arguments: {limit: rows, offset: row}}}]",
        "[{paginate: {at: a}}, {abridge: 500}]",
        "[{parse: {as: lines}}, {paginate: {limit: 5}}]",
    ],
)
def test_windows_that_go_together_are_right(response: str) -> None:
    assert rule(response=response) == []
    assert rule(response=response, max_bytes=5000) == []


def test_two_windows_of_one_kind_cannot_share_one_argument_alone() -> None:
    second = "{paginate: {at: b, arguments: {limit: rows}}}"
    assert rule(response=f"[{{paginate: {{at: a}}}}, {second}]") == [
        "3:paginate: an earlier window has the argument 'offset'; "
        "give this one another, as in arguments: {offset: ...}"
    ]


@pytest.mark.parametrize(
    "bounds",
    [
        "{default: 5, minimum: 1, maximum: 10, clamp: true}",
        "{enum: [open, closed], default: open}",
        "{type: number, default: 1}",
        "{type: boolean, default: false}",
        "{type: array, default: []}",
        "{default: null}",
        "{alias_of: other, description: The old name}",
        "{pattern: '^a', default: ab, max_length: 2}",
        "{upstream: false, type: string}",
    ],
)
def test_bounds_that_agree_are_right(bounds: str) -> None:
    assert rule(arguments=f"{{a: {bounds}}}") == []


def test_a_default_is_checked_against_the_bounds_of_the_window_of_that_name() -> None:
    found = rule(
        arguments="{limit: {default: 500}, offset: {default: -1}}",
        response="[{paginate: {limit: 5, max_limit: 50}}]",
    )
    assert found == [
        "3:limit: the default 500 is greater than the maximum of 50",
        "3:offset: the default -1 is less than the minimum of 0",
    ]


def test_a_rules_own_bounds_replace_those_of_the_window() -> None:
    found = rule(
        arguments="{limit: {default: 500, maximum: 1000}}",
        response="[{paginate: {limit: 5, max_limit: 50}}]",
    )
    assert found == []


def test_a_test_may_name_any_tool_that_a_glob_of_the_rule_fits() -> None:
    assert problems("  - {tools: ['list_*'], tests: [{tool: list_x, given: 1, expect: 1}]}") == []


def test_a_condition_from_the_defaults_counts_too() -> None:
    text = "version: 1\ndefaults: {hide: true}\nrules:\n  - {tools: a, when: x}\n"
    found = read("r.yaml", text.encode()).problems
    assert [str(problem) for problem in found] == [
        "r.yaml:2:12: 'hide' holds for the tool, whatever the arguments: it cannot have 'when'"
    ]


def test_a_window_keeps_the_type_of_its_arguments() -> None:
    found = rule(arguments="{limit: {type: string}}", response="[{paginate: {}}]")
    assert found == ["3:limit: a window has this argument, of type 'integer'"]
