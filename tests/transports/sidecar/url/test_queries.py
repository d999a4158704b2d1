"""Queries to an HTTP server in a client's name, and the parts of the responses for the client.

Faults of server and client during a query stand in tests/faults.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from mcp_abridge.ruleset.guard import Allow
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.transports.http.sse import encode_event

from tests.builders import answer, call, document, line, texts, tool_result
from tests.transports.guarded import guarded, onward, query_id, respond
from tests.transports.http.raw_upstream import (
    STREAM_HEAD,
    Request,
    chunk,
    head,
    raw_response,
    streamed,
    upstream,
)
from tests.transports.http.route_server import STREAM, StreamedResponse, UrlServer, serve_url

VERSION = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": VERSION}
MODERN = {"mcp_protocol_version": VERSION}
NONE = "the server ended its answer without a response"
WRITE = call("write", {"path": "a"})
NOTE = line(method="notifications/message", params={"data": "checking"})

Answering = Callable[[Request], bytes | Awaitable[bytes]]


def fine(request: Request) -> bytes:
    return raw_response(answer(document({"busy": False}), query_id(request.body)))


class QueryServer:
    """Answers queries by `question`, and all else well; its GET stream has the `events`."""

    def __init__(self, question: Answering) -> None:
        self.question = question
        self.posted: list[Request] = []
        self.events: asyncio.Queue[bytes] = asyncio.Queue()

    async def __call__(self, request: Request, reader: Any, writer: asyncio.StreamWriter) -> None:
        if request.line.startswith("GET"):
            writer.write(STREAM_HEAD)
            while True:
                writer.write(chunk(await self.events.get()))
        self.posted.append(request)
        if b'"status"' in request.body:
            output = self.question(request)
            writer.write(output if isinstance(output, bytes) else await output)
        elif b'"tools/list"' in request.body:
            tools = [tool("write", "path"), tool("status", "scope")]
            writer.write(raw_response(answer({"resultType": "complete", "tools": tools})))
        elif b'"notifications/' in request.body:
            writer.write(head("202 Accepted", content_length="0"))
        else:
            writer.write(raw_response(answer(tool_result("done"), json.loads(request.body)["id"])))

    def names(self) -> list[str]:
        """Name the requests by their tools, or else methods."""
        messages = [json.loads(request.body) for request in self.posted]
        return [each["params"].get("name", each["method"]) for each in messages]

    def __getitem__(self, name: str) -> Request:
        return self.posted[self.names().index(name)]


def tool(name: str, argument: str) -> dict[str, Any]:
    """Return a tool with an argument that a header repeats."""
    schema = {"type": "string", "x-mcp-header": argument.title()}
    return {"name": name, "inputSchema": {"type": "object", "properties": {argument: schema}}}


@asynccontextmanager
async def proxied(
    rules: RuleSet, question: Answering = fine, **keys: Any
) -> AsyncIterator[tuple[UrlServer, QueryServer]]:
    server = QueryServer(question)
    async with upstream(server) as there, serve_url(there.url, rules, **keys) as proxy:
        yield proxy, server


async def listen(proxy: UrlServer) -> StreamedResponse:
    """Open the stream of the session `s`."""
    return await proxy.client().send("GET", accept=STREAM, mcp_session_id="s")


async def test_a_query_has_the_clients_credentials_and_headers_of_its_own() -> None:
    rules = guarded(lambda result: Allow({"path": "b"}), scope="all")
    async with proxied(rules, auth="forward") as (proxy, server):
        listing = line(id=1, method="tools/list", params={"_meta": META})
        await proxy.post(listing, **MODERN, mcp_method="tools/list")
        response = await proxy.post(
            call("write", {"path": "a"}, _meta=META),
            **MODERN,
            mcp_method="tools/call",
            mcp_name="write",
            mcp_param_path="a",
            mcp_param_unknown="x",
            authorization="Bearer a",
            x_mine="m",
            idempotency_key="k",
        )
    assert texts(response.body) == ["done"]
    assert server.names() == ["tools/list", "status", "write"]
    question, forwarded = server["status"], server["write"]
    assert json.loads(question.body)["params"]["_meta"] == META
    for request in (question, forwarded):
        assert request.headers["authorization"] == "Bearer a"
        assert request.headers["x-mine"] == "m"
        assert request.headers["mcp-method"] == "tools/call"
        assert request.headers["mcp-protocol-version"] == VERSION
    own = {name: value for name, value in question.headers.items() if name.startswith("mcp-param")}
    assert own == {"mcp-param-scope": "all"}
    assert question.headers["mcp-name"] == "status"
    assert "idempotency-key" not in question.headers
    assert json.loads(forwarded.body)["params"]["arguments"] == {"path": "b"}
    assert forwarded.headers["mcp-param-path"] == "b"
    assert forwarded.headers["mcp-name"] == "write"
    assert forwarded.headers["idempotency-key"] == "k"


@pytest.mark.parametrize(
    ("status", "headers"),
    [
        ("401 Unauthorized", {"www_authenticate": 'Bearer error="invalid_token"'}),
        ("403 Forbidden", {"www_authenticate": 'Bearer error="insufficient_scope"'}),
        ("404 Not Found", {}),
    ],
)
async def test_a_refusal_of_the_client_is_forwarded_to_it(
    status: str, headers: dict[str, str]
) -> None:
    def question(request: Request) -> bytes:
        error = {"code": -32001, "message": "who?"}
        id = None if "404" in status else query_id(request.body)
        return raw_response(line(id=id, error=error), status, **headers)

    async with proxied(guarded(onward), question) as (proxy, server):
        response = await proxy.post(WRITE, mcp_session_id="s")
        assert server.names() == ["status"]
        server.question = fine
        assert texts((await proxy.post(WRITE, mcp_session_id="s")).body) == ["done"]
    assert (f"{response.status}", response.json["error"]["message"]) == (status[:3], "who?")
    assert response.json["id"] == (None if "404" in status else 1)
    for name, value in headers.items():
        assert response.headers[name.replace("_", "-")] == value


async def test_an_error_404_for_the_query_is_passed_to_the_guard() -> None:
    def question(request: Request) -> bytes:
        error = {"code": -32601, "message": "no such method"}
        return raw_response(line(id=query_id(request.body), error=error), "404 Not Found")

    async with proxied(guarded(respond), question) as (proxy, _):
        assert texts((await proxy.post(WRITE, mcp_session_id="s")).body) == ["no such method"]


@pytest.mark.parametrize(
    ("raw", "failure"),
    [
        (raw_response(b"<h1>Oops</h1>", "500 Oops"), "the server answered HTTP 500 Oops"),
        (raw_response(b"", "202 Accepted"), NONE),
        (raw_response(b"hello", content_type="text/html"), NONE),
        (streamed(b": silence\n\n"), NONE),
    ],
)
async def test_a_guard_gets_the_failure_of_the_http_request(raw: bytes, failure: str) -> None:
    async with proxied(guarded(respond), lambda request: raw) as (proxy, server):
        assert texts((await proxy.post(WRITE)).body) == [failure]
        assert server.names() == ["status"]


async def test_notifications_in_a_query_response_are_not_for_the_client() -> None:
    def question(request: Request) -> bytes:
        id = query_id(request.body)
        return streamed(encode_event(NOTE), encode_event(answer(document([1]), id)))

    async with proxied(guarded(respond), question) as (proxy, server):
        response = await proxy.post(WRITE, mcp_session_id="s")
        assert texts(response.body) == ["[1]"]
    assert server.names() == ["status"]
    assert server["status"].headers["mcp-session-id"] == "s"


async def test_a_query_response_on_another_stream_is_ignored() -> None:
    async def question(request: Request) -> bytes:
        for message in (answer(document([1]), query_id(request.body)), NOTE):
            server.events.put_nowait(encode_event(message))
        assert await stream.data() == NOTE
        return streamed(b": silence\n\n")

    async with proxied(guarded(respond), question) as (proxy, server):
        stream = await listen(proxy)
        response = await proxy.post(WRITE, mcp_session_id="s")
    assert texts(response.body) == [NONE]


@pytest.mark.parametrize("by", ["time", "the client", "the id"])
async def test_a_query_without_an_answer_ends(by: str) -> None:
    arrival = asyncio.Event()

    async def silent(request: Request) -> bytes:
        arrival.set()
        await asyncio.sleep(60)
        return b""

    rules = guarded(respond, 60 if by == "the client" else 0.5)
    async with proxied(rules, silent) as (proxy, server):
        waiting = asyncio.create_task(proxy.post(WRITE, mcp_session_id="s"))
        await asyncio.wait_for(arrival.wait(), 10)
        if by == "the client":
            notice = line(method="notifications/cancelled", params={"requestId": 1})
            assert (await proxy.post(notice, mcp_session_id="s")).status == 202
            # The question is cancelled with the call, not after its time.
            assert "notifications/cancelled" in server.names()
        elif by == "the id":
            assert texts((await proxy.post(call("other"), mcp_session_id="s")).body) == ["done"]
        response = await asyncio.wait_for(waiting, 10)
        if by == "time":
            assert texts(response.body) == ["no answer in time"]
        else:
            words = "Request cancelled" if by == "the client" else "another request has the same id"
            assert response.json["error"]["message"] == words
        async with asyncio.timeout(10):
            while "notifications/cancelled" not in server.names():
                await asyncio.sleep(0.01)
    cancellation = json.loads(server["notifications/cancelled"].body)
    assert cancellation["params"]["requestId"] == query_id(server["status"].body)
    assert "write" not in server.names()
