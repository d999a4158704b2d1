"""What must be seen of each fault of an HTTP server or client, rows 22 to 33: raw bytes, sockets.

Everywhere the same: each request gets one answer, the next one works, untouched bytes are the same,
nothing is left of it, memory stays bounded, and one line of the log names the fault.
"""

import gzip
import json
import os
import re
import subprocess
from collections.abc import Iterator
from functools import partial
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.faults.bad_answers import (
    BOMBS,
    CHUNKED,
    CUTS,
    END,
    HTML,
    NOTE,
    ODD,
    PRETTY,
    START,
    STATUSES,
    STREAMS,
    chunk,
)
from tests.faults.bad_requests import (
    BODIES,
    EVIL,
    FOUR,
    INNER,
    SMUGGLING,
    TOKENS,
)
from tests.faults.bodies import GB, bomb
from tests.faults.naughty import result
from tests.faults.processes import SECONDS, marked, still, until
from tests.faults.routes import (
    META,
    MODERN,
    Bridge,
    Local,
    Naughty,
    Remote,
    answer_of,
    closing,
    failure,
    modern,
    stateless,
)
from tests.faults.scale import scaled, some
from tests.faults.sidecar import (
    INITIALIZE,
    Client,
    Left,
    Sidecar,
    bare,
    call,
    command,
    compact,
    get,
    keys,
    post,
    request,
    serving,
    soon,
)
from tests.faults.sidecar import STREAM as STREAM_ONLY
from tests.faults.wrapper import codes, naughty
from tests.raw_http import STREAM, Answer, Asked, Reset, event, whole

MB = 1 << 20


@pytest.fixture(scope="module")
def remote() -> Iterator[Remote]:
    with Naughty() as server, serving(server.url) as sidecar:
        yield Remote(sidecar, server)


@pytest.fixture(scope="module")
def local() -> Iterator[Local]:
    with serving(*naughty("plain")) as sidecar:
        yield Local(sidecar)


@pytest.fixture(scope="module")
def bridge() -> Iterator[Bridge]:
    with Naughty() as server, Bridge(server) as bridge:
        yield bridge
        assert bridge.close().code == 0


def by_both(row: int) -> pytest.MarkDecorator:
    """Have a test show a row before a URL, by a sidecar and over `run URL`."""
    ways = {"remote": "http", "bridge": "stdio"}
    marked = [pytest.param(name, marks=pytest.mark.fault(row, way)) for name, way in ways.items()]
    return pytest.mark.parametrize("tried", marked, indirect=True)


@pytest.fixture
def tried(request: pytest.FixtureRequest) -> Remote | Bridge:
    found: Remote | Bridge = request.getfixturevalue(request.param)
    return found


# What is refused before the kind of server counts: the long form tries it before both.
@pytest.fixture(params=some(["remote", "local"], "remote"))
def before_any(request: pytest.FixtureRequest) -> Remote | Local:
    """Return a sidecar before either kind of server, in the short form before a URL."""
    found: Remote | Local = request.getfixturevalue(request.param)
    return found


class HalfOpen(NamedTuple):
    """Connections of which nothing more will come, to a sidecar of their own."""

    sidecar: Sidecar
    before: Left
    clients: dict[str, Client]


@pytest.fixture(scope="module", autouse=True)
def half_open() -> Iterator[HalfOpen]:
    """Open them before anything else, so that nobody has to wait for them long in the end."""
    half = b"POST /mcp HTTP/1.1\r\nHost: loc"
    parts = {
        "nothing": b"",
        "half a head": half,
        "no body": post(b"", "Content-Length: 100"),
        "half a body": post(b"{", "Content-Length: 100"),
        "half a body in chunks": post(b"5\r\n{", "Transfer-Encoding: chunked"),
        "an answer": get("/healthz"),
        "half a head after an answer": get("/healthz") + half,
    }
    with serving("http://127.0.0.1:9/mcp") as sidecar:
        before = sidecar.left
        clients = {name: sidecar.client() for name in parts}
        for name, raw in parts.items():
            clients[name].send(raw)
            if "answer" in name:
                clients[name].answer()
        yield HalfOpen(sidecar, before, clients)
        for client in clients.values():
            client.socket.close()


@pytest.mark.fault(22, "http")
@pytest.mark.parametrize("coding", ["gzip", "deflate"])
def test_a_bomb_that_a_client_sends_is_stopped_at_the_bound(
    before_any: Remote | Local, coding: str
) -> None:
    raw = bomb(START, END, raw=coding == "deflate")
    assert len(raw) < GB / 900
    with before_any.sound(), before_any.sidecar.in_memory(64 * MB), soon():
        got = before_any.sidecar.post(raw, f"Content-Encoding: {coding}")
        assert (got.status, got.error) == (413, "the body is over the limit of 4194304 bytes")
        assert before_any.sidecar.failures() == [got.error]


GROWN = "over 200 times larger when decompressed"


@by_both(22)
@pytest.mark.parametrize("said", BOMBS.values(), ids=BOMBS)
def test_a_bomb_that_a_server_answers_is_stopped_at_the_bound(
    tried: Remote | Bridge, said: bytes
) -> None:
    with tried.sound(said), tried.holds.in_memory(64 * MB):
        answers = list(tried.fails(502))
        assert all(GROWN in failure(each[-1], 2) for each in answers)
        tried.has_said(GROWN)
        assert len(tried.server.faults()) == len(answers), "a call was sent again"


def cut(raw: bytes, *, reset: bool) -> Answer:
    def answer(asked: Asked) -> Iterator[bytes]:
        yield closing(raw)
        if reset:
            raise Reset
        yield b""

    return answer


