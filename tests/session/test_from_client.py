"""What becomes of messages of the client: who it is, what it cancels, what may be a call."""

import json
from typing import Any

import pytest

from tests.given import answer, call, line, rules, texts
from tests.samples import DROP, HIDE, PAGES, SECRET, listing, own
from tests.talk import Talk

# Who the client is


def test_only_messages_about_tools_wait_for_the_rules() -> None:
    talk = Talk(DROP)

    talk.client(line(id=1, method="initialize", params={"clientInfo": {"name": "c"}}))
    talk.server(answer({"serverInfo": {"name": "s"}}))
    talk.client(line(id=2, method="resources/list"))
    talk.server(answer({"resources": []}, 2))
    assert talk.asked == []

    talk.client(call("get"))
    assert set(talk.asked) == {("s", "c")}


def test_the_names_of_client_and_server_come_with_stateless_requests_too() -> None:
    talk = Talk(DROP)
    meta = {"io.modelcontextprotocol/clientInfo": {"name": "c"}}
    discovered = {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s"}}}

    talk.client(line(id=1, method="server/discover", params={"_meta": meta}))
    talk.server(answer(discovered))

    assert (talk.session.server, talk.session.client) == ("s", "c")


def test_a_client_that_names_itself_lists_by_the_rules_that_it_will_call_by() -> None:
    talk = Talk(PAGES)
    meta = {"io.modelcontextprotocol/clientInfo": {"name": "c"}}
    talk.exchange(line(id=99, method="tools/list", params={"_meta": meta}), listing(own()))
    assert talk.asked[-1] == (None, "c")


def test_a_client_may_name_itself_in_any_call() -> None:
    talk = Talk(DROP)

    talk.client(call("get", _meta={"io.modelcontextprotocol/clientInfo": {"name": "c"}}))

    assert talk.session.client == "c"


# What answers the server


def test_the_clients_answer_with_the_id_of_a_call_does_not_answer_it() -> None:
    talk = Talk(DROP)
    talk.client(call("get"))
    reply = answer({"roots": []})

    talk.client(reply)

    assert talk.to_server[-1] == reply
    assert texts(talk.got(answer(SECRET))) == ['{"a":1}']


# What is cancelled


def test_a_call_that_was_cancelled_is_forgotten_and_a_late_answer_passes() -> None:
    talk = Talk(DROP)
    talk.client(call("get", id="a"))
    cancel = line(method="notifications/cancelled", params={"requestId": "a"})

    talk.client(cancel)

    assert talk.to_server[-1] == cancel
    assert talk.got(answer(SECRET, "a")) == answer(SECRET, "a")
    assert talk.session.ended("gone") == ()


def test_a_late_answer_to_a_cancelled_call_is_not_let_through_by_a_rule_that_withholds() -> None:
    talk = Talk(rules("- {tools: get, on_failure: refuse, response: [{drop: secret}]}"))
    talk.client(call("get"))
    talk.client(line(method="notifications/cancelled", params={"requestId": 1}))
    assert texts(talk.got(answer(SECRET))) == ['{"a":1}']


@pytest.mark.parametrize("params", [{}, {"requestId": None}, {"requestId": [1]}, [], None, 5])
def test_an_odd_cancellation_passes(params: Any) -> None:
    talk = Talk(DROP)
    talk.client(call("get"))

    talk.client(line(method="notifications/cancelled", params=params))

    assert len(talk.to_server) == 2
    assert texts(talk.got(answer(SECRET))) == ['{"a":1}']


# What two readers could read in two ways


@pytest.mark.parametrize(
    "raw",
    [
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"gone"},"method":"ping"}',
        b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"name":"gone"},'
        b'"params":{"name":"get"}}',
    ],
)
def test_a_message_with_two_methods_or_params_is_refused_where_rules_protect(raw: bytes) -> None:
    talk = Talk(HIDE)
    assert json.loads(talk.replied(raw))["id"] == 7
    plain = Talk()
    plain.client(raw)
    assert plain.to_server == [raw]


def test_a_message_that_only_has_the_word_in_it_passes_where_rules_protect() -> None:
    talk = Talk(HIDE)
    raw = b'{ "jsonrpc": "2.0", "id": 7, "method": "prompts/get", "params": {"name": "call it"} }'
    talk.client(raw)
    assert talk.to_server == [raw]


SAFE = rules("- {name: guard, tools: get, on_failure: refuse, response: [{drop: secret}]}")
TWICE = "a request with this id has no answer yet"


@pytest.mark.parametrize(
    ("first", "second"),
    [
        (call("get"), call("other")),
        (call("other"), call("get")),
        (call("get"), line(id=1, method="ping")),
        (call("get"), line(id=1, method="tools/list")),
    ],
)
def test_no_second_request_of_an_id_gets_around_a_rule_that_withholds(
    first: bytes, second: bytes
) -> None:
    talk = Talk(SAFE)
    talk.client(first)

    refused = json.loads(talk.replied(second))
    assert refused["id"] == 1
    assert TWICE in json.dumps(refused)
    assert (b"secret" in talk.got(answer(SECRET))) == (b"other" in first)
    assert texts(talk.exchange(call("get"), answer(SECRET))) == ['{"a":1}']


def test_where_nothing_is_withheld_an_id_that_waits_is_the_servers_to_judge() -> None:
    talk = Talk(DROP)
    talk.client(call("get"))
    talk.client(call("other"))

    assert talk.to_server == [call("get"), call("other")]
