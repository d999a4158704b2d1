"""The decision of a guard is carried out, whatever the server does with its query."""

import asyncio
import json
from collections.abc import Callable
from typing import Any

import pytest
from mcp_abridge.query.call import Call
from mcp_abridge.ruleset.guard import Allow, Decision, QueryResult, Respond
from mcp_abridge.ruleset.rule_set import RuleFile, RuleSet
from mcp_abridge.session import outputs
from mcp_abridge.transforms.base import Parameter
from msgspec import UNSET
from msgspec.structs import replace

from tests.builders import answer, call, document, line, result, rule, texts, tool_result
from tests.talk import Talk
from tests.transports.guarded import ScriptedGuard, onward, querying
from tests.transports.guarded import guarded as careful


def talk(decide: Callable[[Call, QueryResult | None], Decision], more: str = "") -> Talk:
    guard = ScriptedGuard(decide, {"force": Parameter({"type": "boolean"})})
    guarded = replace(rule(f"name: guarded\ntools: reindex\n{more}"), guard=guard)
    return Talk(RuleSet((RuleFile(name="rules.yaml", rules=(guarded,)),)))


def asking(then: Callable[[QueryResult], Decision], seconds: float = 20.0) -> Talk:
    """Return a talk whose guard asks first."""
    return talk(querying(then, seconds))


def arguments(raw: bytes) -> Any:
    return json.loads(raw)["params"]["arguments"]


REINDEX = call("reindex", {"path": "a"})


def test_an_argument_of_the_guard_is_advertised_checked_and_never_sent() -> None:
    values: list[Any] = []

    def decide(call: Call, query_result: QueryResult | None) -> Decision:
        values.append(call.argument("force"))
        return Allow()

    guarded = talk(decide)
    tools = {"tools": [{"name": "reindex", "inputSchema": {"type": "object"}}]}
    listing = guarded.exchange(line(id=9, method="tools/list"), answer(tools, 9))
    assert result(listing)["tools"][0]["inputSchema"]["properties"] == {
        "force": {"type": "boolean"}
    }
    guarded.client(call("reindex", {"path": "a", "force": True}))
    assert arguments(guarded.to_server[-1]) == {"path": "a"}
    assert texts(guarded.replied(call("reindex", {"force": 1}, id=2))) == [
        "force: 1 is not true or false"
    ]
    assert values == [True]


def test_a_guard_changes_adds_and_removes_arguments() -> None:
    guarded = talk(lambda call, _: Allow({"path": "b", "deep.er": 1, "old": UNSET}))
    guarded.client(call("reindex", {"path": "a", "kept": 1.5, "old": 2}))
    assert arguments(guarded.to_server[-1]) == {"path": "b", "kept": 1.5, "deep": {"er": 1}}


def test_for_the_list_of_stored_answers_no_guard_is_asked_and_no_tool_runs() -> None:
    tools: list[str] = []

    def decide(call: Call, query_result: QueryResult | None) -> Decision:
        tools.append(call.tool)
        return Allow()

    guarded = talk(decide, "max_bytes: 2000")
    lists = {}
    for caller in ("jane", "joe"):
        guarded.session.state.scope = caller
        guarded.exchange(call("reindex", {"path": caller}), answer(document(["row"] * 2000)))
        [lists[caller]] = texts(guarded.replied(call("reindex", {"view": "kept"})))
    assert tools == ["reindex", "reindex"]
    for caller, text in lists.items():
        [row] = json.loads(text)["view"]
        assert row["arguments"] == {"path": caller, "view": "help"}


@pytest.mark.parametrize(
    ("decision", "content", "failed"),
    [
        (Respond({"status": "blocked"}), '{"status":"blocked"}', False),
        (Respond("not now", error=True), "not now", True),
        (Respond([1]), "[1]", False),
    ],
)
def test_an_answer_of_the_guard_is_a_result(decision: Respond, content: str, failed: bool) -> None:
    guarded = talk(lambda call, _: decision)
    tools = {"tools": [{"name": "reindex", "inputSchema": {}}]}
    guarded.exchange(line(id=9, method="tools/list"), answer(tools, 9))
    guarded.counted()
    reply = result(guarded.replied(REINDEX))
    assert reply["content"] == [{"type": "text", "text": content}]
    assert reply.get("isError", False) is failed
    assert "structuredContent" not in reply
    assert [(row.rule, row.outcome) for row in guarded.counted()] == [("guarded", "answered")]


