"""Messages of the client: its name, its cancellations, the rules for its calls."""

import json
from typing import Any

import pytest
from mcp_abridge.ruleset.rule import Hidden
from mcp_abridge.ruleset.rule_set import RuleFile, RuleSet
from mcp_abridge.ruleset.selection import Selection
from msgspec.structs import replace

from tests.builders import answer, call, document, file, line, result, rules, texts
from tests.samples import (
    ABS_PAGES,
    DROP,
    FAILS,
    FITS,
    HIDE,
    ITEMS,
    PAGES,
    SECRET,
    after,
    items,
    last_arguments,
    list_tools,
    own,
)
from tests.talk import Talk
from tests.transports.guarded import guarded, onward


def test_the_names_of_client_and_server_come_with_stateless_requests_too() -> None:
    talk = Talk(DROP)
    meta = {"io.modelcontextprotocol/clientInfo": {"name": "c"}}
    discovered = {"_meta": {"io.modelcontextprotocol/serverInfo": {"name": "s"}}}

    talk.client(line(id=1, method="server/discover", params={"_meta": meta}))
    talk.server(answer(discovered))

    assert (talk.session.rules.peer.server, talk.session.rules.peer.client) == ("s", "c")


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
def test_a_second_request_with_an_id_does_not_bypass_a_rule_that_withholds(
    first: bytes, second: bytes
) -> None:
    talk = Talk(SAFE)
    talk.client(first)

    reply = json.loads(talk.replied(second))
    assert reply["id"] == 1
    assert TWICE in json.dumps(reply)
    assert (b"secret" in talk.receive(answer(SECRET))) == (b"other" in first)
    assert texts(talk.exchange(call("get"), answer(SECRET))) == ['{"a":1}']


UNKNOWN_TOOL = {"code": -32602, "message": "Unknown tool: gone"}
EXPOSED = RuleSet((file("version: 1\nexpose: [get_*]\nrules: []"),))
UNEXPOSED = RuleFile(name="set", expose=("get",), unexposed=Hidden(-32601, "no {tool}"))


@pytest.mark.parametrize(
    ("ruleset", "error"),
    [
        (HIDE, UNKNOWN_TOOL),
        (rules("- {tools: gone, when: a, hide: false}\n- {tools: gone, hide: true}"), UNKNOWN_TOOL),
        (EXPOSED, UNKNOWN_TOOL),
        (RuleSet((UNEXPOSED,)), {"code": -32601, "message": "no gone"}),
    ],
)
def test_a_call_of_a_hidden_tool_is_answered_as_one_of_an_unknown_tool(
    ruleset: RuleSet, error: dict[str, Any]
) -> None:
    reply = json.loads(Talk(ruleset).replied(call("gone", {"a": 1}, id="x")))
    assert reply == {"jsonrpc": "2.0", "id": "x", "error": error}


@pytest.mark.parametrize("head", [b'"jsonrpc":"2.0",', b'"jsonrpc":"2.0","id":null,'])
def test_a_call_without_an_id_does_not_bypass_a_rule(head: bytes) -> None:
    talk = Talk(HIDE)
    hidden = b"{" + head + b'"method":"tools/call","params":{"name":"gone"}}'
    other = hidden.replace(b"gone", b"other")

    talk.client(hidden)
    talk.client(other)

    assert talk.to_server == [other]


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


@pytest.mark.parametrize("protects", [False, True])
def test_a_condition_that_fails_is_no_match_unless_the_rule_protects(protects: bool) -> None:
    effect = "arguments: {n: {maximum: 5}}" if protects else "response: [{drop: secret}]"
    talk = Talk(rules(f"- {{name: r, tools: get, when: 'length(n) > `1`', {effect}}}"))
    if protects:
        assert texts(talk.replied(call("get", {"n": 5})))[0].startswith("r: `when` failed: ")
    else:
        assert talk.exchange(call("get", {"n": 5}), answer(SECRET)) == answer(SECRET)
        assert [line.startswith("get: r: `when` failed: ") for line in talk.log] == [True]


def test_arguments_that_are_added_leave_the_others_as_they_were_spelled() -> None:
    talk = Talk(rules("- {tools: get, arguments: {limit: {default: 20}}}"))
    spelled = rb'"a":1.0,"b":12345678901234567890123,"c":"\/"'
    raw = b'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"get","arguments":{%s}}}'

    talk.client(raw % spelled)

    assert talk.to_server == [raw % (spelled.replace(rb"\/", b"/") + b',"limit":20')]


def test_the_arguments_of_rules_that_do_not_apply_are_removed_too() -> None:
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


