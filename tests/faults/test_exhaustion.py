"""A sidecar survives a system without resources, row 47: one call fails, others come.

Descriptors and memory are limited while it runs (Linux); servers are gone, and come back.
"""

import re
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path

import pytest

from tests.conformance.suite import free_port
from tests.faults.forks import PROGRAM
from tests.faults.naughty import result
from tests.faults.processes import Process, memory, until
from tests.faults.routes import (
    Bridge,
    Local,
    Naughty,
    Remote,
    answer_of,
    by_both,
    failure,
    modern,
)
from tests.faults.sidecar import (
    EVENTS,
    INITIALIZE,
    Client,
    Sidecar,
    call,
    get,
    keys,
    post,
    serving,
    soon,
)
from tests.faults.wrapper import naughty
from tests.platforms import REFUSED, on_posix
from tests.raw_http import STREAM, event, whole

if sys.platform != "win32":
    import resource

MB = 1 << 20
PLAIN = naughty("plain")
NO_MORE = "no connection can be taken: too many open files; `ulimit -n` says how many there may be"


def seconds(process: Process) -> float:
    """Return how much of the processor's time it has taken."""
    figures = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(figures[11]) + int(figures[12])) / 100


def warned(sidecar: Sidecar, text: str) -> int:
    return sum(text in line.get("message", "") for line in tuple(sidecar.lines))


@on_posix("no limit on descriptors")
@pytest.mark.fault(47, "http")
def test_without_descriptors_clients_go_on_and_the_next_is_answered_later(local: Local) -> None:
    sidecar = local.sidecar
    with local.sound(), ExitStack() as open, sidecar.client() as there:
        there.send(post(call(1), local.session))
        assert there.answer().status == 200
        before, most = (
            resource.prlimit(sidecar.pid, resource.RLIMIT_NOFILE),
            sidecar.descriptors + 20,
        )
        resource.prlimit(sidecar.pid, resource.RLIMIT_NOFILE, (most, before[1]))
        for _ in range(500):
            open.enter_context(sidecar.client())
        until(lambda: warned(sidecar, NO_MORE) > 0)
        for _ in range(10):
            there.send(post(call(2), local.session))
            assert answer_of(there.answer()) == result(b"2")
        busy, since = seconds(sidecar), time.monotonic()
        until(lambda: time.monotonic() - since > 1.0)
        assert seconds(sidecar) - busy < 0.25, "it is busy with what it cannot do"
        assert warned(sidecar, NO_MORE) == 1
        there.send(post(INITIALIZE))
        assert "too many open files" in failure(there.answer().body, 1)
        open.close()
        with soon(3.0):
            assert sidecar.ask(get("/healthz")).status == 200
        resource.prlimit(sidecar.pid, resource.RLIMIT_NOFILE, before)


LIMITED = ("sh", "-c", 'ulimit -n 200 && exec "$@"', "sh", *PROGRAM)
HALF = b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 1000\r\n"


@on_posix("no limit on descriptors")
@pytest.mark.fault(47, "http")
@pytest.mark.parametrize(
    "first",
    [
        pytest.param(HALF + b"X-Drip: ", id="head"),
        pytest.param(HALF + b"\r\n{", id="body", marks=pytest.mark.long),
    ],
)
def test_idle_connections_keep_no_client_out(first: bytes) -> None:
    with serving(*PLAIN, program=LIMITED) as sidecar, ExitStack() as open:
        session = sidecar.begin()
        stream = open.enter_context(sidecar.client())
        stream.send(get("/mcp", EVENTS, session))
        assert stream.head().status == 200
        drips: list[Client] = []
        stop = threading.Event()

        def drip() -> None:
            while not stop.wait(0.5):
                for each in drips:
                    with suppress(OSError):  # it was closed, which is right
                        each.send(b"x")

        open.callback(stop.set)
        if first.endswith(b"Drip: "):
            threading.Thread(target=drip).start()
        for _ in range(400):
            idler = open.enter_context(sidecar.client())
            idler.send(first)
            drips.append(idler)
        with soon(5.0):
            assert answer_of(sidecar.post(call(2), session))
        assert sidecar.descriptors < 150, "servers and files have too little left"
        crowd = "the most at once (limits.connections): idle ones are closed"
        until(lambda: warned(sidecar, crowd) > 0)
        with soon(5.0):
            sidecar.begin()
        stream.socket.setblocking(False)
        with pytest.raises(BlockingIOError):  # still there, and nothing to say
            stream.socket.recv(1)


