"""One conversation, message by message: what reaches the other side, and what the proxy answers."""

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy import pipeline
from proxy.outputs import Forward, Keep, Load, Reply, Shape, Work
from proxy.rule import EMPTY, Hidden, Rule, RuleFile, RuleSet
from proxy.standing import Known
from tests.given import answer, call, document, file, line, result, rules, said, texts
from tests.talk import Talk
from tests.transports.guarded import guarded, onward
from tests.transports.steps import Unsure

PAGES = rules("- {name: pages, tools: list, response: [{paginate: {at: items, limit: 2}}]}")
ITEMS = document({"items": [1, 2, 3, 4, 5]})
DROP = rules("- {name: drop, tools: get, response: [{drop: secret}]}")
SECRET = document({"a": 1, "secret": 2})
HIDE = rules("- {tools: [gone], hide: true}")
BOUND = rules("- {name: bound, tools: get, max_bytes: 1000}")


def listing(*tools: dict[str, Any], id: Any = 99) -> bytes:
    return answer({"tools": [{"inputSchema": {"type": "object"}, **tool} for tool in tools]}, id)


def list_tools(talk: Talk, *tools: dict[str, Any]) -> list[dict[str, Any]]:
    """List the tools; return what the client gets."""
    raw = talk.exchange(line(id=99, method="tools/list"), listing(*tools))
    found: list[dict[str, Any]] = result(raw)["tools"]
    return found


def own(*names: str) -> dict[str, Any]:
    """Return a tool `list` with arguments of its own."""
    schema = {"type": "object", "properties": {name: {"type": "integer"} for name in names}}
    return {"name": "list", "inputSchema": schema}


def asked(talk: Talk) -> dict[str, Any]:
    """Return the arguments that the server saw last."""
    found: dict[str, Any] = json.loads(talk.to_server[-1])["params"].get("arguments", {})
    return found


def items(raw: bytes) -> Any:
    return json.loads(texts(raw)[0])["items"]


# What passes

UNTOUCHED = [
    b'{"jsonrpc":"2.0","id":1,"method":"ping"}',
    b'{ "jsonrpc" : "2.0", "id": 1 , "method" : "ping" }\r',
    b'{"jsonrpc":"2.0","method":"notifications/initialized"}',
    b'{"jsonrpc":"2.0","id":"a","method":"resources/read","params":{"uri":"a","x":1e400}}',
    b'{"jsonrpc":"2.0","id":1.5,"method":"no/such","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"method":5}',
    b'{"id":1}',
    b"[]",
    b"{}",
    b"not json",
    b'{"a": NaN}',
    b"\xff\xfe",
    b"",
    b" ",
    b'"text"',
    b'[{"jsonrpc":"2.0","id":1,"method":"ping"}, {"jsonrpc":"2.0","id":2,"method":"ping"} ]',
    rb'{"jsonrpc":"2.0","id":"\ud800","method":"ping"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call"}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":[]}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":5}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"x","arguments":{"n":1.0}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get","arguments":{"n":1.0}}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get","arguments":[1]}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get","arguments":null}}',
    b'{"jsonrpc":"2.0","id":1,"method":"tasks/result","params":{"taskId":"none"}}',
    b'{"jsonrpc":"2.0","id":1,"result":{"roots":[]}}',
]


@pytest.mark.parametrize("raw", UNTOUCHED)
def test_a_line_of_the_client_that_no_rule_is_for_reaches_the_server_as_it_is(raw: bytes) -> None:
    talk = Talk(DROP)

    talk.client(raw)

    assert (talk.to_server, talk.to_client) == ([raw], [])


@pytest.mark.parametrize(
    "raw",
    [
        b'{"jsonrpc":"2.0","id":1,"result":{"secret": 1}}',
        b'{"jsonrpc":"2.0","id":"1","result":{"content":[{"type":"text","text":"{}"}]}}',
        b'{"jsonrpc":"2.0","id":1.0,"result":{}}',
        b'{"jsonrpc":"2.0","id":null,"error":{"code":-32700,"message":"x"}}',
        b'{"jsonrpc":"2.0","error":{"code":-32700,"message":"x"}}',
        b'{"jsonrpc":"2.0","id":9,"method":"sampling/createMessage","params":{}}',
        b'{"jsonrpc":"2.0","method":"notifications/message","params":{"data":"\\ud800"}}',
        b'{"jsonrpc":"2.0","id":9,"result":{"a":NaN}}',
        b'[{"jsonrpc":"2.0","id":9,"result":{}}, {"jsonrpc":"2.0","method":"x"}]',
        b'{"x":"' + b"y" * 10_000 + b'","jsonrpc":"2.0","id":9}',
        b'{"jsonrpc":"2.0","id":9,"result":{"x":"' + b"y" * 10_000 + b'"}}\r',
    ],
)
def test_a_line_of_the_server_that_answers_no_call_reaches_the_client_as_it_is(raw: bytes) -> None:
    talk = Talk(DROP)

    talk.server(raw)

    assert (talk.to_client, talk.to_server, talk.noise) == ([raw], [], [])


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


# Shaping


def test_the_answer_to_a_call_is_shaped_by_the_rule_that_applies() -> None:
    assert texts(Talk(DROP).exchange(call("get"), answer(SECRET))) == ['{"a":1}']


def test_the_first_rule_whose_condition_holds_applies() -> None:
    talk = Talk(
        rules(
            """
            - {tools: get, when: "op == 'a'", response: [{drop: a}]}
            - {tools: get, when: "op == 'b'", response: [{drop: b}]}
            """
        )
    )
    value = answer(document({"a": 1, "b": 2}))

    assert texts(talk.exchange(call("get", {"op": "a"}), value)) == ['{"b":2}']
    assert texts(talk.exchange(call("get", {"op": "b"}), value)) == ['{"a":1}']
    assert talk.exchange(call("get", {"op": "c"}), value) == value
    assert talk.exchange(call("get"), value) == value


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


def test_the_clients_answer_with_the_id_of_a_call_does_not_answer_it() -> None:
    talk = Talk(DROP)
    talk.client(call("get"))
    reply = answer({"roots": []})

    talk.client(reply)

    assert talk.to_server[-1] == reply
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
    assert json.loads(texts(got)[0]) == {"a": "\ud800"}


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


# Batches


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


def test_a_large_answer_to_a_question_is_read_while_others_may_enter_the_session() -> None:
    large = answer(document({"files": ["a"] * 100_000}))
    for taken_back in (False, True):
        talk = Talk(guarded(onward))
        talk.client(call("write", {}, id=5))
        question = json.loads(talk.probes[0].raw)["id"]
        raw = large.replace(b'"id":1', b'"id":' + json.dumps(question).encode())
        [work] = talk.session.from_server(raw)
        assert isinstance(work, Work)
        heard = work.do()
        if taken_back:
            talk.client(line(method="notifications/cancelled", params={"requestId": 5}))
        outputs = work.then(heard)
        assert outputs == (() if taken_back else (Reply(call("write", {}, id=5)),))


