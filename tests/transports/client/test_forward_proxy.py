"""The forward proxy of the environment: every request to a server at a URL goes through it."""

import json
import os
import socket
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge.errors import AbridgeError
from mcp_abridge.transports.client.forward_proxy import forward_proxy

from tests.faults.scale import scaled
from tests.faults.sidecar import RawResponse, serving
from tests.forward_proxy import HOST, ForwardProxy, at, tools
from tests.raw_http import (
    ACCEPTED,
    INITIALIZE,
    INITIALIZED,
    STREAM,
    RawRequest,
    RawServer,
    call,
    event,
    result,
    session,
    whole,
)
from tests.servers.web_api import certificate
from tests.wire import Wire
from tests.wrapped import wrapped

PROXY = "http://proxy:3128"
SECRET = "hunter2"


def texts_of(url: str, *options: str, **variables: str) -> list[str]:
    """Begin a session with the wrapper of a URL, make a call, and return the text of its answer."""
    command = wrapped((), "--ledger", "off", *options, url)[:-1]
    with Wire(command, env={**os.environ, **variables}) as wire:
        wire.write(INITIALIZE + b"\n")
        begin = json.loads(wire.line())
        if "error" in begin:
            return [begin["error"]["message"]]
        wire.write(INITIALIZED + b"\n" + call(b"1") + b"\n")
        answer: dict[str, Any] = json.loads(wire.line())
        return [block["text"] for block in answer["result"]["content"]]


def test_a_wrapped_url_is_reached_through_the_proxy_of_the_environment() -> None:
    with RawServer(tools) as server, ForwardProxy() as proxy:
        assert texts_of(at(server), HTTP_PROXY=proxy.url()) == ["ok"]
        assert f"POST {at(server)}" in proxy.targets
        assert {line.split(" ")[1] for line, _ in proxy.requests} == {at(server)}


def test_a_served_url_is_reached_through_the_proxy_and_the_log_names_it() -> None:
    with RawServer(tools) as server, ForwardProxy() as proxy:
        variables = {"all_proxy": proxy.url(f"user:{SECRET}@")}
        with serving(at(server), env=variables) as sidecar:
            assert sidecar.post(call(b"1")).json == json.loads(result(b"1"))
            [line] = sidecar.events("serving")
        assert line["proxy"] == proxy.url("***@")
        assert SECRET not in sidecar.errors.decode()
        [(first, _)] = proxy.requests
        assert first == f"POST {at(server)} HTTP/1.1"


def test_tls_reaches_from_the_proxy_server_to_the_server(tmp_path: Path) -> None:
    """Through CONNECT, with a certificate that only SSL_CERT_FILE makes a trusted one."""
    file = certificate(tmp_path, HOST)
    with RawServer(tools, certificate=file) as server, ForwardProxy() as proxy:
        variables = {"HTTPS_PROXY": proxy.url(), "HTTP_PROXY": "http://127.0.0.1:9"}
        url = at(server, "https")
        assert texts_of(url, SSL_CERT_FILE=str(file), **variables) == ["ok"]
        assert proxy.targets == {f"CONNECT {HOST}:{server.port}"}
        [text] = texts_of(url, **variables)
    assert "its certificate is not trusted: " in text
    assert f"through the proxy {proxy.url()} (HTTPS_PROXY)" in text


def test_a_server_of_http_sse_is_reached_through_the_proxy() -> None:
    streams: list[RawRequest] = []

    def sse(request: RawRequest) -> Iterator[bytes]:
        if request.path == "/mcp" and request.method == "POST":
            yield whole(b"", "405 Method Not Allowed")
        elif request.method == "GET":
            streams.append(request)
            yield STREAM.replace(b"Connection: close\r\n", b"")
            yield event(b"/messages?s=1", "event: endpoint")
            request.closed_by_client()
            yield b""
        else:
            yield ACCEPTED
            for piece in session()(request):
                body = piece.partition(b"\r\n\r\n")[2]
                if body:
                    streams[0].connection.sendall(event(body))

    with RawServer(sse) as server, ForwardProxy() as proxy:
        assert texts_of(at(server), http_proxy=proxy.url()) == ["ok"]
        assert {f"GET {at(server)}", f"POST {at(server)}"} < proxy.targets
        assert len(server.requests) == len(proxy.requests)


