"""HTTP+SSE of 2024-11-05: the endpoint is ours, and answers come on the stream of the GET."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from yarl import URL

from proxy.sse import Event
from proxy.transports.http import legacy
from tests.given import answer, call, document, rules
from tests.transports.http.raw import Request, chunk, head, response, upstream
from tests.transports.http.standing import Standing, before

RULES = rules("- {tools: gone, hide: true}\n- {name: drop, tools: get, response: [{drop: secret}]}")
SECRET = answer(document({"a": 1, "secret": 2}))
SHAPED = answer(document({"a": 1}))


class Server:
    """Names an endpoint on its stream, and answers on the stream what is posted there."""

    def __init__(self, endpoint: bytes) -> None:
        self.endpoint = endpoint
        self.posted: list[str] = []
        self.said: asyncio.Queue[bytes] = asyncio.Queue()

    async def __call__(self, request: Request, reader: Any, writer: asyncio.StreamWriter) -> None:
        if request.line.startswith("POST"):
            self.posted.append(request.line)
            writer.write(response(b"Accepted", "202 Accepted", content_type="text/plain"))
            self.said.put_nowait(SECRET)
            return
        writer.write(head(content_type="text/event-stream", transfer_encoding="chunked"))
        writer.write(chunk(b"event: endpoint\r\ndata: " + self.endpoint + b"\r\n\r\n"))
        while True:
            writer.write(chunk(b"event: message\r\ndata: " + await self.said.get() + b"\r\n\r\n"))


@asynccontextmanager
async def stream(proxy: Standing) -> AsyncIterator[tuple[asyncio.StreamReader, str]]:
    """Open a stream; yield it and the query of its endpoint."""
    reader, writer = await proxy.send("GET", accept="text/event-stream")
    said = await asyncio.wait_for(reader.readuntil(b"\r\n\r\n\r\n"), 10)
    yield reader, said.partition(b"data: ?")[2].split()[0].decode()
    writer.close()


async def post(proxy: Standing, query: str, raw: bytes) -> bytes:
    reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
    head = f"POST /mcp?{query} HTTP/1.1\r\nhost: x\r\nconnection: close\r\n"
    writer.write(f"{head}content-length: {len(raw)}\r\n\r\n".encode() + raw)
    said = await asyncio.wait_for(reader.read(), 10)
    writer.close()
    return said


async def test_messages_reach_the_endpoint_and_answers_come_shaped_on_the_stream() -> None:
    server = Server(b"/messages?session_id=7")
    async with upstream(server) as there, before(there.url, RULES) as proxy:
        async with stream(proxy) as (reader, query):
            assert (await post(proxy, query, call("get"))).startswith(b"HTTP/1.1 202 ")
            said = await asyncio.wait_for(reader.readuntil(b"}\r\n\r\n"), 10)
        assert b"data: " + SHAPED + b"\r\n" in said
        assert server.posted == ["POST /messages?session_id=7 HTTP/1.1"]


async def test_what_the_proxy_answers_comes_on_the_stream_too() -> None:
    server = Server(b"/messages")
    async with upstream(server) as there, before(there.url, RULES) as proxy:
        async with stream(proxy) as (reader, query):
            assert (await post(proxy, query, call("gone"))).startswith(b"HTTP/1.1 202 ")
            said = await asyncio.wait_for(reader.readuntil(b"}\n\n"), 10)
        assert b"Unknown tool: gone" in said
        assert server.posted == []


async def test_an_endpoint_is_good_as_long_as_its_stream() -> None:
    server = Server(b"/messages")
    async with upstream(server) as there, before(there.url, RULES) as proxy:
        async with stream(proxy) as (_, query):
            pass
        await asyncio.wait_for(gone(proxy, query), 10)


async def gone(proxy: Standing, query: str) -> None:
    while b" 404 " not in await post(proxy, query, call("get")):
        await asyncio.sleep(0.01)


@pytest.mark.parametrize("endpoint", ["http://127.0.0.1:1/x", "//127.0.0.1:1/x", "http://["])
async def test_an_endpoint_of_another_origin_is_refused(endpoint: str) -> None:
    event = Event(b"", endpoint.encode(), event="endpoint")
    with pytest.raises(legacy.Elsewhere, match="endpoint"):
        legacy.named(event, URL("http://127.0.0.1:2/sse"))


def test_an_absolute_endpoint_of_the_same_origin_is_good() -> None:
    event = Event(b"", b"http://127.0.0.1:2/x?y=1", event="endpoint")
    url = legacy.named(event, URL("http://127.0.0.1:2/sse"))
    assert str(url) == "http://127.0.0.1:2/x?y=1"
