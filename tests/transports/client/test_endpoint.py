"""Requests to one origin: what is sent, which redirects are followed, what is never told."""

import asyncio
import errno
import gzip
import socket
import ssl
from collections.abc import Callable, Iterator
from contextlib import nullcontext

import aiohttp
import pytest

from proxy.transports.client.endpoint import (
    ConnectionLost,
    HttpClient,
    RedirectRefused,
    os_error_text,
    reason,
)
from tests.raw_http import Asked, RawServer, whole


async def answer(endpoint: HttpClient, method: str = "POST", raw: bytes | None = b"{}") -> bytes:
    """Ask, and return the body of the answer."""
    async with endpoint.request(method, {"X-Own": "1"}, raw) as response:
        return await response.read(1000)


def redirecting(
    status: str, location: Callable[[Asked], str]
) -> Callable[[Asked], Iterator[bytes]]:
    def answer(asked: Asked) -> Iterator[bytes]:
        if asked.path == "/mcp":
            yield whole(b"", status, f"Location: {location(asked)}")
        else:
            yield whole(b"here")

    return answer


@pytest.mark.parametrize("status", ["307 Temporary Redirect", "308 Permanent Redirect"])
@pytest.mark.parametrize(
    "location",
    [lambda _: "/mcp/", lambda asked: f"http://{asked.headers['host']}/mcp/"],
    ids=["relative", "absolute"],
)
async def test_a_redirect_within_the_origin_is_followed_with_everything(
    status: str, location: Callable[[Asked], str]
) -> None:
    with RawServer(redirecting(status, location)) as server:
        endpoint = HttpClient(server.url, [("Authorization", "Bearer x")])
        assert await answer(endpoint) == b"here"
        await endpoint.close()
    first, second = server.asked
    assert (second.method, second.path, second.body) == ("POST", "/mcp/", b"{}")
    assert second.headers == first.headers
    assert first.headers["authorization"] == "Bearer x"
    assert first.headers["x-own"] == "1"


async def test_a_get_follows_every_redirect_within_the_origin() -> None:
    with RawServer(redirecting("302 Found", lambda _: "/mcp/")) as server:
        endpoint = HttpClient(server.url)
        assert await answer(endpoint, "GET", None) == b"here"
        await endpoint.close()


async def test_a_redirect_that_would_lose_the_body_is_refused() -> None:
    with RawServer(redirecting("302 Found", lambda _: "/mcp/?secret=1")) as server:
        endpoint = HttpClient(server.url)
        with pytest.raises(RedirectRefused) as refused:
            await answer(endpoint)
        await endpoint.close()
    there = server.url + "/"
    assert str(refused.value) == (
        "the server answers a POST with 302, which would lose what was sent; "
        f"if {there} is right, give that URL"
    )


@pytest.mark.parametrize(
    "elsewhere",
    [
        "http://{host}:{other}/mcp/",
        "https://{host}:{port}/mcp/",
        "http://localhost:{port}/mcp/",
        "//{host}:{other}/mcp/",
    ],
)
async def test_a_redirect_to_another_origin_is_refused_and_nothing_is_sent_there(
    elsewhere: str,
) -> None:
    with RawServer(lambda asked: iter([whole()])) as other:

        def location(asked: Asked) -> str:
            host, _, port = asked.headers["host"].partition(":")
            return elsewhere.format(host=host, port=port, other=other.port)

        with RawServer(redirecting("307 Temporary Redirect", location)) as server:
            endpoint = HttpClient(server.url, [("Authorization", "Bearer x")])
            with pytest.raises(RedirectRefused, match="which is another origin than"):
                await answer(endpoint)
            await endpoint.close()
        assert len(server.asked) == 1
        assert other.asked == []


@pytest.mark.parametrize(
    ("location", "message", "requests"),
    [("/mcp", "redirects more than 5 times", 5), ("http://[x/", "names a URL that is none", 1)],
)
async def test_a_redirect_that_leads_nowhere_is_refused(
    location: str, message: str, requests: int
) -> None:
    with RawServer(redirecting("307 Temporary Redirect", lambda _: location)) as server:
        endpoint = HttpClient(server.url)
        with pytest.raises(RedirectRefused, match=message):
            await answer(endpoint)
        await endpoint.close()
    assert len(server.asked) == requests


