"""Faults in the answers of an HTTP server have the promised outcomes, rows 22 to 26: raw bytes.

Everywhere the same: each request gets one answer, the next one works, untouched bytes are the same,
nothing is left of it, memory stays bounded, and one line of the log names the fault.
"""

import gzip
import re
from collections.abc import Iterator

import pytest

from tests.faults.bad_answers import BOMBS, CHUNKED, CUTS, NOTE, STATUSES, STREAMS, chunk
from tests.faults.naughty import result
from tests.faults.routes import Bridge, Naughty, Remote, by_both, closing, failure, modern
from tests.faults.scale import scaled
from tests.faults.sidecar import EVENTS, call, get, keys, post, serving, soon
from tests.platforms import RESET
from tests.raw_http import STREAM, Answer, RawRequest, Reset, event, whole

MB = 1 << 20

TOO_LARGE = "over 200 times larger when decompressed"


@by_both(22)
@pytest.mark.parametrize("kind", BOMBS)
def test_a_bomb_that_a_server_answers_is_stopped_at_the_bound(
    target: Remote | Bridge, kind: str
) -> None:
    with target.sound(BOMBS[kind]()), target.holds.in_memory(64 * MB):
        answers = list(target.fails(502))
        assert all(TOO_LARGE in failure(each[-1], 2) for each in answers)
        target.has_said(TOO_LARGE)
        assert len(target.server.faults()) == len(answers), "a call was sent again"


def cut(raw: bytes, *, reset: bool) -> Answer:
    def answer(request: RawRequest) -> Iterator[bytes]:
        yield closing(raw)
        if reset:
            raise Reset
        yield b""

    return answer


@by_both(23)
@pytest.mark.parametrize("reset", [False, True], ids=["closed", "reset"])
@pytest.mark.parametrize(("raw", "why"), CUTS.values(), ids=CUTS)
def test_a_cut_answer_is_an_error_with_the_cause(
    target: Remote | Bridge, raw: bytes, why: str, reset: bool
) -> None:
    # If the reset comes first, there was nothing else to see.
    why = f"{why}|{RESET}" if reset else why
    with target.sound(cut(raw, reset=reset)):
        answers = list(target.fails(502))
        for *others, last in answers:
            assert re.search(why, failure(last, 2))
            assert set(others) <= {NOTE}
        target.has_said(why)
        assert len(target.server.faults()) == len(answers), "a call was sent again"


@pytest.mark.fault(23, "http")
@pytest.mark.parametrize("raw", [CUTS["half an event"][0], CUTS["half a chunk"][0]])
def test_a_cut_of_the_stream_of_a_session_is_seen_by_the_client(remote: Remote, raw: bytes) -> None:
    with remote.sound(cut(raw, reset=True)):
        response = remote.sidecar.ask(get("/mcp", EVENTS, "Mcp-Session-Id: s"))
        assert (response.status, response.body) == (200, event(NOTE))
        [logged] = remote.sidecar.failures()
        assert logged.startswith("the server's stream broke off: ")


@pytest.mark.fault(24, "http")
@pytest.mark.fault(24, "stdio")
@pytest.mark.parametrize("kind", ["application/json", "text/event-stream"])
def test_an_answer_over_the_limit_is_an_error_and_the_next_one_comes(kind: str) -> None:
    long = result(b"2", "x" * 3 * MB)
    raw = whole(long if kind[0] == "a" else event(long), "200 OK", f"Content-Type: {kind}")
    limit = keys(limits={"message": "1MB"})
    with Naughty(raw) as server, serving(*limit, server.url) as sidecar:
        remote = Remote(sidecar, server)
        with remote.sound(raw):
            response = sidecar.post(call(2, "fault"))
            error = failure(response.messages[0], 2)
            assert "1000000 bytes" in error
            assert sidecar.failures() == [error]
    with (
        Naughty(raw) as server,
        Bridge(server, "--max-message", "1MB") as bridge,
        bridge.sound(raw),
    ):
        [line] = bridge.fault()
        assert "1000000 bytes" in failure(line, 2)