@by_both(23)
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize(("raw", "why"), CUTS.values(), ids=CUTS)
def test_an_answer_that_is_cut_is_an_error_that_says_so(
    tried: Remote | Bridge, raw: bytes, why: str, reset: bool
) -> None:
    # If the reset comes first, there was nothing else to see.
    why = f"{why}|connection reset by peer" if reset else why
    with tried.sound(cut(raw, reset=reset)):
        answers = list(tried.fails(502))
        for *others, last in answers:
            assert re.search(why, failure(last, 2))
            assert set(others) <= {NOTE}
        tried.has_said(why)
        assert len(tried.server.faults()) == len(answers), "a call was sent again"


@pytest.mark.fault(23, "http")
@pytest.mark.parametrize("raw", [CUTS["half an event"][0], CUTS["half a chunk"][0]])
def test_a_cut_of_the_stream_of_a_session_is_seen_by_the_client(remote: Remote, raw: bytes) -> None:
    with remote.sound(cut(raw, reset=True)):
        got = remote.sidecar.ask(get("/mcp", STREAM_ONLY, "Mcp-Session-Id: s"))
        assert (got.status, got.body) == (200, event(NOTE))
        [logged] = remote.sidecar.failures()
        assert logged.startswith("the server's stream broke off: ")


def has_said(sidecar: Sidecar, message: str) -> bool:
    """Say whether the log has said something, and that once."""
    return sum(message in said for said in sidecar.messages()) == 1


@pytest.mark.fault(1, "http")
@pytest.mark.parametrize("fault", ["ends", "ends_before"])
@pytest.mark.parametrize("how", some(["0", "3", "SIGKILL"], "3"))
def test_a_server_on_stdio_that_dies_has_all_calls_in_flight_answered_with_the_cause(
    fault: str, how: str
) -> None:
    told = f"{codes(how)[1]}; its stderr ends with:\nthe disk is on fire"
    with serving(*naughty(fault, how)) as sidecar:
        local = Local(sidecar)
        with local.sound():
            session = sidecar.begin()
            two = b"[" + call(2, "end") + b"," + call(3) + b"]"
            for ids, raw in (([2, 3], post(two, session)), ([4], modern(4, "end"))):
                with soon():
                    got = sidecar.ask(raw)
                answers = got.events or [got.body]
                assert [failure(each, id) for each, id in zip(answers, ids, strict=True)] == [
                    told for _ in ids
                ]
                logged = f"{told}; requests answered with an error: {len(ids)}"
                until(partial(has_said, sidecar, logged))
            assert sidecar.post(call(4), session).status == 404


@pytest.mark.fault(24, "http")
@pytest.mark.fault(24, "stdio")
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_an_answer_over_the_limit_is_an_error_and_the_next_one_comes(kind: str) -> None:
    long = result(b"2", "x" * 3 * MB)
    said = whole(long if kind[0] == "a" else event(long), "200 OK", f"Content-Type: {kind}")
    limit = keys(limits={"message": "1MB"})
    with Naughty(said) as server, serving(*limit, server.url) as sidecar:
        remote = Remote(sidecar, server)
        with remote.sound(said):
            got = sidecar.post(call(2, "fault"))
            told = failure(got.events[0] if got.events else got.body, 2)
            assert "1000000 bytes" in told
            assert sidecar.failures() == [told]
    with (
        Naughty(said) as server,
        Bridge(server, "--max-message", "1MB") as bridge,
        bridge.sound(said),
    ):
        [line] = bridge.fault()
        assert "1000000 bytes" in failure(line, 2)


@pytest.mark.fault(9, "http")
def test_an_endless_line_of_a_server_on_stdio_is_an_error_and_the_next_one_comes() -> None:
    with serving(*keys(limits={"message": "1MB"}), *naughty("endless", str(64 * MB))) as sidecar:
        local = Local(sidecar)
        with local.sound(), sidecar.in_memory(32 * MB):
            for id, raw in ((2, post(call(2, "end"), local.session)), (3, modern(3, "end"))):
                got = sidecar.ask(raw)
                told = failure(got.events[-1] if got.events else got.body, id)
                assert "is over the limit of 1000000 bytes" in told
            # The log may come after the answer.
            until(lambda: sum("is over the limit" in each for each in sidecar.messages()) == 2)


def pieces(raw: bytes, how: str) -> Iterator[bytes]:
    """Cut `raw` as `how` says: as it is, each byte alone, or anywhere."""
    if how == "whole":
        yield raw
        return
    random, at = Random(f"{how} {len(raw)}"), 0
    while at < len(raw):
        size = 1 if how == "bytes" else random.choice((1, 2, 3, 10, 100, 1000))
        yield raw[at : at + size]
        at += size


@pytest.mark.fault(24, "http")
@pytest.mark.parametrize("raw", STREAMS.values(), ids=STREAMS)
def test_a_stream_passes_as_it_came_whatever_its_form(remote: Remote, raw: bytes) -> None:
    def answer(asked: Asked) -> Iterator[bytes]:
        yield CHUNKED
        for piece in pieces(raw, asked.headers["x-pieces"]):
            yield chunk(piece)
        yield chunk(b"")

    with remote.sound(answer):
        for how in ("whole", "bytes", "anywhere"):
            header = f"X-Pieces: {how}"
            for era in (post(call(2, "fault"), header), modern(2, "fault", header)):
                got = remote.sidecar.ask(era)
                assert (got.status, got.body, got.ended) == (200, raw, True)
                assert got.one("content-type") == "text/event-stream"