def test_credentials_in_the_url_of_the_proxy_are_sent_to_it_and_to_no_server(
    tmp_path: Path,
) -> None:
    file = certificate(tmp_path, HOST)
    for scheme, chain in (("http", None), ("https", file)):
        with RawServer(tools, certificate=chain) as server, ForwardProxy() as proxy:
            variables = {"ALL_PROXY": proxy.url("user:w%40rd@"), "SSL_CERT_FILE": str(file)}
            assert texts_of(at(server, scheme), **variables) == ["ok"]
            credentials = {headers.get("proxy-authorization") for _, headers in proxy.requests}
            assert credentials == {"Basic dXNlcjp3QHJk"}
            for request in server.requests:
                assert {"proxy-authorization", "authorization"}.isdisjoint(request.headers)


def test_a_netrc_file_gives_no_server_a_password(tmp_path: Path) -> None:
    netrc = tmp_path / ".netrc"
    netrc.write_text(f"default login user password {SECRET}\n")
    variables = {"HOME": str(tmp_path), "NETRC": str(netrc)}
    with RawServer(tools) as server, ForwardProxy() as proxy:
        assert texts_of(at(server), http_proxy=proxy.url(), **variables) == ["ok"]
        assert texts_of(server.url, **variables) == ["ok"]
        headers = [request.headers for request in server.requests]
        headers += [headers for _, headers in proxy.requests]
    assert not [each for each in headers if {"authorization", "proxy-authorization"} & each.keys()]


def test_no_proxy_leads_past_the_proxy() -> None:
    with RawServer(tools) as server, ForwardProxy() as proxy:
        for exception in ("127.0.0.1", "example.org, 127.0.0.0/8", f"127.0.0.1:{server.port}", "*"):
            assert texts_of(server.url, http_proxy=proxy.url(), NO_PROXY=exception) == ["ok"]
        assert proxy.requests == []
        assert texts_of(server.url, http_proxy=proxy.url(), NO_PROXY="127.0.0.1:1") == ["ok"]
        assert proxy.requests != []


# With each: what NO_PROXY is, and whether a request goes past the proxy.
EXCEPTIONS = [
    ("http://example.org/mcp", "example.org", True),
    ("http://a.example.org/mcp", "example.org", True),
    ("http://a.example.org/mcp", ".example.org", True),
    ("http://a.example.org/mcp", "*.Example.ORG", True),
    ("http://a.example.org./mcp", "x a.example.org,y", True),
    ("http://anexample.org/mcp", "example.org", False),
    ("http://example.org/mcp", "", False),
    ("http://example.org/mcp", " , .", False),
    ("http://example.org/mcp", "example.org:80", True),
    ("https://example.org/mcp", "example.org:80", False),
    ("https://example.org:8443/mcp", "example.org:8443", True),
    ("http://10.1.2.3:3000/mcp", "10.0.0.0/8", True),
    ("http://11.1.2.3:3000/mcp", "10.0.0.0/8", False),
    ("http://10.1.2.3:3000/mcp", "2.3", False),
    ("http://[fd00::1]:3000/mcp", "fd00::/8", True),
    ("http://[::1]:3000/mcp", "::1", True),
    ("http://[::1]:3000/mcp", "[::1]:3000", True),
    ("http://[::1]:3000/mcp", "[::1]:3001", False),
    ("http://localhost:3000/mcp", "127.0.0.1", False),
    ("http://localhost:3000/mcp", "*", True),
]


@pytest.mark.parametrize(("url", "exceptions", "past"), EXCEPTIONS)
def test_no_proxy_is_a_list_of_names_domains_addresses_networks_and_ports(
    url: str, exceptions: str, past: bool
) -> None:
    proxy = forward_proxy(url, {"ALL_PROXY": PROXY, "NO_PROXY": exceptions})
    assert (proxy is None) is past


