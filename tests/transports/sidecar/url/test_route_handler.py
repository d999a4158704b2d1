"""A route to an HTTP server: responses that pass unchanged, are shaped, or are errors."""

import asyncio
import json
from typing import Any

import pytest
from mcp_abridge.transports.http.sse import encode_event

from tests.builders import answer, call, document, line, rules, texts
from tests.transports.http.raw_upstream import (
    STREAM_HEAD,
    Request,
    chunk,
    head,
    raw_response,
    streamed,
    upstream,
)
from tests.transports.http.route_server import BOTH, JSON, STREAM, serve_url

DROP = rules("- {name: drop, tools: get, response: [{drop: secret}]}")
SECRET = answer(document({"a": 1, "secret": 2}))
SHAPED = answer(document({"a": 1}))


async def test_the_events_of_a_stream_pass_and_the_answer_among_them_is_shaped() -> None:
    progress = b": hello\r\nid: 1\r\ndata: " + line(method="notifications/progress") + b"\r\n\r\n"
    result = b"id: 2\nevent: message\nretry: 5\ndata: " + SECRET + b"\n\n"
    async with upstream(streamed(progress, result)) as server, serve_url(server.url, DROP) as proxy:
        response = await proxy.post(call("get"), mcp_session_id="s")
    assert response.headers["content-type"] == STREAM
    assert response.body == progress + result.replace(SECRET, SHAPED)


GUARD = rules("- {name: guard, tools: get, on_failure: refuse, response: [{drop: secret}]}")
TYPE = "the server's answer is neither JSON nor an event stream"
NONE = "the server ended its answer without a response"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (raw_response(SECRET, content_type="text/plain"), f"{TYPE}: text/plain"),
        (head(content_length=str(len(SECRET))) + SECRET, f"{TYPE}: it has no Content-Type"),
        (raw_response(SECRET.replace(b'"id":1', b'"id":null')), NONE),
        (raw_response(SECRET.replace(b'"id":1', b'"id":"1"')), NONE),
        (raw_response(b'"secret"'), NONE),
    ],
)
@pytest.mark.parametrize("session", [None, "s"])
async def test_a_possible_response_does_not_bypass_a_rule_that_withholds(
    raw: bytes, expected: str, session: str | None
) -> None:
    headers = {} if session is None else {"mcp_session_id": session}
    async with upstream(raw) as server, serve_url(server.url, GUARD) as proxy:
        response = await proxy.post(call("get"), **headers)
        other = await proxy.post(call("other"), **headers)
    assert (response.json["id"], b"secret" in response.body) == (1, False)
    assert response.json["result"]["content"][0]["text"] == expected
    assert other.body == raw.partition(b"\r\n\r\n")[2]


@pytest.mark.parametrize("body", [b"", b"[]"])
async def test_json_without_a_response_is_an_error_of_the_call(body: bytes) -> None:
    async with upstream(raw_response(body)) as server, serve_url(server.url, DROP) as proxy:
        response = await proxy.post(call("get", id=7))
    assert response.json["id"] == 7
    assert response.json["result"]["content"][0]["text"] == NONE


@pytest.mark.parametrize("status", ["202 Accepted", "204 No Content"])
async def test_an_empty_response_passes_a_rule_that_withholds(status: str) -> None:
    raw = head(status, **({} if "204" in status else {"content_length": "0"}))
    async with upstream(raw) as server, serve_url(server.url, GUARD) as proxy:
        response = await proxy.post(call("get"), mcp_session_id="s")
    assert (response.status, response.body) == (int(status[:3]), b"")


async def test_an_error_without_an_id_passes_a_rule_that_withholds() -> None:
    error = line(id=None, error={"code": -32700, "message": "Parse error"})
    async with upstream(raw_response(error)) as server, serve_url(server.url, GUARD) as proxy:
        response = await proxy.post(call("get"), mcp_session_id="s")
    assert response.body == error