# What streams say before the answer.
BEFORE = {
    **dict.fromkeys(("comments", "crlf", "cr", "all line ends"), (NOTE,)),
    "answers to nobody": (result(b"99"), result(b'"2"')),
    "requests of the server": (b'{"jsonrpc":"2.0","id":2,"method":"ping"}',),
}
# And after it.
AFTER = {"the answer twice": (result(b"2"),), "what follows": (NOTE,)}


@pytest.mark.fault(24, "stdio")
@pytest.mark.parametrize("how", ["whole", "bytes"])
def test_a_client_on_stdio_gets_a_line_for_each_message_of_a_stream(
    bridge: Bridge, how: str
) -> None:
    for name, raw in STREAMS.items():

        def answer(asked: Asked, raw: bytes = raw) -> Iterator[bytes]:
            yield STREAM
            yield from (*pieces(raw, how), b"")

        with bridge.sound(answer):
            *others, line = bridge.fault()
            if "several" in name:
                assert json.loads(line) == json.loads(PRETTY)
            else:
                assert line == (ODD if "odd" in name else result(b"2")), name
            asks = b'{"jsonrpc":"2.0","id":2,"method":"ping"}'
            known = (NOTE, result(b"99"), result(b'"2"'), result(b"2"), asks)
            assert set(BEFORE.get(name, ())) <= set(others) <= set(known), name
            for after in AFTER.get(name, ()):
                assert bridge.line()[:-1] == after, name


LARGE = scaled(10, 20) * MB


@pytest.mark.fault(24, "http")
@pytest.mark.parametrize("count", some([1, 6], 6))
def test_large_events_pass_as_they_came_and_do_not_pile_up(remote: Remote, count: int) -> None:
    raw = event(result(b"9", "y" * LARGE)) * (count - 1) + event(result(b"2", "x" * LARGE))
    with remote.sound(STREAM + raw), remote.sidecar.in_memory(12 * LARGE):
        got = remote.sidecar.post(call(2, "fault"))
        assert got.ended
        assert got.body == raw


@pytest.mark.fault(8, "http")
@pytest.mark.parametrize(
    "accept", some(["application/json", "text/event-stream", "*/*"], "text/event-stream")
)
def test_a_large_line_of_a_server_on_stdio_is_an_answer(accept: str) -> None:
    size = scaled(20, 100) * MB
    with serving(*naughty("large")) as sidecar:
        local = Local(sidecar)
        with local.sound():
            for raw in (
                post(call(2, str(size)), local.session, f"Accept: {accept}"),
                modern(2, str(size), f"Accept: {accept}"),
            ):
                with sidecar.in_memory(3 * size):
                    assert answer_of(sidecar.ask(raw)) == result(b"2", "x" * size)


HOP = ("connection", "transfer-encoding", "keep-alive")


