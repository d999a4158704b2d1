"""What a server is asked, with which headers and where, and what goes wrong on its side."""

import asyncio

from tests.given import answer, call, document, rules
from tests.transports.http.raw import response, upstream
from tests.transports.http.standing import before

DROP = rules("- {name: drop, tools: get, response: [{drop: secret}]}")
SECRET = answer(document({"a": 1, "secret": 2}))
JSON = "application/json"


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
