"""What becomes of answers: shaped, kept for pages and views, brought by a task."""

import json
from typing import Any

import pytest

from tests.given import answer, call, document, line, result, rules, said, texts
from tests.samples import ABS_PAGES, BOUND, DROP, ITEMS, PAGES, SECRET, items
from tests.talk import Talk


def test_the_answer_to_a_call_is_shaped_by_the_rule_that_applies() -> None:
    assert texts(Talk(DROP).exchange(call("get"), answer(SECRET))) == ['{"a":1}']


# What is kept


@pytest.mark.parametrize("answers", [{"inputResponses": {"a": {}}}, {"requestState": "x"}])
def test_the_answer_to_a_retry_with_inputs_is_not_kept(answers: dict[str, Any]) -> None:
    talk = Talk(PAGES)

    first = talk.exchange(call("list", **answers), answer(ITEMS))

    assert items(first) == [1, 2]
    assert json.loads(talk.to_server[0])["params"].items() >= answers.items()
    assert result(talk.replied(call("list", {"offset": 2}, id=2)))["isError"] is True


def test_a_failed_answer_leaves_no_snapshot() -> None:
    talk = Talk(PAGES)
    talk.exchange(call("list"), answer({**ITEMS, "isError": True}))

    assert result(talk.replied(call("list", {"offset": 2}, id=2)))["isError"] is True


def test_an_answer_out_of_service_makes_what_was_kept_of_an_earlier_one_untrue() -> None:
    talk = Talk(rules(ABS_PAGES))
    talk.exchange(call("list"), answer(document({"n": 1, "items": [1, 2, 3]})))
    bad = answer(document({"n": "x", "items": [4]}))
    for at in range(5):
        talk.exchange(call("list", {"q": at}), bad)
    talk.exchange(call("list"), bad)
    talk.rules = rules(ABS_PAGES)
    assert "nothing is kept" in texts(talk.replied(call("list", {"offset": 2})))[0]


# Views


LONG = document({"items": [{"id": n, "body": "x" * 20} for n in range(200)]})


def test_a_view_looks_at_an_earlier_answer_without_a_call() -> None:
    talk = Talk(BOUND)
    first = talk.exchange(call("get", {"a": 1}), answer(LONG))
    assert len(texts(first)[0]) <= 1000

    got = talk.replied(call("get", {"a": 1, "view": "items[198:].id"}, id=2))

    assert texts(got) == ['{"view":[198,199]}']


def test_views_rebuild_the_whole() -> None:
    talk = Talk(BOUND)
    talk.exchange(call("get"), answer(LONG))

    rebuilt = []
    for at in range(0, 200, 10):
        got = talk.replied(call("get", {"view": f"items[{at}:{at + 10}]"}, id=2))
        rebuilt += json.loads(texts(got)[0])["view"]

    assert {"items": rebuilt} == json.loads(LONG["content"][0]["text"])


@pytest.mark.fault(41, "inside")
def test_a_view_without_a_snapshot_says_what_to_do() -> None:
    assert texts(Talk(BOUND).replied(call("get", {"view": "items"}))) == [
        "nothing is kept of an earlier answer to this call (it expired, or was never given); "
        "call again without view first"
    ]


def test_a_wrong_view_is_refused() -> None:
    talk = Talk(BOUND)
    talk.exchange(call("get"), answer(LONG))

    got = talk.replied(call("get", {"view": "items["}, id=2))

    assert result(got)["isError"] is True
    assert talk.counted()[-1].outcome == "refused"


def test_a_view_never_looks_behind_a_later_answer() -> None:
    talk = Talk(BOUND)
    talk.exchange(call("get"), answer(LONG))
    talk.exchange(call("get", id=2), answer(document({"items": []}), 2))

    assert result(talk.replied(call("get", {"view": "items"}, id=3)))["isError"] is True


def test_a_view_outlives_a_call_that_fails() -> None:
    talk = Talk(BOUND)
    talk.exchange(call("get"), answer(LONG))
    talk.exchange(call("get", id=2), answer(said("busy", isError=True), 2))

    assert texts(talk.replied(call("get", {"view": "items[9].id"}, id=3))) == ['{"view":9}']


@pytest.mark.parametrize("answers", [{"inputResponses": {"a": {}}}, {"requestState": "x"}])
def test_a_cut_that_no_view_can_see_behind_says_only_how_much_there_was(
    answers: dict[str, Any],
) -> None:
    got = Talk(BOUND).exchange(call("get", **answers), answer(LONG))

    told = json.loads(texts(got)[0])["_abridged"]
    assert list(told) == ["items"]


# Tasks


def test_the_result_of_a_task_is_shaped_like_a_direct_one() -> None:
    talk = Talk(DROP)
    created = answer({"task": {"taskId": "t-1", "status": "working"}})
    assert talk.exchange(call("get", task={"ttl": 1000}), created) == created

    got = talk.exchange(
        line(id="r", method="tasks/result", params={"taskId": "t-1"}),
        answer(
            {**SECRET, "_meta": {"io.modelcontextprotocol/related-task": {"taskId": "t-1"}}}, "r"
        ),
    )

    assert texts(got) == ['{"a":1}']
    assert result(got)["_meta"] == {"io.modelcontextprotocol/related-task": {"taskId": "t-1"}}


def test_the_result_of_a_task_may_be_asked_for_again() -> None:
    talk = Talk(DROP)
    talk.exchange(call("get", task={}), answer({"task": {"taskId": "t"}}))

    for id in (2, 3):
        asking = line(id=id, method="tasks/result", params={"taskId": "t"})
        assert texts(talk.exchange(asking, answer(SECRET, id))) == ['{"a":1}']


def test_a_server_that_answers_at_once_in_place_of_a_task_is_shaped_too() -> None:
    assert texts(Talk(DROP).exchange(call("get", task={}), answer(SECRET))) == ['{"a":1}']


def test_tasks_of_long_calls_are_not_remembered_without_bound() -> None:
    talk = Talk(DROP)
    for number in range(10):
        created = answer({"task": {"taskId": f"t-{number}\ud83d"}}, number)
        talk.exchange(call("get", {"text": "x" * 300_000}, id=number, task={}), created)

    def asked(number: int) -> list[str]:
        params = {"taskId": f"t-{number}\ud83d"}
        asking = line(id=99, method="tasks/result", params=params)
        return texts(talk.exchange(asking, answer(SECRET, 99)))

    assert asked(9) == asked(8) == ['{"a":1}']
    assert asked(0) == ['{"a":1,"secret":2}']


@pytest.mark.parametrize("task", [None, 5, {}, {"taskId": 5}])
def test_an_odd_task_passes_as_it_came(task: Any) -> None:
    raw = answer({"task": task})

    assert Talk(DROP).exchange(call("get", task={}), raw) == raw


def test_the_answer_to_a_task_that_cannot_be_read_is_withheld_by_a_rule_that_withholds() -> None:
    talk = Talk(rules("- {name: r, tools: get, on_failure: refuse, response: [{drop: secret}]}"))
    got = talk.exchange(call("get", task={"ttl": 1}), line(id=1, result=["secret"]))
    assert texts(got) == ["the response was withheld: rule 'r' cannot read it"]
