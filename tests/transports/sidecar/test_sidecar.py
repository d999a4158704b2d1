"""The sidecar itself: its limits, its own paths, its log, its end."""

import asyncio
from ipaddress import ip_address

import pytest
from mcp_abridge.transports.sidecar.access import Access

from tests.transports.http.route_server import tokens
from tests.transports.http.sidecar_server import (
    RawClient,
    RunningSidecar,
    serve_sidecar,
    sidecar_route,
)

STREAM = "Accept: text/event-stream"


async def waiting(server: RunningSidecar) -> RawClient:
    """Make a client whose request is open until the handler's `go` is set."""
    client = await server.client()
    await client.post("/mcp", b"wait")
    await server.handler.arrived.wait()
    return client


async def test_a_path_without_a_route_is_404_and_is_not_repeated() -> None:
    async with serve_sidecar() as server:
        response = await server.post("/secret?key=secret", b"{}")
        assert response.error == (404, -32600, "nothing is served at this path, but at /mcp")
        (line,) = server.events("request")
        assert "secret" not in str(line)
        assert line["sent"] == len(response.body)


async def test_paths_that_a_client_may_not_use_are_not_named() -> None:
    secret = Access(tokens=tokens("right"))
    routes = [sidecar_route(path=path, access=secret) for path in ("/one", "/{token}/two")]
    async with serve_sidecar(*routes, sidecar_route(access=Access(hosts=("a.example",)))) as server:
        response = await server.post("/else", b"{}")
        assert response.json["error"]["message"] == "nothing is served at this path"
        response = await server.post("/else", b"{}", "Authorization: Bearer right")
        assert response.json["error"]["message"].endswith(", but at /one")


async def test_requests_over_the_limit_are_refused_with_retry_after() -> None:
    async with serve_sidecar(concurrent=1) as server:
        first = await waiting(server)
        refusal = await server.post("/mcp", b"{}")
        reason = "1 requests are open, the most this proxy takes at once"
        assert refusal.error == (503, -1, reason)
        assert refusal.headers["retry-after"] == "1"
        assert (await server.request("GET /healthz")).status == 200
        server.handler.go.set()
        assert (await first.response()).status == 200
        assert (await server.post("/mcp", b"{}")).status == 200


async def test_half_bodies_of_one_token_give_way_to_the_requests_of_another() -> None:
    route = sidecar_route(access=Access(tokens=tokens("many", "one")))
    async with serve_sidecar(route, concurrent=2) as server:

        async def half(token: str) -> RawClient:
            client = await server.client()
            bearer = f"Authorization: Bearer {token}"
            await client.request("POST /mcp", bearer, "Content-Length: 9")
            return client

        first, second = await half("many"), await half("many")
        refusal = await (await half("many")).response()
        assert refusal.error[0] == 503
        assert (await server.post("/mcp", b"{}", "Authorization: Bearer one")).status == 200
        assert (await first.response()).error == (408, -32600, "the rest of the body did not come")
        await half("one")
        refusal = await server.post("/mcp", b"{}", "Authorization: Bearer one")
        assert refusal.error[0] == 503
        await second.send(b"{}       ")
        assert (await second.response()).status == 200


async def test_open_streams_block_no_requests() -> None:
    async with serve_sidecar(concurrent=1) as server:
        first, second = await server.client(), await server.client()
        await first.request("GET /mcp", STREAM)
        await first.head()
        assert (await server.post("/mcp", b"{}")).status == 200
        await second.request("GET /mcp", STREAM)
        refusal = await second.response()
        assert refusal.error == (503, -1, "1 streams are open, the most this proxy takes at once")


async def test_a_handler_that_fails_is_a_500_without_the_reason() -> None:
    async with serve_sidecar() as server:
        response = await server.post("/mcp", b"fail")
        assert response.error == (500, -1, "the proxy failed; its log says why")
        (line,) = server.events("request")
        assert (line["level"], line["status"], line["failure"]) == ("warning", 500, "RuntimeError")


async def test_it_is_alive_and_ready_unless_a_handler_is_not() -> None:
    async with serve_sidecar() as server:
        alive, ready = await server.request("GET /healthz"), await server.request("GET /readyz")
        assert (alive.status, alive.json) == (200, {"status": "alive"})
        assert (ready.status, ready.json) == (200, {"status": "ready"})
        server.handler.unready = "no child can be started"
        unready = await server.request("GET /readyz")
        assert (unready.status, unready.json) == (503, {"status": "not ready", "routes": ["/mcp"]})
        assert (await server.request("GET /healthz")).status == 200


