"""HTTP requests that are too large, broken or changed by a rule have one answer: raw bytes.

Rows 22, 28 and 31. Each request gets one answer, the next one works, and the server sees nothing of
what was refused.
"""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.bad_answers import END, START, bomb, chunk
from tests.faults.bad_requests import BODIES, FOUR, INNER, SMUGGLING
from tests.faults.routes import META, MODERN, Bridge, Local, Naughty, Remote, modern, stateless
from tests.faults.sidecar import call, compact, keys, post, serving, soon
from tests.raw_http import RawRequest, whole

MB = 1 << 20


@pytest.mark.fault(22, "http")
def test_a_bomb_that_a_client_sends_is_stopped_at_the_bound(remote: Remote) -> None:
    raw = bomb(START, END)
    with remote.sound(), remote.sidecar.in_memory(64 * MB), soon():
        response = remote.sidecar.post(raw, "Content-Encoding: gzip")
        assert (response.status, response.error) == (
            413,
            "the body is over the limit of 4194304 bytes",
        )
        assert remote.sidecar.failures() == [response.error]


@pytest.mark.fault(28, "http")
@pytest.mark.parametrize(("body", "status"), BODIES.values(), ids=BODIES)
def test_a_body_that_is_no_message_is_refused_without_an_echo(
    remote: Remote, body: bytes, status: int
) -> None:
    headers = ["Content-Encoding: gzip"] if body[:1] == b"\x1f" else []
    chunks = b"".join(chunk(part) for part in (body[:1], body[1:]) if part) + chunk(b"")
    with remote.sound(), remote.sidecar.in_memory(32 * MB):
        for raw in (
            post(body, *headers),
            post(body, *headers, *stateless("ok")),
            post(chunks, *headers, "Transfer-Encoding: chunked"),
        ):
            response = remote.sidecar.ask(raw)
            assert response.status == status
            assert response.one("content-type").startswith("application/json")
            assert set(response.json) == {"jsonrpc", "id", "error"}
            assert response.json["id"] is None
            assert response.json["error"]["code"] == (-32600 if status == 413 else -32700)
            assert b"ECHO" not in response.body
            assert len(response.body) < 300
            assert remote.sidecar.failures() == [response.error]
        assert remote.server.requests == []
    assert b"ECHO" not in remote.sidecar.errors


@pytest.mark.fault(28, "http")
def test_a_body_that_is_announced_as_too_long_is_refused_before_it_comes(
    remote: Remote,
) -> None:
    with remote.sound(), remote.sidecar.client() as client:
        client.send(post(b"", "Content-Length: 99999999999", "Expect: 100-continue"))
        response = client.answer()
        assert (response.status, response.error) == (
            413,
            "the body is over the limit of 4194304 bytes",
        )


@pytest.mark.fault(28, "http")
def test_a_body_at_the_bound_passes_and_the_bound_can_be_moved(remote: Remote) -> None:
    def filled(size: int) -> bytes:
        empty = len(call(2, arguments={"x": ""}))
        return call(2, arguments={"x": "x" * (size - empty)})

    assert remote.sidecar.post(filled(FOUR)).status == 200
    assert remote.sidecar.post(filled(FOUR + 1)).status == 413
    with serving(*keys(limits={"body": "1kB"}), remote.server.url) as sidecar:
        assert sidecar.post(filled(1000)).status == 200
        assert sidecar.post(filled(1001)).status == 413


@pytest.mark.fault(28, "http")
@pytest.mark.parametrize("raw", SMUGGLING.values(), ids=SMUGGLING)
def test_an_ambiguous_request_is_refused_and_nothing_after_it_is_read(
    remote: Remote, raw: bytes
) -> None:
    with remote.sound():
        with remote.sidecar.client() as client:
            client.send(raw + INNER)
            response = client.answer()
            assert response.status in (400, 501)
            assert set(response.json) == {"jsonrpc", "id", "error"}
            assert (response.json["id"], response.json["error"]["code"]) == (None, -32600)
            assert b"SMUGG" not in response.body
            assert client.rest() == b""
        assert len(remote.sidecar.failures()) == 1
        assert remote.server.requests == []
    assert b"SMUGG" not in remote.sidecar.errors


