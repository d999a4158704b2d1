"""One conversation, message by message: forwarded, answered by the proxy, or failed on."""

import json
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.errors import RuleErrors
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.session.tools.definitions import ToolFacts
from mcp_abridge.storage.calls import RecentCalls

from tests.builders import EMPTY, answer, call, line, result, rules, texts, tool_result
from tests.samples import DROP, PAGES, SECRET
from tests.talk import Talk

JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-3, 3) | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=6,
)
IDS = st.sampled_from([0, 1, "1", "\ud800", None, 1.0, True, [1]])
METHODS = st.sampled_from(["tools/list", "tools/call", "initialize", "ping"])
MESSAGES = st.one_of(
    st.builds(
        lambda id, method, params: line(id=id, method=method, params=params), IDS, METHODS, JSON
    ),
    st.builds(lambda id, result: line(id=id, result=result), IDS, JSON),
    JSON.map(lambda value: json.dumps(value).encode()),
    st.binary(max_size=40),
)
MALFORMED = st.builds(
    lambda raw, at, byte: raw[: at % (len(raw) + 1)] + byte + raw[at % (len(raw) + 1) :],
    MESSAGES,
    st.integers(0, 400),
    st.binary(max_size=2),
)
BATCHES = st.lists(MESSAGES, max_size=3).map(lambda lines: b"[" + b",".join(lines) + b"]")
LINES = st.one_of(MESSAGES, MALFORMED, BATCHES).map(lambda raw: raw.replace(b"\n", b""))
TRACES = st.lists(st.tuples(st.booleans(), LINES), max_size=12)


@given(TRACES)
def test_a_message_without_a_rule_passes_byte_for_byte_both_ways(
    trace: list[tuple[bool, bytes]],
) -> None:
    talk = Talk(DROP)
    for of_client, raw in trace:
        before = len(talk.to_server), len(talk.to_client), len(talk.noise)
        (talk.client if of_client else talk.server)(raw)
        after = talk.to_server[before[0] :], talk.to_client[before[1] :], talk.noise[before[2] :]
        if of_client:
            assert after == ([raw], [], [])
        else:
            # Messages are told from noise, and nothing is lost but blank lines.
            assert after[0] == []
            assert b"".join(after[2] + after[1]) == raw or not raw.strip()


def test_only_the_requests_with_the_ids_of_the_exchange_are_ended() -> None:
    talk = Talk()
    for exchange, id in ((b"1:", 1), (b"1:", 2), (b"2:", 1)):
        talk.client(call("get", id=id), exchange)
    session = talk.session
    assert ids(session.fail_pending("gone", [b"1:2", b"1:7"])) == [2]
    assert ids(session.fail_pending("gone")) == [1, 1]
    assert ids(session.fail_pending("gone")) == []


def ids(lines: list[bytes]) -> list[Any]:
    return [json.loads(raw)["id"] for raw in lines]


def test_a_session_at_rest_forgets_answered_calls_and_keeps_pending_ones() -> None:
    talk = Talk(DROP, resumable=True)
    shaped = talk.exchange(call("get"), answer(SECRET))
    talk.client(call("get", id=2))
    assert talk.receive(answer(SECRET)) == shaped
    talk.session.rest()
    assert talk.receive(answer(SECRET)) == answer(SECRET)
    assert texts(talk.receive(answer(SECRET, 2))) == texts(shaped)


@pytest.mark.slow
def test_requests_that_are_never_answered_do_not_pile_up() -> None:
    talk = Talk(DROP)
    for id in range(21_000):
        talk.session.from_client(call("get", id=id))

    assert len(talk.session.fail_pending("gone")) == 20_000


class Failing(Talk):
    """A conversation whose rules fail once `fails` is set."""

    fails: Exception | None = None

    def _rules(self, server: str | None, client: str | None, version: str | None) -> RuleSet:
        if self.fails is not None:
            raise self.fails
        return super()._rules(server, client, version)


REASON = "the proxy failed on a message: KeyError: 'x'"
ERROR = {"code": -1, "message": REASON}
CLOSED = rules("- {tools: get, on_failure: refuse, response: [{drop: secret}]}")


def failing(ruleset: RuleSet = EMPTY) -> Failing:
    talk = Failing(ruleset)
    talk.client(line(id=9, method="tools/list"))
    talk.client(call("get"))
    talk.fails = KeyError("x")
    return talk


@pytest.mark.parametrize(
    ("fails", "reason", "log"),
    [(KeyError("x"), REASON, [REASON]), (RuleErrors([]), RuleErrors.brief, [])],
)
def test_a_call_on_which_the_proxy_fails_is_answered_and_forgotten(
    fails: Exception, reason: str, log: list[str]
) -> None:
    talk = Failing()
    talk.fails = fails
    reply = json.loads(talk.replied(call("get", id=7)))
    assert (reply["id"], reply["error"]["message"]) == (7, reason)
    assert talk.log == log
    assert talk.session.fail_pending("gone") == []


@pytest.mark.parametrize(
    ("raw", "ids"),
    [
        (line(method="tools/call", params={"name": "get"}), []),
        (line(id=None, method="tools/call", params={"name": "get"}), []),
        (rb'{"jsonrpc":"2.0","m\u0065thod":"tools/call"', []),
        (b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{"n":NaN}}', [7]),
        (b"[" + b",".join([call("get"), line(method="x"), b"5", call("put", id=8)]) + b"]", [1, 8]),
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


@pytest.mark.parametrize("ruleset", [EMPTY, CLOSED])
def test_a_response_on_which_the_proxy_fails_passes_unless_its_rule_withholds(
    ruleset: RuleSet, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = failing(ruleset)
    raw = answer(SECRET)

    def fails(*arguments: Any) -> Any:
        raise KeyError("x")

    monkeypatch.setattr("mcp_abridge.session.responses.take", fails)
    reply = talk.receive(raw)
    if ruleset is EMPTY:
        assert reply == raw
    else:
        assert result(reply) == {**tool_result(REASON), "isError": True}
    # Not the list: it may show hidden tools.
    unedited = answer({"tools": []}, 9)
    assert talk.receive(unedited) == (unedited if ruleset is EMPTY else line(id=9, error=ERROR))
    assert talk.session.fail_pending("gone") == []


@pytest.mark.fault(34, "inside")
@pytest.mark.parametrize("name", ["requests.loaded", "first_calls._listed", "first_calls._claimed"])
def test_a_call_that_waits_is_answered_with_an_error_if_its_continuation_fails(
    name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    talk = Talk(PAGES, calls=RecentCalls())
    if name == "first_calls._claimed":
        talk.session.rules.learn({"list": ToolFacts()})

    def fail(*_: object, **options: object) -> None:
        raise KeyError("x")

    monkeypatch.setattr(f"mcp_abridge.session.{name}", fail)
    response = json.loads(talk.replied(call("list", {"offset": 2}, id=7)))
    assert (response["id"], response["result"]) == (7, {**tool_result(REASON), "isError": True})
    assert talk.session.fail_pending("gone") == []


def test_a_list_that_could_not_be_edited_is_an_error_if_rules_cannot_be_used() -> None:
    talk = failing()
    talk.fails = RuleErrors([])
    assert (
        json.loads(talk.receive(answer({"tools": []}, 9)))["error"]["message"] == RuleErrors.brief
    )
