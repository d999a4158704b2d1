"""HTTP+SSE of 2024-11-05: the endpoint is ours, and answers come on the stream of the GET."""

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from msgspec.structs import replace

from proxy.ruleset.rule import EMPTY, RuleSet
from tests.given import answer, call, document, line, rule, rules, said
from tests.transports.guarded import guarded, onward, told
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
    said = await asyncio.wait_for(reader.readuntil(b"\n\n"), 10)
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
            said = await asyncio.wait_for(reader.readuntil(b"}\n\n"), 10)
        assert b"data: " + SHAPED + b"\n" in said
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


class Careful(Server):
    """Answers each call by its tool: what is asked, what is held; `status` of the answer to those.

    Where it is told to `wait`, it answers no questions.
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
        writer.write(response(b"Accepted", status, content_type="text/plain"))
        if name == "status" and not self.wait:
            self.said.put_nowait(answer(document({"busy": False}), message["id"]))
        if name == "write" and status[0] == "2":
            self.said.put_nowait(answer(said("done"), message["id"]))

    async def posted_names(self, count: int) -> list[str]:
        async with asyncio.timeout(10):
            found = [await self.bodies.get() for _ in range(count)]
        assert self.bodies.empty()
        return [each["params"].get("name", each["method"]) for each in found]


WRITE = call("write", {})


@asynccontextmanager
async def opened(
    server: Server, rules: RuleSet, **keys: Any
) -> AsyncIterator[tuple[Standing, asyncio.StreamReader, str]]:
    async with (
        upstream(server) as there,
        before(there.url, rules, **keys) as proxy,
        stream(proxy) as (reader, query),
    ):
        yield proxy, reader, query


async def heard(reader: asyncio.StreamReader) -> Any:
    """Return the next message of a stream."""
    async with asyncio.timeout(10):
        while not (found := await reader.readline()).startswith(b"data: "):
            pass
    assert b"abridge-" not in found
    return json.loads(found[6:])


async def test_a_call_is_accepted_at_once_and_goes_on_when_a_guard_has_its_answer() -> None:
    server = Careful(wait=True)
    async with opened(server, guarded(onward)) as (proxy, reader, query):
        assert (await post(proxy, query, WRITE)).startswith(b"HTTP/1.1 202 ")
        async with asyncio.timeout(10):
            question = await server.bodies.get()
        server.said.put_nowait(answer(document([1]), question["id"]))
        assert (await heard(reader))["result"] == said("done")
        assert await server.posted_names(1) == ["write"]


async def test_several_questions_before_one_call_follow_each_other() -> None:
    server = Careful(wait=True)
    [guarding] = guarded(onward).files
    bounded = replace(rule("{tools: write, max_bytes: 500}"), guard=guarding.rules[0].guard)
    async with opened(server, RuleSet((replace(guarding, rules=(bounded,)),))) as (
        proxy,
        reader,
        query,
    ):
        await post(proxy, query, call("write", {"view": "text"}))
        for result in ({"tools": [], "nextCursor": "2"}, {"tools": [{"name": "write"}]}):
            async with asyncio.timeout(10):
                question = await server.bodies.get()
            assert question["method"] == "tools/list"
            server.said.put_nowait(answer(result, question["id"]))
        async with asyncio.timeout(10):
            question = await server.bodies.get()
        server.said.put_nowait(answer(document([1]), question["id"]))
        assert (await heard(reader))["result"] == said("done")
        assert await server.posted_names(1) == ["write"]


async def test_a_call_that_is_not_taken_once_it_goes_on_is_an_error_on_the_stream() -> None:
    server = Careful(status="503 Later")
    async with opened(server, guarded(onward)) as (proxy, reader, query):
        assert (await post(proxy, query, WRITE)).startswith(b"HTTP/1.1 202 ")
        failed = said("the server answered HTTP 503", isError=True)
        assert (await heard(reader))["result"] == failed
        assert await server.posted_names(2) == ["status", "write"]


async def test_a_question_without_an_answer_is_taken_back_there_too() -> None:
    server = Careful(wait=True)
    async with opened(server, guarded(told, 0.1)) as (proxy, reader, query):
        await post(proxy, query, WRITE)
        found = said("no answer in time", structuredContent={"text": "no answer in time"})
        assert (await heard(reader))["result"] == found
        assert await server.posted_names(2) == ["status", "notifications/cancelled"]


async def test_a_call_that_is_taken_back_is_not_answered() -> None:
    server = Careful(wait=True)
    async with opened(server, guarded(onward)) as (proxy, reader, query):
        await post(proxy, query, WRITE)
        question = await asyncio.wait_for(server.bodies.get(), 10)
        cancel = line(method="notifications/cancelled", params={"requestId": 1})
        await post(proxy, query, cancel)
        told = await asyncio.wait_for(server.bodies.get(), 10)
        assert told["params"]["requestId"] == question["id"]
        # Neither is a late answer shown.
        server.said.put_nowait(answer(document([1]), question["id"]))
        server.said.put_nowait(answer(said("next"), 2))
        assert (await heard(reader))["id"] == 2
        assert server.bodies.empty()


async def test_the_end_of_the_stream_ends_what_is_held() -> None:
    server = Careful(wait=True)
    async with upstream(server) as there, before(there.url, guarded(onward)) as proxy:
        async with stream(proxy) as (_, query):
            await post(proxy, query, WRITE)
            assert await server.posted_names(1) == ["status"]
        assert await server.posted_names(1) == ["notifications/cancelled"]


@pytest.mark.parametrize("endpoint", [b"http://127.0.0.1:1/x", b"//127.0.0.1:1/x", b"http://["])
async def test_an_endpoint_of_another_origin_is_refused(endpoint: bytes) -> None:
    async with upstream(Server(endpoint)) as there, before(there.url) as proxy:
        got = await proxy.ask("GET", accept="text/event-stream")
        assert (got.status, got.body) == (200, b"")
        assert "another origin" in proxy.asked[0].failure


async def test_a_call_that_is_late_is_an_error_on_the_stream_and_cancelled_there() -> None:
    server = Careful(wait=True)
    async with opened(server, EMPTY, deadline=0.2) as (proxy, reader, query):
        assert (await post(proxy, query, call("status", id=7))).startswith(b"HTTP/1.1 202 ")
        failed = await heard(reader)
        assert (failed["id"], failed["result"]["isError"]) == (7, True)
        assert failed["result"]["content"][0]["text"].startswith("no answer within 0.2 seconds")
        assert await server.posted_names(2) == ["status", "notifications/cancelled"]
        # A late answer is not shown, and what is asked next is answered.
        server.said.put_nowait(answer(said("late"), 7))
        await post(proxy, query, line(id=8, method="prompts/list"))
        server.said.put_nowait(answer({"prompts": []}, 8))
        assert (await heard(reader))["id"] == 8