def test_a_request_with_the_id_of_a_held_call_is_not_lost_with_it() -> None:
    talk = Talk(guarded(onward))
    talk.client(call("write", {}))
    question = json.loads(talk.probes[0].raw)["id"]
    [work] = talk.session.from_server(answer(said("x" * 300_000), question))
    assert isinstance(work, Work)
    talk.client(line(id=1, method="ping"))

    assert work.then(work.do()) == ()
    [gone] = talk.session.ended("the server is gone")
    assert isinstance(gone, Forward)
    assert json.loads(gone.raw)["id"] == 1


def test_arrays_in_a_batch_pass_however_deep() -> None:
    talk = Talk(DROP)
    deep = b"[" * 300 + b'{"jsonrpc":"2.0","method":"x"}' + b"]" * 300

    talk.client(deep)
    talk.server(deep)

    assert (talk.to_server, talk.to_client) == ([deep], [deep])


def test_lone_surrogates_in_a_batch_pass_as_they_came() -> None:
    talk = Talk(HIDE)
    ping = rb'{"jsonrpc":"2.0","id":"\ud800","method":"ping"}'

    talk.client(b"[" + call("gone") + b"," + ping + b"]")

    assert talk.to_server == [b"[" + ping + b"]"]


# Hidden tools


def error(raw: bytes) -> dict[str, Any]:
    found: dict[str, Any] = json.loads(raw)["error"]
    return found


def test_a_call_of_a_hidden_tool_is_answered_as_one_of_an_unknown_tool() -> None:
    got = Talk(HIDE).replied(call("gone", id="x"))

    assert json.loads(got) == {
        "jsonrpc": "2.0",
        "id": "x",
        "error": {"code": -32602, "message": "Unknown tool: gone"},
    }


def test_a_rule_may_say_how_a_hidden_tool_is_answered() -> None:
    talk = Talk(rules("- {tools: gone, hide: {code: -32601, message: 'no {tool} here'}}"))

    assert error(talk.replied(call("gone"))) == {"code": -32601, "message": "no gone here"}


def test_a_hidden_tool_stays_hidden_behind_a_rule_that_would_apply_first() -> None:
    talk = Talk(
        rules("- {tools: gone, when: a, response: [{drop: b}]}\n- {tools: gone, hide: true}")
    )

    assert "Unknown tool" in error(talk.replied(call("gone", {"a": 1})))["message"]


def test_only_exposed_tools_may_be_called() -> None:
    talk = Talk(RuleSet((file("version: 1\nexpose: [get_*]\nrules: []"),)))

    assert error(talk.replied(call("set_a")))["message"] == "Unknown tool: set_a"
    assert talk.exchange(call("get_a"), answer(SECRET)) == answer(SECRET)


@pytest.mark.parametrize("head", [b'"jsonrpc":"2.0",', b'"jsonrpc":"2.0","id":null,'])
def test_a_call_without_an_id_does_not_get_around_a_rule(head: bytes) -> None:
    talk = Talk(HIDE)
    hidden = b"{" + head + b'"method":"tools/call","params":{"name":"gone"}}'
    other = hidden.replace(b"gone", b"other")

    talk.client(hidden)
    talk.client(other)

    assert talk.to_server == [other]


@pytest.mark.parametrize(
    "params",
    [
        b'{"name":"gone","name":"other"}',
        b'{"name":"other","name":"gone"}',
        b'{"name":"other","Name":"gone"}',
        b'{"name":"other","n\\u0061me":"gone"}',
        b'{"name":"other","arguments":{},"Arguments":{"a":1}}',
    ],
)
def test_a_call_that_another_reader_could_take_for_another_is_refused(params: bytes) -> None:
    raw = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":' + params + b"}"
    talk = Talk(HIDE)

    talk.client(raw)

    assert talk.to_server == []
    Talk(DROP).client(raw)


def test_an_ambiguous_call_passes_where_no_rule_guards_anything() -> None:
    talk = Talk(DROP)
    raw = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}'

    talk.client(raw)

    assert talk.to_server == [raw]


def test_an_ambiguous_call_is_refused_where_a_rule_guards_something() -> None:
    talk = Talk(HIDE)
    raw = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"a","name":"b"}}'
    said = "the call is ambiguous: its name or its arguments are given twice"

    assert texts(talk.replied(raw)) == [said]

    assert talk.to_server == []
    assert talk.log == [f"b: refused: {said}"]


def test_a_call_written_with_white_space_is_not_ambiguous() -> None:
    talk = Talk(HIDE)
    raw = json.dumps(json.loads(call("other", {"n": [1, {"a": "b, c"}]}, id=7)), indent=2).encode()

    talk.client(raw)

    assert talk.to_server == [raw]


def test_a_call_that_cannot_be_read_does_not_get_around_a_rule() -> None:
    talk = Talk(HIDE)
    raw = call("gone", {"n": float("nan")}, id=7)
    other = raw.replace(b"gone", b"other")

    talk.client(raw)
    talk.client(raw.replace(b'"id":7,', b""))
    talk.client(other)

    assert talk.to_server == [other]
    assert json.loads(talk.to_client[0])["id"] == 7
    assert texts(talk.to_client[0])[0].startswith("the call cannot be read: ")


def test_doubled_arguments_of_a_guarded_tool_are_sent_once() -> None:
    talk = Talk(rules("- {tools: get, arguments: {n: {maximum: 5}}}"))
    raw = call("get", {"n": 9, "N": 5}).replace(b"N", b"n")

    talk.client(raw)

    assert talk.to_server == [raw.replace(b'"n":9,', b"")]


def test_a_rule_in_shadow_mode_changes_nothing() -> None:
    talk = Talk(
        rules(
            """
            - tools: list
              mode: shadow
              hide: true
              arguments: {limit: {default: 5, maximum: 9}}
              response: [{paginate: {at: items}}]
            """
        )
    )
    raw = call("list", {"limit": 100})

    assert talk.exchange(raw, answer(ITEMS)) == answer(ITEMS)
    assert talk.to_server == [raw]
    [row] = talk.counted()
    assert row.outcome == "shadow"


# Refused arguments


def test_a_refused_argument_never_reaches_the_server() -> None:
    talk = Talk(PAGES)

    got = talk.replied(call("list", {"limit": 21}, id="x"))

    assert json.loads(got) == {
        "jsonrpc": "2.0",
        "id": "x",
        "result": {
            "content": [{"type": "text", "text": "limit: 21 is greater than the maximum of 20"}],
            "isError": True,
        },
    }


def test_a_refusal_of_a_modern_request_names_its_type() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}

    got = Talk(PAGES).replied(call("list", {"limit": 0}, _meta=meta))

    assert result(got)["resultType"] == "complete"


def test_a_condition_that_fails_is_no_match() -> None:
    talk = Talk(rules("- {tools: get, when: 'length(n) > `1`', response: [{drop: secret}]}"))

    assert talk.exchange(call("get", {"n": 5}), answer(SECRET)) == answer(SECRET)
    assert len(talk.log) == 1
    assert "`when` failed" in talk.log[0]


def test_a_condition_that_fails_refuses_the_call_where_the_rule_protects() -> None:
    talk = Talk(
        rules("- {name: r, tools: get, when: 'length(n) > `1`', arguments: {n: {maximum: 5}}}")
    )

    assert texts(talk.replied(call("get", {"n": 5})))[0].startswith("r: `when` failed: ")


