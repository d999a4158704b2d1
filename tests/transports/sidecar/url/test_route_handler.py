"""A route to an HTTP server: responses that pass unchanged, are shaped, or are errors."""

import asyncio
import json
from typing import Any

import pytest

from proxy.transports.http.sse import encode_event
from tests.builders import answer, call, document, line, rules
from tests.transports.http.raw_upstream import Request, chunk, head, raw_response, upstream
from tests.transports.http.route_server import serve_url

DROP = rules("- {name: drop, tools: get, response: [{drop: secret}]}")
SECRET = answer(document({"a": 1, "secret": 2}))
SHAPED = answer(document({"a": 1}))
JSON, STREAM = "application/json", "text/event-stream"


def stream(*events: bytes, **headers: str) -> bytes:
    """Return a whole answer of events."""
    pairs = {"content_type": STREAM, "transfer_encoding": "chunked", **headers}
    return head(**pairs) + b"".join(map(chunk, events)) + chunk(b"")


async def test_the_events_of_a_stream_pass_and_the_answer_among_them_is_shaped() -> None:
    progress = b": hello\r\nid: 1\r\ndata: " + line(method="notifications/progress") + b"\r\n\r\n"
    result = b"id: 2\nevent: message\nretry: 5\ndata: " + SECRET + b"\n\n"
    async with upstream(stream(progress, result)) as server, serve_url(server.url, DROP) as proxy:
        response = await proxy.post(call("get"), mcp_session_id="s")
    assert response.headers["content-type"] == STREAM
    assert response.body == progress + result.replace(SECRET, SHAPED)


@pytest.mark.parametrize("body", [b"", b"[]"])
@pytest.mark.parametrize("session", [None, "s"])
async def test_json_without_a_response_is_an_error_of_the_call(
    body: bytes, session: str | None
) -> None:
    headers = {} if session is None else {"mcp_session_id": session}
    async with upstream(raw_response(body)) as server, serve_url(server.url, DROP) as proxy:
        response = await proxy.post(call("get", id=7), **headers)
    assert response.json["id"] == 7
    assert response.json["result"]["content"][0]["text"] == (
        "the server ended its answer without a response"
    )


GUARD = rules("- {name: guard, tools: get, on_failure: refuse, response: [{drop: secret}]}")
TYPE = "the server's answer is neither JSON nor an event stream"
NONE = "the server ended its answer without a response"


@pytest.mark.parametrize(
    ("raw", "expected"),
    [
        (raw_response(SECRET, content_type="text/plain"), f"{TYPE}: text/plain"),
        (head(content_length=str(len(SECRET))) + SECRET, f"{TYPE}: it has no Content-Type"),
        (raw_response(SECRET.replace(b'"id":1', b'"id":null')), NONE),
        (raw_response(SECRET.replace(b'"id":1', b'"id":9')), NONE),
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


async def test_json_that_only_the_server_can_read_is_forwarded() -> None:
    raw = b'{"jsonrpc":"2.0","id":1,"method":"x","params":{"a":NaN}}'
    async with upstream(raw_response(SECRET)) as server, serve_url(server.url) as proxy:
        assert (await proxy.post(raw)).body == SECRET
    assert server.requests[0].body == raw


@pytest.mark.parametrize("tool", ["get", "gone"])
async def test_a_batch_passes_as_it_is_or_each_request_of_it_is_refused(tool: str) -> None:
    hide = rules("- {tools: gone, hide: true}") if tool == "gone" else DROP
    batch = b"[" + b",".join((call(tool), call("other", id=3))) + b"]"
    both = b"[" + SECRET + b"," + SECRET.replace(b'"id":1', b'"id":3') + b"]"
    async with upstream(raw_response(both)) as server, serve_url(server.url, hide) as proxy:
        response = await proxy.post(batch)
    refuses = tool == "gone"
    assert sorted(each["id"] for each in response.json) == [1, 3]
    assert [each.body for each in server.requests] == ([] if refuses else [batch])
    assert refuses or response.body == both


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
        writer.write(head(content_type=STREAM, transfer_encoding="chunked"))
        writer.write(chunk(encode_event(question)))
        await asyncio.wait_for(answered.wait(), 10)
        writer.write(chunk(encode_event(SECRET)) + chunk(b""))

    async with upstream(script) as server, serve_url(server.url, DROP) as proxy:
        response = await proxy.post(call("get"), JSON, mcp_session_id="s")
    assert response.body == SHAPED
