"""Clients that go away, do not read or never finish, rows 16, 29 and 30: what is left of them."""

import os
from collections.abc import Iterator
from typing import NamedTuple

import pytest

from tests.faults.bad_answers import CHUNKED, NOTE, chunk
from tests.faults.naughty import result
from tests.faults.processes import marked, still, until
from tests.faults.routes import Remote, answer_of, modern
from tests.faults.scale import scaled
from tests.faults.sidecar import (
    EVENTS,
    INITIALIZE,
    Client,
    Resources,
    Sidecar,
    call,
    get,
    keys,
    post,
    request,
    serving,
)
from tests.raw_http import RawRequest, event

MB = 1 << 20


class HalfOpen(NamedTuple):
    """Connections of which nothing more will come, to a sidecar of their own."""

    sidecar: Sidecar
    before: Resources
    clients: dict[str, Client]


@pytest.fixture(scope="module", autouse=True)
def half_open() -> Iterator[HalfOpen]:
    """Open them before anything else, so that nobody has to wait for them long in the end."""
    half = b"POST /mcp HTTP/1.1\r\nHost: loc"
    parts = {
        "half a head": half,
        "half a body": post(b"{", "Content-Length: 100"),
        "half a body in chunks": post(b"5\r\n{", "Transfer-Encoding: chunked"),
        "half a head after an answer": half,
    }
    with serving("http://127.0.0.1:9/mcp") as sidecar:
        before = sidecar.resources
        clients = {name: sidecar.client() for name in parts}
        for name, raw in parts.items():
            if "answer" in name:
                clients[name].send(get("/healthz"))
                clients[name].answer()
            clients[name].send(raw)
        yield HalfOpen(sidecar, before, clients)
        for client in clients.values():
            client.socket.close()


@pytest.mark.fault(29, "http")
def test_thousands_of_sessions_of_a_server_cost_little_and_leave_nothing(remote: Remote) -> None:
    most = scaled(32, 64) * MB
    with remote.sound(), remote.sidecar.in_memory(most), remote.sidecar.client() as client:
        for _ in range(scaled(400, 10_000)):
            client.send(post(INITIALIZE))
            assert client.answer().status == 200
        assert len({request.id for request in remote.server.requests}) == 1
    assert remote.sidecar.children == set()


SESSIONS = scaled(60, 10_000)  # each starts a server

ANSWERS = r's/.*"id":\([0-9]*\).*/{"jsonrpc":"2.0","id":\1,"result":{}}/p'


@pytest.mark.fault(29, "http")
def test_sessions_that_are_abandoned_make_room_and_leave_no_child() -> None:
    marker = f"# sessions-of-{os.getpid()}"
    server = ["sed", "-un", "-e", ANSWERS, "-e", marker]
    few = keys(limits={"sessions": 20})
    with serving(*few, "--", *server) as sidecar, sidecar.in_memory(64 * MB):
        before = sidecar.resources
        with sidecar.client() as client:
            session_ids = []
            for _ in range(SESSIONS):
                client.send(post(INITIALIZE))
                session_ids.append(client.answer().one("mcp-session-id"))
        assert len(set(session_ids)) == SESSIONS
        last = f"Mcp-Session-Id: {session_ids[-1]}"
        until(lambda: len(marked(marker)) == 20)
        assert answer_of(sidecar.post(call(7), last)) == b'{"jsonrpc":"2.0","id":7,"result":{}}'
        assert sidecar.ask(request("DELETE", "/mcp", last)).status == 204
        until(lambda: len(marked(marker)) == 19)
        each = (sidecar.descriptors - before.descriptors) / 19
        assert each <= 5, "descriptors of sessions that are gone"
    assert marked(marker) == set()


@pytest.mark.fault(16, "http")
def test_a_client_that_does_not_read_holds_the_server_up_and_is_let_go(remote: Remote) -> None:
    count = 0

    def answer(request: RawRequest) -> Iterator[bytes]:
        nonlocal count
        yield CHUNKED
        for _ in range(300):
            yield chunk(event(NOTE[:-2] + b"x" * MB + NOTE[-2:]))
            count += 1

    sidecar = remote.sidecar
    with remote.sound(answer), sidecar.in_memory(48 * MB), sidecar.client() as client:
        client.send(post(call(2, "fault")))
        client.head()
        still(lambda: count)
        assert 0 < count < 100
        remote.works()


@pytest.mark.fault(30, "http")
def test_a_stateless_call_whose_client_goes_away_is_cancelled_at_once(remote: Remote) -> None:
    disconnects: list[bool] = []

    def silent(request: RawRequest) -> Iterator[bytes]:
        disconnects.append(request.closed_by_client())
        yield b""

    def talking(request: RawRequest) -> Iterator[bytes]:
        yield CHUNKED + chunk(event(NOTE))
        disconnects.append(request.closed_by_client())
        yield b""

    for answer, streaming in ((silent, False), (talking, True)):
        for go in (Client.reset, lambda client: client.socket.close()):
            with remote.sound(answer), remote.sidecar.client() as client:
                client.send(modern(2, "fault"))
                remote.server.wait(1)
                if streaming:
                    client.until(b"\n\n")
                go(client)
                assert remote.sidecar.failures() == ["the client went away"]
                until(lambda: bool(disconnects))
                assert disconnects.pop()
                assert len(remote.server.faults()) == 1


@pytest.mark.fault(30, "http")
@pytest.mark.parametrize(
    ("request_sent", "message"),
    [(post(call(2, "fault")), result(b"2")), (get("/mcp", EVENTS), NOTE)],
    ids=["after its whole answer", "from a stream that listens"],
)
def test_a_client_that_goes_away_is_no_failure(
    request_sent: bytes, message: bytes, remote: Remote
) -> None:
    def open_end(request: RawRequest) -> Iterator[bytes]:
        yield CHUNKED + chunk(event(message))
        assert request.closed_by_client()
        yield b""

    with remote.sound(open_end), remote.sidecar.client() as client:
        client.send(request_sent)
        client.until(b"\n\n")
        client.reset()
        [line] = remote.sidecar.requests()
    assert (line["status"], "failure" in line) == (200, False)
    assert line["sent"] == len(event(message))


@pytest.mark.fault(29, "http")
def test_half_open_connections_are_closed(half_open: HalfOpen) -> None:
    for name, client in half_open.clients.items():
        client.socket.settimeout(90.0)
        raw = client.rest()
        if "body" in name:
            assert raw.startswith(b"HTTP/1.1 408 "), name
            assert b"the rest of the body did not come" in raw
        else:
            assert raw == b"", name
    half_open.sidecar.settles(half_open.before)
