"""The account of a call beyond what test_explain.py prints: errors, guards, warnings, words."""

import json
from collections.abc import Mapping
from typing import Any, ClassVar

import pytest
from msgspec import Struct
from msgspec.structs import replace

from proxy.cli.explain import explained
from proxy.ruleset.guard import Decision, Query, QueryResult
from proxy.ruleset.rule import RuleFile, RuleSet
from proxy.ruleset.selection import load
from proxy.testing import exchange
from proxy.testing.play import Replay
from proxy.transforms.base import Call, Parameter
from tests.given import answer, call, document, line, rule, rules, said
from tests.rulecases import PYTHON

ERRORS = """
- tools: read
  name: reading
  arguments: {limit: {type: integer, maximum: 5}}
  response: [{drop: [b, gone]}]
  errors:
    - recast:
        unless: code
        common: {from: rules}
        vocabulary: {code: [lock, limit]}
        cases: [{match: '^(?P<code>lock|limit): (?P<why>.*)', to: {code: '{code}', why: '{why}'}}]
    - clip: {at: gone.why, max_chars: 12}
  output_schema: {type: object, properties: {a: {maximum: 5}}}
  validate: refuse
"""
LOCK = said("lock: try again", isError=True)


def account(
    given: RuleSet,
    raw: bytes,
    tool: str = "read",
    arguments: dict[str, Any] | None = None,
    found: str | None = None,
) -> dict[str, Any]:
    asked = call(tool, arguments)
    both = json.dumps({"request": asked.decode(), "response": raw.decode()}).encode()
    answer = None if found is None else exchange.text_result(found)
    return explained(Replay(given, exchange.recorded(both), query_result=answer))


def steps(found: dict[str, Any], *keys: str) -> list[Any]:
    return [tuple(step[key] for key in ("key", "step", *keys)) for step in found["steps"]]


def test_an_error_result_is_followed_through_the_steps_for_errors_alone() -> None:
    found = account(rules(ERRORS), answer(LOCK))

    assert steps(found, "missing") == [
        (None, "received", []),
        ("errors", "recast", []),
        ("errors", "clip", ["gone.why"]),
    ]
    assert (found["outcome"], found["missing"]) == ("error", ["gone.why"])
    assert found["document"] == {"kind": "text", "copies": ["content block 1"]}
    last = {key: found["steps"][-1][key] for key in ("wire", "visible", "structured", "text")}
    assert found["after"] == last
    assert found["steps"][0]["wire"] == len(answer(LOCK)) < last["wire"]


def test_the_message_of_a_json_rpc_error_is_a_document_too() -> None:
    raw = line(id=1, error={"code": -32603, "message": "lock: try again"})

    found = account(rules(ERRORS), raw)

    assert found["document"] == {"kind": "text", "copies": ["the message of the error"]}
    assert steps(found) == [(None, "received"), ("errors", "recast"), ("errors", "clip")]
    assert json.loads(found["shown"]["text"]["lines"][0])["code"] == "lock"


def test_a_refusal_of_an_argument_goes_through_the_same_steps() -> None:
    found = account(rules(ERRORS), answer(document({"a": 1})), arguments={"limit": 6})

    assert (found["outcome"], found["upstream"]) == ("refused", None)
    assert found["document"] == {"kind": "text", "copies": ["the refusal"]}
    assert steps(found) == [(None, "refused"), ("errors", "recast"), ("errors", "clip")]
    [refused, recast, _] = found["steps"]
    assert refused["visible"] < recast["visible"] == found["after"]["visible"]


def test_a_broken_contract_ends_the_steps_of_the_response_and_begins_those_for_errors() -> None:
    found = account(rules(ERRORS), answer(document({"a": 6, "b": 1})))

    assert found["outcome"] == "refused"
    assert steps(found) == [
        (None, "received"),
        ("response", "drop"),
        ("response", "contract"),
        ("errors", "recast"),
        ("errors", "clip"),
    ]
    warning = {"kind": "contract: a maximum", "said": "a: 6 is greater than the maximum of 5"}
    contract = found["steps"][2]
    assert contract["said"] == f"the response breaks its contract: {warning['said']}"
    assert contract["warnings"] == found["warnings"] == [warning]


