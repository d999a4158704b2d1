"""HTTP+SSE of 2024-11-05: the endpoint is ours, and answers come on the stream of the GET."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp_abridge.ruleset.rule_set import RuleSet

from tests.builders import EMPTY, answer, call, document, line, rules, tool_result
from tests.transports.guarded import guarded, onward, respond
from tests.transports.http.raw_upstream import (
    STREAM_HEAD,
    Request,
    chunk,
    raw_response,
    upstream,
)
from tests.transports.http.route_server import Client, StreamedResponse, UrlServer, serve_url

RULES = rules("- {tools: gone, hide: true}\n- {name: drop, tools: get, response: [{drop: secret}]}")
SECRET = answer(document({"a": 1, "secret": 2}))
SHAPED = answer(document({"a": 1}))


class SseServer:
    """Names an endpoint on its stream, and answers posted messages on the stream."""

    def __init__(self, endpoint: bytes) -> None:
        self.endpoint = endpoint
        self.posted: list[str] = []
        self.messages: asyncio.Queue[bytes] = asyncio.Queue()

    async def __call__(self, request: Request, reader: Any, writer: asyncio.StreamWriter) -> None:
        if request.line.startswith("POST"):
            self.posted.append(request.line)
            writer.write(raw_response(b"Accepted", "202 Accepted", content_type="text/plain"))
            self.messages.put_nowait(SECRET)
            return
        writer.write(STREAM_HEAD)
        writer.write(chunk(b"event: endpoint\r\ndata: " + self.endpoint + b"\r\n\r\n"))
        while True:
            writer.write(
                chunk(b"event: message\r\ndata: " + await self.messages.get() + b"\r\n\r\n")
            )


@asynccontextmanager
async def open_stream(proxy: UrlServer) -> AsyncIterator[tuple[StreamedResponse, Client]]:
    """Open a stream; yield it and a client of its endpoint."""
    stream, endpoint = await proxy.single_stream()
    yield stream, endpoint
    stream.close()


async def test_messages_reach_the_endpoint_and_answers_come_shaped_on_the_stream() -> None:
    server = SseServer(b"/messages?session_id=7")
    async with serve_stream(server, RULES) as (stream, endpoint):
        assert (await endpoint.send("POST", call("get"))).status == 202
        assert await stream.data() == SHAPED
    assert server.posted == ["POST /messages?session_id=7 HTTP/1.1"]


async def test_responses_of_the_proxy_come_on_the_stream() -> None:
    server = SseServer(b"/messages")
    async with serve_stream(server, RULES) as (stream, endpoint):
        assert (await endpoint.send("POST", call("gone"))).status == 202
        assert b"Unknown tool: gone" in await stream.data()
    assert server.posted == []


async def test_an_endpoint_is_unknown_after_its_stream() -> None:
    server = SseServer(b"/messages")
    async with upstream(server) as there, serve_url(there.url, RULES) as proxy:
        async with open_stream(proxy) as (_, endpoint):
            pass
        async with asyncio.timeout(10):
            while (await endpoint.send("POST", call("get"))).status != 404:
                await asyncio.sleep(0.01)


class GuardedServer(SseServer):
    """Answers queries and the call that waits for them, which has this `status`.

    With `wait`, it answers no queries.
    """

    def __init__(self, *, wait: bool = False, status: str = "202 Accepted") -> None:
        super().__init__(b"/messages")
        self.wait = wait
        self.status = status
        self.bodies: asyncio.Queue[Any] = asyncio.Queue()

    async def __call__(self, request: Request, reader: Any, writer: asyncio.StreamWriter) -> None:
        if not request.line.startswith("POST"):
            await super().__call__(request, reader, writer)
            return
        message = json.loads(request.body)
        self.bodies.put_nowait(message)
        name = message["params"].get("name")
        status = self.status if name == "write" else "202 Accepted"
        writer.write(raw_response(b"Accepted", status, content_type="text/plain"))
        if name == "status" and not self.wait:
            self.messages.put_nowait(answer(document({"busy": False}), message["id"]))
        if name == "write" and status[0] == "2":
            self.messages.put_nowait(answer(tool_result("done"), message["id"]))

    async def posted_names(self, count: int) -> list[str]:
        async with asyncio.timeout(10):
            bodies = [await self.bodies.get() for _ in range(count)]
        assert self.bodies.empty()
        return [each["params"].get("name", each["method"]) for each in bodies]


WRITE = call("write", {})


@asynccontextmanager
async def serve_stream(
    server: SseServer, rules: RuleSet, **keys: Any
) -> AsyncIterator[tuple[StreamedResponse, Client]]:
    async with (
        upstream(server) as there,
        serve_url(there.url, rules, **keys) as proxy,
        open_stream(proxy) as (stream, endpoint),
    ):
        yield stream, endpoint


async def next_message(stream: StreamedResponse) -> Any:
    data = await stream.data()
    assert b"abridge-" not in data
    return json.loads(data)


async def test_a_call_is_accepted_at_once_and_forwarded_after_the_guards_query() -> None:
    server = GuardedServer(wait=True)
    async with serve_stream(server, guarded(onward)) as (stream, endpoint):
        assert (await endpoint.send("POST", WRITE)).status == 202
        async with asyncio.timeout(10):
            question = await server.bodies.get()
        server.messages.put_nowait(answer(document([1]), question["id"]))
        assert (await next_message(stream))["result"] == tool_result("done")
        assert await server.posted_names(1) == ["write"]


async def test_a_call_that_the_server_refuses_after_the_query_is_an_error_on_the_stream() -> None:
    server = GuardedServer(status="503 Later")
    async with serve_stream(server, guarded(onward)) as (stream, endpoint):
        assert (await endpoint.send("POST", WRITE)).status == 202
        failed = tool_result("the server answered HTTP 503", isError=True)
        assert (await next_message(stream))["result"] == failed
        assert await server.posted_names(2) == ["status", "write"]


async def test_a_query_without_a_response_is_cancelled() -> None:
    server = GuardedServer(wait=True)
    async with serve_stream(server, guarded(respond, 0.1)) as (stream, endpoint):
        await endpoint.send("POST", WRITE)
        expected = tool_result("no answer in time", structuredContent={"text": "no answer in time"})
        assert (await next_message(stream))["result"] == expected
        assert await server.posted_names(2) == ["status", "notifications/cancelled"]


@pytest.mark.parametrize("endpoint", [b"http://127.0.0.1:1/x", b"//127.0.0.1:1/x", b"http://["])
async def test_an_endpoint_of_another_origin_is_refused(endpoint: bytes) -> None:
    async with upstream(SseServer(endpoint)) as there, serve_url(there.url) as proxy:
        response = await proxy.client().send("GET", accept="text/event-stream")
        assert (response.status, await response.messages()) == (200, [])
        assert "another origin" in proxy.records[0].failure


async def test_a_call_that_is_late_is_an_error_on_the_stream_and_cancelled_there() -> None:
    server = GuardedServer(wait=True)
    async with serve_stream(server, EMPTY, deadline=0.2) as (stream, endpoint):
        assert (await endpoint.send("POST", call("status", id=7))).status == 202
        failed = await next_message(stream)
        assert (failed["id"], failed["result"]["isError"]) == (7, True)
        assert failed["result"]["content"][0]["text"].startswith("no answer within 0.2 seconds")
        assert await server.posted_names(2) == ["status", "notifications/cancelled"]
        # A late answer is not shown, and what is asked next is answered.
        server.messages.put_nowait(answer(tool_result("late"), 7))
        await endpoint.send("POST", line(id=8, method="prompts/list"))
        server.messages.put_nowait(answer({"prompts": []}, 8))
        assert (await next_message(stream))["id"] == 8