def test_arguments_nested_too_deeply_do_not_get_around_a_rule() -> None:
    talk = Talk(rules("- {tools: get, arguments: {n: {maximum: 5}}}"))
    deep = b"[" * 900 + b"]" * 900

    talk.client(call("get", {"n": 9, "m": 0}).replace(b'"m":0', b'"m":' + deep))

    assert talk.to_server == []


# Arguments


def test_the_server_sees_no_argument_of_ours() -> None:
    talk = Talk(PAGES)

    talk.exchange(call("list", {"path": "a", "limit": 1}, progress=1), answer(ITEMS))

    assert json.loads(talk.to_server[0])["params"] == {
        "name": "list",
        "arguments": {"path": "a"},
        "progress": 1,
    }


def test_arguments_that_are_added_leave_the_others_as_they_were_spelled() -> None:
    talk = Talk(rules("- {tools: get, arguments: {limit: {default: 20}}}"))
    spelled = rb'"a":1.0,"b":12345678901234567890123,"c":"\/"'
    raw = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get","arguments":{%s}}}'

    talk.client(raw % spelled)

    assert talk.to_server == [raw % (spelled.replace(rb"\/", b"/") + b',"limit":20')]


def test_the_arguments_of_rules_that_do_not_apply_are_taken_off_too() -> None:
    talk = Talk(
        rules(
            """
            - {tools: get, when: "op == 'list'", response: [{paginate: {at: items}}]}
            - {tools: get, when: "op == 'read'", response: [truncate]}
            """
        )
    )

    talk.client(call("get", {"op": "read", "limit": 5, "maxLength": 5, "x": 1}))
    talk.client(call("get", {"op": "other", "limit": 5, "maxLength": 5}, id=2))

    assert json.loads(talk.to_server[0])["params"]["arguments"] == {"op": "read", "x": 1}
    assert json.loads(talk.to_server[1])["params"]["arguments"] == {"op": "other"}


# Lists, and calls before any list


def test_a_list_gains_the_arguments_of_rules_and_loses_hidden_tools() -> None:
    talk = Talk(rules("- {tools: gone, hide: true}\n- {tools: list, response: [truncate]}"))

    [tool] = list_tools(talk, {"name": "gone"}, {"name": "list"})

    assert list(tool["inputSchema"]["properties"]) == ["maxLength", "startIndex"]


def test_a_list_that_no_rule_touches_passes_as_it_came() -> None:
    raw = b'{"jsonrpc": "2.0", "id": 99, "result": {"tools": [{"name": "a"}], "nextCursor": ""}}'

    assert Talk(DROP).exchange(line(id=99, method="tools/list"), raw) == raw


@pytest.mark.parametrize(
    "result",
    [None, [], {}, {"tools": 5}, {"tools": [5]}, {"tools": [{"name": "get", "inputSchema": 5}]}],
)
def test_a_list_that_is_none_passes_as_it_came(result: Any) -> None:
    raw = line(id=99, result=result)

    assert Talk(PAGES).exchange(line(id=99, method="tools/list"), raw) == raw


def test_rules_work_before_any_list() -> None:
    assert items(Talk(PAGES).exchange(call("list", {"limit": 3}), answer(ITEMS))) == [1, 2, 3]


HEAD = "version: 1\nserver: {tools: [list, get]}\n"
SOME = RuleSet((file(HEAD + "rules: [{tools: get, response: [{drop: secret}]}]"),))


def test_rules_for_a_server_with_certain_tools_end_where_it_has_others() -> None:
    talk = Talk(SOME)
    dropped = talk.exchange(call("get"), answer(SECRET))
    assert "secret" not in texts(dropped)[0]

    list_tools(talk, {"name": "get"})
    assert talk.exchange(call("get"), answer(SECRET)) == answer(SECRET)
    assert talk.log == ["rules.yaml: this server has other tools; none of its rules apply"]

    list_tools(talk, {"name": "get"}, {"name": "list"})
    assert "secret" not in texts(talk.exchange(call("get"), answer(SECRET)))[0]


def test_a_page_of_a_list_says_nothing_about_the_tools_a_server_lacks() -> None:
    talk = Talk(SOME)
    first = answer({"tools": [{"name": "get"}], "nextCursor": "2"}, 99)
    talk.exchange(line(id=99, method="tools/list"), first)
    last = answer({"tools": [{"name": "other"}]}, 98)
    talk.exchange(line(id=98, method="tools/list", params={"cursor": "2"}), last)

    assert "secret" not in texts(talk.exchange(call("get"), answer(SECRET)))[0]


def test_a_name_that_the_server_has_gives_way_once_it_was_seen() -> None:
    talk = Talk(PAGES)
    [tool] = list_tools(talk, own("limit"))
    assert list(tool["inputSchema"]["properties"]) == ["limit", "page_limit", "offset"]

    got = talk.exchange(call("list", {"limit": 7, "page_limit": 3}), answer(ITEMS))

    assert asked(talk) == {"limit": 7}
    assert items(got) == [1, 2, 3]


@pytest.mark.parametrize("what", ["prompts", "resources", "tools"])
def test_names_that_gave_way_do_so_until_the_next_list(what: str) -> None:
    talk = Talk(PAGES)
    list_tools(talk, own("limit"))

    talk.server(line(method=f"notifications/{what}/list_changed"))
    talk.client(call("list", {"limit": 7, "page_limit": 3}))
    assert asked(talk) == {"limit": 7}

    list_tools(talk, own())
    talk.client(call("list", {"limit": 3}))
    assert asked(talk) == {}


def test_calls_that_differ_in_an_argument_of_the_servers_share_no_snapshot() -> None:
    talk = Talk(PAGES)
    list_tools(talk, own("limit"))
    talk.exchange(call("list", {"limit": 5}, id=1), answer(ITEMS, 1))
    talk.exchange(call("list", {"limit": 9}, id=2), answer(document({"items": [7, 8, 9]}), 2))

    got = talk.replied(call("list", {"limit": 5, "offset": 2}, id=3))

    assert items(got) == [3, 4]


@pytest.mark.parametrize(
    ("one", "other"), [("1e400", "1e500"), ("1.0", '"1.0"'), ("0.1", "0.10000000000000000001")]
)
def test_calls_that_differ_in_the_spelling_of_a_number_share_no_snapshot(
    one: str, other: str
) -> None:
    talk = Talk(PAGES)
    first, second = call("list", {"x": 7}), call("list", {"x": 7, "offset": 2}, id=2)
    talk.exchange(first.replace(b"7", one.encode()), answer(ITEMS))

    assert result(talk.replied(second.replace(b"7", other.encode())))["isError"] is True
    assert items(talk.replied(second.replace(b"7", one.encode()))) == [3, 4]


def test_what_names_a_snapshot_is_short_however_long_the_call_is() -> None:
    talk = Talk(PAGES)
    first, second = "x" * 1_000_000, "x" * 999_999 + "y"
    talk.exchange(call("list", {"text": first}), answer(ITEMS))
    talk.exchange(call("list", {"text": second}), answer(document({"items": [7, 8, 9]})))

    assert items(talk.replied(call("list", {"text": first, "offset": 4}))) == [5]
    assert items(talk.replied(call("list", {"text": second, "offset": 2}))) == [9]
    assert max(len(key.call or "") for key in vars(talk.store)["_kept"]) < 1000


