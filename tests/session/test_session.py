"""One conversation, message by message: what reaches the other side, and what the proxy answers."""

import json
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from proxy.errors import RuleErrors
from proxy.ruleset.rule import EMPTY, RuleSet
from proxy.session.outputs import Forward, Output
from tests.given import answer, call, line, result, rules, said, texts
from tests.samples import DROP, ITEMS, SECRET, list_tools, own
from tests.talk import Talk
from tests.transports.guarded import guarded, onward

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


# Counting


@pytest.mark.slow
def test_what_a_session_remembers_is_bounded_whatever_is_called() -> None:
    every = "{name: all, tools: '*', response: [{keep: [items, gone]}, {paginate: {at: items}}]}"
    talk = Talk(rules(f"- {every}"), resumable=True)
    for number in range(1200):
        tool = f"tool-{number}"
        list_tools(talk, {**own("limit"), "name": tool})
        talk.exchange(call(tool, id=number), answer(ITEMS, number))
        talk.client(call(f"other-{number}", {"page_limit": 1}, id=-1))
    state = talk.session
    rules_ = vars(state.rules)
    sizes = {name: len(rules_[name]) for name in ("_facts", "_implied", "_by_tool")}
    sizes["stored"] = len(state.stored)
    sizes["logged"] = len(state._logged)
    sizes["answered"] = len(state.inflight._answered._requests)
    assert all(size <= 1001 for size in sizes.values()), sizes
    full = {name for name, size in sizes.items() if size == 1000}
    assert full >= {"stored", "_facts", "_implied", "answered"}
    assert not state.suspended


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
        talk.session.may_stream(raw[:512])
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


def test_a_session_at_rest_has_forgotten_what_was_answered_but_not_what_waits() -> None:
    talk = Talk(DROP, resumable=True)
    shaped = talk.exchange(call("get"), answer(SECRET))
    talk.client(call("get", id=2))
    assert talk.got(answer(SECRET)) == shaped
    talk.session.rest()
    assert talk.got(answer(SECRET)) == answer(SECRET)
    assert texts(talk.got(answer(SECRET, 2))) == texts(shaped)


# Failures of the proxy itself


class Failing(Talk):
    """A conversation whose rules fail once `fails` is set."""

    fails: Exception | None = None

    def _rules(self, server: str | None, client: str | None) -> RuleSet:
        if self.fails is not None:
            raise self.fails
        return super()._rules(server, client)


REASON = "the proxy failed on a message: KeyError: 'x'"
ERROR = {"code": -1, "message": REASON}
CLOSED = rules("- {tools: get, on_failure: refuse, response: [{drop: secret}]}")


def failing(made: RuleSet = EMPTY) -> Failing:
    talk = Failing(made)
    talk.client(line(id=9, method="tools/list"))
    talk.client(call("get"))
    talk.fails = KeyError("x")
    return talk


@pytest.mark.parametrize("fails", [KeyError("x"), RuleErrors([])])
def test_a_call_on_which_the_proxy_fails_is_answered_and_forgotten(fails: Exception) -> None:
    talk = Failing()
    talk.fails = fails
    reply = json.loads(talk.replied(call("get", id=7)))
    known = isinstance(fails, RuleErrors)
    assert reply["id"] == 7
    assert reply["error"]["message"] == (fails.brief if isinstance(fails, RuleErrors) else REASON)
    assert talk.log == ([] if known else [REASON])
    assert talk.session.ended("gone") == ()


def test_each_request_of_a_batch_on_which_the_proxy_fails_is_answered() -> None:
    talk = failing()
    note = line(method="notifications/cancelled")
    talk.client(b"[" + b",".join([call("get"), note, b"5", call("put", id="a")]) + b"]")
    replies = [json.loads(raw) for raw in talk.to_client]
    assert [(each["id"], each["error"]) for each in replies] == [(1, ERROR), ("a", ERROR)]


@pytest.mark.parametrize(
    ("raw", "ids"),
    [
        (line(method="tools/call", params={"name": "get"}), []),
        (line(id=None, method="tools/call", params={"name": "get"}), []),
        (rb'{"jsonrpc":"2.0","m\u0065thod":"tools/call"', []),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"n":NaN}}', [7]),
    ],
)
def test_a_call_on_which_the_proxy_fails_never_reaches_the_server(
    raw: bytes, ids: list[int]
) -> None:
    talk = failing()
    before = list(talk.to_server)
    talk.client(raw)
    assert talk.to_server == before
    assert [json.loads(raw)["id"] for raw in talk.to_client] == ids


@pytest.mark.parametrize("made", [EMPTY, CLOSED])
def test_a_response_on_which_the_proxy_fails_passes_unless_its_rule_withholds(
    made: RuleSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = failing(made)
    raw = answer(SECRET)

    def fails(*given: Any) -> Any:
        raise KeyError("x")

    monkeypatch.setattr("proxy.session.responses.take", fails)
    reply = talk.got(raw)
    if made is EMPTY:
        assert reply == raw
    else:
        assert result(reply) == {**said(REASON), "isError": True}
    # Not the list: it may show hidden tools.
    unedited = answer({"tools": []}, 9)
    assert talk.got(unedited) == (unedited if made is EMPTY else line(id=9, error=ERROR))
    assert talk.session.ended("gone") == ()


def test_a_list_that_could_not_be_edited_is_an_error_if_rules_cannot_be_used() -> None:
    talk = failing()
    talk.fails = RuleErrors([])
    assert json.loads(talk.got(answer({"tools": []}, 9)))["error"]["message"] == RuleErrors.brief


def test_a_query_response_on_which_the_proxy_fails_answers_the_held_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    talk = Talk(guarded(onward))
    talk.client(call("write", {}))
    query = talk.probes[0]

    def fails(*given: Any) -> Any:
        raise KeyError("x")

    monkeypatch.setattr("proxy.session.guards.decide", fails)
    talk.server(answer(said("fine"), json.loads(query.raw)["id"]))
    [reply] = talk.to_client
    assert (json.loads(reply)["id"], texts(reply)) == (1, [REASON])
    talk.client(call("write", {}, id=2))
    assert talk.session.ended("gone") == ()


# Outputs


def test_a_short_conversation_uses_every_output() -> None:
    paged = "{paginate: {at: items, limit: 1, drop_on: [write]}}"
    text = f"- {{tools: list, response: [{paged}]}}\n- {{tools: secret, hide: true}}"
    guarding = guarded(onward, covers="guarded")
    talk = Talk()
    capable = answer({"capabilities": {"tools": {"listChanged": True}}})
    talk.exchange(line(id=1, method="initialize"), capable)
    talk.exchange(line(id=1, method="tools/list"), answer({"tools": [{"name": "secret"}]}))
    talk.rules = RuleSet((*rules(text).files, *guarding.files))
    talk.client(call("list", {}))
    talk.got(answer(ITEMS))
    for request in (call("list", {"offset": 1}), call("secret"), call("write"), call("guarded")):
        talk.client(request)
    talk.server(b"starting up")
    talk.exchange(line(id=2, method="tools/list"), answer({"tools": [], "more": "x" * 300_000}, 2))
    assert talk.used == set(get_args(Output))
