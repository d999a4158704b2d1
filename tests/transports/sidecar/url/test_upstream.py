"""What a server is asked, with which headers and where, and what goes wrong on its side."""

import asyncio
from typing import Any

import pytest

from tests.given import answer, call, document, rules
from tests.transports.http.raw import Request, head, response, upstream
from tests.transports.http.standing import before

DROP = rules("- {name: drop, tools: get, response: [{drop: secret}]}")
SECRET = answer(document({"a": 1, "secret": 2}))
JSON = "application/json"


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
async def test_a_redirection_to_another_origin_is_refused(status: int) -> None:
    said = response(b"", f"{status} Elsewhere", location="http://127.0.0.1:1/mcp")
    async with upstream(said) as server, before(server.url, auth="forward") as proxy:
        got = await proxy.post(call("get"), authorization="Bearer a")
    assert got.status == 502
    assert got.json["error"]["message"] == (
        "the server redirects to another origin; that is refused"
    )
    assert server.asked[0].headers["authorization"] == "Bearer a"


async def test_a_server_that_cannot_be_reached_is_an_error_that_says_so() -> None:
    async with upstream(b"") as server:
        port = server.port
    async with before(f"http://127.0.0.1:{port}/mcp") as proxy:
        got = await proxy.post(call("get", id="a"))
    assert got.status == 502
    assert got.json["id"] == "a"
    assert got.json["error"]["message"].startswith("the server cannot be reached: ")


@pytest.mark.parametrize(
    "said",
    [
        head(content_type=JSON, content_length="1000") + b'{"jsonrpc"',
        head(content_type=JSON, content_length="10", content_encoding="gzip") + b"no gzip...",
        head(content_type=JSON, transfer_encoding="chunked") + b"nonsense",
        b"nonsense",
        b"",
    ],
)
async def test_what_breaks_off_before_anything_was_passed_on_is_an_error(said: bytes) -> None:
    async def script(request: Request, reader: Any, writer: asyncio.StreamWriter) -> None:
        writer.write(said)
        await writer.drain()
        raise ConnectionError

    async with upstream(script) as server, before(server.url, DROP) as proxy:
        got = await proxy.post(call("get"))
    assert got.status == 502
    assert got.json["id"] == 1
    assert "the server" in got.json["error"]["message"]
    assert len(server.asked) == 1


async def test_the_query_of_a_request_goes_along() -> None:
    async with upstream(response(SECRET)) as server, before(server.url) as proxy:
        reader, writer = await asyncio.open_connection("127.0.0.1", proxy.port)
        writer.write(b"GET /mcp?a=%2F&b HTTP/1.1\r\nhost: x\r\nconnection: close\r\n\r\n")
        await reader.read()
        writer.close()
    assert server.asked[0].line == "GET /mcp?a=%2F&b HTTP/1.1"


async def test_fixed_headers_go_along() -> None:
    fixed = (("Authorization", "Bearer ours"),)
    async with upstream(response(SECRET)) as server, before(server.url, headers=fixed) as proxy:
        await proxy.post(call("get"), authorization="Bearer theirs")
    assert server.asked[0].headers["authorization"] == "Bearer ours"
