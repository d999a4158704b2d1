"""The stateless era: each POST is one request, which ends with its connection."""

import asyncio
import json
import sys
from typing import Any

import pytest
from mcp_abridge.transports.sidecar.command import stateless

from tests.builders import rules
from tests.transports.http.route_server import BOTH, JSON, STREAM, Client, serve_command

SUBSCRIPTION = "io.modelcontextprotocol/subscriptionId"


async def server_messages(client: Client) -> list[Any]:
    """Ask the server for the messages that it was sent."""
    messages: list[Any] = json.loads(await (await client.modern_call("seen", "seen")).text())
    return messages


@pytest.mark.parametrize(
    ("tool", "accept", "ids"),
    [
        ("echo", BOTH, None),
        ("echo", STREAM, [1]),
        ("progress", JSON, None),
        *(("progress", accept, [None, None, 1]) for accept in (BOTH, "*/*", STREAM)),
    ],
)
async def test_a_response_is_json_if_no_progress_precedes_it_unless_the_client_refuses_that(
    tool: str, accept: str, ids: list[Any] | None, caller: Client
) -> None:
    response = await caller.modern_call(1, tool, {"count": 2}, accept, token=7)
    assert "Mcp-Session-Id" not in response.headers
    assert response.headers["Content-Type"].startswith(JSON if ids is None else STREAM)
    assert [each.get("id") for each in await response.messages()] == (ids or [1])
    assert response.status == 200
    assert response.ids == []


