"""Calls for a part of an answer that is not stored: when the server is asked for its tools."""

import json
from functools import partial
from typing import Any

import pytest
from mcp_abridge.session.outputs import Probe, RunInBackground
from mcp_abridge.storage.calls import RecentCalls

from tests.builders import answer, call, document, rules, texts
from tests.samples import BOUND, ITEMS, PAGES, items, last_arguments, list_tools, own
from tests.talk import Talk

ROWS = answer(document({"rows": list(range(9))}))
LOOK = call("get", {"view": "rows[3]"})


def page(*tools: dict[str, Any], **members: Any) -> bytes:
    return json.dumps({"tools": [{"name": "get", **tool} for tool in tools], **members}).encode()


def looking(*lists: bytes) -> Talk:
    talk = Talk(BOUND, calls=RecentCalls())
    talk.lists = list(lists)
    return talk


def view(raw: bytes) -> Any:
    return json.loads(texts(raw)[0])["view"]


def test_all_pages_of_the_list_are_asked_for_until_the_tool_is_there() -> None:
    other = {"name": "other"}
    talk = looking(
        page(other, nextCursor="2"), page(other, nextCursor="3"), page({}, nextCursor="4")
    )
    assert view(talk.exchange(LOOK, ROWS)) == 3
    params = [json.loads(raw)["params"] for raw in talk.queries]
    assert params == [{}, {"cursor": "2"}, {"cursor": "3"}]


def test_the_request_for_the_tools_is_made_in_the_name_of_the_client() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}
    talk = looking(page({}))
    talk.client(call("get", {"view": "@"}, _meta={**meta, "progressToken": 5}))
    assert [json.loads(raw)["params"] for raw in talk.queries] == [{"_meta": meta}]


def test_a_call_stays_its_callers_own_while_the_server_lists_its_tools() -> None:
    session = looking().session
    session.state.scope = "jane"
    [load] = session.from_client(LOOK)
    assert isinstance(load, RunInBackground)
    [probe] = load.then(load.do())
    assert isinstance(probe, Probe)
    session.state.scope = "joe"
    listed = b'{"jsonrpc":"2.0","id":%b,"result":%b}' % (probe.token, page({}))
    [reading] = session.from_server(listed)
    assert isinstance(reading, RunInBackground)
    [claim] = reading.then(reading.do())
    assert isinstance(claim, RunInBackground)
    assert isinstance(claim.do, partial)
    assert claim.do.args[0] == "jane"


def test_a_view_of_the_tools_own_goes_to_the_server_once_that_is_known() -> None:
    schema = {"type": "object", "properties": {"view": {"type": "string"}}}
    talk = looking(page({"inputSchema": schema}))
    talk.exchange(LOOK, ROWS)
    assert last_arguments(talk) == {"view": "rows[3]"}


def test_a_page_of_an_earlier_session_is_there_once_the_tools_own_arguments_are_known() -> None:
    earlier = Talk(PAGES)
    list_tools(earlier, own("limit"))
    earlier.exchange(call("list", {"limit": 9}), answer(ITEMS))

    talk = Talk(PAGES, calls=RecentCalls())
    talk.session.state.store = earlier.session.state.store
    talk.lists = [json.dumps({"tools": [own("limit")]}).encode()]
    assert items(talk.replied(call("list", {"limit": 9, "offset": 2}))) == [3, 4]


ADVICE = "call again without view first; an answer that is cut takes views for a while"


@pytest.mark.parametrize("lists", [[], [page()], [page({"name": "other"})], [b'"none"']])
def test_a_tool_that_the_server_does_not_list_does_not_run(lists: list[bytes]) -> None:
    talk = looking(*lists)
    [text] = texts(talk.replied(LOOK))
    assert text.endswith(ADVICE)
    assert len(talk.queries) == 1


def test_without_a_record_of_calls_a_view_without_a_snapshot_is_refused() -> None:
    talk = Talk(BOUND)
    list_tools(talk, {"name": "get"})
    assert texts(talk.replied(LOOK))[0].startswith("nothing is kept of an earlier answer")


def test_a_page_may_be_the_first_call_too() -> None:
    pages = "{paginate: {at: rows, limit: 2}}"
    talk = Talk(rules(f"- {{tools: list, response: [{pages}]}}"), calls=RecentCalls())
    list_tools(talk, own())
    raw = talk.exchange(call("list", {"offset": 4}), ROWS)
    assert json.loads(texts(raw)[0])["rows"] == [4, 5]