@pytest.mark.fault(34, "inside")
def test_out_of_service_a_rule_still_hides_bounds_and_takes_its_arguments() -> None:
    text = "arguments: {n: {maximum: 3, upstream: false}}, response: [{jmespath: 'abs(a)'}]"
    talk = Talk(rules(f"- {{name: abs, tools: get, {text}}}\n- {{tools: gone, hide: true}}"))
    after(talk, *[FAILS] * 5)
    assert texts(talk.replied(call("get", {"n": 4}))) == ["n: 4 is greater than the maximum of 3"]
    assert talk.exchange(call("get", {"n": 3, "m": 1}), FITS) == FITS
    assert last_arguments(talk) == {"m": 1}
    assert json.loads(talk.replied(call("gone")))["error"]["code"] == -32602


def test_pages_are_not_cut_from_an_answer_that_was_read_by_other_rules() -> None:
    step = "{paginate: {at: items, limit: %d}}"
    now = "- {name: pages, tools: list, response: [{drop: items.secret}, " + step + "]}"
    talk = Talk(PAGES)
    talk.exchange(call("list"), answer(ITEMS))
    talk.rules = rules(now % 2)
    assert "nothing is kept" in texts(talk.replied(call("list", {"offset": 2})))[0]
    # If only the window has changed, the stored document is still right.
    talk.exchange(call("list"), answer(ITEMS))
    talk.rules = rules(now % 3)
    assert items(talk.replied(call("list", {"offset": 2}))) == [3, 4, 5]


@pytest.mark.fault(41, "inside")
@pytest.mark.parametrize("hint", ["readOnlyHint", "idempotentHint", "step", "rule"])
def test_a_page_without_a_snapshot_calls_a_tool_that_may_be_called_again(hint: str) -> None:
    of_step, of_rule = (str(hint == each).lower() for each in ("step", "rule"))
    step = f"{{paginate: {{at: items, limit: 2, refetch: {of_step}}}}}"
    talk = Talk(rules(f"- {{tools: list, refetch: {of_rule}, response: [{step}]}}"))
    list_tools(talk, {"name": "list", "annotations": {hint: True}})

    response = talk.exchange(call("list", {"offset": 2}), answer(ITEMS))

    assert (items(response), last_arguments(talk)) == ([3, 4], {})
    assert items(talk.replied(call("list", {"offset": 4}, id=2))) == [5]


FRESH = "- {tools: list, response: [{paginate: {at: items, limit: 2, max_age_seconds: 60}}]}"


