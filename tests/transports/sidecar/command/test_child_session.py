"""Sessions of the handshake era: which stream a message goes on, and how it is resumed."""

import asyncio
import json
from typing import Any

import pytest
from mcp_abridge.transports.sidecar.command import streams

from tests.transports.http.route_server import (
    BOTH,
    EVENTS,
    JSON,
    STREAM,
    Client,
    StreamedResponse,
    serve_command,
)

ASKING = {"jsonrpc": "2.0", "id": "s1", "result": "hello"}


def kinds(messages: list[Any]) -> list[Any]:
    """Name each message by its method or its id."""
    return [each.get("method") or each["id"] for each in messages]


async def listening(client: Client, **headers: str) -> StreamedResponse:
    stream = await client.send("GET", accept=STREAM, **headers)
    assert stream.status == 200
    return stream


@pytest.mark.parametrize("accept", [EVENTS, BOTH])
async def test_progress_comes_before_the_response_on_the_stream_of_its_request(
    accept: str, client: Client
) -> None:
    pending = await client.call(1, "hold", token="other")
    response = await client.call("1", "progress", {"count": 3}, accept, token="t")
    assert response.headers["Content-Type"] == "text/event-stream; charset=utf-8"
    assert response.headers["Mcp-Session-Id"] == client.session
    messages = await response.messages()
    assert kinds(messages) == ["notifications/progress"] * 3 + ["1"]
    assert [each["params"]["progress"] for each in messages[:3]] == [0, 1, 2]
    assert response.ids, "it could not be resumed"
    await client.call(2, "release")
    assert await pending.text() == "held 1"


async def test_a_client_without_a_preferred_form_can_resume_a_long_call(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "PING", 0.1)
    async with serve_command() as proxy:
        client = await proxy.client().initialize()
        pending = await client.call(1, "hold", accept=BOTH)
        assert pending.headers["Content-Type"].partition(";")[0] == STREAM
        event = await pending.event()
        assert event is not None
        assert event.id
        pending.close()
        await client.call(2, "release")
        again = await client.send("GET", Last_Event_ID=event.id)
        assert await again.text() == "held 1"


@pytest.mark.parametrize(("version", "primed"), [("2025-06-18", False), ("2025-11-25", True)])
async def test_a_stream_begins_with_an_id_for_clients_that_can_resume(
    version: str, primed: bool
) -> None:
    async with serve_command() as proxy:
        client = await proxy.client().initialize(version)
        for stream in (await client.call(1, "echo"), await listening(client)):
            if primed:
                event = await stream.event()
                assert event is not None
                assert (event.data, event.event, event.retry) == (b"", None, 1000)
                assert event.id
            stream.close()


async def test_a_request_of_the_server_goes_on_the_get_stream_if_several_calls_are_open(
    client: Client,
) -> None:
    get = await listening(client)
    pending = await client.call(1, "hold")
    response = await client.call(2, "ask")
    assert (await get.message())["method"] == "sampling/createMessage"
    await client.send("POST", ASKING)
    assert await response.text() == 'it said "hello"'
    await client.call(3, "release")
    assert await pending.text() == "held 1"


async def test_notifications_without_a_stream_wait_for_a_get_stream() -> None:
    async with serve_command() as proxy:
        client = await proxy.client().initialize("2025-06-18")
        for id in (1, 2):
            response = await client.call(id, "note", {"n": id}, accept=JSON)
            assert kinds(await response.messages()) == [id]
        get = await listening(client)
        assert [(await get.message())["params"]["data"] for _ in range(2)] == [{"n": 1}, {"n": 2}]


async def test_a_second_get_stream_is_refused(client: Client) -> None:
    get = await listening(client)
    again = await client.send("GET", accept=STREAM)
    [message] = await again.messages()
    assert again.status == 409
    assert message["error"]["message"] == "there is a stream of this session already"
    get.close()
    async with asyncio.timeout(10):
        while (await client.send("GET", accept=STREAM)).status == 409:
            await asyncio.sleep(0.01)


async def test_a_stream_is_resumed_while_the_call_goes_on(client: Client) -> None:
    stream = await client.call(1, "hold")
    await stream.event()
    resumed = await listening(client, last_event_id=stream.ids[0])
    # Whoever comes back takes the place of who is there, and may be so no longer.
    assert await stream.event() is None
    await client.call(2, "release")
    assert await resumed.text() == "held 1"


async def test_an_event_id_of_another_session_is_unknown() -> None:
    async with serve_command() as proxy:
        one, other = await proxy.client().initialize(), await proxy.client().initialize()
        response = await one.call(1, "echo")
        await response.messages()
        for id in (response.ids[0], "x", "1-999"):
            refusal = await other.send("GET", accept=STREAM, last_event_id=id)
            assert refusal.status == 400


async def test_the_end_of_a_session_answers_open_requests(client: Client) -> None:
    response = await client.call(1, "hold")
    get = await listening(client)
    assert (await client.send("DELETE")).status == 204
    assert await response.text() == "the client has ended the session"
    assert await get.messages() == []


async def test_the_id_of_an_open_request_cannot_be_used_again(client: Client) -> None:
    pending = await client.call(1, "hold")
    again = await client.call(1, "echo")
    assert again.status == 400
    assert await (await client.call("1", "echo")).text() == "{}"
    await client.call(2, "release")
    assert await pending.text() == "held 1"
    assert await (await client.call(1, "echo")).text() == "{}"


async def test_a_batch_is_answered_as_one() -> None:
    batch = [
        {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": {"name": "echo"}}
        for id in (1, 2)
    ]
    note = {"jsonrpc": "2.0", "method": "notifications/x"}
    async with serve_command() as proxy:
        client = await proxy.client().initialize("2025-03-26")
        response = await client.send("POST", [*batch, note])
        assert kinds(await response.messages()) == [1, 2]
        response = await client.send("POST", [*batch, note], accept=JSON)
        [answer] = await response.messages()
        assert kinds(answer) == [1, 2]
        assert (await client.send("POST", [note])).status == 202


async def test_a_cancelled_call_is_answered_by_the_proxy() -> None:
    async with serve_command() as proxy:
        client = await proxy.client().initialize()
        response = await client.call(1, "hold")
        assert await client.notify("notifications/cancelled", requestId=1) == 202
        [message] = await response.messages()
        error = {"code": -32800, "message": "Request cancelled"}
        assert message == {"jsonrpc": "2.0", "id": 1, "error": error}
        messages = json.loads(await (await client.call(2, "seen")).text())
        assert "notifications/cancelled" in [each.get("method") for each in messages]


async def test_the_open_requests_of_a_session_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("mcp_abridge.transports.sidecar.command.child_session._MOST_ASKED", 3)
    async with serve_command() as proxy:
        client = await proxy.client().initialize()
        for id in (1, 2, 3):
            response = await client.call(id, "hold")
            response.close()
        refusal = await client.call(4, "hold")
        assert refusal.status == 503
        [message] = await refusal.messages()
        text = "3 requests of this session have no answer yet"
        assert message == {"jsonrpc": "2.0", "id": 4, "error": {"code": -1, "message": text}}
        assert await client.notify("notifications/cancelled", requestId=1) == 202
        async with asyncio.timeout(20):
            while (await client.call(5, "release")).status == 503:
                await asyncio.sleep(0.05)
