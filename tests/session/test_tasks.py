"""Calls that a server runs as tasks: their results are shaped wherever they stand."""

import json
from typing import Any

import pytest
from mcp_abridge.ruleset.rule_set import RuleSet

from tests.builders import answer, call, document, line, result, rules
from tests.samples import BOUND, DROP, SECRET
from tests.talk import Talk

ROWS = document({"items": [{"id": n, "body": "x" * 20} for n in range(2000)]})
WITHHOLD = "- {name: r, tools: get, on_failure: refuse, response: [{drop: secret}]}"


def with_task(ruleset: RuleSet, **params: Any) -> Talk:
    """Return a talk in which the call of `get` has become the task `t`."""
    talk = Talk(ruleset)
    talk.exchange(call("get", **params), answer({"resultType": "task", "taskId": "t"}))
    return talk


def state(status: str = "completed", **members: Any) -> dict[str, Any]:
    return {"taskId": "t", "status": status, "ttlMs": None, **members}


def polled(talk: Talk, response: dict[str, Any], task: str = "t") -> Any:
    asking = line(id=2, method="tasks/get", params={"taskId": task})
    return json.loads(talk.exchange(asking, line(id=2, **response)))


def test_a_task_is_counted_once_and_with_its_result() -> None:
    talk = with_task(DROP)
    polled(talk, {"result": state("working")})
    polled(talk, {"error": {"code": -32603, "message": "busy"}})
    assert talk.counted() == []

    for _ in range(2):
        assert polled(talk, {"result": state(result=SECRET)}) == {
            "jsonrpc": "2.0", "id": 2, "result": state(result=document({"a": 1})),
        }  # fmt: skip

    [row] = talk.counted()
    assert (row.tool, row.outcome, row.calls) == ("get", "shaped", 1)


def test_the_news_of_a_task_stay_a_notification_and_are_never_streamed() -> None:
    talk = with_task(DROP)
    members = {"method": "notifications/tasks", "params": state(result=SECRET, _meta={"x": 1})}

    news = json.loads(talk.receive(line(**members)))

    shaped = state(result=document({"a": 1}), _meta={"x": 1})
    assert news == {"jsonrpc": "2.0", **members, "params": shaped}
    assert not talk.session.may_stream(line(**members)[:200])


@pytest.mark.parametrize(
    "final",
    [{"result": ["secret"]}, {"result": {"content": "secret"}}, {"result": {}, "error": "secret"}],
)
def test_a_rule_that_withholds_does_so_in_a_task_too(final: dict[str, Any]) -> None:
    talk = with_task(rules(WITHHOLD))
    answered = polled(talk, {"result": state(**final)})

    assert answered["result"]["result"]["isError"] is True
    assert "secret" not in json.dumps(answered)


def test_a_state_that_cannot_be_read_is_withheld_as_an_error_of_the_protocol() -> None:
    talk = with_task(rules(WITHHOLD))
    assert "withheld" in polled(talk, {"result": ["secret"]})["error"]["message"]


def test_the_error_of_a_task_is_bounded() -> None:
    failed = {"result": state("failed", error={"code": -32603, "message": "trace\n" * 9000})}
    assert len(json.dumps(polled(with_task(BOUND), failed))) < 3000
    short = {"result": state("failed", error={"code": -32603, "message": "no"})}
    assert polled(with_task(BOUND), short)["result"] == short["result"]


def test_the_task_of_another_caller_is_not_known() -> None:
    talk = with_task(DROP)
    talk.session.state.scope = "another"
    assert polled(talk, {"result": state(result=SECRET)})["result"] == state(result=SECRET)


def test_a_task_of_a_tool_without_a_rule_passes_whole() -> None:
    budget = RuleSet(otherwise=rules("- {name: b, tools: '*', max_bytes: 2kB}").files[0].rules[0])
    whole, free = {"result": state(result=ROWS)}, rules("- {tools: get, view: false}")
    talk = with_task(RuleSet(free.files, budget.otherwise))
    assert polled(talk, whole)["result"] == whole["result"]
    assert len(json.dumps(polled(talk, whole, "other"))) < 3000


def test_a_refused_call_of_a_task_gets_an_error_and_no_result() -> None:
    talk = Talk(rules("- {tools: get, arguments: {limit: {maximum: 9}}, response: [{keep: a}]}"))
    error_response = json.loads(talk.replied(call("get", {"limit": 10}, task={})))
    assert "limit" in error_response["error"]["message"]
    assert result(talk.replied(call("get", {"limit": 10})))["isError"] is True