def test_an_argument_that_gave_way_is_known_before_the_tools_are_listed_again() -> None:
    talk = Talk(rules("- {tools: list, response: [{paginate: {at: items, limit: 2}}]}"))

    first = talk.exchange(call("list", {"limit": 9, "page_limit": 3}), answer(ITEMS))

    assert asked(talk) == {"limit": 9}
    assert items(first) == [1, 2, 3]
    assert items(talk.replied(call("list", {"limit": 9, "page_offset": 3}, id=2))) == [4, 5]


def test_a_view_that_gave_way_is_known_before_the_tools_are_listed_again() -> None:
    talk = Talk(BOUND)

    got = talk.replied(call("get", {"view": "front", "abridged_view": "items[0]"}))

    assert texts(got)[0].endswith("call again without abridged_view first")


def test_the_view_gives_way_to_an_argument_of_that_name() -> None:
    talk = Talk(rules("- {tools: list, max_bytes: 1000}"))
    [tool] = list_tools(talk, own("view"))
    assert list(tool["inputSchema"]["properties"]) == ["view", "abridged_view"]
    long = answer(document({"items": ["x" * 20] * 500, "n": 7}))

    talk.exchange(call("list", {"view": 1}), long)
    assert asked(talk) == {"view": 1}

    assert texts(talk.replied(call("list", {"view": 1, "abridged_view": "n"}))) == ['{"view":7}']


# Pages


@pytest.mark.fault(39, "inside")
def test_later_pages_come_from_the_snapshot_without_a_call() -> None:
    talk = Talk(PAGES)
    first = talk.exchange(call("list", {"path": "a"}), answer(ITEMS))

    second = talk.replied(call("list", {"path": "a", "offset": 2}, id=2))
    third = talk.replied(call("list", {"path": "a", "offset": 4, "limit": 2}, id="3"))

    assert [items(raw) for raw in (first, second, third)] == [[1, 2], [3, 4], [5]]
    assert json.loads(third)["id"] == "3"


@pytest.mark.fault(41, "inside")
def test_a_page_of_another_call_is_not_answered_from_the_snapshot() -> None:
    talk = Talk(PAGES)
    talk.exchange(call("list", {"path": "a"}), answer(ITEMS))

    got = talk.replied(call("list", {"path": "b", "offset": 2}))

    assert result(got)["isError"] is True
    assert texts(got) == [
        "nothing is kept of an earlier answer to this call (it expired, or was never given); "
        "call again with offset=0 first"
    ]


def test_the_first_page_always_calls_the_server() -> None:
    talk = Talk(PAGES)
    talk.exchange(call("list"), answer(ITEMS))

    got = talk.exchange(call("list", {"offset": 0}, id=2), answer(document({"items": [9]}), 2))

    assert items(got) == [9]


def test_pages_are_not_cut_from_an_answer_that_was_read_by_other_rules() -> None:
    step = "{paginate: {at: items, limit: %d}}"
    now = "- {name: pages, tools: list, response: [{drop: items.secret}, " + step + "]}"
    talk = Talk(PAGES)
    talk.exchange(call("list"), answer(ITEMS))
    talk.rules = rules(now % 2)
    assert "nothing is kept" in texts(talk.replied(call("list", {"offset": 2})))[0]
    # Where only the window has become another one, the document is as good as before.
    talk.exchange(call("list"), answer(ITEMS))
    talk.rules = rules(now % 3)
    assert items(talk.replied(call("list", {"offset": 2}))) == [3, 4, 5]


@pytest.mark.fault(41, "inside")
def test_a_page_without_a_snapshot_calls_a_tool_that_only_reads() -> None:
    talk = Talk(PAGES)
    list_tools(talk, {"name": "list", "annotations": {"readOnlyHint": True}})

    got = talk.exchange(call("list", {"offset": 2}), answer(ITEMS))

    assert (items(got), asked(talk)) == ([3, 4], {})
    assert items(talk.replied(call("list", {"offset": 4}, id=2))) == [5]


@pytest.mark.fault(41, "inside")
def test_a_page_without_a_snapshot_calls_a_tool_that_the_rule_says_may_be_called_again() -> None:
    talk = Talk(
        rules("- {tools: list, response: [{paginate: {at: items, limit: 2, refetch: true}}]}")
    )

    assert items(talk.exchange(call("list", {"offset": 2}), answer(ITEMS))) == [3, 4]


def test_the_advice_names_the_argument_that_the_client_knows() -> None:
    talk = Talk(PAGES)
    list_tools(talk, own("offset"))

    [said] = texts(talk.replied(call("list", {"page_offset": 2})))

    assert said.endswith("call again with page_offset=0 first")


def test_a_call_that_makes_pages_stale_drops_their_snapshot() -> None:
    talk = Talk(
        rules("- {tools: list, response: [{paginate: {at: items, limit: 2, drop_on: [delete]}}]}")
    )
    talk.exchange(call("list"), answer(ITEMS))
    talk.exchange(call("delete", id=2), answer(said("done"), 2))

    assert result(talk.replied(call("list", {"offset": 2}, id=3)))["isError"] is True


def test_other_calls_leave_the_snapshot_alone() -> None:
    talk = Talk(
        rules("- {tools: list, response: [{paginate: {at: items, limit: 2, drop_on: [delete]}}]}")
    )
    talk.exchange(call("list"), answer(ITEMS))
    talk.exchange(call("get", id=2), answer(said("done"), 2))

    assert items(talk.replied(call("list", {"offset": 2}, id=3))) == [3, 4]


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


# Noise


@pytest.mark.parametrize(
    "raw",
    [
        b"starting up",
        b"{level: info}",
        b"[INFO] ready",
        b"{}x",
        b"\xff",
        b"[]",
        b"{}",
        b"5",
        b'["a", {"b": 1}]',
        b'{"level":"info","id":1}',
    ],
)
def test_a_line_of_the_server_that_is_no_message_is_noise(raw: bytes) -> None:
    talk = Talk(DROP)

    talk.server(raw)

    assert (talk.to_client, talk.noise) == ([], [raw])


@pytest.mark.parametrize("raw", [b"", b" ", b"\r", b"\t\r"])
def test_a_blank_line_of_the_server_is_dropped(raw: bytes) -> None:
    talk = Talk(DROP)

    talk.server(raw)

    assert (talk.to_client, talk.noise) == ([], [])


@pytest.mark.parametrize(
    "noise",
    [
        b"ready ",
        b"[INFO] ",
        b"{a} {b} ",
        b"\xef\xbb\xbf",
        b"\xff\xfe",
        b'{"level":"info"} ',
        b'[{"level":"info"}]',
        b'x {"jsonrpc":"2.0","id":1,',
    ],
)
def test_a_message_behind_noise_on_the_same_line_is_recovered(noise: bytes) -> None:
    talk = Talk(DROP)
    talk.client(call("get"))

    assert texts(talk.got(noise + answer(SECRET))) == ['{"a":1}']
    assert talk.noise == [noise]


# The head of a line