UNANSWERABLE = {
    "an id that is an array": (b'"id":2', b'"id":[2]', "the id of a request must be a text or"),
    "an id that is a fraction": (b'"id":2', b'"id":2.0', "the id of a request must be a text or"),
    # All callers of the stateless era share a server, which one of them must not bring down.
    "no UTF-8": (b'"ok"', b'"ECHO\xe9"', "Parse error"),
}


@pytest.mark.fault(28, "http")
@pytest.mark.parametrize(("part", "bad", "says"), UNANSWERABLE.values(), ids=UNANSWERABLE)
def test_before_a_command_a_request_that_could_not_be_answered_is_refused(
    local: Local, part: bytes, bad: bytes, says: str
) -> None:
    with local.sound():
        for raw in (call(2), call(2, _meta=META)):
            response = local.sidecar.post(raw.replace(part, bad), local.session)
            assert (response.status, response.error[: len(says)]) == (400, says)
            assert b"ECHO" not in response.body


CAPPED = """\
version: 1
rules:
- tools: ok
  arguments: {region: {default: Zürich}, count: {maximum: 5, clamp: true}, mine: {upstream: false}}
"""
SCHEMA = {
    "type": "object",
    "properties": {
        "region": {"type": "string", "x-mcp-header": "Region"},
        "count": {"type": "integer", "x-mcp-header": "Count"},
        "other": {"type": "string", "x-mcp-header": "Other"},
    },
}
LISTED = {"resultType": "complete", "tools": [{"name": "ok", "inputSchema": SCHEMA}]}
# Of a call of a tool whose region the rule makes Zürich, and whose count 5.
REPEATED = {
    "mcp-protocol-version": MODERN,
    "mcp-method": "tools/call",
    "mcp-name": "ok",
    "mcp-param-region": "=?base64?WsO8cmljaA==?=",
    "mcp-param-count": "5",
}


class Listing(Naughty):
    """One that has tools with parameters that headers repeat."""

    def _answer(self, request: RawRequest) -> Iterator[bytes]:
        if b'"tools/list"' in request.body:
            body = compact({"jsonrpc": "2.0", "id": request.message["id"], "result": LISTED})
            yield whole(body, "200 OK", "Connection: close")
        else:
            yield from super()._answer(request)


def listing(id: int) -> bytes:
    return compact({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {"_meta": META}})


def repeated(request: RawRequest) -> dict[str, str]:
    return {name: value for name, value in request.headers.items() if name.startswith("mcp-")}


@pytest.mark.fault(31, "http")
def test_headers_that_repeat_the_body_follow_it_if_a_rule_changes_it(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(CAPPED, "utf-8")
    with Listing() as server, serving("--rules", str(rules), server.url) as sidecar:
        sidecar.post(listing(1), *stateless("", "tools/list"))
        original = {"count": 9, "other": "x", "mine": 1}
        headers = ("Mcp-Param-Count: 9", "Mcp-Param-Other: x", "X-Other: y")
        sidecar.ask(modern(2, "ok", *headers, arguments=original))
        # If no rule changes the body, whether they agree with it is the server's to judge.
        odd = ("Mcp-Param-Odd: =?base64?eA==?=", "mcp-PARAM-two: 1")
        sidecar.post(call(3, "plain", _meta=META), *stateless("other"), *odd)
        _, request, plain = server.requests
    arguments = {"region": "Zürich", "count": 5, "other": "x"}
    assert request.message["params"]["arguments"] == arguments
    assert repeated(request) == {**REPEATED, "mcp-param-other": "x"}
    assert request.headers["x-other"] == "y"
    assert repeated(plain) == {
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/call",
        "mcp-name": "other",
        "mcp-param-odd": "=?base64?eA==?=",
        "mcp-param-two": "1",
    }


@pytest.mark.fault(31, "stdio")
def test_a_request_of_a_client_on_stdio_has_the_headers_of_its_body(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(CAPPED, "utf-8")
    with Listing() as server, Bridge(server, "--rules", str(rules)) as bridge:
        bridge.ask(listing(2))
        bridge.ask(call(3, "ok", arguments={"count": 9}, _meta=META))
        assert repeated(server.requests[-1]) == REPEATED
        assert bridge.close().code == 0