async def test_json_that_only_the_server_can_read_and_the_query_string_are_forwarded() -> None:
    raw = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}'
    async with upstream(raw_response(SECRET)) as server, serve_url(server.url) as proxy:
        response = await (await proxy.client("?a=%2F&b").send("POST", raw, JSON)).read()
    assert response.body == SECRET
    assert server.requests[0].line == "POST /mcp?a=%2F&b HTTP/1.1"
    assert server.requests[0].body == raw


async def test_no_query_of_a_client_overrides_that_of_the_configured_url() -> None:
    own, query = "?read_only=true&project=7", "?a=%2F&read_only=0&Read%5Fonly=0&project"
    async with upstream(raw_response(SECRET)) as server, serve_url(server.url + own) as proxy:
        await (await proxy.client(query).send("POST", call("get"), JSON)).read()
    assert server.requests[0].line == "POST /mcp?read_only=true&project=7&a=%2F HTTP/1.1"


async def test_a_request_to_a_client_that_takes_no_stream_is_answered_with_an_error() -> None:
    question = line(id="q", method="sampling/createMessage", params={})
    answered = asyncio.Event()

    async def script(request: Request, reader: Any, writer: asyncio.StreamWriter) -> None:
        if b'"error"' in request.body:
            assert json.loads(request.body)["id"] == "q"
            assert request.headers["mcp-session-id"] == "s"
            answered.set()
            writer.write(raw_response(b"", "202 Accepted"))
            return
        writer.write(STREAM_HEAD + chunk(encode_event(question)))
        await asyncio.wait_for(answered.wait(), 10)
        writer.write(chunk(encode_event(SECRET)) + chunk(b""))

    async with upstream(script) as server, serve_url(server.url, DROP) as proxy:
        response = await proxy.post(call("get"), JSON, mcp_session_id="s")
    assert response.body == SHAPED


NOTE = line(method="notifications/message", params={"data": "working"})
BEGUN = STREAM_HEAD + chunk(encode_event(NOTE))
REASON = "no answer within 0.8 seconds and no progress"


@pytest.mark.parametrize(
    ("accept", "first", "streams"),
    [(BOTH, b"", False), (JSON, b"", False), (STREAM, b"", True), (BOTH, BEGUN, True)],
)
async def test_a_late_call_is_an_error_in_a_form_that_the_client_takes_and_cancelled(
    accept: str, first: bytes, streams: bool
) -> None:
    cancellations: asyncio.Queue[Request] = asyncio.Queue()

    async def script(request: Request, reader: Any, writer: asyncio.StreamWriter) -> None:
        if b'"notifications/' in request.body:
            writer.write(raw_response(b"", "202 Accepted"))
            cancellations.put_nowait(request)
            return
        writer.write(first)
        assert await reader.read() == b""
        raise ConnectionResetError

    headers = {"mcp_session_id": "s", "x_mine": "m", "idempotency_key": "k"}
    async with upstream(script) as server, serve_url(server.url, deadline=0.8) as proxy:
        response = await proxy.post(call("slow", id=7), accept, **headers)
        async with asyncio.timeout(20):
            cancellation = await cancellations.get()
            # Its connection is not kept either.
            await server.disconnected.wait()
    assert response.headers["content-type"].startswith(STREAM) is streams
    events = [each[6:] for each in response.body.split(b"\n") if each.startswith(b"data: ")]
    *notes, raw = events if streams else [response.body]
    assert notes == ([NOTE] if first else [])
    assert (response.status, json.loads(raw)["id"]) == (200, 7)
    assert texts(raw)[0].startswith(REASON)
    assert json.loads(cancellation.body)["params"] == {"requestId": 7, "reason": REASON}
    assert cancellation.headers["mcp-session-id"] == "s"
    assert cancellation.headers["x-mine"] == "m"
    assert "idempotency-key" not in cancellation.headers
    record = proxy.records[0]
    assert (record.answered_by, record.failure) == ("proxy", "the server did not answer in time")
