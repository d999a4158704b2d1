"""Bad HTTP, byte by byte: each request is answered once, as JSON-RPC, and never quoted."""

import asyncio
from collections.abc import Iterator

import pytest
from aiohttp import web
from aiohttp.http import SERVER_SOFTWARE
from mcp_abridge.transports.sidecar import connection
from mcp_abridge.transports.sidecar.connection import BodyStalled, end_slow_body
from pytest_aiohttp import AiohttpRawServer

from tests.faults.sidecar import Sidecar, get, serving
from tests.raw_http import RawServer, always, whole
from tests.transports.http.sidecar_server import RawClient, serve_sidecar

START = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n"


async def test_a_body_that_breaks_later_is_answered_as_well() -> None:
    async with serve_sidecar() as server:
        client = await server.client()
        await client.send(CHUNKED + b"2\r\nab\r\n")
        await server.handler.arrived.wait()
        await client.send(b"ECHO\r\n")
        assert (await client.response()).error == (400, -32600, "bad HTTP request")
        assert await client.rest() == b""


# All other framing that could be read in two ways stands in tests/faults/bad_requests.py.
async def test_an_unknown_transfer_encoding_is_refused() -> None:
    async with serve_sidecar() as server:
        client = await server.client()
        await client.send(START + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n")
        reason = "the only Transfer-Encoding known here is chunked"
        assert (await client.response()).error == (501, -32600, reason)
        assert await client.rest() == b""


async def test_a_client_that_expects_100_continue_receives_it() -> None:
    async with serve_sidecar() as server:
        client = await server.client()
        await client.send(START + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert await client.head() == b"HTTP/1.1 100 Continue"
        await client.send(b"ab")
        assert (await client.response()).body == b"you said ab"


async def test_a_tunnel_or_another_protocol_is_not_offered() -> None:
    async with serve_sidecar() as server:
        assert (await server.request("CONNECT localhost:443")).status == 404
        upgrade = b"Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nab"
        client = await server.client()
        await client.send(START + upgrade)
        assert (await client.response()).body == b"you said ab"


# The status of each kind of answer, by the first line of its request.
ANSWERS = {
    "GET /healthz": 200,
    "GET /readyz": 200,
    "GET /metrics": 200,
    "PUT /metrics": 405,
    "GET /nowhere": 404,
    "TRACE /mcp": 405,
    "POST /mcp": 400,
    "GET /mcp": 204,
    "BROKEN": 400,
    "GET /mcp HTTP/1.1\r\nno header\r\nX: HTTP/1.1": 400,
}


@pytest.fixture(scope="module")
def quiet() -> Iterator[Sidecar]:
    """Serve a server that answers everything with nothing."""
    with RawServer(always(whole(b"", "204 No Content"))) as server, serving(server.url) as sidecar:
        yield sidecar


@pytest.mark.parametrize("line", ANSWERS)
def test_no_answer_of_its_own_says_which_software_runs(line: str, quiet: Sidecar) -> None:
    version = " HTTP/1.1" if " " in line else ""
    response = quiet.ask(f"{line}{version}\r\nHost: localhost\r\n\r\n".encode())
    assert (response.status, response.all("server")) == (ANSWERS[line], [])


@pytest.mark.parametrize("software", ["Kestrel", SERVER_SOFTWARE])
def test_the_software_that_a_server_names_is_passed_on(software: str) -> None:
    answer = whole(b"", "405 Method Not Allowed", f"Server: {software}")
    with RawServer(always(answer)) as server, serving(server.url) as sidecar:
        assert sidecar.ask(get()).one("server") == software


async def test_a_body_that_arrives_too_slowly_is_abandoned(
    monkeypatch: pytest.MonkeyPatch, aiohttp_raw_server: AiohttpRawServer
) -> None:
    monkeypatch.setattr(connection, "_STALLED", 0.2)
    monkeypatch.setattr(connection, "_LEAST", 5)
    errors: list[type[BaseException]] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        patience = asyncio.create_task(end_slow_body(request))
        try:
            await request.content.read()
        except BodyStalled as stalled:
            errors.append(type(stalled))
        finally:
            patience.cancel()
        return web.Response()

    server = await aiohttp_raw_server(handle)
    client = RawClient(*await asyncio.open_connection(server.host, server.port))
    await client.send(START + b"Content-Length: 10\r\n\r\nabc")
    while not errors:
        await client.send(b"d")
        await asyncio.sleep(0.1)
    assert (await client.response()).status == 200
    assert errors == [BodyStalled]
    client.close()
