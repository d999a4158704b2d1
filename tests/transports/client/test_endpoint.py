"""Requests to one origin: their headers and redirects, and secrets that are never shown."""

import asyncio
import re
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager

import aiohttp
import pytest
from mcp_abridge.transports.client.endpoint import HttpClient, NoAnswer, reason

from tests.raw_http import Answer, RawRequest, RawServer, always, whole

HERE = always(whole(b"here"))


@asynccontextmanager
async def asking(
    reply: Answer = HERE, user: str = "", *, transparent: bool = False
) -> AsyncIterator[tuple[HttpClient, RawServer]]:
    with RawServer(reply) as server:
        endpoint = HttpClient(server.url.replace("//", f"//{user}"), 1000, transparent=transparent)
        yield endpoint, server
        await endpoint.close()


async def answer(endpoint: HttpClient, method: str = "POST") -> bytes:
    """Send a request, and return the body of the response."""
    raw = b"{}" if method == "POST" else None
    async with endpoint.request(method, {}, raw) as response:
        return await response.whole()


# Redirects of whole requests, and those to another origin, stand in tests/faults.
@pytest.mark.parametrize("transparent", [False, True])
async def test_a_redirect_that_would_lose_the_body_is_refused(transparent: bool) -> None:
    redirect = always(whole(b"", "302 F", "Location: /mcp/?secret=1"))
    async with asking(redirect, transparent=transparent) as (endpoint, server):
        with pytest.raises(NoAnswer) as caught:
            await answer(endpoint)
        assert len(server.requests) == 1
    target = f"http://127.0.0.1:{server.port}/mcp/?***"
    brief = "the server answers a POST with 302, which would lose what was sent"
    advice = "" if transparent else f"; if {target} is right, give that URL"
    assert str(caught.value) == f"{brief}{advice}"


async def test_a_get_follows_every_redirect_within_the_origin() -> None:
    def redirect(request: RawRequest) -> Iterator[bytes]:
        here = whole(b"", "302 Found", "Location: /mcp/")
        yield here if request.path == "/mcp" else whole(b"here")

    async with asking(redirect) as (endpoint, _):
        assert await answer(endpoint, "GET") == b"here"


async def test_a_server_without_tls_at_an_https_url_is_named_as_that() -> None:
    async with await asyncio.start_server(refuse, "127.0.0.1", 0) as server:
        port = server.sockets[0].getsockname()[1]
        endpoint = HttpClient(f"https://127.0.0.1:{port}/mcp", 1000)
        with pytest.raises(NoAnswer) as caught:
            await answer(endpoint)
        await endpoint.close()
    message, _, advice = str(caught.value).partition("; ")
    assert re.fullmatch(rf"no TLS with 127.0.0.1:{port} \([a-z ]+\)", message)
    assert advice == "the URL of a server without it begins with http://"


def refuse(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    writer.write(b"HTTP/1.1 400 Bad Request\r\n\r\n")
    writer.close()


async def test_a_user_in_the_url_becomes_a_header_and_is_not_shown() -> None:
    async with asking(user="user:word@") as (endpoint, server):
        assert await answer(endpoint) == b"here"
        assert "user" not in str(endpoint.url)
    assert server.requests[0].headers["authorization"] == "Basic dXNlcjp3b3Jk"


def test_why_a_request_failed_never_names_the_url() -> None:
    error = aiohttp.ClientOSError(None, "Can not write request body for http://u:p@h:1/mcp?key=a")
    assert reason(error) == "the connection failed: can not write request body for the server"
