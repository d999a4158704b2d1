"""What the proxy asks a server by itself. What comes of it is in test_guarding.py."""

import json

from msgspec import Raw

from proxy.ruleset.guard import Query, QueryResult
from proxy.session import probe
from tests.given import answer, document, said


def test_a_question_is_a_call_of_a_tool() -> None:
    asked = json.loads(probe.request(b'"a"', Query("status", {"n": 1}), Raw(b'{"name":"x"}')))
    assert asked == {
        "jsonrpc": "2.0",
        "id": "a",
        "method": "tools/call",
        "params": {"name": "status", "arguments": {"n": 1}},
    }


def test_no_two_sessions_have_ids_of_one_beginning() -> None:
    one, other = probe.Ids(), probe.Ids()
    mine = one.new()
    assert not other.used
    other.new()
    assert one.hold(mine)
    assert not other.hold(mine)


def test_the_document_of_an_answer_is_found_wherever_it_is() -> None:
    for result in (
        document({"a": 1}),
        document({"a": 1}, structured=True),
        said("prose", structuredContent={"a": 1}),
    ):
        assert probe.found(answer(result)) == QueryResult({"a": 1})
    assert probe.found(answer(said("a text"))) == QueryResult("a text")
    assert probe.found(answer(document([1, 2.5]))) == QueryResult([1, 2.5])


def test_a_cancellation_may_say_why() -> None:
    plain, why = probe.cancellation(b"7"), probe.cancellation(b'"7"', "it took too long")
    assert json.loads(plain) == {
        "jsonrpc": "2.0",
        "method": "notifications/cancelled",
        "params": {"requestId": 7},
    }
    assert json.loads(why)["params"] == {"requestId": "7", "reason": "it took too long"}


def test_what_is_heard_is_what_is_found_and_never_raises() -> None:
    assert probe.heard(answer(document({"a": "\ud800"}))) == QueryResult({"a": "\ufffd"})


def test_a_large_answer_is_found_as_a_small_one_is() -> None:
    large = {"files": [{"name": "a", "size": 1.10}] * 20_000}
    assert probe.found(answer(document(large))) == QueryResult(large)
