"""Who may ask, and with which credentials, rows 27, 32 and 33: seen by raw clients and servers."""

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.bad_requests import EVIL, TOKENS
from tests.faults.processes import SECONDS
from tests.faults.routes import Bridge, Local, Naughty, Remote, modern
from tests.faults.scale import some
from tests.faults.sidecar import (
    EVENTS,
    INITIALIZE,
    bare,
    call,
    command,
    get,
    keys,
    post,
    request,
    serving,
)
from tests.raw_http import RawRequest, whole

REFUSALS = ("the Origin of the request is not allowed", "the Host of the request is not allowed")


@pytest.mark.fault(27, "http")
@pytest.mark.parametrize("headers", EVIL.values(), ids=EVIL)
def test_an_evil_origin_or_host_is_refused(before_any: Remote | Local, headers: list[str]) -> None:
    with before_any.sound():
        count = before_any.arrived
        for raw in (
            post(INITIALIZE, *headers),
            post(call(2), *headers, "Mcp-Session-Id: s"),
            get("/mcp", EVENTS, *headers),
            request("DELETE", "/mcp", *headers, "Mcp-Session-Id: s"),
            request("OPTIONS", "/mcp", *headers, "Access-Control-Request-Method: POST"),
        ):
            response = before_any.sidecar.ask(raw)
            assert (response.status, response.error in REFUSALS) == (403, True), response
            assert b"evil" not in response.body
            assert not response.all("access-control-allow-origin")
            assert before_any.sidecar.failures() == [response.error]
        assert before_any.arrived == count


@pytest.mark.fault(27, "http")
def test_a_target_with_a_host_of_its_own_is_not_served(before_any: Remote | Local) -> None:
    with before_any.sound():
        for host in ("evil.example", "localhost"):
            target = f"POST http://{host}/mcp".encode()
            assert before_any.sidecar.ask(modern(2).replace(b"POST /mcp", target)).status == 404


ANYWHERE = ("--listen", "0.0.0.0:0")


@pytest.mark.fault(32, "http")
def test_a_sidecar_starts_without_a_token_if_an_option_allows_it() -> None:
    with Naughty() as server, serving(*ANYWHERE, "--insecure", server.url) as sidecar:
        Remote(sidecar, server).works()


@pytest.mark.fault(32, "http")
@pytest.mark.parametrize("how", some(["file", "variable", "named variable"], "file"))
def test_a_token_opens_a_route_and_is_never_logged(tmp_path: Path, how: str) -> None:
    file = tmp_path / "tokens"
    file.write_text("first-secret-token\nother-secret-token\n")
    options, env = {
        "file": (keys(token_file=str(file)), {}),
        "variable": ((), {"MCP_ABRIDGE_TOKEN": "first-secret-token"}),
        "named variable": (keys(token_env="MINE"), {"MINE": "first-secret-token"}),
    }[how]
    options = (*ANYWHERE, "-v", *options)
    with Naughty() as server, serving(*options, server.url, env=env) as sidecar:
        for name, (headers, good) in TOKENS.items():
            good = good and (how == "file" or "another" not in name)
            server.requests.clear()
            path = "/mcp?token=first-secret-token" if "query" in name else "/mcp"
            response = sidecar.post(call(1), *headers, path=path)
            assert response.status == (200 if good else 401), name
            credentials = [each.headers.get("authorization") for each in server.requests]
            assert credentials == [None] * good
            if not good:
                assert response.one("www-authenticate") == 'Bearer realm="mcp-abridge"'
                assert response.error in (
                    "a bearer token is needed",
                    "the bearer token is not known",
                )
        # What says whether it lives needs none.
        assert sidecar.ask(get("/healthz")).status == 200
    assert b"secret" not in sidecar.errors.replace(str(tmp_path).encode(), b"")


SECRETS = (
    "Authorization: Bearer client-secret",
    "Cookie: session=cookie-secret",
    "Proxy-Authorization: Basic proxy-secret",
    "Mcp-Session-Id: session-secret",
    "X-Api-Key: key-secret",
)


