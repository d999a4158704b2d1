"""Queries to an HTTP server in a client's name, and the parts of the responses for the client.

Faults of server and client during a query stand in tests/faults.
"""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from proxy.ruleset.guard import Allow
from proxy.ruleset.rule import RuleSet
from proxy.transports.http.sse import encode_event
from tests.builders import answer, call, document, line, texts, tool_result
from tests.transports.guarded import guarded, onward, query_id, respond
from tests.transports.http.raw_upstream import Request, chunk, head, raw_response, upstream
from tests.transports.http.route_server import Response, StreamedResponse, UrlServer, serve_url

STREAM = "text/event-stream"
VERSION = "2026-07-28"
META = {"io.modelcontextprotocol/protocolVersion": VERSION}
MODERN = {"mcp_protocol_version": VERSION}
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
            writer.write(head(content_type=STREAM, transfer_encoding="chunked"))
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


async def test_a_query_belongs_to_the_session_of_the_call() -> None:
    async with proxied(guarded(onward)) as (proxy, server):
        headers = {"mcp_session_id": "s", "mcp_protocol_version": "2025-11-25"}
        response = await proxy.post(WRITE, authorization="Bearer a", **headers)
    assert texts(response.body) == ["done"]
    assert server["write"].body == WRITE
    for request in (server["status"], server["write"]):
        assert request.headers["mcp-session-id"] == "s"
        assert request.headers["mcp-protocol-version"] == "2025-11-25"
        assert "authorization" not in request.headers
        assert "mcp-name" not in request.headers


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


def streamed(*events: bytes) -> bytes:
    start = head(content_type=STREAM, transfer_encoding="chunked")
    return start + b"".join(map(chunk, events)) + chunk(b"")


async def test_notifications_in_a_query_response_go_to_the_clients_stream() -> None:
    def question(request: Request) -> bytes:
        id = query_id(request.body)
        return streamed(encode_event(NOTE), encode_event(answer(document([1]), id)))

    async with proxied(guarded(respond), question) as (proxy, server):
        stream = await listen(proxy)
        response = await proxy.post(WRITE, mcp_session_id="s")
        assert texts(response.body) == ["[1]"]
        assert await stream.data() == NOTE
    assert server.names() == ["status"]


async def test_a_late_query_response_is_forwarded_to_no_stream() -> None:
    ids: list[str] = []

    async def question(request: Request) -> bytes:
        ids.append(query_id(request.body))
        await asyncio.Event().wait()
        raise AssertionError

    rules = guarded(respond, seconds=0.1)
    async with proxied(rules, question) as (proxy, server):
        stream = await listen(proxy)
        response = await proxy.post(WRITE, mcp_session_id="s")
        assert texts(response.body) == ["no answer in time"]
        server.events.put_nowait(encode_event(answer(document([1]), ids[0])))
        server.events.put_nowait(encode_event(NOTE))
        assert await stream.data() == NOTE


async def test_two_calls_of_one_session_with_equal_ids_are_both_answered() -> None:
    both = asyncio.Barrier(2)

    async def question(request: Request) -> bytes:
        async with asyncio.timeout(20):
            await both.wait()
        return fine(request)

    async with proxied(guarded(onward), question) as (proxy, server):
        responses: list[Response] = await asyncio.gather(
            *(proxy.post(WRITE, mcp_session_id="s") for _ in range(2))
        )
    assert all(each.json["id"] == 1 for each in responses)
    [error] = [each.json["error"] for each in responses if "error" in each.json]
    assert error == {"code": -32600, "message": "another request has the same id"}
    assert sorted(server.names()) == ["status", "status", "write"]