def test_a_long_answer_that_no_rule_is_for_may_be_streamed() -> None:
    talk = Talk(DROP)
    talk.client(call("other", id=1))
    talk.client(call("get", id=2))

    assert talk.session.head(b'{"jsonrpc":"2.0","id":1,"result":{"content":[')
    assert not talk.session.head(b'{"jsonrpc":"2.0","id":2,"result":{"content":[')
    assert talk.session.head(b'{"jsonrpc":"2.0","id":3,"result":{"content":[')
    assert talk.session.head(b'{"jsonrpc":"2.0","method":"notifications/message","params":{')


def test_an_answer_whose_id_comes_last_is_held_while_a_rule_waits_for_one() -> None:
    talk = Talk(DROP)
    assert talk.session.head(b'{"result":{"content":[')

    talk.client(call("get"))
    assert not talk.session.head(b'{"result":{"content":[')

    talk.server(answer(SECRET))
    assert talk.session.head(b'{"result":{"content":[')


@pytest.mark.parametrize("method", ["initialize", "server/discover", "tools/list"])
def test_answers_that_are_read_are_never_streamed(method: str) -> None:
    talk = Talk(EMPTY)
    talk.client(line(id=1, method=method))

    assert not talk.session.head(b'{"jsonrpc":"2.0","id":1,"result":{')


def test_a_long_request_of_the_server_may_be_streamed() -> None:
    talk = Talk(DROP)
    talk.client(call("get"))

    assert talk.session.head(b'{"jsonrpc":"2.0","id":1,"method":"sampling/createMessage",')


def test_an_answer_whose_id_cannot_be_told_is_not_streamed() -> None:
    talk = Talk(EMPTY)
    talk.client(call("get"))

    assert not talk.session.head(b'{"jsonrpc":"2.0","x":1,"id":1,"result":{')
    assert not talk.session.head(b'{"level":"info","message":"')


def test_what_is_no_message_is_never_streamed() -> None:
    assert not Talk(EMPTY).session.head(b"noise noise noise")
    assert not Talk(EMPTY).session.head(b'[{"jsonrpc":"2.0"')


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

    assert not talk.session.head(b'{"jsonrpc":"2.0","id":1,"result":{')
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


# The end


def test_the_end_of_the_server_answers_every_call_in_flight_once() -> None:
    talk = Talk(DROP)
    talk.client(call("get", id=1))
    talk.client(line(id="2", method="resources/read"))
    talk.client(call("other", id=3))
    talk.server(answer(said("x"), 3))
    talk.client(line(method="notifications/initialized"))

    outputs = talk.session.ended("the server exited with code 3: out of memory")

    got = [json.loads(output.raw) for output in outputs if isinstance(output, Forward)]
    cause = "the server exited with code 3: out of memory"
    assert got == [
        {
            "jsonrpc": "2.0",
            "id": 1,
            "result": {"content": [{"type": "text", "text": cause}], "isError": True},
        },
        {"jsonrpc": "2.0", "id": "2", "error": {"code": -1, "message": cause}},
    ]
    assert talk.session.ended("again") == ()


def test_requests_that_are_never_answered_do_not_pile_up() -> None:
    talk = Talk(DROP)
    for id in range(21_000):
        talk.session.from_client(call("get", id=id))

    assert len(talk.session.ended("gone")) == 20_000


# Counting


def test_what_a_session_remembers_is_bounded_whatever_is_called() -> None:
    every = "{name: all, tools: '*', response: [{keep: [items, gone]}, {paginate: {at: items}}]}"
    talk = Talk(rules(f"- {every}"), resumable=True)
    for number in range(1200):
        tool = f"tool-{number}"
        list_tools(talk, {**own("limit"), "name": tool})
        talk.exchange(call(tool, id=number), answer(ITEMS, number))
        talk.client(call(f"other-{number}", {"page_limit": 1}, id=-1))
    session, standing = vars(talk.session), vars(vars(talk.session)["_standing"])
    sizes = {name: len(session[name]) for name in ("_kept", "_waiting", "_told")}
    sizes |= {name: len(standing[name]) for name in ("_seen", "_implied", "_plans")}
    sizes["answered"] = len(vars(vars(session["_inflight"])["_answered"])["_kept"])
    assert all(size <= 1001 for size in sizes.values()), sizes
    assert {name for name, size in sizes.items() if size == 1000} >= {
        "_kept",
        "_seen",
        "_implied",
        "answered",
    }
    assert sizes["_waiting"] == 0


def test_every_call_is_counted_once_with_the_rule_that_did_it() -> None:
    talk = Talk(RuleSet((*PAGES.files, *DROP.files, *HIDE.files)))
    first = talk.exchange(call("list"), answer(ITEMS))
    talk.replied(call("list", {"offset": 2}, id=2))
    talk.replied(call("list", {"limit": 99}, id=3))
    talk.replied(call("gone", id=4))
    talk.exchange(call("other", id=5), answer(SECRET, 5))
    talk.exchange(call("get", id=6), answer({**SECRET, "isError": True}, 6))

    rows = {(row.tool, row.outcome): row for row in talk.counted()}

    assert {key: row.rule for key, row in rows.items()} == {
        ("list", "shaped"): "pages",
        ("list", "page"): "pages",
        ("list", "refused"): "pages",
        ("gone", "hidden"): "gone",
        ("other", "untouched"): None,
        ("get", "error"): "drop",
    }
    shaped = rows["list", "shaped"]
    assert (shaped.wire_before, shaped.wire_after) == (len(answer(ITEMS)), len(first))
    assert shaped.visible_after == len(texts(first)[0])
    assert rows["list", "page"].wire_before == 0


# Any input at all

IDS: st.SearchStrategy[Any] = st.one_of(
    st.integers(0, 3), st.sampled_from(["1", "a", "\ud800", None, 1.0, 2.5, True, [1], {}])
)
TOOLS = st.sampled_from(["list", "get", "gone", "other", "long", "", "\ud800", None, 5])
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
ARGUMENTS = st.one_of(
    JSON,
    st.fixed_dictionaries(
        {},
        optional={
            "limit": st.integers(-1, 30) | JSON,
            "offset": st.integers(-1, 9) | JSON,
            "view": st.sampled_from(["items", "items[0]", "text[0:5]", "[", "x.y", "@"]) | JSON,
            "maxLength": st.integers(0, 5),
            "startIndex": st.integers(0, 50),
            "op": JSON,
        },
    ),
)
DOCUMENTS = st.one_of(
    JSON,
    st.fixed_dictionaries({"items": st.lists(JSON, max_size=9)}, optional={"secret": JSON}),
    st.just({"items": [{"body": "x" * 50}] * 60}),
)
RESULTS = st.one_of(
    JSON,
    DOCUMENTS.map(lambda value: said(json.dumps(value))),
    DOCUMENTS.map(lambda value: said(json.dumps(value), structuredContent=value)),
    DOCUMENTS.map(lambda value: said(json.dumps(value), isError=True)),
    st.lists(DOCUMENTS, max_size=3).map(lambda values: said(*map(json.dumps, values))),
    st.text(max_size=60).map(lambda text: said(text, structuredContent={"result": text})),
    st.lists(
        st.fixed_dictionaries(
            {"name": TOOLS}, optional={"inputSchema": JSON, "outputSchema": JSON}
        ),
        max_size=3,
    ).map(lambda tools: {"tools": tools}),
    st.sampled_from(
        [{"task": {"taskId": "t"}}, {"resultType": "input_required"}, {"serverInfo": {"name": "s"}}]
    ),
    st.fixed_dictionaries({"content": JSON}, optional={"structuredContent": JSON}),
)
METHODS = st.sampled_from(
    [
        "tools/list",
        "initialize",
        "server/discover",
        "tasks/result",
        "ping",
        "notifications/cancelled",
    ]
)


