"""Batches: what goes on of them stays together."""

import json

from msgspec import Raw

from proxy.session.batch import one_by_one
from proxy.session.outputs import Forward, Output, Reply
from tests.given import answer, call, line, said
from tests.samples import DROP, HIDE, SECRET
from tests.talk import Talk
from tests.transports.guarded import guarded, onward


def test_a_batch_is_shaped_element_by_element() -> None:
    talk = Talk(DROP)
    batch = b"[" + call("get", id=1) + b"," + call("other", id=2) + b"]"
    talk.client(batch)
    assert talk.to_server == [batch]

    talk.server(b"[" + answer(SECRET, 1) + b"," + answer(SECRET, 2) + b"]")

    got = [json.loads(raw) for raw in talk.to_client]
    flat = [each for part in got for each in (part if isinstance(part, list) else [part])]
    assert {each["id"]: each["result"] for each in flat} == {1: said('{"a":1}'), 2: SECRET}


def test_a_batch_loses_only_what_the_proxy_answers() -> None:
    talk = Talk(HIDE)
    ping = line(id=2, method="ping")

    talk.client(b"[" + call("gone") + b", " + ping + b"]")

    assert talk.to_server == [b"[" + ping + b"]"]
    assert json.loads(talk.to_client[0])["error"]["message"] == "Unknown tool: gone"


def test_a_batch_of_refused_calls_reaches_no_server() -> None:
    talk = Talk(HIDE)

    talk.client(b"[" + call("gone") + b"]")

    assert talk.to_server == []


def test_what_goes_nowhere_does_not_go_on_in_a_batch() -> None:
    talk = Talk(HIDE)
    ping = line(id=2, method="ping")
    unanswerable = line(method="tools/call", params={"name": "gone"})
    disguised = line(Method="tools/call", params={"name": "gone"})

    talk.client(b"[" + ping + b"," + unanswerable + b"," + disguised + b"]")
    talk.client(b"[" + unanswerable + b"]")

    assert talk.to_server == [b"[" + ping + b"]"]
    assert talk.to_client == []


def test_the_answer_to_a_question_of_the_proxys_own_is_not_passed_on_in_a_batch() -> None:
    talk = Talk(guarded(onward))
    talk.client(call("write", {}))
    talk.silence()
    question = json.loads(talk.probes[0].raw)["id"]
    pong = answer({}, 7)

    talk.server(b"[" + answer(said("late"), question) + b"," + pong + b"]")

    assert talk.to_client == [b"[" + pong + b"]"]


def test_arrays_in_a_batch_pass_however_deep() -> None:
    talk = Talk(DROP)
    deep = b"[" * 300 + b'{"jsonrpc":"2.0","method":"x"}' + b"]" * 300

    talk.client(deep)
    talk.server(deep)

    assert (talk.to_server, talk.to_client) == ([deep], [deep])


def test_lone_surrogates_in_a_batch_pass_as_they_came() -> None:
    talk = Talk(HIDE)
    ping = rb'{"jsonrpc":"2.0","id":"\ud800","method":"ping"}'

    talk.client(b"[" + ping + b"]")

    assert talk.to_server == [b"[" + ping + b"]"]


def test_what_is_taken_out_of_a_batch_follows_it() -> None:
    first, second, odd = b'{"a":1}', b'{"b": 2}', b"5"
    raw = b"[" + b", ".join((first, second, odd)) + b"]"

    def take(single: bytes) -> tuple[Output, ...]:
        return (Reply(b"{}"),) if single == first else (Forward(single),)

    elements = [Raw(first), Raw(second), Raw(odd)]
    assert one_by_one(raw, elements, take) == (Forward(b'[{"b": 2},5]'), Reply(b"{}"))
    assert one_by_one(raw, elements, lambda single: (Forward(single),)) == (Forward(raw),)
    assert one_by_one(b"[]", [], take) == (Forward(b"[]"),)
