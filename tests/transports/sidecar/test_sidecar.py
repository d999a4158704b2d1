"""The sidecar itself: who is let in, what its own paths say, what is logged, how it ends."""

import asyncio
from ipaddress import ip_address

import pytest

from proxy.transports.sidecar.access import Access
from tests.transports.http.listening import Client, Running, route, serving

STREAM = "Accept: text/event-stream"


async def waiting(running: Running) -> Client:
    """Return a client whose request is open until the handler's `go` is set."""
    client = await running.client()
    await client.post("/mcp", b"wait")
    await running.handler.begun.wait()
    return client


async def test_a_path_without_a_route_is_404_and_is_not_repeated() -> None:
    async with serving() as running:
        answered = await running.posted("/secret?key=secret", b"{}")
        assert answered.error == (404, -32600, "nothing is served at this path")
        (line,) = running.said("request")
        assert "secret" not in str(line)
        assert line["sent"] == len(answered.body)


async def test_more_requests_than_allowed_are_told_to_come_again() -> None:
    async with serving(concurrent=1) as running:
        first = await waiting(running)
        refused = await running.posted("/mcp", b"{}")
        assert refused.error == (
            503,
            -1,
            "1 requests are open, the most this proxy takes at once",
        )
        assert refused.headers["retry-after"] == "1"
        assert (await running.got("/healthz")).status == 200
        running.handler.go.set()
        assert (await first.answer()).status == 200
        assert (await running.posted("/mcp", b"{}")).status == 200


async def test_clients_that_listen_keep_nobody_from_asking() -> None:
    async with serving(concurrent=1) as running:
        first, second = await running.client(), await running.client()
        await first.get("/mcp", STREAM)
        await first.head()
        assert (await running.posted("/mcp", b"{}")).status == 200
        await second.get("/mcp", STREAM)
        refused = await second.answer()
        assert refused.error == (503, -1, "1 streams are open, the most this proxy takes at once")


async def test_a_handler_that_fails_is_a_500_that_says_nothing_of_it() -> None:
    async with serving() as running:
        answered = await running.posted("/mcp", b"fail")
        assert answered.error == (500, -1, "the proxy failed; its log says why")
        (line,) = running.said("request")
        assert (line["level"], line["status"], line["failure"]) == ("warning", 500, "RuntimeError")


async def test_a_handler_that_fails_in_the_middle_cuts_its_answer_so_that_it_shows() -> None:
    async with serving() as running:
        client = await running.client()
        await client.post("/mcp", b"half")
        head = await client.head()
        assert b"Content-Length: 100" in head
        assert await client.rest() == b"half"


async def test_it_is_alive_and_ready_unless_a_handler_is_not() -> None:
    async with serving() as running:
        alive, ready = await running.got("/healthz"), await running.got("/readyz")
        assert (alive.status, alive.json) == (200, {"status": "alive"})
        assert (ready.status, ready.json) == (200, {"status": "ready"})
        running.handler.reason = "no child can be started"
        unready = await running.got("/readyz")
        assert (unready.status, unready.json) == (503, {"status": "not ready", "routes": ["/mcp"]})
        assert (await running.got("/healthz")).status == 200


async def test_its_own_paths_are_only_read() -> None:
    async with serving() as running:
        answered = await running.posted("/healthz", b"")
        assert (answered.status, answered.headers["allow"]) == (405, "GET, HEAD")
        client = await running.client()
        await client.send(b"HEAD /healthz HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await client.head()).startswith(b"HTTP/1.1 200 ")


async def test_figures_are_shown_without_a_token_but_not_to_a_page_of_elsewhere() -> None:
    access = Access(hosts=("sidecar.example",), tokens=("right",))
    async with serving(route(access=access)) as running:
        await running.posted(
            "/mcp", b"call", "Host: sidecar.example", "Authorization: Bearer right"
        )
        for host in ("sidecar.example", "10.0.0.7:8808", "[fd00::7]:8808"):
            client = await running.client()
            await client.send(f"GET /metrics HTTP/1.1\r\nHost: {host}\r\n\r\n".encode())
            answered = await client.answer()
            assert answered.status == 200
            assert b'mcp_method_name="tools/call"' in answered.body
            assert b"\nmcp_abridge_sessions 3.0\n" in answered.body
            assert b"\nmcp_abridge_children 2.0\n" in answered.body
            assert answered.headers["content-type"].startswith("text/plain")
        assert (await running.got("/metrics")).error == (403, -32600, "not for this Host")


async def test_a_request_leaves_a_line_and_a_call_of_a_tool_a_second_one() -> None:
    async with serving() as running:
        await running.posted("/mcp?key=secret", b"call", "X-Key: secret", "Cookie: secret")
        await running.posted("/mcp", b"else")
        lines = running.said("request")
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
            "received": 7,
            "sent": len(b"you said call"),
            "answered_by": "upstream",
        }


async def test_the_end_waits_for_open_requests_and_takes_no_more() -> None:
    async with serving(drain_seconds=60.0) as running:
        idle = await running.client()
        await idle.post("/mcp", b"before")
        await idle.answer()
        running.handler.begun.clear()
        open = await waiting(running)
        address = running.sidecar.address("127.0.0.1:0")
        ending = asyncio.create_task(running.sidecar.close())
        await idle.get("/readyz")
        ready = await idle.answer()
        assert (ready.status, ready.json) == (503, {"status": "ending", "routes": []})
        host, _, port = address.rpartition(":")
        with pytest.raises(ConnectionRefusedError):
            await asyncio.open_connection(host, int(port))
        running.handler.go.set()
        last = await open.answer()
        assert (last.status, last.body) == (200, b"you said wait")
        assert last.headers["connection"] == "close"
        await ending
        assert running.handler.log == ["open", "close"]


async def test_the_end_closes_streams_at_once_and_whole() -> None:
    async with serving(drain_seconds=60.0) as running:
        client = await running.client()
        await client.get("/mcp", STREAM)
        await client.head()
        await client.until(b"data: first\n\n\r\n")
        await running.sidecar.close()
        assert await client.rest() == b"0\r\n\r\n"
        assert running.handler.gone.is_set()


async def test_the_end_closes_what_listens_in_the_stateless_era_at_once_too() -> None:
    async with serving(drain_seconds=60.0) as running:
        client = await running.client()
        await client.post("/mcp", b"listen")
        await client.head()
        await client.until(b"data: first\n\n\r\n")
        await running.sidecar.close()
        assert await client.rest() == b"0\r\n\r\n"
        (line,) = running.said("request")
        assert (line["status"], line["failure"]) == (200, "the proxy ended")


async def test_requests_that_outlast_the_drain_are_told_so() -> None:
    async with serving(drain_seconds=0.0) as running:
        client = await waiting(running)
        await running.sidecar.close()
        answered = await client.answer()
        assert answered.status == 503
        error = {"code": -1, "message": "the proxy is ending"}
        assert answered.json == {"jsonrpc": "2.0", "id": 7, "error": error}
        assert await client.rest() == b""