@pytest.mark.fault(47, "http")
def test_one_address_has_no_more_connections_than_its_share() -> None:
    with serving(*keys(limits={"peer_connections": 3}), *PLAIN) as sidecar, ExitStack() as open:
        session = sidecar.begin()
        stream, first = (open.enter_context(sidecar.client()) for _ in range(2))
        stream.send(get("/mcp", EVENTS, session))
        assert stream.head().status == 200
        others = [open.enter_context(sidecar.client()) for _ in range(5)]
        assert first.rest() == others[0].rest() == b""
        others[-1].send(get("/healthz"))
        assert others[-1].answer().status == 200
        streams = [stream]
        for session in (sidecar.begin(), sidecar.begin()):
            streams.append(open.enter_context(sidecar.client()))
            streams[-1].send(get("/mcp", EVENTS, session))
            assert streams[-1].head().status == 200
        with sidecar.client() as client:
            response = client.answer()
        assert response.status == 503
        assert "3 connections from 127.0.0.1 are open, the most from one address" in response.error


ROOM = 48 * MB
HUGE = 64 * MB


@contextmanager
def scarce(process: Process) -> Iterator[None]:
    """Let a process have only so much more memory than it has now, for a while."""
    most = memory(process.pid, "VmSize") + ROOM
    resource.prlimit(process.pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    yield
    resource.prlimit(process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)


@on_posix("no limit on the memory of a process")
@by_both(47)
def test_a_huge_answer_fails_without_memory_and_all_others_come(target: Remote | Bridge) -> None:
    target.works()
    raw = result(b"2", "x" * HUGE)
    with scarce(target.holds):
        for fault in (whole(raw), STREAM + event(raw)):
            with target.sound(fault):
                answers = list(target.fails(502, 20.0))
                for each in answers:
                    message = failure(each[-1], 2)
                    assert re.search("memory|broke off", message, re.IGNORECASE)
                assert len(target.server.faults()) == len(answers), "a call was sent again"


@on_posix("no limit on the memory of a process")
@pytest.mark.fault(47, "http")
def test_a_huge_line_of_a_server_fails_without_memory_and_its_session_goes_on() -> None:
    with serving(*naughty("large")) as sidecar:
        local, long = Local(sidecar), str(HUGE)
        with local.sound(), scarce(sidecar):
            for id, raw in local.eras(long):
                message = failure(sidecar.ask(raw).messages[-1], id)
                words = "there is no memory for a message of .* from the server"
                assert re.fullmatch(words, message)
                local.works()


@pytest.mark.fault(47, "http")
def test_a_server_that_is_gone_is_a_502_at_once_and_answers_once_it_is_back() -> None:
    port = free_port()
    with serving(f"http://127.0.0.1:{port}/mcp") as sidecar:
        cause = f"no connection to 127.0.0.1:{port}: ({REFUSED})"
        for era in (post(call(2)), modern(2), get("/mcp", EVENTS)):
            with soon():
                response = sidecar.ask(era)
            assert response.status == 502
            assert re.fullmatch(f"the server cannot be reached: {cause}", response.error)
            assert sidecar.failures() == [response.error]
        assert sidecar.ask(get("/healthz")).status == 200
        for _ in range(3):
            with Naughty(port=port) as server:
                remote = Remote(sidecar, server)
                with remote.sound():
                    pass
            assert sidecar.post(call(3)).status == 502


@pytest.mark.fault(47, "stdio")
def test_a_server_that_is_gone_and_comes_back_costs_a_client_on_stdio_the_calls_between() -> None:
    with Naughty() as first:
        port = first.port
        bridge = Bridge(first)
    with bridge:
        with soon():
            [line] = bridge.fault()
        cause = f"gave no answer: no connection to 127.0.0.1:{port}: ({REFUSED})"
        assert re.fullmatch(f"the server at http://127.0.0.1:{port}/mcp {cause}", failure(line, 2))
        with Naughty(port=port) as second:
            bridge.server = second
            bridge.works()
            assert bridge.close().code == 0
