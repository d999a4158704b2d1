"""The query and the fixed headers that a server receives."""

from tests.builders import answer, call, document, rules
from tests.transports.http.raw_upstream import raw_response, upstream
from tests.transports.http.route_server import serve_url

DROP = rules("- {name: drop, tools: get, response: [{drop: secret}]}")
SECRET = answer(document({"a": 1, "secret": 2}))
JSON = "application/json"


async def test_the_query_string_is_forwarded() -> None:
    async with upstream(raw_response(SECRET)) as server, serve_url(server.url) as proxy:
        await proxy.client("?a=%2F&b").send("GET")
    assert server.requests[0].line == "GET /mcp?a=%2F&b HTTP/1.1"


async def test_fixed_headers_are_forwarded() -> None:
    headers = (("Authorization", "Bearer ours"),)
    async with (
        upstream(raw_response(SECRET)) as server,
        serve_url(server.url, headers=headers) as proxy,
    ):
        await proxy.post(call("get"), authorization="Bearer theirs")
    assert server.requests[0].headers["authorization"] == "Bearer ours"