@pytest.mark.fault(33, "http")
@pytest.mark.parametrize("auth", ["none", "forward"])
def test_credentials_go_to_their_server_only_and_are_never_logged(auth: str) -> None:
    def echo(raw_request: RawRequest) -> Iterator[bytes]:
        # A server that repeats what it was given, in a refusal and in bad HTTP.
        header = raw_request.headers.get("authorization", "none").encode()
        if raw_request.headers.get("x-how") == "bad":
            yield from (b"HTTP/1.1 200 OK\r\n" + header + b"\r\n\r\n", b"")
        else:
            yield whole(header, "401 Unauthorized", "Content-Type: text/plain", "Connection: close")

    with Naughty(echo) as server:
        url = server.url.replace("http://", "http://user:url-secret@") + "?key=query-secret"
        fixed = ("--header", "X-Fixed: ${FIXED}")
        options = ("-v", *keys(auth=auth), *fixed)
        with serving(*options, url, env={"FIXED": "fixed-secret"}) as sidecar:
            for raw in (
                post(call(1), *SECRETS, path="/mcp?token=client-query-secret"),
                modern(2, "ok", *SECRETS),
                get("/mcp", EVENTS, *SECRETS),
                request("DELETE", "/mcp", *SECRETS),
                post(call(3, "fault"), *SECRETS),
                post(call(4, "fault"), "X-How: bad", *SECRETS),
                post(b"{", *SECRETS),
                post(call(5), "Origin: http://evil-secret.example", *SECRETS),
            ):
                response = sidecar.ask(raw)
                assert b"query-secret" not in response.body
                assert b"url-secret" not in response.body
            assert len(sidecar.requests(8)) == 8
        assert len(server.requests) == 6, "those that were not refused"
        for headers in (each.headers for each in server.requests):
            assert headers["x-fixed"] == "fixed-secret"
            assert headers["x-api-key"] == "key-secret"
            assert "proxy-authorization" not in headers
            if auth == "forward":
                assert headers["authorization"] == "Bearer client-secret"
                assert headers["cookie"] == "session=cookie-secret"
            else:
                assert "client-secret" not in headers.get("authorization", "")
                assert "cookie" not in headers
    assert b"secret" not in sidecar.errors


@pytest.mark.fault(33, "http")
def test_a_trace_request_is_refused_since_it_would_echo_credentials() -> None:
    def echo(raw_request: RawRequest) -> Iterator[bytes]:
        yield whole(str(raw_request.headers).encode(), "200 OK", "Connection: close")

    fixed = ("--header", "X-Fixed: fixed-secret", *keys(auth="forward"))
    with Naughty() as server, serving(*fixed, server.url) as sidecar:
        server.answer = echo
        for body in (None, b"{}"):
            response = sidecar.ask(request("TRACE", "/mcp", "Authorization: Bearer a", body=body))
            assert (response.status, response.error) == (405, "Method Not Allowed")
        assert server.requests == []


@pytest.mark.fault(33, "stdio")
def test_credentials_of_a_client_on_stdio_go_to_the_server_only_and_are_never_logged(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET", "top-secret")
    options = ("-v", "--header", "Authorization: Bearer ${SECRET}")

    def echo(raw_request: RawRequest) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n" + raw_request.headers["authorization"].encode() + b"\r\n\r\n"
        yield b""

    with Naughty(echo) as server, Bridge(server, *options) as bridge:
        bridge.fault()
        bridge.works()
        credentials = {each.headers["authorization"] for each in server.requests}
        assert credentials == {"Bearer top-secret"}
        assert bridge.close().code == 0
    assert b"top-secret" not in bridge.errors


@pytest.mark.fault(33, "http")
def test_the_token_of_a_route_is_not_forwarded() -> None:
    ended = subprocess.run(
        command(*bare(*keys(auth="forward"), "http://127.0.0.1:9/mcp")),
        env={**os.environ, "MCP_ABRIDGE_TOKEN": "opening-secret"},
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert ended.returncode == 2
    stderr = ended.stderr.decode()
    assert "cannot hold the token that opens a route and credentials to forward" in stderr
    assert "opening-secret" not in stderr