def _members(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[bytes]:
    return st.fixed_dictionaries(members).map(lambda held: line(**held))


CALLS = st.builds(
    lambda tool, arguments, id, more: call(tool, arguments, id, **more),
    TOOLS,
    ARGUMENTS,
    IDS,
    st.dictionaries(
        st.sampled_from(["task", "_meta", "inputResponses", "requestState"]), JSON, max_size=2
    ),
)
REQUESTS = _members(id=IDS, method=METHODS, params=JSON | st.just({"taskId": "t", "requestId": 1}))
RESPONSES = _members(id=IDS, result=RESULTS) | _members(id=IDS, error=JSON)
LINES = st.one_of(
    CALLS,
    REQUESTS,
    RESPONSES,
    JSON.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=40),
)
SPOILED = st.builds(
    lambda raw, at, byte: raw[: at % (len(raw) + 1)] + byte + raw[at % (len(raw) + 1) :],
    LINES,
    st.integers(0, 400),
    st.binary(max_size=2),
)
BATCHES = st.lists(LINES, max_size=3).map(lambda lines: b"[" + b",".join(lines) + b"]")
SPOKEN = st.one_of(CALLS, RESPONSES, LINES, SPOILED, BATCHES).map(
    lambda raw: raw.replace(b"\n", b"")
)
TRACES = st.lists(st.tuples(st.booleans(), SPOKEN), max_size=12)

EVERYTHING = rules(
    """
    - {tools: gone, hide: true}
    - {tools: list, response: [{keep: [items, 'pagination']}, {paginate: {at: items, limit: 2}}]}
    - {tools: get, when: "op == 'x'", arguments: {n: {maximum: 5}}, response: [{drop: secret}]}
    - {tools: get, when: op, response: [{jmespath: 'items[0]'}]}
    - {tools: get, response: [truncate]}
    - {tools: long, max_bytes: 600, response: [{drop: secret}]}
    """
)


@given(TRACES)
def test_no_line_of_either_side_makes_a_session_raise(trace: list[tuple[bool, bytes]]) -> None:
    talk = Talk(EVERYTHING)
    for of_client, raw in trace:
        talk.session.head(raw[:512])
        (talk.client if of_client else talk.server)(raw)

    talk.session.streamed(b"{", b"}", 5)
    talk.session.discarded(b"{", 5, 4)
    talk.session.ended("gone")
    # It would get over a failure of its own, and say so.
    assert "the proxy failed" not in str(talk.log)


@given(TRACES)
def test_without_rules_every_message_of_both_sides_is_the_same_bytes(
    trace: list[tuple[bool, bytes]],
) -> None:
    talk = Talk(EMPTY)
    for of_client, raw in trace:
        before = len(talk.to_server), len(talk.to_client), len(talk.noise)
        (talk.client if of_client else talk.server)(raw)
        after = talk.to_server[before[0] :], talk.to_client[before[1] :], talk.noise[before[2] :]
        if of_client:
            assert after == ([raw], [], [])
        else:
            # What is no message is told from what is, and nothing in it is lost but blank lines.
            assert after[0] == []
            assert b"".join(after[2] + after[1]) == raw or not raw.strip()


@given(TRACES)
def test_what_no_rule_is_for_is_the_same_bytes_whatever_is_in_flight(
    trace: list[tuple[bool, bytes]],
) -> None:
    talk = Talk(EVERYTHING)
    for of_client, raw in trace:
        (talk.client if of_client else talk.server)(raw)
    request, response = call("other", {"a": 1.0}, id="mine"), answer(SECRET, "mine")

    assert talk.exchange(request, response) == response
    assert talk.to_server[-1] == request


# Many exchanges, and answers that come again


def test_equal_ids_of_different_exchanges_are_told_apart() -> None:
    talk = Talk(DROP)
    talk.client(call("get"), b"1:")
    talk.client(call("other"), b"2:")
    talk.server(answer(SECRET), b"2:")
    talk.server(answer(SECRET), b"1:")
    assert [b"secret" in raw for raw in talk.to_client] == [True, False]


def test_only_the_requests_that_are_meant_are_ended() -> None:
    talk = Talk()
    for exchange, id in ((b"1:", 1), (b"1:", 2), (b"2:", 1)):
        talk.client(call("get", id=id), exchange)
    session = talk.session
    assert ids(session.ended("gone", b"1:", [b"2", b"7"])) == [2]
    assert ids(session.ended("gone", b"1:")) == [1]
    assert ids(session.ended("gone")) == [1]
    assert ids(session.ended("gone")) == []


def ids(outputs: tuple[Any, ...]) -> list[Any]:
    return [json.loads(output.raw)["id"] for output in outputs]


def test_nobody_waits_for_what_was_dropped() -> None:
    talk = Talk(DROP)
    talk.client(call("get"), b"1:")
    talk.session.dropped(b"1:", [b"1"])
    talk.server(answer(SECRET), b"1:")
    assert talk.to_client == [answer(SECRET)]
    assert talk.session.ended("gone") == ()


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


def test_a_session_at_rest_has_forgotten_what_was_answered_but_not_what_waits() -> None:
    talk = Talk(DROP, resumable=True)
    shaped = talk.exchange(call("get"), answer(SECRET))
    talk.client(call("get", id=2))
    assert talk.got(answer(SECRET)) == shaped
    talk.session.rest()
    assert talk.got(answer(SECRET)) == answer(SECRET)
    assert texts(talk.got(answer(SECRET, 2))) == texts(shaped)


def test_an_answer_comes_again_only_where_it_may() -> None:
    talk = Talk(DROP)
    talk.exchange(call("get"), answer(SECRET))
    assert talk.got(answer(SECRET)) == answer(SECRET)


@pytest.mark.fault(41, "inside")
def test_a_page_that_cannot_be_looked_up_is_refused_with_the_reason() -> None:
    talk = Talk(PAGES)
    talk.exchange(call("list", {}), answer(ITEMS))
    [load] = talk.session.from_client(call("list", {"offset": 2}))
    assert isinstance(load, Load)
    [reply] = talk.session.loaded(load.token, None, "the store is away")
    assert isinstance(reply, Reply)
    [text] = texts(reply.raw)
    assert text == (
        "what was kept of the earlier answer is out of reach: the store is away; try again later"
    )
    assert result(reply.raw)["isError"] is True