@pytest.mark.parametrize("age", [0, 60, 61])
def test_a_first_page_too_is_cut_from_an_answer_that_is_young_enough(
    age: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = 1000.0
    monkeypatch.setattr("mcp_abridge.storage.snapshots.time.monotonic", lambda: now)
    talk = Talk(rules(FRESH))
    assert items(talk.exchange(call("list", {"q": 1}), answer(ITEMS))) == [1, 2]
    now += age
    again = call("list", {"q": 1, "limit": 3}, id=2)
    if age <= 60:
        assert items(talk.replied(again)) == [1, 2, 3]
    else:
        later = answer(document({"items": [7, 8, 9, 10]}), id=2)
        assert items(talk.exchange(again, later)) == [7, 8, 9]
        assert items(talk.replied(call("list", {"q": 1}, id=3))) == [7, 8]
    # Other arguments, or a task, are a call of their own.
    before = len(talk.to_server)
    talk.client(call("list", {"q": 2}, id=4))
    talk.client(call("list", {"q": 1}, id=5, task={}))
    assert len(talk.to_server) == before + 2


def test_a_first_page_of_a_rule_out_of_service_is_the_servers_whole_answer() -> None:
    talk = Talk(rules(FRESH))
    talk.exchange(call("list"), answer(ITEMS))
    [rule] = talk.rules.files[0].rules
    while not rule.circuit_breaker.open:
        rule.circuit_breaker.record_failure()
    assert talk.exchange(call("list"), answer(ITEMS)) == answer(ITEMS)


def test_each_first_page_is_a_call_if_a_rule_only_measures_or_its_guard_decides() -> None:
    [rule] = rules(FRESH).files[0].rules
    guard: Any = object()
    others = replace(rule, mode="shadow"), replace(rule, guard=guard)
    assert [each.max_age for each in (rule, *others)] == [60, None, None]


def test_the_advice_names_the_argument_that_the_client_knows() -> None:
    talk = Talk(PAGES)
    list_tools(talk, own("offset"))

    [text] = texts(talk.replied(call("list", {"page_offset": 2})))

    assert text.endswith("call again with page_offset=0 first")


@pytest.mark.fault(34, "inside")
def test_out_of_service_a_page_is_refused_and_its_tool_not_called_again() -> None:
    talk = Talk(rules(ABS_PAGES))
    pages = answer(document({"n": 1, "items": [1, 2, 3]}))
    assert items(talk.exchange(call("list"), pages)) == [1, 2]
    for at in range(5):
        bad = answer(document({"n": "x", "items": []}))
        assert talk.exchange(call("list", {"q": at}), bad) == bad

    reply = talk.replied(call("list", {"offset": 2}))

    assert result(reply)["isError"] is True
    assert texts(reply) == [
        "nothing is shown in parts while rule 'r' is out of service; call again with offset=0"
    ]
    assert talk.exchange(call("list", {"offset": 0}), pages) == pages


# A program must get the whole: it computes with the data, and does not ask for the rest.

ROWS = answer(document({"items": [{"id": n, "score": n * 0.5} for n in range(1028)]}))
SCRIPT = {"callId": "exec-7d1f", "progressToken": 1}


def client_named(name: str, *files: RuleFile, capabilities: Any = ()) -> Talk:
    """Return a talk with the budget of this client, behind these rules."""
    ruleset = Selection(files, "auto", lambda _: None)(None, name)
    talk = Talk(ruleset)
    params = {"clientInfo": {"name": name}, "capabilities": dict(capabilities)}
    hello = line(id=0, method="initialize", params=params)
    talk.exchange(hello, answer({}, 0))
    talk.counted()
    return talk


@pytest.mark.parametrize(
    ("client", "meta"),
    [
        ("codex-mcp-client", {"callId": "call_7d1f"}),
        ("codex-mcp-client", None),
        ("claude-code", SCRIPT),
    ],
)
def test_a_call_of_the_models_own_keeps_its_budget(client: str, meta: Any) -> None:
    talk = client_named(client)

    assert len(talk.exchange(call("rows", _meta=meta), ROWS)) < 12_000


def test_a_script_gets_the_whole_of_a_view_and_the_server_sees_no_view() -> None:
    talk = client_named("codex-mcp-client")
    list_tools(talk, {"name": "rows", "annotations": {"readOnlyHint": True}})

    [text] = texts(talk.exchange(call("rows", {"view": "items"}, _meta=SCRIPT), ROWS))

    assert sum(row["score"] for row in json.loads(text)["view"]) == 263939
    assert last_arguments(talk) == {}


BOUNDED = "version: 1\nrules:\n- {tools: rows, response: [{drop: 'items[].id'}], max_bytes: 4kB}"


@pytest.mark.parametrize("files", [(), (file(BOUNDED),)])
@pytest.mark.parametrize("view", [None, "all"])
def test_a_script_gets_all_of_an_answer_by_a_view_and_past_the_bound_of_a_rule(
    files: Any, view: str | None
) -> None:
    talk = client_named("codex-mcp-client", *files)
    list_tools(talk, {"name": "rows", "annotations": {"readOnlyHint": True}})
    arguments = {} if view is None else {"view": view}
    [text] = texts(talk.exchange(call("rows", arguments, _meta=SCRIPT), ROWS))
    value = json.loads(text)

    assert sum(row["score"] for row in value.get("view", value)["items"]) == 263939
    assert ('"id"' in text) == (not files)
    assert "_abridged" in texts(talk.exchange(call("rows"), ROWS))[0]


def of_version(version: str) -> dict[str, Any]:
    return {"io.modelcontextprotocol/clientInfo": {"name": "opencode", "version": version}}


@pytest.mark.parametrize("era", ["session", "stateless"])
def test_the_version_of_a_client_tells_that_scripts_read_its_answers(era: str) -> None:
    talk = Talk(RuleSet())
    talk.session.rules._rules = Selection((), "auto", print)
    meta: Any = of_version("2.0.1")
    if era == "session":
        [info], meta = meta.values(), None
        talk.exchange(line(id=0, method="initialize", params={"clientInfo": info}), answer({}, 0))

    assert talk.exchange(call("rows", _meta=meta), ROWS) == ROWS
    assert b"_abridged" in talk.exchange(call("rows", _meta=of_version("1.18.33")), ROWS)


APP = {"name": "chart", "outputSchema": {"type": "object", "required": ["items"]}}


WIDGET = {"ui": {"resourceUri": "ui://a"}}
SHOWS_WIDGETS = {"io.modelcontextprotocol/ui": {"mimeTypes": ["text/html;profile=mcp-app"]}}


@pytest.mark.parametrize("place", ["extensions", "experimental"])
@pytest.mark.parametrize("meta", [WIDGET, {"ui/resourceUri": "ui://a"}])
def test_a_tool_whose_widget_the_client_shows_is_never_cut_and_gains_no_view(
    meta: Any, place: str
) -> None:
    talk = client_named("claude-ai", capabilities={place: SHOWS_WIDGETS})
    tool = {**APP, "inputSchema": {"type": "object"}, "_meta": meta}

    assert list_tools(talk, tool) == [tool]
    assert talk.exchange(call("chart"), ROWS) == ROWS
    assert [(row.outcome, row.calls) for row in talk.counted()] == [("untouched", 1)]


def test_a_tool_with_a_widget_is_cut_for_a_client_that_does_not_show_it() -> None:
    other: Any = {"extensions": {"io.modelcontextprotocol/tasks": {}}}
    talk = client_named("claude-code", capabilities=other)
    [tool] = list_tools(talk, {**APP, "inputSchema": {"type": "object"}, "_meta": WIDGET})

    assert "view" in tool["inputSchema"]["properties"]
    assert len(talk.exchange(call("chart"), ROWS)) < 12_000
    assert len(result(talk.replied(call("chart", {"view": "items[7]"}, id=2)))["content"]) == 1


def test_each_stateless_request_says_whether_its_client_shows_widgets() -> None:
    talk = client_named("claude-code")
    key = "io.modelcontextprotocol/clientCapabilities"
    shows, shows_not = ({key: each} for each in ({"extensions": SHOWS_WIDGETS}, {}))
    tool = {**APP, "inputSchema": {"type": "object"}, "_meta": WIDGET}

    for meta, whole in ((shows, True), (shows_not, False), (shows, True)):
        listing = line(id=8, method="tools/list", params={"_meta": meta})
        # Another request may come before the list.
        talk.client(listing)
        talk.client(call("other", id=9, _meta=shows_not if whole else shows))
        [listed] = result(talk.receive(answer({"tools": [tool]}, 8)))["tools"]
        assert (listed == tool) is whole
        assert (talk.exchange(call("chart", _meta=meta), ROWS) == ROWS) is whole


@pytest.mark.parametrize(
    "members",
    [
        b'"method":"tools/call","params":{"name":"gone"}',
        b'"method":"tools/call","params":{"name":"gone"},"method":"ping"',
        b'"method":"tools/call","params":{"name":"gone","Name":"get"}',
    ],
)
def test_an_unreadable_message_that_may_be_a_call_is_refused_if_rules_guard(members: bytes) -> None:
    talk = Talk(HIDE)
    raw = b'{"jsonrpc":"2.0","id":7,%b,"x":NaN}' % members
    reply = talk.replied(raw)
    assert json.loads(reply)["id"] == 7
    assert b"the message cannot be read" in reply
    plain = Talk()
    plain.client(raw)
    assert plain.to_server == [raw]


def batched(*messages: bytes) -> bytes:
    return b"[" + b", ".join(messages) + b"]"


def test_a_batch_passes_as_it_is_both_ways_and_its_calls_are_counted() -> None:
    talk = Talk(DROP)
    batch = batched(call("get", id=1), call("other", id=2), line(method="x"), b"5")
    talk.client(batch)
    both = batched(answer(SECRET, 1), answer(SECRET, 2), line(method="x"))
    talk.server(both)
    assert (talk.to_server, talk.to_client) == ([batch], [both])
    assert {(row.tool, row.outcome) for row in talk.counted()} == {
        ("get", "untouched"),
        ("other", "untouched"),
    }
    assert talk.session.fail_pending("gone") == []


PING = line(id=2, method="ping")


@pytest.mark.parametrize(
    ("protecting", "first"),
    [
        (HIDE, call("gone")),
        (HIDE, line(id=1, method="tools/list")),
        (HIDE, line(id=1, method="ping", Method="tools/call", params={"name": "gone"})),
        (SAFE, call("get")),
        (rules("- {tools: get, arguments: {n: {maximum: 5}}}"), call("get", {"n": 1})),
        (guarded(onward), call("write", {})),
    ],
)
def test_a_batch_with_a_call_that_a_rule_protects_is_refused(
    protecting: RuleSet, first: bytes
) -> None:
    talk = Talk(protecting)
    talk.client(batched(first, PING, line(method="notifications/x")))
    assert talk.to_server == []
    assert [json.loads(raw)["id"] for raw in talk.to_client] == [1, 2]
    assert all(b"send each call in a message of its own" in raw for raw in talk.to_client)
    assert len(talk.log) == 1
    talk.client(batched(PING))
    assert talk.to_server == [batched(PING)]
