"""Whose answer a message of the server is, and what of it passes as it came."""

import json
from typing import Any

import pytest

from tests.given import answer, call, document, line, rules, said, texts
from tests.samples import DROP, SECRET
from tests.talk import Talk


@pytest.mark.parametrize("id", [b"5", b'"5"', b"5.0", b'"a\\u0062"', b"-1e2", b'""'])
def test_an_id_keeps_its_type_and_its_spelling(id: bytes) -> None:
    talk = Talk(DROP)

    talk.client(call("get").replace(b'"id":1', b'"id":' + id))
    got = talk.got(answer(SECRET).replace(b'"id":1', b'"id":' + id))

    assert b'"id":' + id in got
    assert texts(got) == ['{"a":1}']


def test_calls_in_flight_whose_ids_look_alike_are_told_apart() -> None:
    talk = Talk(rules("- {tools: a, response: [{drop: a}]}\n- {tools: b, response: [{drop: b}]}"))
    value = document({"a": 1, "b": 2})
    talk.client(call("a", id=5))
    talk.client(call("b", id="5"))
    talk.client(call("c").replace(b'"id":1', b'"id":5.0'))

    untouched = answer(value).replace(b'"id":1', b'"id":5.0')
    assert talk.got(untouched) == untouched
    assert texts(talk.got(answer(value, "5"))) == ['{"a":1}']
    assert texts(talk.got(answer(value, 5))) == ['{"b":2}']


def test_answers_may_come_in_any_order() -> None:
    talk = Talk(DROP)
    for id in (1, 2, 3):
        talk.client(call("get", id=id))

    assert [texts(talk.got(answer(SECRET, id))) for id in (3, 1, 2)] == [['{"a":1}']] * 3


def test_a_second_answer_to_the_same_call_passes_as_it_came() -> None:
    talk = Talk(DROP)
    talk.exchange(call("get"), answer(SECRET))

    assert talk.got(answer(SECRET)) == answer(SECRET)


def test_a_request_of_the_server_with_the_id_of_a_call_does_not_answer_it() -> None:
    talk = Talk(DROP)
    talk.client(call("get"))
    request = line(id=1, method="roots/list")

    assert talk.got(request) == request
    assert texts(talk.got(answer(SECRET))) == ['{"a":1}']


@pytest.mark.parametrize(
    "raw",
    [
        line(id=1, error={"code": -32603, "message": "no", "data": {"secret": 1}}),
        line(id=1, error="text"),
        line(id=1, result=SECRET, error={"code": 1, "message": "both"}),
        line(id=1, result=[1]),
        line(id=1, result=None),
        line(id=1, result={}),
        answer({**SECRET, "isError": True}),
        answer({"resultType": "input_required", "inputRequests": {"a": {}}, "requestState": "x"}),
        answer({"task": {"taskId": "a", "status": "working"}}),
    ],
)
def test_an_answer_that_is_no_complete_result_passes_and_the_call_is_over(raw: bytes) -> None:
    talk = Talk(DROP)

    assert talk.exchange(call("get"), raw) == raw
    assert talk.got(answer(SECRET)) == answer(SECRET)


def test_a_long_answer_with_both_result_and_error_passes() -> None:
    talk = Talk(DROP)
    long = json.dumps({"secret": "x" * 5000})
    raw = line(id=1, result=said(long), error={"code": 1, "message": "both"})

    assert talk.exchange(call("get"), raw) == raw


def test_an_answer_that_cannot_be_decoded_passes_and_the_call_is_over() -> None:
    talk = Talk(DROP)
    raw = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"n":NaN}}'

    assert talk.exchange(call("get"), raw) == raw
    assert talk.got(answer(SECRET)) == answer(SECRET)
    malformed = "JSON is malformed: invalid character (byte 51)"
    assert talk.log == [f"drop: get: left as it came: not JSON: {malformed}"]


def test_a_rule_that_refuses_withholds_an_answer_that_cannot_be_decoded() -> None:
    talk = Talk(rules("- {name: r, tools: get, on_failure: refuse, response: [{drop: secret}]}"))
    raw = b'{"jsonrpc":"2.0","id":1,"result":{"content":[],"secret":NaN}}'

    got = talk.exchange(call("get"), raw)

    assert texts(got) == ["the response was withheld: rule 'r' cannot read it"]
    malformed = "JSON is malformed: invalid character (byte 56)"
    assert talk.log == [f"r: get: withheld: not JSON: {malformed}"]


@pytest.mark.parametrize("error", [None, {"code": 1, "message": "both"}])
def test_a_rule_that_refuses_withholds_a_result_beside_an_error(error: Any) -> None:
    talk = Talk(rules("- {name: r, tools: get, on_failure: refuse, response: [{drop: secret}]}"))
    raw = line(id=1, error=error, result=said('{"secret": 1}'))

    got = talk.exchange(call("get"), raw)

    assert texts(got) == ["the response was withheld: rule 'r' failed on it"]


def test_lone_surrogates_do_not_keep_a_rule_from_its_work() -> None:
    talk = Talk(DROP)
    block = rb'{"type":"text","text":"{\"a\":\"\ud800\",\"secret\":1}"}'
    raw = b'{"jsonrpc":"2.0","id":1,"result":{"content":[' + block + b"]}}"

    got = talk.exchange(call("get", {"x": "\ud800"}), raw)

    assert b"secret" not in got
    assert json.loads(texts(got)[0]) == {"a": "\ufffd"}


# Answers that come again


def test_an_answer_that_comes_again_is_shaped_again_and_counted_once() -> None:
    talk = Talk(DROP, resumable=True)
    first = talk.exchange(call("get"), answer(SECRET))
    assert talk.got(answer(SECRET)) == first != answer(SECRET)
    assert [row.calls for row in talk.counted()] == [1]


def test_a_long_answer_that_comes_again_is_shaped_again() -> None:
    talk = Talk(DROP, resumable=True)
    long = answer(document({"a": "x" * 5000, "secret": 2}))
    first = talk.exchange(call("get"), long)
    assert talk.got(long) == first != long


def test_an_answer_comes_again_only_where_it_may() -> None:
    talk = Talk(DROP)
    talk.exchange(call("get"), answer(SECRET))
    assert talk.got(answer(SECRET)) == answer(SECRET)