async def test_own_paths_take_only_get_and_head() -> None:
    async with serve_sidecar() as server:
        response = await server.post("/healthz", b"")
        assert (response.status, response.headers["allow"]) == (405, "GET, HEAD")
        client = await server.client()
        await client.request("HEAD /healthz")
        assert (await client.head()).startswith(b"HTTP/1.1 200 ")


async def test_metrics_need_no_token_and_are_refused_to_a_foreign_host() -> None:
    access = Access(hosts=("sidecar.example",), tokens=tokens("right"))
    async with serve_sidecar(sidecar_route(access=access)) as server:
        await server.post("/mcp", b"call", "Host: sidecar.example", "Authorization: Bearer right")
        for host in ("sidecar.example", "10.0.0.7:8808", "[fd00::7]:8808"):
            response = await server.request("GET /metrics", f"Host: {host}")
            assert response.status == 200
            assert b'mcp_method_name="tools/call"' in response.body
            assert b"\nmcp_abridge_sessions 3.0\n" in response.body
            assert b"\nmcp_abridge_children 2.0\n" in response.body
            assert response.headers["content-type"].startswith("text/plain")
        assert (await server.request("GET /metrics")).error == (403, -32600, "not for this Host")


async def test_a_request_is_logged_with_its_fields_and_no_secret() -> None:
    async with serve_sidecar() as server:
        await server.post("/mcp?key=secret", b"call", "X-Key: secret", "Cookie: secret")
        await server.post("/mcp", b"else")
        lines = server.events("request")
        assert [line["route"] for line in lines] == ["/mcp", "/mcp"]
        line = lines[0]
        assert "secret" not in str(line)
        assert ip_address(line.pop("peer")).is_loopback
        assert line.pop("seconds") >= 0
        assert line.pop("time")
        assert line == {
            "level": "info",
            "event": "request",
            "http": "POST",
            "method": "tools/call",
            "route": "/mcp",
            "status": 200,
            "tool": "find\nme",
            "client": "tester",
            "session": "abc",
            "request_id": "one",
            "trace_id": "a1" * 16,
            "received": 7,
            "sent": len(b"you said call"),
            "answered_by": "upstream",
        }


async def test_the_end_waits_for_open_requests_and_takes_no_more() -> None:
    async with serve_sidecar(drain_seconds=60.0) as server:
        idle = await server.client()
        await idle.post("/mcp", b"before")
        await idle.response()
        server.handler.arrived.clear()
        open = await waiting(server)
        address = server.sidecar.address("127.0.0.1:0")
        ending = asyncio.create_task(server.sidecar.close())
        await idle.request("GET /readyz")
        ready = await idle.response()
        assert (ready.status, ready.json) == (503, {"status": "ending", "routes": []})
        host, _, port = address.rpartition(":")
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, int(port))
        server.handler.go.set()
        last = await open.response()
        assert (last.status, last.body) == (200, b"you said wait")
        assert last.headers["connection"] == "close"
        await ending
        assert server.handler.log == ["open", "close"]


@pytest.mark.parametrize(("line", "body"), [("GET /mcp", None), ("POST /mcp", b"listen")])
async def test_the_end_closes_streams_and_subscriptions_at_once_and_whole(
    line: str, body: bytes | None
) -> None:
    async with serve_sidecar(drain_seconds=60.0) as server:
        client = await server.client()
        await client.request(line, STREAM, body=body)
        await client.head()
        await client.until(b"data: first\n\n\r\n")
        await server.sidecar.close()
        assert await client.rest() == b"0\r\n\r\n"
        assert server.handler.cancelled.is_set()
        (event,) = server.events("request")
        assert (event["status"], event["failure"]) == (200, "the proxy ended")


async def test_requests_that_outlast_the_drain_are_answered_with_503() -> None:
    async with serve_sidecar(drain_seconds=0.0) as server:
        client = await waiting(server)
        await server.sidecar.close()
        response = await client.response()
        assert response.status == 503
        error = {"code": -1, "message": "the proxy is ending"}
        assert response.json == {"jsonrpc": "2.0", "id": 7, "error": error}
        assert await client.rest() == b""