def test_a_text_that_no_case_knows_is_a_warning_of_its_step() -> None:
    found = account(rules(ERRORS), answer(said("odd", isError=True)))

    said_ = "no case fits what begins with 'odd'"
    assert [step["warnings"] for step in found["steps"]] == [
        [],
        [{"kind": "recast: no case fits", "said": said_}],
        [],
    ]
    assert found["warnings"] == found["steps"][1]["warnings"]


def test_an_error_that_no_step_is_for_has_no_steps() -> None:
    alone = rules("- {tools: read, response: [{drop: b}]}")
    shadow = rules(f"{ERRORS}  mode: shadow\n")

    assert [account(each, answer(LOCK))["steps"] for each in (alone, shadow)] == [[], []]
    assert account(alone, answer(LOCK))["outcome"] == "error"


def test_the_words_of_all_recasts_of_a_rule_are_listed_by_path() -> None:
    given = rules(
        """
        - tools: read
          response:
            - recast: {vocabulary: {a.b: [x, y]}, cases: [{match: x, to: {a: {b: x}}}]}
          errors:
            - recast: {vocabulary: {a.b: [y, z], c: [w]}, cases: [{to: {a: {b: z}, c: w}}]}
        """
    )

    found = account(given, answer(said("x")))

    assert found["vocabulary"] == {"a.b": ["x", "y", "z"], "c": ["w"]}
    assert account(given, answer(said("x")), "other")["vocabulary"] == {}


GUARDED = RuleSet(tuple(load([str(PYTHON / "rules.yaml")], allow_python=True)))


def guard(found: str | None, tool: str = "remove") -> Any:
    arguments = {"path": "x"} if tool == "remove" else {}
    return account(GUARDED, answer(document({"a": 1})), tool, arguments, found)["guard"]


def test_a_guard_is_told_with_its_question_what_it_found_and_its_decision() -> None:
    asks = {"tool": "may", "arguments": {"path": "x"}}

    assert guard("yes") == {
        "name": "careful",
        "asks": asks,
        "found": {"document": "yes"},
        "decision": "forward",
        "facts": {"asked": "may"},
    }
    assert guard('{"no": 1}') == {
        "name": "careful",
        "asks": asks,
        "found": {"document": {"no": 1}},
        "decision": "answer",
        "facts": {},
    }
    assert guard(None)["found"] == {"failure": "no answer in time"}
    assert guard(None, "list") == {
        "name": "gate",
        "asks": None,
        "found": None,
        "decision": "forward",
        "facts": {},
    }
    assert guard(None, "get") is None


def test_the_warnings_of_a_guard_are_told_and_a_call_that_it_answers_has_no_steps() -> None:
    raw, asked = answer(document({"a": 1})), {"path": "x"}

    warned = account(GUARDED, raw, "remove", asked)["warnings"]
    answered = account(GUARDED, raw, "remove", asked, "no")

    assert warned == [{"kind": "not asked", "said": "no answer in time"}]
    assert (answered["outcome"], answered["steps"]) == ("answered", [])
    assert (answered["document"], answered["upstream"]) == (None, None)


class Failing(Struct, frozen=True):
    name: ClassVar[str] = "failing"
    shorthand: ClassVar[str | None] = None
    parameters: ClassVar[Mapping[str, Parameter]] = {}

    def __call__(self, call: Call, found: QueryResult | None) -> Decision:
        if found is None and call.argument("again"):
            return Query("a")
        if found is None:
            raise ValueError("no")
        return Query("b")


@pytest.mark.parametrize("arguments", [{}, {"again": True}])
def test_a_guard_that_fails_is_told_so(arguments: dict[str, Any]) -> None:
    made = replace(rule("name: r\ntools: read\non_failure: refuse"), guard=Failing())
    given = RuleSet((RuleFile(name="rules.yaml", rules=(made,)),))

    found = account(given, answer(said("a")), arguments=arguments)

    assert found["guard"]["decision"] == "failed"
    assert (found["outcome"], found["upstream"], found["steps"]) == ("refused", None, [])
    *_, log = found["log"]
    assert log.startswith("r: read: the guard 'failing' failed: ValueError: ")
