"""The steps of a rule over a document, and documents of which nothing is left."""

import json
from collections.abc import Mapping
from typing import Any

import msgspec
import pytest
from mcp_abridge.document.fuel import LITTLE
from mcp_abridge.document.tree import Slot
from mcp_abridge.shaping.pipeline import shape
from mcp_abridge.transforms.base import Parameter

from tests.builders import answer, document, rule, texts, tool_result
from tests.jobs import job, shaped, structured, with_step, withheld

LINES = "abc\nbcd\ncde\n"
IN_MEMBER = tool_result(LINES, structuredContent={"content": LINES})


def in_member(steps: str, **members: Any) -> tuple[dict[str, Any], tuple[str, ...]]:
    """Return the structuredContent of a shaped text in its one member, and the missing paths."""
    outcome = shaped(f"response: [{steps}]", IN_MEMBER, **members)
    content: dict[str, Any] = structured(outcome)
    # The texts begin with the same as it.
    assert texts(outcome.raw)[0] == content["content"]
    return content, outcome.missing


@pytest.mark.parametrize("at", ["at: content, ", ""])
def test_a_text_is_named_by_the_member_that_holds_it(at: str) -> None:
    content, missing = in_member(f"{{clip: {{{at}max_chars: 2}}}}")
    assert (content, missing) == ({"content": "ab… (+10 chars)"}, ())
    content, missing = in_member(f"{{truncate: {{{at}max_length: 4}}}}")
    assert (content["content"], missing) == ("abc\n", ())
    assert content["truncation"]["nextIndex"] == 4
    parse = f"{{parse: {{{at}as: lines}}}}, {{paginate: {{{at}limit: 2}}}}"
    content, missing = in_member(parse)
    assert (content["content"], missing) == ("abc\nbcd\n", ())
    assert content["pagination"]["total"] == 3


@pytest.mark.parametrize("at", ["other", "content.x", "'*'", "text"])
def test_another_path_names_nothing_in_a_text(at: str) -> None:
    content, missing = in_member(f"{{clip: {{at: {at}, max_chars: 2}}}}")
    assert (content["content"], missing) == (LINES, (at.strip("'"),))


@pytest.mark.parametrize("order", [1, -1])
def test_a_text_is_cut_once_by_a_rule_for_texts_and_for_objects(order: int) -> None:
    steps = ["{truncate: 5}", "{truncate: {at: content, max_length: 5}}"][::order]
    content, missing = in_member(", ".join(steps), arguments={"startIndex": 5, "maxLength": 4})
    assert (content["content"], missing) == (LINES[5:9], ())


def test_a_text_in_an_error_is_named_by_its_member_too() -> None:
    clipping = rule("errors: [{clip: {at: content, max_chars: 2}}]")
    outcome = shape(job(clipping, answer({**IN_MEMBER, "isError": True})))
    assert texts(outcome.raw) == ["ab… (+10 chars)"]


class Repeats:
    """A step of somebody's own, which makes an array of a million times the document."""

    name, window, cuts = "repeats", False, False
    parameters: Mapping[str, Parameter] = {}

    def __call__(self, root: Slot, call: object) -> None:
        root.set([root.get()] * 1_000_000)


@pytest.mark.fault(35, "inside")
def test_a_result_out_of_all_proportion_is_a_failure() -> None:
    raw = answer(document({"a": "x" * 1000}))
    original = rule("name: r\nresponse: [{jmespath: a}]")
    foreign = msgspec.structs.replace(with_step(original, Repeats(), 1), foreign=True)

    outcome = shape(job(foreign, raw))

    assert (outcome.raw, outcome.outcome) == (raw, "failed")
    assert outcome.log_line == "r: t: failed at repeats: it gives more than 1052608 bytes"


@pytest.mark.fault(35, "inside")
def test_many_keys_for_many_small_rows_are_a_failure_beyond_the_bound() -> None:
    keys = ", ".join(f"key_{n}_{'x' * 30}" for n in range(20))
    raw = answer(document([{"a": 1}] * 5_000))
    outcome = shape(job(rule(f"name: r\nresponse: [{{project: [a, {keys}]}}]"), raw))
    assert (outcome.raw, outcome.outcome) == (raw, "failed")
    assert str(outcome.log_line).startswith("r: t: failed at the result has ")


REMOVES = [
    ("response: [{drop: [a, b]}]", document({"a": 1, "b": {"c": 2}})),
    ("response: [{drop: a}]", document([{"a": 1}, {"a": 2}], structured=True)),
    ("response: [{drop: a}]", tool_result('{"a":1}', '{"a":2}')),
    ("response: [{drop: a}]", tool_result('"{\\"a\\":1}"')),
    ("response: [{project: [{login: user.login}]}]", document({"user": {"handle": "x"}})),
]


@pytest.mark.fault(35, "inside")
@pytest.mark.parametrize(("text", "value"), REMOVES)
def test_a_rule_that_would_remove_everything_lets_the_original_go_or_withholds_it(
    text: str, value: dict[str, Any]
) -> None:
    raw = answer(value)

    outcome = shape(job(rule(f"name: r\n{text}"), raw, keep=True))

    assert (outcome.raw, outcome.outcome, outcome.snapshot) == (raw, "untouched", None)
    assert outcome.log_line == "r: t: left as it came: everything was removed by rule 'r'"
    closed = shaped(f"name: r\non_failure: refuse\n{text}", value)
    assert withheld(closed) == "everything was removed by rule 'r'"
    assert closed.log_line == "r: t: withheld: everything was removed by rule 'r'"


