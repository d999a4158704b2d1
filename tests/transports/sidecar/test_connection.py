"""Bad HTTP, byte by byte: each is answered once, as JSON-RPC, and nothing of it is said back."""

import asyncio

import pytest
from aiohttp import web

from proxy.transports.log import Log
from proxy.transports.sidecar.connection import BodyStalled, BodyTimeout, Connections, SidecarServer
from tests.transports.http.listening import Client, serving

START = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\n"
CHUNKED = START + b"Transfer-Encoding: chunked\r\n\r\n"
BAD = {
    "two lengths": START + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\nECHO",
    "the same length twice": START + b"Content-Length: 2\r\nContent-Length: 2\r\n\r\nECHO",
    "a list of lengths": START + b"Content-Length: 2, 2\r\n\r\nECHO",
    "a negative length": START + b"Content-Length: -2\r\n\r\nECHO",
    "a length beside chunks": START
    + b"Content-Length: 4\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nECHO",
    "chunks beside a length": START
    + b"Transfer-Encoding: chunked\r\nContent-Length: 4\r\n\r\n0\r\n\r\nECHO",
    "chunks twice": START
    + b"Transfer-Encoding: chunked\r\nTransfer-Encoding: chunked\r\n\r\n0\r\n\r\nECHO",
    "chunks that are not last": START
    + b"Transfer-Encoding: chunked, identity\r\n\r\n0\r\n\r\nECHO",
    "an unknown coding": START + b"Transfer-Encoding: xchunked\r\n\r\nECHO",
    "bare line feeds": START.replace(b"\r", b"") + b"X: ECHO\n\n",
    "a bare line feed": START + b"X: ECHO\nY: z\r\n\r\n",
    "a bare carriage return": START + b"X: ECHO\rY: z\r\n\r\n",
    "a folded line": START + b"X: a\r\n ECHO\r\n\r\n",
    "a space before a colon": START + b"Content-Length : 4\r\n\r\nECHO",
    "a null byte": START + b"X: ECHO\0\r\n\r\n",
    "a chunk without a size": CHUNKED + b"ECHO\r\nab\r\n0\r\n\r\n",
    "a chunk with a bare line feed": CHUNKED + b"4\nECHO\r\n0\r\n\r\n",
    "a chunk that is too long": CHUNKED + b"2\r\nECHO\r\n0\r\n\r\n",
    "a long header": START + b"X: " + b"ECHO" * 5000 + b"\r\n\r\n",
    "many headers": START + b"".join(b"X-%d: ECHO\r\n" % n for n in range(300)) + b"\r\n",
    "a long path": b"POST /" + b"ECHO" * 5000 + b" HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "no host": b"POST /ECHO HTTP/1.1\r\n\r\n",
    "two hosts": START + b"Host: ECHO\r\n\r\n",
    "a path that is none": b"POST ECHO HTTP/1.1\r\nHost: localhost\r\n\r\n",
    "another protocol": b"\x16\x03\x01ECHO\r\n\r\n",
}
LATER = {
    "a chunk without a size": (CHUNKED, b"ECHO\r\nab\r\n0\r\n\r\n"),
    "a chunk that is too long": (CHUNKED + b"2\r\nab", b"ECHO\r\n0\r\n\r\n"),
    "a bad second chunk": (CHUNKED + b"2\r\nab\r\n", b"ECHO\r\n"),
}


@pytest.mark.parametrize("parts", LATER.values(), ids=LATER)
async def test_a_body_that_breaks_later_is_answered_as_well(parts: tuple[bytes, bytes]) -> None:
    async with serving() as running:
        client = await running.client()
        await client.send(parts[0])
        await running.handler.begun.wait()
        await client.send(parts[1])
        assert (await client.answer()).error == (400, -32600, "bad HTTP request")
        assert await client.rest() == b""


async def test_what_follows_bad_http_on_its_connection_is_not_answered() -> None:
    async with serving() as running:
        client = await running.client()
        await client.send(BAD["two lengths"] + START + b"Content-Length: 2\r\n\r\nab")
        assert (await client.answer()).status == 400
        assert await client.rest() == b""


@pytest.mark.parametrize(
    ("raw", "error"),
    [
        (
            START.replace(b"1.1", b"1.0") + b"Transfer-Encoding: chunked\r\n\r\n0\r\n\r\n",
            (400, -32600, "bad HTTP request"),
        ),
        (
            START + b"Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n",
            (501, -32600, "the only Transfer-Encoding known here is chunked"),
        ),
    ],
)
async def test_framing_that_others_may_read_otherwise_is_refused(
    raw: bytes, error: tuple[int, int, str]
) -> None:
    async with serving() as running:
        client = await running.client()
        await client.send(raw)
        assert (await client.answer()).error == error
        assert await client.rest() == b""


async def test_a_client_that_asks_whether_to_send_its_body_is_told_to() -> None:
    async with serving() as running:
        client = await running.client()
        await client.send(START + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert await client.head() == b"HTTP/1.1 100 Continue"
        await client.send(b"ab")
        assert (await client.answer()).body == b"you said ab"


async def test_a_client_that_may_not_ask_is_not_told_to_send_its_body() -> None:
    async with serving() as running:
        client = await running.client()
        raw = START.replace(b"localhost", b"evil.example")
        await client.send(raw + b"Expect: 100-continue\r\nContent-Length: 2\r\n\r\n")
        assert (await client.answer()).status == 403


async def test_a_tunnel_or_another_protocol_is_not_offered() -> None:
    async with serving() as running:
        client = await running.client()
        await client.send(b"CONNECT localhost:443 HTTP/1.1\r\nHost: localhost\r\n\r\n")
        assert (await client.answer()).status == 404
        upgrade = b"Connection: upgrade\r\nUpgrade: h2c\r\nContent-Length: 2\r\n\r\nab"
        client = await running.client()
        await client.send(START + upgrade)
        assert (await client.answer()).body == b"you said ab"


@pytest.mark.parametrize("slowly", [False, True])
async def test_a_body_that_stops_coming_or_comes_too_slowly_is_given_up(slowly: bool) -> None:
    found: list[type[BaseException]] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        patience = BodyTimeout(request, 0.2, 5)
        try:
            await request.content.read()
        except BodyStalled as stalled:
            found.append(type(stalled))
        finally:
            patience.end()
        return web.Response()

    loop = asyncio.get_running_loop()
    server = SidecarServer(handle, Log("error"), Connections(9, None, Log("error")))
    listening = await loop.create_server(server, "127.0.0.1", 0)
    client = Client(*await asyncio.open_connection(*listening.sockets[0].getsockname()))
    await client.send(START + b"Content-Length: 10\r\n\r\nabc")
    while slowly and not found:
        await client.send(b"d")
        await asyncio.sleep(0.1)
    assert (await client.answer()).status == 200
    assert found == [BodyStalled]
    client.close()
    listening.close()
    server.pre_shutdown()
    await server.shutdown(1.0)