def test_a_tool_that_only_reads_may_be_called_anew_where_a_page_cannot_be_looked_up() -> None:
    talk = Talk(PAGES)
    list_tools(talk, {"name": "list", "annotations": {"readOnlyHint": True}})
    talk.exchange(call("list", {}), answer(ITEMS))
    [load] = talk.session.from_client(call("list", {"offset": 2}))
    assert isinstance(load, Load)
    [reply] = talk.session.loaded(load.token, None, "the store is away")
    assert isinstance(reply, Reply)
    [text] = texts(reply.raw)
    assert text.endswith("; try again later, or call again with offset=0 first")


def test_another_session_goes_on_with_what_one_has_learned() -> None:
    one, other = Talk(PAGES), Talk(PAGES)
    list_tools(one, own("limit"))
    known = msgspec.json.decode(msgspec.json.encode(one.session.known), type=Known)
    other.session.recall(known)
    other.client(call("list", {"limit": 4, "page_limit": 2}))
    assert asked(other) == {"limit": 4}


@pytest.mark.fault(41, "inside")
def test_snapshots_are_kept_under_the_scope_of_the_session() -> None:
    talk = Talk(PAGES)
    talk.session.scope = "mine"
    talk.client(call("list", {}))
    [shape] = talk.session.from_server(answer(ITEMS))
    assert isinstance(shape, Shape)
    keep, _ = talk.session.shaped(shape.job, pipeline.shape(shape.job))
    assert isinstance(keep, Keep)
    assert (keep.key.scope, keep.key.rule) == ("mine", "pages")


def test_a_tool_outside_a_set_is_answered_as_the_set_says() -> None:
    chosen = RuleFile(
        name="set", expose=("get",), unexposed=Hidden(-32601, "{tool} is not allowed")
    )
    talk = Talk(RuleSet((chosen,)))
    refused = json.loads(talk.replied(call("list")))
    assert refused["error"] == {"code": -32601, "message": "list is not allowed"}
    assert [tool["name"] for tool in list_tools(talk, own(), {"name": "get"})] == ["get"]


# Rules that change while a session goes on

CHANGED = b'{"jsonrpc":"2.0","method":"notifications/tools/list_changed"}'
CAPABLE = answer({"serverInfo": {"name": "s"}, "capabilities": {"tools": {"listChanged": True}}})


def introduced(made: RuleSet, response: bytes = CAPABLE) -> Talk:
    """Return a talk in which the server was introduced and its tools were listed."""
    talk = Talk(made)
    talk.exchange(line(id=1, method="initialize"), response)
    list_tools(talk, own(), {"name": "gone"})
    return talk


@pytest.mark.fault(43, "inside")
def test_a_client_is_told_once_that_other_rules_make_another_list() -> None:
    talk = introduced(EMPTY)
    talk.rules = HIDE
    before = len(talk.to_client)
    talk.client(call("list", {}, id=2))
    talk.client(call("list", {}, id=3))
    assert talk.to_client[before:] == [CHANGED]
    assert [tool["name"] for tool in list_tools(talk, own(), {"name": "gone"})] == ["list"]


LONG_TOOL = {"name": "long", "description": "x" * 300_000}


def test_a_long_list_of_tools_is_edited_while_others_may_enter_the_session() -> None:
    talk = Talk(rules("- {tools: gone, hide: true}"))
    listing_tools = line(id=1, method="tools/list")
    raw = answer({"tools": [own(), {"name": "gone"}, LONG_TOOL]}, 1)
    talk.client(listing_tools)
    [work] = talk.session.from_server(raw)
    assert isinstance(work, Work)
    found = work.do()
    assert talk.exchange(line(id=2, method="ping"), answer({}, 2)) == answer({}, 2)
    [listed] = work.then(found)

    assert isinstance(listed, Forward)
    assert [tool["name"] for tool in result(listed.raw)["tools"]] == ["list", "long"]
    short = Talk(talk.rules)
    short.exchange(listing_tools, answer({"tools": [own(), {"name": "gone"}]}, 1))
    assert {**talk.session.known.seen, "long": None} == {**short.session.known.seen, "long": None}


@pytest.mark.parametrize("more", [{}, LONG_TOOL])
def test_a_list_that_a_step_fails_on_goes_out_as_it_came_unless_a_tool_is_hidden(
    more: dict[str, Any],
) -> None:
    unsure = Rule(name="r", tools=("list",), pipeline=(Unsure("tell"),))
    tools = {"tools": [{**own(), "outputSchema": {"type": "object"}}, {"name": "gone"}, more]}
    for others, closed in ((), False), (HIDE.files, True):
        talk = Talk(RuleSet((RuleFile(name="r.yaml", rules=(unsure,)), *others)))
        got = talk.exchange(line(id=1, method="tools/list"), answer(tools, 1))
        assert (got == answer(tools, 1)) is not closed
        assert ("KeyError: 'no such thing'" in got.decode()) is closed
        assert any("KeyError: 'no such thing'" in said for said in talk.log)


def test_a_client_is_told_that_other_rules_make_another_long_list() -> None:
    talk = Talk()
    talk.exchange(line(id=1, method="initialize"), CAPABLE)
    list_tools(talk, own(), {"name": "gone"}, LONG_TOOL)
    talk.rules = rules("- {tools: other, hide: true}")
    talk.client(call("list", {}, id=2))
    assert CHANGED not in talk.to_client
    talk.rules = HIDE
    talk.client(call("list", {}, id=3))
    assert talk.to_client.count(CHANGED) == 1


@pytest.mark.fault(49, "inside")
def test_new_rules_that_change_no_definition_are_no_news() -> None:
    talk = introduced(HIDE)
    talk.rules = rules("- {tools: [gone], hide: true}\n- {tools: other, response: [{keep: [a]}]}")
    talk.client(call("list", {}, id=2))
    assert CHANGED not in talk.to_client


@pytest.mark.fault(43, "inside")
def test_only_a_server_that_declares_it_has_a_list_that_changes() -> None:
    talk = introduced(EMPTY, answer({"serverInfo": {"name": "s"}, "capabilities": {"tools": {}}}))
    talk.rules = HIDE
    talk.client(call("list", {}, id=2))
    assert CHANGED not in talk.to_client


def test_a_client_that_has_listed_the_tools_anew_by_itself_is_not_told() -> None:
    talk = introduced(EMPTY)
    talk.rules = HIDE
    list_tools(talk, own(), {"name": "gone"})
    talk.client(call("list", {}, id=2))
    assert CHANGED not in talk.to_client


# What two readers could read in two ways


def test_a_batch_that_cannot_be_read_does_not_carry_a_guarded_call_past_its_rule() -> None:
    talk = Talk(HIDE)
    ping = line(id=2, method="ping")
    strange = call("gone", id=1)[:-1] + b',"x":NaN}'
    talk.client(b"[" + b",".join((strange, ping, line(method="notifications/x"))) + b"]")
    assert talk.to_server == []
    assert sorted(json.loads(raw)["id"] for raw in talk.to_client) == [1, 2]
    assert len(talk.log) == 1