@pytest.mark.parametrize(
    ("text", "value", "expected"),
    [
        (
            "response: [{filter: {at: items, where: 'a > `9`'}}]",
            {"items": [{"a": 1}]},
            {"items": []},
        ),
        ("response: [{jmespath: 'x'}]", {"a": 1}, None),
        ("response: [{recast: {cases: [{where: a, to: {}}]}}]", {"a": 1}, {}),
        ("response: [{drop: took}]", {"error": None, "took": 5}, {"error": None}),
        ("response: [{drop: took}]", {"out": "", "took": 5}, {"out": ""}),
        ("response: [{project: [{login: user.login}]}]", {"user": None}, {"login": None}),
        ("response: [{project: [a, b]}]", {}, {"a": None, "b": None}),
        ("response: [{drop: a}]", {"a": None}, {}),
    ],
)
def test_a_document_that_its_rule_empties_of_results_is_an_answer(
    text: str, value: Any, expected: Any
) -> None:
    outcome = shaped(f"on_failure: refuse\n{text}", document(value))
    assert outcome.outcome == "shaped"
    assert json.loads(texts(outcome.raw)[0]) == expected


@pytest.mark.fault(38, "inside")
@pytest.mark.parametrize("step", ["drop: secret", "filter: {at: items, where: 'public'}"])
@pytest.mark.parametrize(
    "text",
    ["secret", '{"secret":1,"items":' + "[" * 400_000 + "]" * 400_000 + "}"],
    ids=["prose", "too deep for any Python"],
)
def test_a_rule_that_withholds_refuses_a_text_in_place_of_an_object(step: str, text: str) -> None:
    keys = f"name: r\nresponse: [{{{step}}}]"
    assert shaped(keys, tool_result(text)).raw == answer(tool_result(text))
    outcome = shaped(f"on_failure: refuse\n{keys}", tool_result(text))
    assert withheld(outcome) == "the response was withheld: rule 'r' does not fit it"


DOUBLED = " | ".join(["[@, @]"] * 30)


COSTLY = {
    "jmespath": f"response: [{{jmespath: '{DOUBLED} | to_string(@)'}}]",
    "filter": f'response: [{{filter: {{at: a, where: "({DOUBLED}) == ({DOUBLED})"}}}}]',
    "project": f"response: [{{project: [{{b: {{jmespath: '{DOUBLED}'}}}}]}}]",
    "recast": f"response: [{{recast: {{cases: [{{to: {{b: {{jmespath: '{DOUBLED}'}}}}}}]}}}}]",
    "replace": "response: [{replace: {at: a, pattern: '(x*)', with: '\\1\\1\\1\\1\\1\\1\\1\\1'}}]",
    "error_if": f'error_if: "length(to_string({DOUBLED})) > `0`"\nresponse: [{{drop: b}}]',
}


@pytest.mark.fault(36, "inside")
@pytest.mark.parametrize("step", COSTLY)
def test_a_rule_that_takes_too_much_work_fails_and_the_original_goes_out_once(step: str) -> None:
    value = document({"a": ["x" * 10_000] * 20, "b": 1})
    raw = answer(value)

    outcome = shape(job(rule(f"name: r\n{COSTLY[step]}"), raw, fuel=LITTLE))

    assert (outcome.raw, outcome.outcome, outcome.out_of_fuel) == (raw, "failed", True)
    assert outcome.log_line == f"r: t: failed at {step}: it takes more than 20000 units of work"
    withholding = rule(f"name: r\non_failure: refuse\n{COSTLY[step]}")
    closed = shape(job(withholding, raw, fuel=LITTLE))
    assert withheld(closed) == "the response was withheld: rule 'r' failed on it"
    assert (closed.outcome, closed.out_of_fuel) == ("failed", True)


@pytest.mark.fault(36, "inside")
def test_the_steps_for_errors_have_fuel_of_their_own() -> None:
    text = "errors: [{replace: {pattern: '^view: .* takes', with: it takes}}]\nmax_bytes: 1000"
    raw = answer(document({"rows": ["x" * 50] * 100}))
    outcome = shape(job(rule(text), raw, view=f"{DOUBLED} | to_string(@)", fuel=LITTLE))
    advice = "ask a part first, as in rows[0:20] | ..., or write a simpler pattern"
    assert texts(outcome.raw) == [f"it takes too much work; {advice}"]


@pytest.mark.fault(36, "inside")
def test_all_steps_of_a_rule_burn_the_same_fuel() -> None:
    step = "{filter: {at: a, where: '@ > `0`'}}"
    raw = answer(document({"a": list(range(1000)), "b": 1}))
    once = shape(job(rule(f"response: [{step}]"), raw, fuel=LITTLE))
    often = shape(job(rule(f"response: [{', '.join([step] * 9)}]"), raw, fuel=LITTLE))
    assert (once.outcome, once.out_of_fuel) == ("shaped", False)
    assert (often.outcome, often.out_of_fuel, often.raw) == ("failed", True, raw)


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("response: [{table: items}]", 'say "so"'),
        ("response: [{keep: ['items.\"back\\slash\"']}]", "back\\slash"),
        ("max_bytes: 600", "two\nlines"),
    ],
)
def test_a_member_may_have_any_name(text: str, name: str) -> None:
    rows = [{"id": n, name: "cell 3", "state": "open"} for n in range(30)]
    outcome = shaped(text, document({"items": rows}))
    assert (outcome.outcome, outcome.log_line) == ("shaped", None)
    assert "cell 3" in texts(outcome.raw)[0]