def pieces(raw: bytes, size: int) -> list[bytes]:
    return [raw[at : at + size] for at in range(0, len(raw), size)]


@pytest.mark.fault(24, "http")
@pytest.mark.parametrize("name", STREAMS)
def test_a_stream_passes_as_it_came_whatever_its_form(remote: Remote, name: str) -> None:
    raw, _ = STREAMS[name]

    def answer(request: RawRequest) -> Iterator[bytes]:
        yield CHUNKED
        yield from map(chunk, pieces(raw, int(request.headers["x-size"])))
        yield chunk(b"")

    with remote.sound(answer):
        for size in (len(raw), 1, 10):
            header = f"X-Size: {size}"
            for era in (post(call(2, "fault"), header), modern(2, "fault", header)):
                response = remote.sidecar.ask(era)
                assert (response.status, response.body, response.ended) == (200, raw, True)
                assert response.one("content-type") == "text/event-stream"


@pytest.mark.fault(24, "stdio")
@pytest.mark.parametrize("name", STREAMS)
def test_a_client_on_stdio_gets_a_line_for_each_message_of_a_stream(
    bridge: Bridge, name: str
) -> None:
    raw, expected = STREAMS[name]

    def answer(request: RawRequest) -> Iterator[bytes]:
        yield STREAM
        yield from (*pieces(raw, 1), b"")

    with bridge.sound(answer):
        lines = bridge.fault()
        lines += [bridge.line()[:-1] for _ in expected[len(lines) :]]
        assert lines == expected


LARGE = scaled(10, 20) * MB


@pytest.mark.fault(24, "http")
def test_large_events_pass_as_they_came_and_do_not_pile_up(remote: Remote) -> None:
    raw = event(result(b"9", "y" * LARGE)) * 5 + event(result(b"2", "x" * LARGE))
    with remote.sound(STREAM + raw), remote.sidecar.in_memory(12 * LARGE):
        response = remote.sidecar.post(call(2, "fault"))
        assert response.ended
        assert response.body == raw


HOP = ("connection", "transfer-encoding", "keep-alive")


def parts(raw: bytes) -> tuple[int, str, list[tuple[str, str]], bytes]:
    """Return the status, the reason, the headers and the body of an answer that a server sent."""
    head, _, body = raw.partition(b"\r\n\r\n")
    first, *lines = head.decode().split("\r\n")
    headers = [line.partition(": ")[::2] for line in lines]
    return int(first.split(" ")[1]), first.split(" ", 2)[2], headers, body


@pytest.mark.fault(25, "http")
@pytest.mark.parametrize("raw", STATUSES.values(), ids=STATUSES)
def test_a_response_that_is_no_answer_passes_with_status_headers_and_body(
    remote: Remote, raw: bytes
) -> None:
    status, reason, headers, body = parts(raw)
    with remote.sound(raw):
        for era in (
            post(call(2, "fault"), "Mcp-Session-Id: s"),
            modern(2, "fault"),
            get("/mcp", EVENTS, "Mcp-Session-Id: s"),
            get("/mcp"),
        ):
            response = remote.sidecar.ask(era)
            assert (response.status, response.reason, response.body) == (status, reason, body)
            expected = [pair for pair in headers if pair[0].lower() not in HOP]
            assert [pair for pair in response.headers if pair in expected] == expected
            [logged] = remote.sidecar.requests()
            assert logged["status"] == status
            assert logged["answered_by"] == "upstream"
        assert len(remote.server.requests) == 4


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
            error = failure(line, 2)
            assert error.startswith("the server has ended the session, start anew: ")
            assert "HTTP 404 Not Found: Session not found" in error
            assert bridge.close().code == 1
        return
    with bridge.sound(raw):
        if b'"id":2,"error"' in body:
            assert bridge.fault() == [body]
            return
        [line] = bridge.fault()
        error = failure(line, 2)
        assert f"HTTP {status}" in error
        assert status == 200 or reason in error
        if body[:1] == b"\x1f":
            body = gzip.decompress(body)
        text = body.decode()
        assert text[:200] in error
        assert not text[200:] or text[:201] not in error
        for name, value in headers:
            assert name != "Retry-After" or f"Retry-After: {value}" in error
        assert len(bridge.server.faults()) == 1


