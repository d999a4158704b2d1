"""Who may ask, and with which credentials, rows 27, 32 and 33: seen by raw clients and servers.

Other origins, hosts and tokens stand in tests/transports/sidecar/test_access.py.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.routes import Bridge, Naughty, Remote, modern
from tests.faults.sidecar import EVENTS, INITIALIZE, call, get, keys, post, request, serving
from tests.raw_http import RawRequest, whole

REFUSALS = (
    "the Origin of the request is not allowed",
    "the Host of the request is not allowed (hosts in --config)",
)


@pytest.mark.fault(27, "http")
@pytest.mark.parametrize(
    "header", ["Origin: http://evil.example", "Origin: null", "Host: evil.example"]
)
def test_an_evil_origin_or_host_is_refused(remote: Remote, header: str) -> None:
    with remote.sound():
        for raw in (
            post(INITIALIZE, header),
            get("/mcp", EVENTS, header),
            request("DELETE", "/mcp", header, "Mcp-Session-Id: s"),
            request("OPTIONS", "/mcp", header, "Access-Control-Request-Method: POST"),
        ):
            response = remote.sidecar.ask(raw)
            assert (response.status, response.error in REFUSALS) == (403, True), response
            assert b"evil" not in response.body
            assert not response.all("access-control-allow-origin")
            assert remote.sidecar.failures() == [response.error]
        target = modern(2).replace(b"POST /mcp", b"POST http://evil.example/mcp")
        assert remote.sidecar.ask(target).status == 404
        assert remote.server.requests == []


ANYWHERE = ("--listen", "0.0.0.0:0")


@pytest.mark.fault(32, "http")
def test_a_sidecar_starts_without_a_token_if_an_option_allows_it() -> None:
    with Naughty() as server, serving(*ANYWHERE, "--insecure", server.url) as sidecar:
        Remote(sidecar, server).works()


@pytest.mark.fault(32, "http")
def test_a_token_opens_a_route_and_is_never_logged(tmp_path: Path) -> None:
    file = tmp_path / "tokens"
    file.write_text("first-secret-token\nother-secret-token\n")
    options = (*ANYWHERE, "-v", *keys(token_file=str(file)))
    with Naughty() as server, serving(*options, server.url) as sidecar:
        for token in ("first-secret-token", "other-secret-token"):
            assert sidecar.post(call(1), f"Authorization: Bearer {token}").status == 200
        assert [each.headers.get("authorization") for each in server.requests] == [None, None]
        for header, error in (
            ("X: y", "a bearer token is needed"),
            ("Authorization: Bearer first-secret-toke", "the bearer token is not known"),
        ):
            response = sidecar.post(call(1), header, path="/mcp?token=first-secret-token")
            assert (response.status, response.error) == (401, error)
            assert response.one("www-authenticate") == 'Bearer realm="mcp-abridge"'
        assert len(server.requests) == 2
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
            # A trace would echo them.
            assert sidecar.ask(request("TRACE", "/mcp", *SECRETS)).status == 405
            assert len(sidecar.requests(9)) == 9
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
