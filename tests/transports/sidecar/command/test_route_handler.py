"""A stdio server as an HTTP service: how sessions begin and end, and what is refused."""

import asyncio
import json
from typing import Any

import mcp
import pytest
from mcp.client.sse import sse_client
from mcp_types import CallToolResult, TextContent

from tests.given import rules
from tests.transports.http.hosting import (
    JSON,
    OFFICIAL,
    STREAM,
    Client,
    Heard,
    hosting,
    wait_gone,
)

INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "first",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25"},
}


async def error(heard: Heard) -> tuple[int, int, str]:
    """Return the status, the code and the message of a refusal."""
    [said] = await heard.rest()
    assert set(said) == {"jsonrpc", "id", "error"}
    return heard.status, said["error"]["code"], said["error"]["message"]


async def pid(client: Client, id: Any = "pid") -> int:
    return int(await (await client.call(id, "pid")).said())


async def test_a_session_begins_answers_and_ends(client: Client) -> None:
    assert client.session is not None
    assert all(0x21 <= ord(each) <= 0x7E for each in client.session)
    assert await (await client.call(1, "echo", {"a": 1})).said() == '{"a": 1}'
    server = await pid(client)
    assert (await client.send("DELETE")).status == 204
    assert (await client.call(2, "echo")).status == 404
    assert (await client.send("DELETE")).status == 404
    assert (await client.send("GET", accept=STREAM)).status == 404
    await asyncio.to_thread(wait_gone, server)


async def test_each_session_has_a_server_of_its_own_and_ids_may_be_equal() -> None:
    async with hosting() as made:
        clients = [await made.client().begin() for _ in range(3)]
        assert len({client.session for client in clients}) == 3
        held = [await client.call(1, "hold") for client in clients]
        for client in clients:
            assert await (await client.call(2, "release")).said() == "released"
        assert [await heard.said() for heard in held] == ["held 1"] * 3
        assert len({await pid(client) for client in clients}) == 3


async def test_rules_shape_answers_and_each_session_has_its_own_snapshots() -> None:
    paged = rules("- {name: pages, tools: echo, response: [{paginate: {at: rows, limit: 2}}]}")
    async with hosting(rules=paged) as made:
        one, other = await made.client().begin(), await made.client().begin()
        rows = [{"n": at} for at in range(5)]
        first = json.loads(await (await one.call(1, "echo", {"rows": rows})).said())
        assert first["rows"] == rows[:2]
        given = {"rows": rows, "offset": 2}
        second = json.loads(await (await one.call(2, "echo", given)).said())
        assert second["rows"] == rows[2:4]
        assert [each.answered_by for each in made.made.asked[-2:]] == ["upstream", "proxy"]
        assert "nothing is kept" in await (await other.call(1, "echo", given)).said()


async def test_a_session_is_asked_for_and_must_exist() -> None:
    async with hosting() as made:
        client = made.client()
        assert await error(await client.call(1, "echo")) == (
            400,
            -32600,
            "the header Mcp-Session-Id is missing",
        )
        assert (await client.send("GET", accept=STREAM)).status == 400
        assert (await client.send("DELETE")).status == 400
        client.session = "unknown"
        assert await error(await client.call(1, "echo")) == (
            404,
            -32600,
            "there is no such session, or none any more",
        )
        assert made.made.asked[-1].answered_by == "proxy"


async def test_a_body_over_several_lines_is_one_message_for_the_server(client: Client) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    message["params"] = {"name": "echo", "arguments": {"a": "x\r\ny"}}
    body = json.dumps(message, indent=2).replace("\n", "\r\n").encode()
    assert await (await client.send("POST", body)).said() == '{"a": "x\\r\\ny"}'


@pytest.mark.parametrize("method", ["PUT", "PATCH", "OPTIONS"])
async def test_other_methods_are_not_allowed(method: str) -> None:
    async with hosting() as made:
        heard = await made.client().send(method)
        assert (heard.status, heard.headers["Allow"]) == (405, "GET, POST, DELETE")


async def test_what_the_client_cannot_take_is_not_acceptable(client: Client) -> None:
    assert (await error(await client.call(1, "echo", accept="image/png")))[:2] == (406, -32700)
    assert (await client.send("GET", accept=JSON)).status == 406
    assert await client.tell("notifications/x") == 202


@pytest.mark.parametrize(
    ("version", "status"),
    [("2025-06-18", 200), ("2025-11-25", 200), ("1900-01-01", 400), ("no-version", 400)],
)
async def test_a_protocol_version_that_is_none_is_refused(
    version: str, status: int, client: Client
) -> None:
    client.version = version
    assert (await client.ask(1, "ping")).status == status