@pytest.mark.parametrize("value", [{"status": "blocked"}, "not now"])
@pytest.mark.parametrize("listed", [True, False])
def test_an_answer_for_a_tool_that_may_have_an_output_schema_is_structured(
    value: Any, listed: bool
) -> None:
    guarded = talk(lambda call, _: Respond(value))
    tools = {"tools": [{"name": "reindex", "inputSchema": {}, "outputSchema": {"type": "object"}}]}
    if listed:
        guarded.exchange(line(id=9, method="tools/list"), answer(tools, 9))
    expected = value if isinstance(value, dict) else {"text": value}
    assert result(guarded.replied(REINDEX))["structuredContent"] == expected


DEEP = b"[" * 1500 + b"]" * 1500


@pytest.mark.parametrize(
    "raw",
    [
        REINDEX.replace(b'"a"', DEEP),
        b"[" + REINDEX.replace(b'"a"', DEEP) + b"]",
        REINDEX + b" " + REINDEX,
        REINDEX.replace(b'"method"', b'"Method"'),
        REINDEX.replace(b'"params"', b'"params":{"name":"free"},"Params"'),
        REINDEX.replace(b'"params"', b'"method":"ping","params"'),
        REINDEX.replace(b"call", rb"c\u0061ll").replace(b'"params"', b'"method":"ping","params"'),
        REINDEX.replace(b'"params"', rb'"method":"ping","x":"\ud800","params"'),
    ],
)
def test_a_call_that_only_another_parser_sees_does_not_bypass_a_guard(raw: bytes) -> None:
    guarded = talk(lambda call, _: Respond("no", error=True))
    guarded.client(raw)
    assert guarded.to_server == []
    [reply] = guarded.to_client
    assert json.loads(reply)["id"] in (1, None)
    note = REINDEX.replace(b'"id":1,', b"").replace(b'"params"', b'"method":"ping","params"')
    guarded.client(note)
    assert (guarded.to_server, len(guarded.to_client)) == ([], 1)


@pytest.mark.parametrize("facts", [{"by": ["A", 1.50]}, {}])
def test_later_pages_have_the_facts_of_the_guard_too(facts: dict[str, Any]) -> None:
    more = """
response:
- {elide: {at: tags, first: 1}}
- recast:
    cases: [{to: {by: {argument: guard.by, default: nobody}, items: {path: items}}}]
- {paginate: {at: items, limit: 2}}
"""
    guarded = talk(lambda call, _: Allow(facts=facts), more)
    first = guarded.exchange(REINDEX, answer(document({"items": [1, 2, 3]})))
    later = guarded.replied(call("reindex", {"path": "a", "offset": 2}))
    pages = [json.loads(texts(page)[0]) for page in (first, later)]
    assert [page["items"] for page in pages] == [[1, 2], [3]]
    assert [page["by"] for page in pages] == [facts.get("by", "nobody")] * 2


def test_a_client_cannot_forge_the_facts_of_a_guard() -> None:
    case = "{to: {warnings: {argument: guard.warnings}}}"
    guarded = talk(lambda call, _: Allow(), f"response: [{{recast: {{cases: [{case}]}}}}]")
    reply = guarded.exchange(
        call("reindex", {"guard": {"warnings": ["A"]}}), answer(tool_result("done"))
    )
    assert json.loads(texts(reply)[0]) == {"warnings": None}
    assert arguments(guarded.to_server[0]) == {"guard": {"warnings": ["A"]}}


