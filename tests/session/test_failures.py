"""What goes out where the session itself fails on a message."""

import json
from typing import Any

import pytest

from proxy.errors import RuleErrors
from proxy.session import failures as fallback
from proxy.session.inflight import InFlight, PendingRequest, SuspendedCalls
from proxy.session.outputs import Forward, Output, Reply
from tests.given import answer, call, line, result, rule, said

SAID = "the proxy failed on a message: KeyError: 'x'"
ERROR = {"code": -1, "message": SAID}
PLAIN = PendingRequest(b"", b"1", "tools/call", "get", rule("response: [{drop: a}]"))
CLOSED = PendingRequest(b"", b"1", "tools/call", "get", rule("on_failure: refuse"))
ANSWER = answer(said("secret"))


def inflight(*ids: bytes) -> InFlight:
    made = InFlight(resumable=False)
    for id in ids:
        made.add(PendingRequest(b"e", id, "tools/call"))
    return made


def of_client(raw: bytes, waiting: InFlight) -> tuple[Output, ...]:
    return fallback.of_client(raw, b"e", waiting, SAID)


def errors(outputs: tuple[Output, ...]) -> list[Any]:
    """Return the ids of requests that are answered with the error."""
    replies = [json.loads(each.raw) for each in outputs if isinstance(each, Reply)]
    assert [each["error"] for each in replies] == [ERROR] * len(outputs)
    return [each["id"] for each in replies]


def test_what_is_said_names_what_was_raised() -> None:
    assert fallback.said_of(KeyError("x")) == SAID


def test_of_rules_that_cannot_be_used_no_more_is_said_than_a_client_needs() -> None:
    assert fallback.said_of(RuleErrors([])) == RuleErrors.brief


def test_a_failure_is_logged_and_what_has_begun_to_wait_since_is_forgotten() -> None:
    waiting, log = SuspendedCalls(), list[str]()
    before = waiting.hold(PLAIN)
    mark = waiting.last
    waiting.hold(CLOSED)
    assert fallback.failed(KeyError("x"), mark, waiting, log.append) == SAID
    assert (waiting, log) == ({before: PLAIN}, [SAID])


def test_rules_that_cannot_be_used_are_not_logged_for_each_message() -> None:
    log: list[str] = []
    assert fallback.failed(RuleErrors([]), 0, SuspendedCalls(), log.append) == RuleErrors.brief
    assert log == []


def test_a_log_that_fails_costs_nothing() -> None:
    def log(said: str) -> None:
        raise OSError(said)

    assert fallback.failed(KeyError("x"), 0, SuspendedCalls(), log) == SAID


def test_a_call_that_was_given_up_is_answered_and_forgotten() -> None:
    waiting = inflight(b"1")
    found = waiting.find(b"e1")
    assert found is not None
    assert result(fallback.gave_up(found, waiting, SAID)) == {**said(SAID), "isError": True}
    assert waiting.find(b"e1") is None


def test_a_request_is_answered_with_the_error_and_forgotten() -> None:
    waiting = inflight(b"1")
    assert errors(of_client(call("get"), waiting)) == [1]
    assert waiting.find(b"e1") is None


def test_each_request_of_a_batch_is_answered() -> None:
    waiting = inflight(b"1", b'"a"')
    note, odd = line(method="notifications/cancelled"), b"5"
    batch = b"[" + b",".join([call("get"), note, odd, call("put", id="a")]) + b"]"
    assert errors(of_client(batch, waiting)) == [1, "a"]
    assert waiting.let_go() == []


@pytest.mark.parametrize(
    "raw",
    [line(method="notifications/cancelled", params={"requestId": 1}), answer({"roots": []}, "s-1")],
)
def test_what_asks_for_nothing_goes_on(raw: bytes) -> None:
    assert of_client(raw, inflight()) == (Forward(raw),)


@pytest.mark.parametrize(
    "raw",
    [
        line(method="tools/call", params={"name": "get"}),
        line(id=None, method="tools/call", params={"name": "get"}),
        rb'{"jsonrpc":"2.0","m\u0065thod":"tools/call"',
        b"tools/call",
    ],
)
def test_what_may_be_a_call_and_cannot_be_answered_goes_nowhere(raw: bytes) -> None:
    assert of_client(raw, inflight()) == ()


def test_a_request_that_cannot_be_read_is_answered_by_its_id() -> None:
    raw = b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"n":NaN}}'
    assert errors(of_client(raw, inflight())) == [7]


def of_server(*taken: PendingRequest, closed: bool = False) -> tuple[Output, ...]:
    return fallback.of_server(ANSWER, taken, SAID, closed=closed)


@pytest.mark.parametrize("taken", [(), (PLAIN,), (PendingRequest(b"", b"1", "initialize"),)])
def test_an_answer_goes_on_as_it_came(taken: tuple[PendingRequest, ...]) -> None:
    assert of_server(*taken) == (Forward(ANSWER),)


def test_an_answer_that_a_rule_withholds_is_an_error() -> None:
    [output] = of_server(CLOSED)
    assert isinstance(output, Forward)
    found = json.loads(output.raw)
    assert found["result"] == {**said(SAID), "isError": True}
    assert found["id"] == 1


def test_of_a_batch_nothing_goes_on_where_one_answer_is_withheld() -> None:
    other = PendingRequest(b"", b"2", "ping")
    outputs = of_server(other, CLOSED)
    assert [json.loads(each.raw)["id"] for each in outputs if isinstance(each, Forward)] == [2, 1]
    assert "secret" not in str(outputs)


def test_an_answer_to_our_own_question_answers_the_call_that_is_held() -> None:
    asked = PendingRequest(b"", b'"own"', "tools/call", "status", held=PLAIN)
    [output] = of_server(asked)
    assert isinstance(output, Forward)
    assert json.loads(output.raw)["id"] == 1
    assert b"own" not in output.raw


def test_a_list_that_may_have_hidden_tools_is_an_error() -> None:
    listing = PendingRequest(b"", b"1", "tools/list")
    assert of_server(listing) == (Forward(ANSWER),)
    [output] = of_server(listing, closed=True)
    assert isinstance(output, Forward)
    assert json.loads(output.raw)["error"] == ERROR


@pytest.mark.parametrize(
    ("raw", "answers", "error"),
    [
        (call("get"), False, True),
        (ANSWER, True, True),
        (line(id=1, error={"code": 1, "message": "no"}), True, True),
        (call("get"), True, False),
        (ANSWER, False, False),
        (line(method="notifications/progress"), False, False),
        (line(method="notifications/progress"), True, False),
        (b"[]", True, False),
        (b"noise", True, False),
    ],
)
def test_an_error_stands_for_a_request_or_an_answer_only(
    raw: bytes, answers: bool, error: bool
) -> None:
    made = fallback.in_place_of(raw, SAID, answers=answers)
    assert made == (line(id=1, error=ERROR) if error else None)
