"""What is done with lines of the server that are too long to be held."""

import json

import pytest

from proxy.ruleset.rule import EMPTY
from proxy.session.outputs import Forward
from tests.given import answer, call, line, result, texts
from tests.samples import DROP, SECRET
from tests.talk import Talk


def test_a_long_answer_that_no_rule_is_for_may_be_streamed() -> None:
    talk = Talk(DROP)
    talk.client(call("other", id=1))
    talk.client(call("get", id=2))

    assert talk.session.may_stream(b'{"jsonrpc":"2.0","id":1,"result":{"content":[')
    assert not talk.session.may_stream(b'{"jsonrpc":"2.0","id":2,"result":{"content":[')
    assert talk.session.may_stream(b'{"jsonrpc":"2.0","id":3,"result":{"content":[')
    assert talk.session.may_stream(b'{"jsonrpc":"2.0","method":"notifications/message","params":{')


def test_an_answer_whose_id_comes_last_is_held_while_a_rule_waits_for_one() -> None:
    talk = Talk(DROP)
    assert talk.session.may_stream(b'{"result":{"content":[')

    talk.client(call("get"))
    assert not talk.session.may_stream(b'{"result":{"content":[')

    talk.server(answer(SECRET))
    assert talk.session.may_stream(b'{"result":{"content":[')


@pytest.mark.parametrize("method", ["initialize", "server/discover", "tools/list"])
def test_answers_that_are_read_are_never_streamed(method: str) -> None:
    talk = Talk(EMPTY)
    talk.client(line(id=1, method=method))

    assert not talk.session.may_stream(b'{"jsonrpc":"2.0","id":1,"result":{')


def test_a_long_request_of_the_server_may_be_streamed() -> None:
    talk = Talk(DROP)
    talk.client(call("get"))

    assert talk.session.may_stream(b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage",')


def test_an_answer_whose_id_cannot_be_told_is_not_streamed() -> None:
    talk = Talk(EMPTY)
    talk.client(call("get"))

    assert not talk.session.may_stream(b'{"jsonrpc":"2.0","x":1,"id":1,"result":{')
    assert not talk.session.may_stream(b'{"level":"info","message":"')


def test_what_is_no_message_is_never_streamed() -> None:
    assert not Talk(EMPTY).session.may_stream(b"noise noise noise")
    assert not Talk(EMPTY).session.may_stream(b'[{"jsonrpc":"2.0"')


def test_an_answer_that_was_streamed_is_counted_and_its_call_is_over() -> None:
    talk = Talk(DROP)
    talk.client(call("other"))

    talk.session.streamed(b'{"jsonrpc":"2.0","id":1,"result":{', b"}}", 5000)

    [row] = talk.counted()
    assert (row.tool, row.outcome, row.wire_before, row.wire_after) == (
        "other",
        "untouched",
        5000,
        5000,
    )
    assert talk.session.ended("gone") == ()


def test_an_answer_that_was_too_long_is_answered_with_an_error() -> None:
    talk = Talk(DROP)
    talk.client(call("get"))

    [output] = talk.session.discarded(b'{"jsonrpc":"2.0","id":1,"result":{', 999, 500)

    assert isinstance(output, Forward)
    assert texts(output.raw) == [
        "a message of 999 bytes from the server is over the limit of 500 bytes"
    ]
    assert result(output.raw)["isError"] is True
    assert talk.session.ended("gone") == ()


def test_the_only_call_in_flight_is_answered_where_the_id_is_not_known() -> None:
    talk = Talk(DROP)
    talk.client(line(id=1, method="resources/read"))

    [output] = talk.session.discarded(b'{"result":{', 999, 500)

    assert isinstance(output, Forward)
    assert json.loads(output.raw)["error"]["code"] == -1


def test_a_call_that_was_answered_so_is_not_answered_once_more() -> None:
    talk = Talk(DROP)
    talk.client(call("get"))
    talk.session.discarded(b'{"result":{', 999, 500)

    assert not talk.session.may_stream(b'{"jsonrpc":"2.0","id":1,"result":{')
    talk.server(answer(SECRET))
    assert talk.to_client == []

    assert json.loads(talk.exchange(call("get"), answer(SECRET)))["id"] == 1


@pytest.mark.parametrize("start", [b"x" * 500, b'{"level":"info","said":"', b'{"id":[1],"result":'])
def test_what_may_be_no_answer_at_all_answers_nothing(start: bytes) -> None:
    talk = Talk(DROP)
    talk.client(call("get"))

    assert talk.session.discarded(start, 999, 500) == ()


def test_a_long_notification_that_was_thrown_away_answers_nothing() -> None:
    talk = Talk(DROP)
    talk.client(call("get"))

    assert talk.session.discarded(b'{"jsonrpc":"2.0","method":"x","params":{', 999, 500) == ()
    assert talk.session.discarded(b'{"jsonrpc":"2.0","id":7,"result":{', 999, 500) == ()