@pytest.mark.parametrize(("accept", "kind"), [(BOTH, STREAM), ("*/*", JSON), (JSON, JSON)])
async def test_silence_is_broken_for_a_client_that_does_not_prefer_json(
    accept: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(stateless, "PING", 0.1)
    async with serve_command(children=1) as proxy:
        client = proxy.client()
        assert await server_messages(client)  # the server runs
        pending = asyncio.create_task(client.modern_call(1, "hold", accept=accept))
        await asyncio.wait([pending], timeout=30.0 if kind == STREAM else 0.3)
        await client.modern_call(2, "release")
        assert (await pending).headers["Content-Type"].partition(";")[0] == kind


async def test_a_form_that_the_client_refuses_is_not_acceptable(caller: Client) -> None:
    assert (await caller.modern_call(1, "echo", accept="image/png")).status == 406
    assert (await caller.modern(1, "subscriptions/listen", accept=JSON)).status == 406


async def test_an_unknown_method_has_the_status_404(caller: Client) -> None:
    response = await caller.modern(1, "nothing/here", accept=STREAM)
    [message] = await response.messages()
    assert (response.status, response.headers["Content-Type"]) == (404, JSON)
    error = {"code": -32601, "message": "Method not found"}
    assert message == {"jsonrpc": "2.0", "id": 1, "error": error}


async def test_a_cancellation_without_a_request_is_accepted_and_not_forwarded(
    caller: Client,
) -> None:
    note = {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": {"requestId": 1}}
    response = await caller.send("POST", note, mcp_protocol_version="2026-07-28")
    assert (response.status, await response.messages()) == (202, [])
    assert [each["method"] for each in await server_messages(caller)] == ["tools/call"]


async def test_clients_with_equal_ids_and_tokens_share_a_server_and_get_their_own_messages() -> (
    None
):
    async with serve_command(children=1) as proxy:
        client = proxy.client()
        tokens = ("t", "t", None, 1)
        pending = [
            asyncio.create_task(client.modern_call(1, "hold", token=each)) for each in tokens
        ]
        async with asyncio.timeout(10):
            while len(messages := await server_messages(client)) < len(pending) + 1:
                await asyncio.sleep(0.01)
        calls = [each for each in messages if each["params"]["name"] == "hold"]
        identifiers = [each["id"] for each in calls]
        identifiers += [each["params"]["_meta"].get("progressToken") for each in calls]
        assert len(set(identifiers)) == 8, "only one is None"
        response = await client.modern_call(1, "progress", {"count": 2}, token="t")
        progress = [each["params"]["progressToken"] for each in (await response.messages())[:-1]]
        assert progress == ["t", "t"]
        await client.modern_call(1, "release")
        for each in pending:
            assert (await (await each).messages())[0]["id"] == 1


async def test_a_subscription_receives_its_own_messages() -> None:
    async with serve_command(children=1) as proxy:
        client = proxy.client()
        one = await client.modern("a", "subscriptions/listen")
        two = await client.modern("b", "subscriptions/listen")
        for stream, id in ((one, "a"), (two, "b")):
            message = await stream.message()
            assert message["method"] == "notifications/subscriptions/acknowledged"
            assert message["params"]["_meta"] == {SUBSCRIPTION: id}
        listening = [each for each in await server_messages(client) if "listen" in each["method"]]
        _, own = (each["id"] for each in listening)
        params = {"_meta": {SUBSCRIPTION: own}}
        note = {"method": "notifications/tools/list_changed", "params": params}
        cancellation = {"method": "notifications/cancelled", "params": {"requestId": own}}
        answer = {"id": "$ID", "result": {}}
        raw = "\n".join(
            json.dumps({"jsonrpc": "2.0", **each}) for each in (note, cancellation, answer)
        )
        assert (await client.modern_call(1, "say", {"raw": raw})).status == 200
        last = await two.messages()
        assert [each["method"] for each in last] == [note["method"], cancellation["method"]]
        assert last[0]["params"]["_meta"] == {SUBSCRIPTION: "b"}
        assert last[1]["params"] == {"requestId": "b"}
        one.close()


async def test_an_uncorrelated_message_goes_to_the_only_client_or_to_none() -> None:
    async with serve_command(children=1) as proxy:
        client = proxy.client()
        alone = await client.modern_call(1, "note", {"n": 1})
        assert [each.get("id") for each in await alone.messages()] == [None, 1]
        listening = await client.modern("a", "subscriptions/listen")
        await listening.message()
        other = await client.modern_call(2, "note", {"n": 2})
        assert [each.get("id") for each in await other.messages()] == [2]
        assert await (await client.modern_call(3, "release")).text() == "released"
        assert [each.get("id") for each in await listening.messages()] == ["a"]


async def test_pages_are_stored_for_each_caller() -> None:
    paged = rules("- {name: pages, tools: echo, response: [{paginate: {at: rows, limit: 2}}]}")
    rows = [{"n": at} for at in range(5)]

    async def page(client: Client, offset: int, **headers: str) -> str:
        arguments = {"rows": rows, "offset": offset}
        params = {"name": "echo", "arguments": arguments}
        return await (await client.modern(1, "tools/call", params, **headers)).text()

    async with serve_command(rules=paged) as proxy:
        client = proxy.client()
        assert json.loads(await page(client, 0, Authorization="Bearer a"))["rows"] == rows[:2]
        assert json.loads(await page(client, 2, Authorization="Bearer a"))["rows"] == rows[2:4]
        assert "nothing is kept" in await page(client, 2, Authorization="Bearer b")
        assert proxy.records[-1].answered_by == "proxy"


async def test_headers_of_parameters_are_checked_after_the_tool_list() -> None:
    schema = {"type": "object", "properties": {"to": {"type": "string", "x-mcp-header": "To"}}}
    tools = json.dumps({"tools": [{"name": "echo", "inputSchema": schema}]})
    script = """
import json, sys
for line in sys.stdin:
    request = json.loads(line)
    result = json.loads(sys.argv[1]) if request["method"] == "tools/list" else {}
    print(json.dumps({"jsonrpc": "2.0", "id": request["id"], "result": result}), flush=True)
"""
    async with serve_command([sys.executable, "-c", script, tools]) as proxy:
        client = proxy.client()
        call = {"name": "echo", "arguments": {"to": "you"}}
        assert (await client.modern(2, "tools/call", call)).status == 200
        assert (await client.modern(1, "tools/list")).status == 200
        assert (await client.modern(2, "tools/call", call)).status == 400
        assert (await client.modern(2, "tools/call", call, Mcp_Param_To="me")).status == 400
        assert (await client.modern(2, "tools/call", call, Mcp_Param_To="you")).status == 200