@pytest.mark.parametrize(
    "members",
    [
        b'"method":"tools/call","params":{"name":"gone"},"method":"ping"',
        b'"method":"tools/call","params":{"name":"gone"},"params":{"name":"get"}',
        b'"method":"tools/call","params":{"name":"gone","name":"get"}',
        b'"method":"tools/call","params":{"name":"gone"},"Method":"ping"',
        b'"method":"tools/call","params":{"name":"gone","Name":"get"}',
    ],
)
def test_what_cannot_be_read_and_may_be_read_in_two_ways_goes_nowhere(members: bytes) -> None:
    talk = Talk(HIDE)
    raw = b'\xef\xbb\xbf{"jsonrpc":"2.0","id":7,%b}' % members
    assert json.loads(talk.replied(raw))["error"]["code"] == -32700
    plain = Talk()
    plain.client(raw)
    assert plain.to_server == [raw]


def test_a_batch_that_cannot_be_read_and_calls_nothing_guarded_passes() -> None:
    talk = Talk(HIDE)
    raw = b"[" + call("get")[:-1] + b',"x":NaN}]'
    talk.client(raw)
    assert talk.to_server == [raw]


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


# Out of service

ABS = "- {name: abs, tools: [get, put], response: [{jmespath: 'abs(a)'}]}"
ABS_PAGES = """
- name: r
  tools: list
  response: [{jmespath: {at: n, expression: abs(@)}}, {paginate: {at: items, limit: 2}}]
"""
FITS, FAILS = answer(document({"a": -1})), answer(document({"a": "text"}))
OUT = (
    "rule 'abs' is out of service after 5 failures in a row, until the rules are loaded again; "
    "its responses go out as they came"
)


def after(talk: Talk, *responses: bytes) -> list[bytes]:
    """Make a call for each response; return what the client gets."""
    return [talk.exchange(call("get"), raw) for raw in responses]


@pytest.mark.fault(34, "inside")
def test_five_failures_in_a_row_put_a_rule_out_of_service_which_is_said_once() -> None:
    talk = Talk(rules(ABS))

    assert after(talk, *[FAILS] * 4, FITS) == [*[FAILS] * 4, answer(document(1))]
    assert after(talk, *[FAILS] * 5, FITS, FAILS) == [*[FAILS] * 5, FITS, FAILS]

    assert [said for said in talk.log if said == OUT] == [OUT]
    assert [said.startswith("abs: get: failed at jmespath") for said in talk.log] == [
        *[True] * 9,
        False,
    ]
    [warned] = talk.meter.drain_warnings()
    assert (warned.rule, warned.kind, warned.count) == ("abs", "out of service", 1)
    words = [row.outcome for row in talk.counted() for _ in range(row.calls)]
    assert words.count("failed") == 11


@pytest.mark.fault(34, "inside")
def test_sessions_that_share_a_rule_share_its_failures_and_rules_read_again_are_in_service() -> (
    None
):
    shared = rules(ABS)
    one, other = Talk(shared), Talk(shared)
    after(one, *[FAILS] * 3)
    after(other, *[FAILS] * 2)
    assert after(one, FITS) == after(other, FITS) == [FITS]
    assert (OUT in one.log, OUT in other.log) == (False, True)

    one.rules = rules(ABS)
    assert after(one, FITS) == [answer(document(1))]
    assert after(other, FITS) == [FITS]


def test_errors_and_views_say_nothing_about_whether_a_rule_works() -> None:
    talk = Talk(
        rules("- {name: abs, tools: get, response: [{jmespath: 'abs(a)'}], max_bytes: 300}")
    )
    list_tools(talk, {"name": "get", "annotations": {"readOnlyHint": True}})
    failed = answer({**document({"a": 1}), "isError": True})
    after(talk, *[FAILS, failed] * 4)
    for _ in range(5):
        talk.exchange(call("get", {"view": "nothing(@)"}), FAILS)
    assert "out of service" not in str(talk.log)
    after(talk, FAILS)
    assert "out of service" in str(talk.log)


@pytest.mark.fault(34, "inside")
def test_a_rule_that_withholds_is_never_out_of_service() -> None:
    talk = Talk(rules(f"{ABS[:-1]}, on_failure: refuse}}"))
    got = after(talk, *[FAILS] * 12)
    assert {str(texts(raw)) for raw in got} == {
        "[\"the response was withheld: rule 'abs' failed on it\"]"
    }
    assert after(talk, FITS) == [answer(document(1))]


@pytest.mark.fault(34, "inside")
def test_out_of_service_a_page_is_refused_and_its_tool_not_called_again() -> None:
    talk = Talk(rules(ABS_PAGES))
    pages = answer(document({"n": 1, "items": [1, 2, 3]}))
    assert items(talk.exchange(call("list"), pages)) == [1, 2]
    for at in range(5):
        bad = answer(document({"n": "x", "items": []}))
        assert talk.exchange(call("list", {"q": at}), bad) == bad

    refused = talk.replied(call("list", {"offset": 2}))

    assert result(refused)["isError"] is True
    assert texts(refused) == [
        "nothing is shown in parts while rule 'r' is out of service; call again with offset=0"
    ]
    assert talk.exchange(call("list", {"offset": 0}), pages) == pages


@pytest.mark.fault(34, "inside")
def test_out_of_service_a_rule_still_hides_bounds_and_takes_its_arguments() -> None:
    text = "arguments: {n: {maximum: 3, upstream: false}}, response: [{jmespath: 'abs(a)'}]"
    talk = Talk(rules(f"- {{name: abs, tools: get, {text}}}\n- {{tools: gone, hide: true}}"))
    after(talk, *[FAILS] * 5)
    assert texts(talk.replied(call("get", {"n": 4}))) == ["n: 4 is greater than the maximum of 3"]
    assert talk.exchange(call("get", {"n": 3, "m": 1}), FITS) == FITS
    assert asked(talk) == {"m": 1}
    assert json.loads(talk.replied(call("gone")))["error"]["code"] == -32602


def test_an_answer_out_of_service_makes_what_was_kept_of_an_earlier_one_untrue() -> None:
    talk = Talk(rules(ABS_PAGES))
    talk.exchange(call("list"), answer(document({"n": 1, "items": [1, 2, 3]})))
    bad = answer(document({"n": "x", "items": [4]}))
    for at in range(5):
        talk.exchange(call("list", {"q": at}), bad)
    talk.exchange(call("list"), bad)
    talk.rules = rules(ABS_PAGES)
    assert "nothing is kept" in texts(talk.replied(call("list", {"offset": 2})))[0]


# What the session itself fails on


def test_the_answer_to_a_task_that_cannot_be_read_is_withheld_by_a_rule_that_withholds() -> None:
    talk = Talk(rules("- {name: r, tools: get, on_failure: refuse, response: [{drop: secret}]}"))
    got = talk.exchange(call("get", task={"ttl": 1}), line(id=1, result=["secret"]))
    assert texts(got) == ["the response was withheld: rule 'r' cannot read it"]


def test_what_is_no_fault_of_the_rules_does_not_put_it_out_of_service() -> None:
    talk = Talk(rules(ABS))
    for _ in range(6):
        talk.client(call("get"))
        [asked_for] = talk.session.from_server(FITS)
        assert isinstance(asked_for, Shape)
        failure = pipeline.failure(asked_for.job, "the start of a worker process: no descriptors")
        talk.session.shaped(asked_for.job, msgspec.structs.replace(failure, blameless=True))
    assert after(talk, FITS) == [answer(document(1))]