def test_the_variable_of_the_scheme_goes_before_that_of_all_and_lower_case_before_upper() -> None:
    environment = {"ALL_PROXY": "http://all:1", "HTTPS_PROXY": "http://upper:1"}

    def variable(url: str, **more: str) -> str | None:
        proxy = forward_proxy(url, environment | more)
        return None if proxy is None else proxy.variable

    assert variable("http://a") == "ALL_PROXY"
    assert variable("https://a") == "HTTPS_PROXY"
    assert variable("https://a", https_proxy="lower:1") == "https_proxy"
    assert variable("https://a", https_proxy="") == "ALL_PROXY"
    assert variable("https://a", https_proxy="", all_proxy="") is None
    assert variable("https://a", no_proxy="", NO_PROXY="a") == "HTTPS_PROXY"


def test_a_proxy_that_cannot_be_used_is_named_before_a_server_is_asked() -> None:
    bad = f"socks5://user:{SECRET}@proxy:1080"
    with pytest.raises(AbridgeError) as caught:
        forward_proxy("http://a/mcp", {"all_proxy": bad})
    reason = str(caught.value)
    assert reason.startswith("all_proxy: expected an HTTP proxy such as http://proxy:3128, or ")
    assert reason.endswith("; found 'socks5://***@proxy:1080'")
    served = subprocess.run(
        wrapped((), "serve", "http://a.invalid/mcp")[:-1],
        env={**os.environ, "all_proxy": bad},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    assert served.returncode == 2
    assert reason in served.stderr
    assert reason in texts_of("http://a.invalid/mcp", all_proxy=bad)[0]


def closed_port() -> int:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        return int(listening.getsockname()[1])


@pytest.mark.parametrize("credentials", ["u:p@se/cret", "u:p@se#cret", "a%3Ab:se", "u:%E2%82%ACse"])
def test_credentials_that_are_not_written_as_a_url_has_them_are_refused_and_not_printed(
    credentials: str,
) -> None:
    with pytest.raises(AbridgeError, match="written as %2F") as caught:
        forward_proxy("http://a/mcp", {"all_proxy": f"http://{credentials}@proxy:3128"})
    assert "se" not in str(caught.value).partition("found ")[2]


@pytest.mark.parametrize("scheme", ["http", "https"][: scaled(1, 2)])
def test_a_proxy_that_refuses_is_named_with_what_it_said_and_the_next_step(scheme: str) -> None:
    variable = f"{scheme.upper()}_PROXY"
    url = f"{scheme}://{HOST}:3000/mcp"

    def refusal(status: str, user: str = f"user:{SECRET}@") -> tuple[str, RawResponse, str]:
        with ForwardProxy(status) as proxy:
            name = f"the proxy {proxy.url('***@' if user else '')} ({variable})"
            env = {variable: proxy.url(user)}
            [text] = texts_of(url, **env)
            with serving(url, env=env) as sidecar:
                response = sidecar.post(call(b"1"))
        assert SECRET not in text + sidecar.errors.decode()
        return text.replace(name, "PROXY"), response, name

    past = f"name {HOST} in NO_PROXY if it is reached without a proxy"
    text, response, name = refusal("403 Forbidden")
    if scheme == "https":
        assert f"PROXY answered HTTP 403 Forbidden; have it allow {HOST}, or {past}" in text
        assert response.status == 502
        assert name in response.error
    else:
        # Without TLS nobody can tell its answers from those of the server.
        assert "the server, or PROXY, answered HTTP 403 Forbidden: blocked by policy; " in text
        assert text.endswith(past)
        assert (response.status, response.body) == (403, b"blocked by policy")

    text, response, name = refusal("407 Proxy Authentication Required")
    words = "PROXY answered HTTP 407 Proxy Authentication Required; it wants other credentials than"
    assert f"{words} those in {variable}: http://USER:PASSWORD@127.0.0.1:" in text
    assert response.status == 502
    text, _, _ = refusal("407 Proxy Authentication Required", user="")
    assert f"; it wants credentials in {variable}: http://USER:PASSWORD@127.0.0.1:" in text

    port = closed_port()
    [text] = texts_of(url, **{variable: f"http://user:{SECRET}@127.0.0.1:{port}"})
    name = f"the proxy http://***@127.0.0.1:{port} ({variable})"
    assert f"no connection to 127.0.0.1:{port}: connection refused, through {name}; {past}" in text