@pytest.mark.fault(25, "http")
def test_an_answer_behind_noise_is_the_answer(remote: Remote) -> None:
    noise = b"<b>Warning</b>: deprecated\n"
    for raw in (whole(noise + result(b"2")), STREAM + event(noise.strip() + result(b"2"))):
        with remote.sound(raw):
            for era in (post(call(2, "fault")), modern(2, "fault")):
                response = remote.sidecar.ask(era)
                assert (response.status, response.messages) == (200, [result(b"2")])


@by_both(25)
@pytest.mark.parametrize("behind", [result(b"3"), b"done"])
def test_of_an_answer_that_holds_more_than_one_text_the_first_counts(
    target: Remote | Bridge, behind: bytes
) -> None:
    first = result(b"2")
    for raw in (whole(first + behind), STREAM + event(first + behind)):
        with target.sound(raw):
            for lines in target.fails(200):
                assert [each for each in lines if b'"id":2,' in each] == [first]


@pytest.mark.fault(25, "http")
def test_a_status_of_no_answer_is_an_error(remote: Remote) -> None:
    with remote.sound(b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: h2c\r\n\r\n"):
        for era in (post(call(2, "fault")), modern(2, "fault"), get("/mcp", EVENTS)):
            with soon():
                response = remote.sidecar.ask(era)
            message = "the server answers with the status 101, which is no answer"
            assert (response.status, response.error) == (502, message)
            assert remote.sidecar.failures() == [message]


def redirect(status: int, location: str) -> bytes:
    headers = (f"Location: {location}", "Content-Type: text/plain", "Connection: close")
    return whole(b"moved", f"{status} Moved", *headers)


@by_both(26)
@pytest.mark.parametrize("status", [303, 307])
def test_a_redirection_to_another_origin_is_refused(target: Remote | Bridge, status: int) -> None:
    server = target.server

    def steps(request: RawRequest) -> Iterator[bytes]:
        last = request.path.count("/step") == 3
        yield redirect(status, evil.url if last else request.path + "/step")

    with Naughty() as evil:
        elsewhere = (
            evil.url,
            f"//127.0.0.1:{evil.port}/mcp",
            f"http://localhost:{server.port}/mcp",
            f"http://127.0.0.1:{server.port}@127.0.0.1:{evil.port}/mcp",
            f"https://127.0.0.1:{server.port}/mcp",
            "file:///etc/passwd",
        )
        # The last one comes after several of its own, which are followed if they are no 303.
        answers: list[Answer | bytes] = [redirect(status, each) for each in elsewhere]
        for answer in [*answers, steps] if status > 303 else answers:
            with target.sound(answer):
                for each in target.fails(502):
                    assert "another origin" in failure(each[-1], 2), answer
                target.has_said("another origin")
        assert evil.requests == []


@by_both(26)
def test_a_redirection_in_a_circle_comes_to_an_end(target: Remote | Bridge) -> None:
    with target.sound(redirect(307, "/mcp")):
        answers = list(target.fails(502))
        assert all("redirects more than" in failure(each[-1], 2) for each in answers)
        assert len(target.server.faults()) < 10 * len(answers)


@pytest.mark.fault(26, "http")
def test_a_redirection_within_the_origin_sends_the_same_once_more(remote: Remote) -> None:
    def answer(request: RawRequest) -> Iterator[bytes]:
        there = request.path == "/there?a=b"
        good = whole(result(b"2"), "200 OK", "Connection: close")
        yield good if there else redirect(307, "/there?a=b")

    with remote.sound(answer):
        response = remote.sidecar.post(call(2, "fault"))
        assert (response.status, response.body) == (200, result(b"2"))
        assert [request.body for request in remote.server.faults()] == [call(2, "fault")] * 2
