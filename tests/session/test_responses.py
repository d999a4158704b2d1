"""Messages of the server: responses that are matched, shaped, withheld or streamed."""

import json
from typing import Any

import pytest

from tests.builders import answer, call, document, line, result, rules, texts
from tests.samples import BOUND, DROP, ITEMS, PAGES, SECRET, items
from tests.talk import Talk


@pytest.mark.parametrize("answers", [{"inputResponses": {"a": {}}}, {"requestState": "x"}])
def test_the_answer_to_a_retry_with_inputs_is_not_kept(answers: dict[str, Any]) -> None:
    talk = Talk(PAGES)

    first = talk.exchange(call("list", **answers), answer(ITEMS))

    assert items(first) == [1, 2]
    assert json.loads(talk.to_server[0])["params"].items() >= answers.items()
    assert result(talk.replied(call("list", {"offset": 2}, id=2)))["isError"] is True


LONG = document({"items": [{"id": n, "body": "x" * 20} for n in range(200)]})


def test_a_view_never_looks_behind_a_later_answer() -> None:
    talk = Talk(BOUND)
    talk.exchange(call("get"), answer(LONG))
    talk.exchange(call("get", id=2), answer(document({"items": []}), 2))

    assert result(talk.replied(call("get", {"view": "items"}, id=3)))["isError"] is True


def test_tasks_of_long_calls_are_not_remembered_without_bound() -> None:
    talk = Talk(DROP)
    for number in range(10):
        created = answer({"task": {"taskId": f"t-{number}\ud83d"}}, number)
        talk.exchange(call("get", {"text": "x" * 300_000}, id=number, task={}), created)

    def task_result(number: int) -> list[str]:
        params = {"taskId": f"t-{number}\ud83d"}
        asking = line(id=99, method="tasks/result", params=params)
        return texts(talk.exchange(asking, answer(SECRET, 99)))

    assert task_result(9) == task_result(8) == ['{"a":1}']
    assert task_result(0) == ['{"a":1,"secret":2}']


def test_the_answer_to_a_task_that_cannot_be_read_is_withheld_by_a_rule_that_withholds() -> None:
    talk = Talk(rules("- {name: r, tools: get, on_failure: refuse, response: [{drop: secret}]}"))
    response = talk.exchange(call("get", task={"ttl": 1}), line(id=1, result=["secret"]))
    assert texts(response) == ["the response was withheld: rule 'r' failed on it"]


def starts(members: str) -> bytes:
    return b'{"jsonrpc":"2.0",' + members.encode()


@pytest.mark.parametrize(
    ("requests", "start", "streams"),
    [
        ((call("other"), call("get", id=2)), starts('"id":1,"result":{"content":['), True),
        ((call("other"), call("get", id=2)), starts('"id":2,"result":{"content":['), False),
        ((call("other"), call("get", id=2)), starts('"id":3,"result":{"content":['), True),
        ((call("get"),), starts('"method":"notifications/message","params":{'), True),
        ((call("get"),), starts('"id":1,"method":"sampling/createMessage",'), True),
        # Without its id at the start, nobody knows whose answer it is.
        ((), b'{"result":{"content":[', False),
        ((call("other"),), starts('"x":1,"id":1,"result":{'), False),
        ((call("other"),), b'{"level":"info","message":"', False),
        ((), b"noise noise noise", False),
        ((), b'[{"jsonrpc":"2.0"', False),
        # What the session reads itself.
        ((line(id=1, method="initialize"),), starts('"id":1,"result":{'), False),
        ((line(id=1, method="server/discover"),), starts('"id":1,"result":{'), False),
        ((line(id=1, method="tools/list"),), starts('"id":1,"result":{'), False),
    ],
)
def test_a_long_line_is_streamed_only_if_the_session_need_not_read_it(
    requests: tuple[bytes, ...], start: bytes, streams: bool
) -> None:
    talk = Talk(DROP)
    for request in requests:
        talk.client(request)
    assert talk.session.may_stream(start) is streams


def test_an_answer_that_was_streamed_is_counted_and_its_call_is_over() -> None:
    talk = Talk(DROP)
    talk.client(call("other"))

    talk.session.streamed(b'{"jsonrpc":"2.0","id":1,"result":{', 5000)

    [row] = talk.counted()
    assert (row.tool, row.outcome, row.wire_before, row.wire_after) == (
        "other",
        "untouched",
        5000,
        5000,
    )
    assert talk.session.fail_pending("gone") == []


def test_a_line_of_very_many_texts_is_not_taken_apart() -> None:
    # Each would take what is left of the line in memory once more.
    talk = Talk(DROP)
    talk.server(b"{}" * 100_000)
    assert talk.noise == [b"{}" * 100_000]


FAT = b"x" * 5000


@pytest.mark.parametrize(
    "raw",
    [
        starts('"id":1,"result":{"rows":[{"id":5,"result":"secret"}'),
        starts('"id":1,"result":{"rows":[{"id":1,"result":"secret"}'),
        starts('"id":1,"result":{"rows":[{"method":"GET","params":"secret"}'),
        b'{"_meta":{},"jsonrpc":"2.0","id":1,"result":["secret",{"method":"GET"}',
        b'{"result":["secret%b{"result":{},"jsonrpc":"2.0","id":2}' % FAT,
        b'{"id":2,"jsonrpc":"2.0","result":["%b{"id":1,"jsonrpc":"2.0","result":"secret"}' % FAT,
    ],
)
def test_nothing_of_a_withheld_answer_is_shown_if_it_breaks_off(raw: bytes) -> None:
    talk = Talk(rules("- {name: r, tools: get, on_failure: refuse, response: [{drop: secret}]}"))
    talk.client(call("get"))
    talk.client(call("other", id=2))
    talk.server(raw)
    assert not [each for each in (*talk.to_client, *talk.noise) if b"secret" in each]