@pytest.mark.parametrize(
    ("response", "failure"),
    [
        ({"result": tool_result("no such path", isError=True)}, "no such path"),
        ({"error": {"code": -32602, "message": "Unknown tool: status"}}, "Unknown tool: status"),
        ({"result": {"content": 5}}, "the answer cannot be read: content: Expected `array`"),
        ({"result": {"resultType": "input_required"}}, "the server wants to know something first"),
        ({"result": {"content": []}}, "the answer has no document"),
        ({"error": "odd"}, "the answer is an error"),
    ],
)
def test_a_guard_gets_the_failure_of_its_query(response: dict[str, Any], failure: str) -> None:
    outcomes: list[QueryResult] = []

    def then(query_result: QueryResult) -> Decision:
        outcomes.append(query_result)
        return Allow()

    guarded = asking(then)
    guarded.client(REINDEX)
    guarded.server(line(id=json.loads(guarded.probes[0].raw)["id"], **response))
    assert outcomes[0].document is None
    assert str(outcomes[0].failure).startswith(failure)
    assert guarded.to_server[1:] == [REINDEX]
    assert guarded.to_client == []
    [logged] = guarded.log
    assert logged.startswith(
        f"guarded: reindex: what the guard asked of 'status' failed: {failure}"
    )


@pytest.mark.parametrize("late", [True, False])
def test_a_guard_continues_without_an_answer_to_its_query(late: bool) -> None:
    guarded = asking(lambda query_result: Respond(str(query_result.failure)), seconds=0.0)
    guarded.client(REINDEX)
    id = json.loads(guarded.probes[0].raw)["id"]
    if late:
        guarded.expire(b"1")
    else:
        guarded.silence()
    cause = "no answer in time" if late else "the server is gone"
    assert texts(guarded.to_client[0]) == [cause]
    cancelled = line(method="notifications/cancelled", params={"requestId": id})
    assert guarded.to_server[1:] == ([cancelled] if late else [])
    # A second failure, or a late response, has no effect.
    guarded.silence()
    guarded.server(answer(tool_result("late"), id))
    guarded.server(answer(tool_result("late " + "x" * 5000), id))
    assert not guarded.session.may_stream(answer(tool_result("late"), id)[:100])
    assert len(guarded.to_client) == 1


def test_the_end_of_the_server_is_an_error_for_the_held_call_alone() -> None:
    guarded = asking(lambda query_result: Allow())
    guarded.client(REINDEX)
    [raw] = guarded.session.fail_pending("the server died")
    reply = json.loads(raw)
    assert (reply["id"], reply["result"]["content"][0]["text"]) == (1, "the server died")


def test_a_large_answer_to_a_query_is_read_in_the_background() -> None:
    large = answer(document({"files": ["a"] * 100_000}))
    for cancels in (False, True):
        talk = Talk(careful(onward))
        talk.client(call("write", {}, id=5))
        question = json.loads(talk.probes[0].raw)["id"]
        raw = large.replace(b'"id":1', b'"id":' + json.dumps(question).encode())
        [work] = talk.session.from_server(raw)
        assert isinstance(work, outputs.RunInBackground)
        outcome = work.do()
        if cancels:
            talk.client(line(method="notifications/cancelled", params={"requestId": 5}))
        continuation = work.then(outcome)
        assert continuation == (() if cancels else (outputs.ToServer(call("write", {}, id=5)),))


def raising(call: Call, query_result: QueryResult | None) -> Decision:
    raise KeyError("path")


def leaving(call: Call, query_result: QueryResult | None) -> Decision:
    raise asyncio.CancelledError("on purpose")


def nothing(call: Call, query_result: QueryResult | None) -> Decision:
    return None  # type: ignore[return-value]


@pytest.mark.parametrize(
    ("decide", "why"),
    [
        (raising, "KeyError: 'path'"),
        (nothing, "TypeError: None is no decision"),
        (leaving, "CancelledError: on purpose"),
    ],
)
@pytest.mark.parametrize("on_failure", ["on_failure: pass", "on_failure: refuse", ""])
def test_a_guard_that_fails_follows_on_failure(decide: Any, why: str, on_failure: str) -> None:
    guarded = talk(decide, on_failure)
    guarded.client(REINDEX)
    if on_failure == "on_failure: pass":
        assert guarded.to_server == [REINDEX]
        assert guarded.to_client == []
    else:
        assert guarded.to_server == []
        [reply] = guarded.to_client
        assert texts(reply) == ["the call was withheld: the guard of rule 'guarded' failed"]
    assert guarded.log == [f"guarded: reindex: the guard 'scripted' failed: {why}"]


def test_a_rule_in_shadow_mode_asks_no_guard() -> None:
    guarded = talk(raising, "mode: shadow")
    guarded.exchange(REINDEX, answer(tool_result("done")))
    assert guarded.log == []