async def test_a_server_that_cannot_be_started_is_said_with_the_id_of_the_request() -> None:
    async with hosting(command=["/nowhere/at-all"]) as made:
        assert made.local.not_ready_reason() == "the command '/nowhere/at-all' is not found"
        heard = await made.client().send("POST", INITIALIZE)
        [said] = await heard.rest()
        assert heard.status == 502
        assert said["id"] == "first"
        assert said["error"]["message"].startswith("the server cannot be started: [Errno 2]")
        assert (await made.client().modern(1, "ping")).status == 502


async def test_a_server_that_refuses_the_handshake_gives_no_session(caller: Client) -> None:
    heard = await caller.ask(1, "initialize", {"protocolVersion": "1999-01-01"})
    [said] = await heard.rest()
    assert said["error"]["message"] == "too old"
    caller.session = heard.headers["Mcp-Session-Id"]
    assert (await caller.call(2, "echo")).status == 404


async def test_the_longest_idle_session_makes_room_and_one_that_is_used_does_not() -> None:
    async with hosting(sessions=2) as made:
        first, second = await made.client().begin(), await made.client().begin()
        stream = await first.send("GET", accept=STREAM)
        third = await made.client().begin()
        assert (await second.call(1, "echo")).status == 404
        held = await third.call(1, "hold")
        refused = await made.client().send("POST", INITIALIZE)
        assert await error(refused) == (503, -1, "there are 2 sessions already")
        assert refused.headers["Retry-After"] == "5"
        assert await (await first.call(1, "echo")).said() == "{}"
        await third.call(2, "release")
        assert await held.said() == "held 1"
        stream.leave()


async def test_a_session_that_nobody_uses_is_ended_and_one_that_is_heard_is_not() -> None:
    # Seconds between two requests, which follow each other at once, unless the machine is busy.
    async with hosting(idle_seconds=2.0) as made:
        heard = await made.client().begin()
        stream = await heard.send("GET", accept=STREAM)
        idle = await made.client().begin()
        server = await pid(idle)
        await asyncio.to_thread(wait_gone, server)
        assert (await idle.call(2, "echo")).status == 404
        assert await (await heard.call(1, "echo")).said() == "{}"
        stream.leave()


async def test_a_client_of_2024_11_05_has_one_stream_for_everything() -> None:
    async with hosting() as made:
        client = made.client("/mcp/sse")
        stream = await client.send("GET", accept=STREAM)
        assert stream.status == 200
        event = await stream.event()
        assert event is not None
        assert (event.event, event.id) == ("endpoint", None)
        assert event.data is not None
        endpoint = made.client("/mcp/sse" + event.data.decode())
        version = {"protocolVersion": "2024-11-05"}
        heard = await endpoint.ask(1, "initialize", version, accept="*/*")
        assert (heard.status, await heard.rest()) == (202, [])
        assert (await stream.next())["result"]["serverInfo"]["name"] == "talkative"
        assert await endpoint.tell("notifications/initialized") == 202
        await endpoint.call(2, "progress", {"count": 2}, token="t")
        said = [await stream.next() for _ in range(3)]
        assert [each.get("method", each.get("id")) for each in said] == [
            "notifications/progress",
            "notifications/progress",
            2,
        ]
        await endpoint.call(3, "ask")
        assert (await stream.next())["method"] == "sampling/createMessage"
        reply = {"jsonrpc": "2.0", "id": "s1", "result": "hello"}
        assert (await endpoint.send("POST", reply)).status == 202
        assert (await stream.next())["result"]["content"][0]["text"] == 'it said "hello"'
        assert stream.ids == []
        await endpoint.call(4, "pid")
        server = int((await stream.next())["result"]["content"][0]["text"])
        stream.leave()
        await asyncio.to_thread(wait_gone, server)
        assert (await endpoint.call(5, "echo")).status == 404


async def test_the_official_client_of_2024_11_05_works() -> None:
    async with (
        hosting(OFFICIAL) as made,
        sse_client(made.made.url + "/sse") as (reading, writing),
        mcp.ClientSession(reading, writing) as session,
    ):
        await session.initialize()
        result = await session.call_tool("count", {"upto": 2})
        assert isinstance(result, CallToolResult)
        assert text(result) == "counted"


def text(result: CallToolResult) -> str:
    [block] = result.content
    assert isinstance(block, TextContent)
    return block.text