def parts(raw: bytes) -> tuple[int, str, list[tuple[str, str]], bytes]:
    """Return the status, the reason, the headers and the body of an answer that a server sent."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = [line.partition(": ")[::2] for line in lines]
    if b"chunked" in head:
        body = HTML
    return int(first.split(" ")[1]), first.split(" ", 2)[2], headers, body


@pytest.mark.fault(25, "http")
@pytest.mark.parametrize("raw", STATUSES.values(), ids=STATUSES)
def test_what_is_no_answer_passes_with_status_headers_and_body(remote: Remote, raw: bytes) -> None:
    status, reason, headers, body = parts(raw)
    with remote.sound(raw):
        for era in (
            post(call(2, "fault"), "Mcp-Session-Id: s"),
            modern(2, "fault"),
            get("/mcp", STREAM_ONLY, "Mcp-Session-Id: s"),
            get("/mcp"),
        ):
            got = remote.sidecar.ask(era)
            assert (got.status, got.reason, got.body) == (status, reason, body)
            passed = [pair for pair in headers if pair[0].lower() not in HOP]
            assert [pair for pair in got.headers if pair in passed] == passed
            [logged] = remote.sidecar.requests()
            assert logged["status"] == status
            assert logged["answered_by"] == "upstream"
        assert len(remote.server.asked) == 4


@pytest.mark.fault(25, "stdio")
@pytest.mark.parametrize("raw", STATUSES.values(), ids=STATUSES)
def test_a_client_on_stdio_gets_an_error_with_the_status_and_the_start_of_the_body(
    bridge: Bridge, raw: bytes
) -> None:
    status, reason, headers, body = parts(raw)
    if status == 404:
        with Naughty() as server, Bridge(server) as bridge:
            server.fault = raw
            [line] = bridge.fault()
            told = failure(line, 2)
            assert told.startswith("the server has ended the session, start anew: ")
            assert "HTTP 404 Not Found: Session not found" in told
            assert bridge.close().code == 1
        return
    with bridge.sound(raw):
        if b'"id":2,"error"' in body:
            assert bridge.fault() == [body]
            return
        [line] = bridge.fault()
        told = failure(line, 2)
        assert f"HTTP {status}" in told
        assert status == 200 or reason in told
        if body[:1] == b"\x1f":
            body = gzip.decompress(body)
        text = body.decode()
        assert text[:200] in told
        assert not text[200:] or text[:201] not in told
        for name, value in headers:
            assert name != "Retry-After" or f"Retry-After: {value}" in told
        assert len(bridge.server.faults()) == 1


@pytest.mark.fault(25, "http")
@pytest.mark.parametrize("noise", [b"\xef\xbb\xbf", b"<b>Warning</b>: deprecated\n", b"a: "])
def test_an_answer_behind_noise_is_the_answer(remote: Remote, noise: bytes) -> None:
    for said in (whole(noise + result(b"2")), STREAM + event(noise.strip() + result(b"2"))):
        with remote.sound(said):
            for era in (post(call(2, "fault")), modern(2, "fault")):
                got = remote.sidecar.ask(era)
                assert (got.status, got.events or [got.body]) == (200, [result(b"2")])


GLUED = (result(b"2"), result(b"3"), b'\n{"jsonrpc":"2.0","method":"notifications/x"}', b"done")


def glued(first: bytes, behind: bytes) -> str:
    size = len(behind.strip())
    return f"the server's answer is not JSON: {size} bytes follow its end at byte {len(first)}; "


@by_both(25)
@pytest.mark.parametrize("behind", GLUED)
def test_an_answer_that_holds_more_than_one_text_is_an_error_at_once(
    tried: Remote | Bridge, behind: bytes
) -> None:
    first = result(b"2")
    for said in (whole(first + behind), STREAM + event((first + behind).replace(b"\n", b""))):
        with tried.sound(said):
            for lines in tried.fails(200):
                assert first not in lines
                line = next(each for each in lines if b'"id":2,' in each)
                assert glued(first, behind)[:60] in failure(line, 2)


@pytest.mark.fault(25, "http")
@pytest.mark.parametrize("status", ["101 Switching Protocols", "099 What"])
def test_an_answer_that_is_none_yet_is_an_error(remote: Remote, status: str) -> None:
    def answer(asked: Asked) -> Iterator[bytes]:
        yield f"HTTP/1.1 {status}\r\nUpgrade: h2c\r\n\r\n".encode()

    with remote.sound(answer):
        for era in (post(call(2, "fault")), modern(2, "fault"), get("/mcp", STREAM_ONLY)):
            with soon():
                got = remote.sidecar.ask(era)
            said = f"the server answers with the status {int(status[:3])}, which is no answer"
            assert (got.status, got.error) == (502, said)
            assert remote.sidecar.failures() == [said]


@pytest.mark.fault(2, "http")
def test_a_command_that_ends_at_once_is_an_error_with_its_last_words() -> None:
    with serving(*naughty("crashes", "5")) as sidecar:
        for id, raw in ((1, post(INITIALIZE)), (2, modern(2))):
            got = sidecar.ask(raw)
            told = failure(got.events[-1] if got.events else got.body, id)
            cause = "the server ended with exit code 5"
            assert told == f"{cause}; its stderr ends with:\nno such database"
        until(lambda: len(sidecar.children) == 1)


REDIRECTS = (301, 302, 303, 307, 308)


def redirect(status: int, location: str) -> bytes:
    held = (f"Location: {location}", "Content-Type: text/plain", "Connection: close")
    return whole(b"moved", f"{status} Moved", *held)


@pytest.fixture(scope="module")
def forwarding() -> Iterator[Remote]:
    with Naughty() as server, serving(*keys(auth="forward"), server.url) as sidecar:
        yield Remote(sidecar, server)


@pytest.mark.fault(26, "http")
@pytest.mark.fault(33, "http")
@pytest.mark.parametrize("status", some(REDIRECTS, 303, 307))
def test_a_redirection_to_another_origin_is_refused(forwarding: Remote, status: int) -> None:
    sidecar, server = forwarding.sidecar, forwarding.server
    with Naughty() as evil:
        elsewhere = (
            evil.url,
            f"//127.0.0.1:{evil.port}/mcp",
            f"http://localhost:{server.port}/mcp",
            f"http://127.0.0.1:{server.port}@127.0.0.1:{evil.port}/mcp",
            f"https://127.0.0.1:{server.port}/mcp",
            "file:///etc/passwd",
            "gopher://127.0.0.1/",
        )
        for location in elsewhere:
            with forwarding.sound(redirect(status, location)):
                got = sidecar.post(call(2, "fault"), "Authorization: Bearer secret")
                assert got.status == 502
                assert "another origin" in failure(got.body, 2), location
                assert not got.all("location")
                assert sidecar.failures() == [got.error]
                assert len(server.faults()) == 1
        assert evil.asked == []


@pytest.mark.fault(26, "http")
def test_a_redirection_to_another_origin_after_several_of_its_own_is_refused(
    remote: Remote,
) -> None:
    def answer(asked: Asked) -> Iterator[bytes]:
        steps = asked.path.count("/step")
        last = steps == 3
        yield redirect(307, evil.url if last else asked.path + "/step")

    with Naughty() as evil, remote.sound(answer):
        got = remote.sidecar.post(call(2, "fault"))
        assert got.status == 502
        assert "another origin" in failure(got.body, 2)
        assert not got.all("location")
        assert evil.asked == []


@by_both(26)
def test_a_redirection_in_a_circle_comes_to_an_end(tried: Remote | Bridge) -> None:
    with tried.sound(redirect(307, "/mcp")):
        answers = list(tried.fails(502))
        assert all("redirects more than" in failure(each[-1], 2) for each in answers)
        assert len(tried.server.faults()) < 10 * len(answers)


@pytest.mark.fault(26, "http")
@pytest.mark.parametrize("status", [307, 308])
def test_a_redirection_within_the_origin_sends_the_same_once_more(
    remote: Remote, status: int
) -> None:
    def answer(asked: Asked) -> Iterator[bytes]:
        there = asked.path == "/there?a=b"
        good = whole(result(b"2"), "200 OK", "Connection: close")
        yield good if there else redirect(status, "/there?a=b")

    with remote.sound(answer):
        got = remote.sidecar.post(call(2, "fault"))
        assert (got.status, got.body) == (200, result(b"2"))
        assert [asked.body for asked in remote.server.faults()] == [call(2, "fault")] * 2


@pytest.mark.fault(26, "stdio")
@pytest.mark.parametrize("status", some(REDIRECTS, 303, 307))
def test_a_redirection_elsewhere_is_an_error_on_stdio(
    status: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SECRET", "top-secret")
    fixed = ("--header", "Authorization: Bearer ${SECRET}")
    with Naughty() as evil, Naughty() as server, Bridge(server, *fixed) as bridge:
        with bridge.sound(redirect(status, evil.url)):
            [line] = bridge.fault()
            assert "another origin" in failure(line, 2)
        assert evil.asked == []
        assert bridge.close().code == 0
        assert b"top-secret" not in bridge.errors


REFUSED = ("the Origin of the request is not allowed", "the Host of the request is not allowed")


@pytest.mark.fault(27, "http")
@pytest.mark.parametrize("headers", EVIL.values(), ids=EVIL)
def test_an_evil_origin_or_host_is_refused(before_any: Remote | Local, headers: list[str]) -> None:
    with before_any.sound():
        seen = before_any.arrived
        for raw in (
            post(INITIALIZE, *headers),
            post(call(2), *headers, "Mcp-Session-Id: s"),
            get("/mcp", STREAM_ONLY, *headers),
            request("DELETE", "/mcp", *headers, "Mcp-Session-Id: s"),
            request("OPTIONS", "/mcp", *headers, "Access-Control-Request-Method: POST"),
        ):
            got = before_any.sidecar.ask(raw)
            assert (got.status, got.error in REFUSED) == (403, True), got
            assert b"evil" not in got.body
            assert not got.all("access-control-allow-origin")
            assert before_any.sidecar.failures() == [got.error]
        assert before_any.arrived == seen


@pytest.mark.fault(27, "http")
def test_the_host_in_the_target_of_a_request_counts_too(before_any: Remote | Local) -> None:
    with before_any.sound():
        raw = modern(2)
        hosts = (("evil.example", 403), ("[::2]", 403), ("localhost:5", 200), ("[::1]", 200))
        for host, status in hosts:
            target = f"POST http://{host}/mcp".encode()
            assert before_any.sidecar.ask(raw.replace(b"POST /mcp", target)).status == status
        evil = raw.replace(b"POST /mcp", b"POST http://localhost/mcp").replace(
            b"Host: localhost", b"Host: evil.example"
        )
        assert before_any.sidecar.ask(evil).status == 403


@pytest.mark.fault(28, "http")
@pytest.mark.parametrize(("body", "status"), BODIES.values(), ids=BODIES)
def test_a_body_that_is_no_message_is_refused_without_an_echo(
    before_any: Remote | Local, body: bytes, status: int
) -> None:
    headers = ["Content-Encoding: gzip"] if body[:1] == b"\x1f" else []
    chunks = b"".join(chunk(part) for part in (body[:1], body[1:]) if part) + chunk(b"")
    with before_any.sound(), before_any.sidecar.in_memory(32 * MB):
        seen = before_any.arrived
        for raw in (
            post(body, *headers),
            post(body, *headers, *stateless("ok")),
            post(chunks, *headers, "Transfer-Encoding: chunked"),
        ):
            got = before_any.sidecar.ask(raw)
            assert got.status == status
            assert got.one("content-type").startswith("application/json")
            assert set(got.json) == {"jsonrpc", "id", "error"}
            assert got.json["id"] is None
            assert got.json["error"]["code"] == (-32600 if status == 413 else -32700)
            assert b"ECHO" not in got.body
            assert len(got.body) < 300
            assert before_any.sidecar.failures() == [got.error]
        assert before_any.arrived == seen
    assert b"ECHO" not in before_any.sidecar.errors


@pytest.mark.fault(28, "http")
def test_a_body_that_is_announced_as_too_long_is_refused_before_it_comes(
    before_any: Remote | Local,
) -> None:
    with before_any.sound(), before_any.sidecar.client() as client:
        client.send(post(b"", "Content-Length: 99999999999", "Expect: 100-continue"))
        got = client.answer()
        assert (got.status, got.error) == (413, "the body is over the limit of 4194304 bytes")


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
def test_what_could_be_read_in_two_ways_is_refused_and_nothing_after_it_is_read(
    before_any: Remote | Local, raw: bytes
) -> None:
    with before_any.sound():
        seen = before_any.arrived
        with before_any.sidecar.client() as client:
            client.send(raw + INNER)
            got = client.answer()
            assert got.status in (400, 501)
            assert set(got.json) == {"jsonrpc", "id", "error"}
            assert (got.json["id"], got.json["error"]["code"]) == (None, -32600)
            assert b"SMUGG" not in got.body
            assert client.rest() == b""
        assert len(before_any.sidecar.failures()) == 1
        assert before_any.arrived == seen
    assert b"SMUGG" not in before_any.sidecar.errors


UNANSWERABLE = {
    **{
        f"the id {id}": (b'"id":2', f'"id":{id}'.encode(), "the id of a request must be a text or")
        for id in ('{"a":1}', "[2]", "1e400", "2.0", "true")
    },
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
            got = local.sidecar.post(raw.replace(part, bad), local.session)
            assert (got.status, got.error.startswith(says)) == (400, True)
            assert b"ECHO" not in got.body


@pytest.mark.fault(28, "http")
def test_a_request_whose_method_is_no_text_is_answered(local: Local) -> None:
    raw = call(2, _meta=META).replace(b'"tools/call"', b"5")
    with local.sound():
        for headers in ([local.session], [*stateless("ok")]):
            got = local.sidecar.post(raw, *headers)
            assert (got.status, got.json["error"]["code"]) == (400, -32600)


@pytest.mark.fault(31, "http")
def test_headers_pass_as_they_are_if_no_rule_changes_the_body(remote: Remote) -> None:
    odd = ("Mcp-Param-Odd: =?base64?eA==?=", "mcp-PARAM-two: 1")
    with remote.sound():
        # Whether they agree with the body is the server's to judge.
        raw = post(call(2, "ok", _meta=META), *stateless("other"), *odd)
        remote.sidecar.ask(raw)
        asked = remote.server.asked[0]
        assert asked.body == call(2, "ok", _meta=META)
        assert repeated(asked) == {
            "mcp-protocol-version": MODERN,
            "mcp-method": "tools/call",
            "mcp-name": "other",
            "mcp-param-odd": "=?base64?eA==?=",
            "mcp-param-two": "1",
        }


@pytest.mark.fault(29, "http")
def test_thousands_of_sessions_of_a_server_cost_little_and_leave_nothing(remote: Remote) -> None:
    most = scaled(32, 64) * MB
    with remote.sound(), remote.sidecar.in_memory(most), remote.sidecar.client() as client:
        for _ in range(scaled(400, 10_000)):
            client.send(post(INITIALIZE))
            assert client.answer().status == 200
        assert len({asked.id for asked in remote.server.asked}) == 1
    assert remote.sidecar.children == set()


SESSIONS = scaled(60, 10_000)  # each starts a server
ANSWERS = r's/.*"id":\([0-9]*\).*/{"jsonrpc":"2.0","id":\1,"result":{}}/p'


@pytest.mark.fault(29, "http")
def test_sessions_that_are_abandoned_make_room_and_leave_no_child() -> None:
    marker = f"# sessions-of-{os.getpid()}"
    server = ["sed", "-un", "-e", ANSWERS, "-e", marker]
    few = keys(limits={"sessions": 20})
    with serving(*few, "--", *server) as sidecar, sidecar.in_memory(64 * MB):
        before = sidecar.left
        with sidecar.client() as client:
            begun = []
            for _ in range(SESSIONS):
                client.send(post(INITIALIZE))
                begun.append(client.answer().one("mcp-session-id"))
        assert len(set(begun)) == SESSIONS
        last = f"Mcp-Session-Id: {begun[-1]}"
        until(lambda: len(marked(marker)) == 20)
        assert answer_of(sidecar.post(call(7), last)) == b'{"jsonrpc":"2.0","id":7,"result":{}}'
        assert sidecar.ask(request("DELETE", "/mcp", last)).status == 204
        until(lambda: len(marked(marker)) == 19)
        each = (sidecar.descriptors - before.descriptors) / 19
        assert each <= 5, "descriptors of sessions that are gone"
    assert marked(marker) == set()


@pytest.mark.fault(29, "http")
def test_a_client_that_goes_before_its_session_has_begun_leaves_no_child() -> None:
    with serving("--", "sleep", "1000") as sidecar:
        before = sidecar.left
        for _ in range(10):
            with sidecar.client() as client:
                client.send(post(INITIALIZE, "Accept: application/json"))
        assert {line["failure"] for line in sidecar.requests(10)} == {"the client went away"}
        sidecar.settles(before)


@pytest.mark.fault(16, "http")
def test_a_client_that_does_not_read_holds_the_server_up_and_is_let_go(remote: Remote) -> None:
    sent = 0

    def answer(asked: Asked) -> Iterator[bytes]:
        nonlocal sent
        yield CHUNKED
        for _ in range(300):
            yield chunk(event(NOTE[:-2] + b"x" * MB + NOTE[-2:]))
            sent += 1

    sidecar = remote.sidecar
    with remote.sound(answer), sidecar.in_memory(48 * MB), sidecar.client() as client:
        client.send(post(call(2, "fault")))
        client.head()
        still(lambda: sent)
        assert 0 < sent < 100
        remote.works()


@pytest.mark.fault(30, "http")
def test_a_stateless_call_whose_client_goes_away_is_cancelled_at_once(remote: Remote) -> None:
    gone: list[bool] = []

    def silent(asked: Asked) -> Iterator[bytes]:
        gone.append(asked.gone())
        yield b""

    def talking(asked: Asked) -> Iterator[bytes]:
        yield CHUNKED + chunk(event(NOTE))
        gone.append(asked.gone())
        yield b""

    for answer, begun in ((silent, False), (talking, True)):
        for go in (Client.reset, lambda client: client.socket.close()):
            with remote.sound(answer), remote.sidecar.client() as client:
                client.send(modern(2, "fault"))
                remote.server.wait(1)
                if begun:
                    client.until(b"\n\n")
                go(client)
                assert remote.sidecar.failures() == ["the client went away"]
                until(lambda: bool(gone))
                assert gone.pop()
                assert len(remote.server.faults()) == 1


@pytest.mark.fault(30, "http")
def test_a_call_of_a_session_whose_client_goes_away_can_be_resumed(remote: Remote) -> None:
    primed = b"id: 7\ndata:\n\n"
    replayed = b"id: 8\ndata: " + result(b"2") + b"\n\n"

    def answer(asked: Asked) -> Iterator[bytes]:
        if asked.method == "GET":
            assert asked.headers["last-event-id"] == "7"
            yield STREAM + replayed
        else:
            yield CHUNKED + chunk(primed)
            assert asked.gone()
            yield b""

    session = "Mcp-Session-Id: s"
    with remote.sound(answer):
        with remote.sidecar.client() as client:
            client.send(post(call(2, "fault"), session))
            client.until(primed)
            client.reset()
        assert remote.sidecar.failures() == ["the client went away"]
        got = remote.sidecar.ask(get("/mcp", STREAM_ONLY, session, "Last-Event-ID: 7"))
        assert (got.status, got.body) == (200, replayed)
        assert not [asked for asked in remote.server.asked if b"cancelled" in asked.body]


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
SENTINEL = "=?base64?WsO8cmljaA==?="


class Listing(Naughty):
    """One that has tools with parameters that headers repeat."""

    def _answer(self, asked: Asked) -> Iterator[bytes]:
        if b'"tools/list"' in asked.body:
            said = compact({"jsonrpc": "2.0", "id": asked.message["id"], "result": LISTED})
            yield whole(said, "200 OK", "Connection: close")
        else:
            yield from super()._answer(asked)


def listing(id: int) -> bytes:
    return compact({"jsonrpc": "2.0", "id": id, "method": "tools/list", "params": {"_meta": META}})


def repeated(asked: Asked) -> dict[str, str]:
    return {name: value for name, value in asked.headers.items() if name.startswith("mcp-")}


@pytest.mark.fault(31, "http")
def test_headers_that_repeat_the_body_follow_it_where_a_rule_changes_it(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(CAPPED, "utf-8")
    with Listing() as server, serving("--rules", str(rules), server.url) as sidecar:
        sidecar.post(listing(1), *stateless("", "tools/list"))
        given = {"count": 9, "other": "x", "mine": 1}
        headers = ("Mcp-Param-Count: 9", "Mcp-Param-Other: x", "X-Other: y")
        sidecar.ask(modern(2, "ok", *headers, arguments=given))
        _, asked = server.asked
    arguments = {"region": "Zürich", "count": 5, "other": "x"}
    assert asked.message["params"]["arguments"] == arguments
    assert repeated(asked) == {
        "mcp-protocol-version": MODERN,
        "mcp-method": "tools/call",
        "mcp-name": "ok",
        "mcp-param-region": SENTINEL,
        "mcp-param-count": "5",
        "mcp-param-other": "x",
    }
    assert asked.headers["x-other"] == "y"


@pytest.mark.fault(31, "stdio")
def test_a_client_on_stdio_gets_the_headers_that_the_sent_body_wants(tmp_path: Path) -> None:
    rules = tmp_path / "rules.yaml"
    rules.write_text(CAPPED, "utf-8")
    with Listing() as server, Bridge(server, "--rules", str(rules)) as bridge:
        bridge.ask(listing(2))
        bridge.ask(call(3, "ok", arguments={"count": 9}, _meta=META))
        assert repeated(server.asked[-1]) == {
            "mcp-protocol-version": MODERN,
            "mcp-method": "tools/call",
            "mcp-name": "ok",
            "mcp-param-region": SENTINEL,
            "mcp-param-count": "5",
        }
        assert bridge.close().code == 0


ANYWHERE = ("--listen", "0.0.0.0:0")


def refused_start(*arguments: str, **env: str) -> str:
    """Start a sidecar that must not start; return why."""
    ended = subprocess.run(
        command(*bare(*arguments, "http://127.0.0.1:9/mcp")),
        env={**os.environ, **env},
        capture_output=True,
        timeout=SECONDS,
        check=False,
    )
    assert ended.returncode == 2, ended.stderr
    assert b"Traceback" not in ended.stderr
    return ended.stderr.decode()


NO_TOKENS = ("an empty file", "no file", "an empty variable of its name", "an empty variable")


@pytest.mark.fault(32, "http")
@pytest.mark.parametrize("none", some(NO_TOKENS, "an empty file", "an empty variable"))
def test_a_token_that_is_none_does_not_count_as_one(tmp_path: Path, none: str) -> None:
    empty = tmp_path / "tokens"
    empty.write_text(" \n\n")
    absent = str(tmp_path / "absent")
    options, env, said = {
        "an empty file": (keys(token_file=str(empty)), {}, "holds no token"),
        "no file": (keys(token_file=absent), {}, "no such file"),
        "an empty variable of its name": (keys(token_env="A"), {"A": ""}, "holds no token"),
        "an empty variable": ((), {"MCP_ABRIDGE_TOKEN": ""}, "would be open"),
    }[none]
    assert said in refused_start(*ANYWHERE, *options, **env)


@pytest.mark.fault(32, "http")
def test_it_starts_without_a_token_where_it_is_told_so() -> None:
    with Naughty() as server, serving(*ANYWHERE, "--insecure", server.url) as sidecar:
        Remote(sidecar, server).works()


@pytest.mark.fault(32, "http")
@pytest.mark.parametrize("how", some(["file", "variable", "named variable"], "file"))
def test_a_token_opens_it_and_is_never_said(tmp_path: Path, how: str) -> None:
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
            server.asked.clear()
            path = "/mcp?token=first-secret-token" if "query" in name else "/mcp"
            got = sidecar.post(call(1), *headers, path=path)
            assert got.status == (200 if good else 401), name
            assert [asked.headers.get("authorization") for asked in server.asked] == [None] * good
            if not good:
                assert got.one("www-authenticate") == 'Bearer realm="mcp-abridge"'
                assert got.error in ("a bearer token is needed", "the bearer token is not known")
        # What says whether it lives needs none.
        assert sidecar.ask(get("/healthz")).status == 200
    assert b"secret" not in sidecar.errors.replace(str(tmp_path).encode(), b"")


@pytest.mark.fault(32, "http")
def test_a_token_in_the_path_opens_it_and_is_never_said(tmp_path: Path) -> None:
    (tmp_path / "tokens").write_text("first-secret-token\n")
    with Naughty() as server:
        config = tmp_path / "sidecar.yaml"
        config.write_text(
            f"version: 1\nupstream: {server.url}\nrules: none\n"
            "routes:\n- {path: '/mcp/{token}', token_file: tokens}\n"
        )
        with serving("-v", "--config", str(config)) as sidecar:
            for token, status in (("first-secret-token", 200), ("evil-secret", 401), ("", 404)):
                assert sidecar.post(call(1), path=f"/mcp/{token}").status == status
            assert sidecar.post(call(1), path="/mcp/first%2Dsecret%2Dtoken").status == 200
            assert sidecar.post(b"{", path="/mcp/first-secret-token").status == 400
            server.fault = b""
            assert sidecar.post(call(1, "fault"), path="/mcp/first-secret-token").status == 502
            assert len(sidecar.requests(6)) == 6
        assert {asked.path for asked in server.asked} == {"/mcp"}
    assert b"secret" not in sidecar.errors


SECRETS = (
    "Authorization: Bearer client-secret",
    "Cookie: session=cookie-secret",
    "Proxy-Authorization: Basic proxy-secret",
    "Mcp-Session-Id: session-secret",
    "X-Api-Key: key-secret",
)


@pytest.mark.fault(33, "http")
@pytest.mark.parametrize("auth", ["none", "forward"])
def test_credentials_go_on_only_where_they_are_to_and_are_never_said(auth: str) -> None:
    def echo(asked: Asked) -> Iterator[bytes]:
        # A server that repeats what it was given, in a refusal and in bad HTTP.
        said = asked.headers.get("authorization", "none").encode()
        if asked.headers.get("x-how") == "bad":
            yield from (b"HTTP/1.1 200 OK\r\n" + said + b"\r\n\r\n", b"")
        else:
            yield whole(said, "401 Unauthorized", "Content-Type: text/plain", "Connection: close")

    with Naughty(echo) as server:
        url = server.url.replace("http://", "http://user:url-secret@") + "?key=query-secret"
        fixed = ("--header", "X-Fixed: ${FIXED}")
        options = ("-v", *keys(auth=auth), *fixed)
        with serving(*options, url, env={"FIXED": "fixed-secret"}) as sidecar:
            for raw in (
                post(call(1), *SECRETS, path="/mcp?token=client-query-secret"),
                modern(2, "ok", *SECRETS),
                get("/mcp", STREAM_ONLY, *SECRETS),
                request("DELETE", "/mcp", *SECRETS),
                post(call(3, "fault"), *SECRETS),
                post(call(4, "fault"), "X-How: bad", *SECRETS),
                post(b"{", *SECRETS),
                post(call(5), "Origin: http://evil-secret.example", *SECRETS),
            ):
                got = sidecar.ask(raw)
                assert b"query-secret" not in got.body
                assert b"url-secret" not in got.body
            assert len(sidecar.requests(8)) == 8
        assert len(server.asked) == 6, "those that were not refused"
        for asked in server.asked:
            given = asked.headers
            assert given["x-fixed"] == "fixed-secret"
            assert given["x-api-key"] == "key-secret"
            assert "proxy-authorization" not in given
            if auth == "forward":
                assert given["authorization"] == "Bearer client-secret"
                assert given["cookie"] == "session=cookie-secret"
            else:
                assert "client-secret" not in given.get("authorization", "")
                assert "cookie" not in given
    assert b"secret" not in sidecar.errors


@pytest.mark.fault(33, "http")
def test_no_server_is_asked_to_say_back_what_the_proxy_has_added() -> None:
    def echo(asked: Asked) -> Iterator[bytes]:
        yield whole(str(asked.headers).encode(), "200 OK", "Connection: close")

    fixed = ("--header", "X-Fixed: fixed-secret", *keys(auth="forward"))
    with Naughty() as server, serving(*fixed, server.url) as sidecar:
        server.answer = echo
        for body in (None, b"{}"):
            got = sidecar.ask(request("TRACE", "/mcp", "Authorization: Bearer a", body=body))
            assert (got.status, got.error) == (405, "Method Not Allowed")
        assert server.asked == []


@pytest.mark.fault(33, "http")
def test_the_token_that_opens_it_is_not_for_the_server() -> None:
    said = refused_start(*keys(auth="forward"), MCP_ABRIDGE_TOKEN="opening-secret")
    assert "cannot hold the token that opens a route and credentials to forward" in said
    assert "opening-secret" not in said


@pytest.mark.fault(33, "stdio")
def test_credentials_of_a_client_on_stdio_go_to_the_server_only_and_are_never_said(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("SECRET", "top-secret")
    options = ("-v", "--header", "Authorization: Bearer ${SECRET}")

    def echo(asked: Asked) -> Iterator[bytes]:
        yield b"HTTP/1.1 200 OK\r\n" + asked.headers["authorization"].encode() + b"\r\n\r\n"
        yield b""

    with Naughty(echo) as server, Bridge(server, *options) as bridge:
        bridge.fault()
        bridge.works()
        assert {asked.headers["authorization"] for asked in server.asked} == {"Bearer top-secret"}
        assert bridge.close().code == 0
    assert b"top-secret" not in bridge.errors


# Row 29 once more: what takes long


@pytest.mark.fault(29, "http")
def test_half_open_connections_are_closed(half_open: "HalfOpen") -> None:
    for name, client in half_open.clients.items():
        client.socket.settimeout(90.0)
        said = client.rest()
        if "body" in name:
            assert said.startswith(b"HTTP/1.1 408 "), name
            assert b"the rest of the body did not come" in said
        else:
            assert said == b"", name
    half_open.sidecar.settles(half_open.before)