async def test_a_user_in_the_url_becomes_a_header_and_is_not_shown() -> None:
    with RawServer(lambda asked: iter([whole(b"here")])) as server:
        endpoint = HttpClient(server.url.replace("//", "//user:word@"))
        assert await answer(endpoint) == b"here"
        assert "user" not in str(endpoint.url)
        await endpoint.close()
    assert server.asked[0].headers["authorization"] == "Basic dXNlcjp3b3Jk"


async def test_proxies_of_the_environment_are_not_used(monkeypatch: pytest.MonkeyPatch) -> None:
    with RawServer(lambda asked: iter([whole(b"here")])) as server:
        for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
            monkeypatch.setenv(name, "http://127.0.0.1:9/")
        endpoint = HttpClient(server.url)
        assert await answer(endpoint) == b"here"
        await endpoint.close()


async def test_it_is_known_when_a_request_has_gone_out() -> None:
    sent = asyncio.Event()
    known = False

    def late(asked: Asked) -> Iterator[bytes]:
        # The whole body is here, and the answer waits until that is known there.
        assert known or asyncio.run_coroutine_threadsafe(_set(sent), loop).result(20)
        yield whole()

    async def _set(event: asyncio.Event) -> bool:
        return await asyncio.wait_for(event.wait(), 20)

    loop = asyncio.get_running_loop()
    with RawServer(late) as server:
        endpoint = HttpClient(server.url)
        async with endpoint.request("POST", {}, b"x" * 300_000, sent) as response:
            assert response.status == 200
        await endpoint.close()
    assert sent.is_set()
    assert len(server.asked[0].body) == 300_000


async def test_a_server_that_is_not_there_is_lost() -> None:
    with RawServer(lambda asked: iter([])) as server:
        pass
    endpoint = HttpClient(server.url)
    with pytest.raises(
        ConnectionLost, match=r"^no connection to 127.0.0.1:\d+: connection refused$"
    ):
        await answer(endpoint)
    await endpoint.close()


@pytest.mark.parametrize(
    ("error", "said"),
    [
        (OSError(errno.ECONNREFUSED, "Connect call failed ('::1', 1)"), "connection refused"),
        (socket.gaierror(-2, "Name or service not known"), "name or service not known"),
        (ssl.SSLError(1, "[SSL] record layer failure"), "[ssl] record layer failure"),
        (OSError("Multiple exceptions"), "multiple exceptions"),
        (TimeoutError(), "timeouterror"),
    ],
)
def test_a_failure_is_said_in_the_words_of_who_numbers_it(error: OSError, said: str) -> None:
    assert os_error_text(error) == said


@pytest.mark.parametrize(
    "error",
    [
        aiohttp.ClientOSError(None, "Can not write request body for http://u:p@h:1/mcp?key=secret"),
        aiohttp.ClientConnectionError("Can not write request body for http://h:1/mcp?key=secret"),
    ],
)
def test_why_a_request_failed_never_names_the_url(error: Exception) -> None:
    said = "the connection failed: can not write request body for the server"
    assert "secret" not in reason(error)
    assert reason(error) == said


@pytest.mark.parametrize("missing", [0, 5])
async def test_a_body_may_be_passed_on_in_its_encoding(missing: int) -> None:
    raw = gzip.compress(b"{}" * 100, mtime=0)
    sent = whole(raw, "200 OK", "Content-Encoding: gzip")
    with RawServer(lambda asked: iter([sent[: len(sent) - missing], b""])) as server:
        endpoint = HttpClient(server.url)
        chunks: list[bytes] = []
        async with endpoint.request("GET", {}) as response:
            with pytest.raises(ConnectionLost, match="in the middle") if missing else nullcontext():
                async for chunk in response.encoded_chunks():
                    chunks.append(chunk)
        await endpoint.close()
    assert b"".join(chunks) == raw[: len(raw) - missing]
    assert response.received == len(raw) - missing
