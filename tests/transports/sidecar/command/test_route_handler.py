"""A stdio server as an HTTP service: its sessions, their limits and refusals."""

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest

from tests.transports.http.route_server import (
    JSON,
    STREAM,
    Client,
    StreamedResponse,
    serve_command,
)
from tests.transports.processes import wait_gone

SDK_SERVER = (sys.executable, str(Path(__file__).parents[3] / "fixtures" / "sdk_server.py"))
INITIALIZE = {
    "jsonrpc": "2.0",
    "id": "first",
    "method": "initialize",
    "params": {"protocolVersion": "2025-11-25"},
}


async def error(response: StreamedResponse) -> tuple[int, int, str]:
    """Return the status, the code and the message of a refusal."""
    [message] = await response.messages()
    assert set(message) == {"jsonrpc", "id", "error"}
    return response.status, message["error"]["code"], message["error"]["message"]


async def pid(client: Client, id: Any = "pid") -> int:
    return int(await (await client.call(id, "pid")).text())


async def test_a_session_begins_answers_and_ends(client: Client) -> None:
    assert client.session is not None
    assert all(0x21 <= ord(each) <= 0x7E for each in client.session)
    assert await (await client.call(1, "echo", {"a": 1})).text() == '{"a": 1}'
    server = await pid(client)
    assert (await client.send("DELETE")).status == 204
    assert (await client.call(2, "echo")).status == 404
    assert (await client.send("DELETE")).status == 404
    assert (await client.send("GET", accept=STREAM)).status == 404
    await asyncio.to_thread(wait_gone, server)


async def test_each_session_has_a_server_of_its_own_and_ids_may_be_equal() -> None:
    async with serve_command() as proxy:
        clients = [await proxy.client().initialize() for _ in range(3)]
        assert len({client.session for client in clients}) == 3
        pending = [await client.call(1, "hold") for client in clients]
        for client in clients:
            assert await (await client.call(2, "release")).text() == "released"
        assert [await response.text() for response in pending] == ["held 1"] * 3
        assert len({await pid(client) for client in clients}) == 3


async def test_a_session_id_is_required_and_must_exist() -> None:
    async with serve_command() as proxy:
        client = proxy.client()
        reason = "the header Mcp-Session-Id is missing"
        assert await error(await client.call(1, "echo")) == (400, -32600, reason)
        assert (await client.send("GET", accept=STREAM)).status == 400
        assert (await client.send("DELETE")).status == 400
        client.session = "unknown"
        reason = "there is no such session, or none any more"
        assert await error(await client.call(1, "echo")) == (404, -32600, reason)
        assert proxy.records[-1].answered_by == "proxy"


async def test_a_body_over_several_lines_is_one_message_for_the_server(client: Client) -> None:
    message = {"jsonrpc": "2.0", "id": 1, "method": "tools/call"}
    message["params"] = {"name": "echo", "arguments": {"a": "x\r\ny"}}
    body = json.dumps(message, indent=2).replace("\n", "\r\n").encode()
    assert await (await client.send("POST", body)).text() == '{"a": "x\\r\\ny"}'


async def test_other_methods_are_not_allowed(caller: Client) -> None:
    response = await caller.send("PUT")
    assert (response.status, response.headers["Allow"]) == (405, "GET, POST, DELETE")


async def test_a_form_that_the_client_refuses_is_not_acceptable(client: Client) -> None:
    assert (await error(await client.call(1, "echo", accept="image/png")))[:2] == (406, -32700)
    assert (await client.send("GET", accept=JSON)).status == 406
    assert await client.notify("notifications/x") == 202


@pytest.mark.parametrize(
    ("version", "status"),
    [("2025-06-18", 200), ("2025-11-25", 200), ("1900-01-01", 400), ("no-version", 400)],
)
async def test_an_unknown_protocol_version_is_refused(
    version: str, status: int, client: Client
) -> None:
    client.version = version
    assert (await client.request(1, "ping")).status == status


async def test_a_server_that_cannot_be_started_is_an_error_with_the_id_of_the_request() -> None:
    async with serve_command(command=["/nowhere/at-all"]) as proxy:
        assert proxy.handler.unready == "the command '/nowhere/at-all' is not found"
        response = await proxy.client().send("POST", INITIALIZE)
        [message] = await response.messages()
        assert response.status == 502
        assert message["id"] == "first"
        reason = "the command '/nowhere/at-all' cannot be started: no such file or directory"
        assert message["error"]["message"] == reason
        modern = await proxy.client().modern(1, "ping")
        assert (modern.status, (await modern.messages())[0]["error"]["message"]) == (502, reason)


async def test_a_server_that_refuses_the_handshake_gives_no_session(caller: Client) -> None:
    response = await caller.request(1, "initialize", {"protocolVersion": "1999-01-01"})
    [message] = await response.messages()
    assert message["error"]["message"] == "too old"
    caller.session = response.headers["Mcp-Session-Id"]
    assert (await caller.call(2, "echo")).status == 404


async def test_the_longest_idle_session_is_replaced_and_a_busy_one_is_not() -> None:
    async with serve_command(sessions=2) as proxy:
        first, second = await proxy.client().initialize(), await proxy.client().initialize()
        stream = await first.send("GET", accept=STREAM)
        third = await proxy.client().initialize()
        assert (await second.call(1, "echo")).status == 404
        pending = await third.call(1, "hold")
        refusal = await proxy.client().send("POST", INITIALIZE)
        assert await error(refusal) == (503, -1, "there are 2 sessions already")
        assert refusal.headers["Retry-After"] == "5"
        assert await (await first.call(1, "echo")).text() == "{}"
        await third.call(2, "release")
        assert await pending.text() == "held 1"
        stream.close()


async def test_an_idle_session_is_ended_and_one_with_an_open_stream_is_not() -> None:
    # Seconds between two requests, which follow each other at once, unless the machine is busy.
    async with serve_command(idle_seconds=2.0) as proxy:
        listener = await proxy.client().initialize()
        stream = await listener.send("GET", accept=STREAM)
        idle = await proxy.client().initialize()
        server = await pid(idle)
        await asyncio.to_thread(wait_gone, server)
        assert (await idle.call(2, "echo")).status == 404
        assert await (await listener.call(1, "echo")).text() == "{}"
        stream.close()
