"""What a sidecar does where the system has no more to give, row 47: one call fails, others come.

Descriptors and memory are limited while it runs (Linux); servers are gone, and come back.
"""

import re
import resource
import socket
import sys
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import pytest

if sys.platform != "linux":
    pytest.skip("limits are set by prlimit", allow_module_level=True)

from tests.faults.processes import Process, memory, until
from tests.faults.routes import NAUGHTY, Bridge, Local, Naughty, Remote, answer_of, failure, modern
from tests.faults.sidecar import INITIALIZE, Sidecar, call, get, post, serving, soon
from tests.faults.sidecar import STREAM as STREAM_ONLY
from tests.raw_http import STREAM, event, result, whole

MB = 1 << 20
PLAIN = ("--", sys.executable, str(NAUGHTY), "plain")
NO_MORE = "no connection can be taken: too many open files; `ulimit -n` says how many there may be"


def seconds(process: Process) -> float:
    """Return how much of the processor's time it has taken."""
    figures = Path(f"/proc/{process.pid}/stat").read_text().rpartition(")")[2].split()
    return (int(figures[11]) + int(figures[12])) / 100


def warned(sidecar: Sidecar, text: str) -> int:
    return sum(text in line.get("message", "") for line in tuple(sidecar.said))


@pytest.mark.fault(47, "http")
@pytest.mark.parametrize("kind", ["a URL", "a command"])
def test_without_descriptors_who_is_there_goes_on_and_the_next_is_answered_later(kind: str) -> None:
    with Naughty() as server, serving(*((server.url,) if kind == "a URL" else PLAIN)) as sidecar:
        tried = Remote(sidecar, server) if kind == "a URL" else Local(sidecar)
        headers = () if isinstance(tried, Remote) else (tried.session,)
        with tried.sound(), ExitStack() as open, sidecar.client() as there:
            there.send(post(call(1), *headers))
            assert there.answer().status == 200
            most = sidecar.descriptors + 20
            resource.prlimit(sidecar.pid, resource.RLIMIT_NOFILE, (most, most))
            for _ in range(500):
                open.enter_context(sidecar.client())
            until(lambda: warned(sidecar, NO_MORE) > 0)
            for _ in range(10):
                there.send(post(call(2), *headers))
                got = there.answer()
                # Of a URL another connection may be needed, which cannot be had.
                assert b"too many open files" in got.body if got.status == 502 else answer_of(got)
            spent, since = seconds(sidecar), time.monotonic()
            until(lambda: time.monotonic() - since > 1.0)
            assert seconds(sidecar) - spent < 0.25, "it is busy with what it cannot do"
            assert warned(sidecar, NO_MORE) == 1
            if kind == "a command":
                there.send(post(INITIALIZE))
                assert "Too many open files" in failure(there.answer().body, 1)
            open.close()
            with soon(3.0):
                assert sidecar.ask(get("/healthz")).status == 200


ROOM = 48 * MB
HUGE = 64 * MB


@contextmanager
def scarce(process: Process) -> Iterator[None]:
    """Let a process have only so much more memory than it has now, for a while."""
    most = memory(process.pid, "VmSize") + ROOM
    resource.prlimit(process.pid, resource.RLIMIT_AS, (most, resource.RLIM_INFINITY))
    yield
    resource.prlimit(process.pid, resource.RLIMIT_AS, (resource.RLIM_INFINITY,) * 2)


def huge() -> Iterator[bytes]:
    """Yield answers for which there is no room then."""
    raw = result(b"2", "x" * HUGE)
    yield whole(raw)
    yield STREAM + event(raw)


@pytest.mark.fault(47, "http")
def test_a_huge_answer_of_a_server_fails_where_there_is_no_memory_and_all_others_come() -> None:
    with Naughty() as server, serving(server.url) as sidecar:
        remote = Remote(sidecar, server)
        remote.works()
        with scarce(sidecar):
            for said in huge():
                with remote.sound(said):
                    for era in (post(call(2, "fault")), modern(2, "fault")):
                        got = sidecar.ask(era)
                        assert got.ended
                        told = failure(got.events[-1] if got.events else got.body, 2)
                        assert re.search(
                            "no memory for the server's|the server's .*(no memory|broke off)", told
                        )
                        remote.works()
                    assert len(server.faults()) == 2, "a call was sent again"


@pytest.mark.fault(47, "http")
def test_a_huge_line_of_a_server_fails_where_there_is_no_memory_and_its_session_goes_on() -> None:
    with serving("--", sys.executable, str(NAUGHTY), "large") as sidecar:
        local, long = Local(sidecar), str(HUGE)
        with local.sound(), scarce(sidecar):
            for id, raw in ((2, post(call(2, long), local.session)), (3, modern(3, long))):
                got = sidecar.ask(raw)
                told = failure(got.events[-1] if got.events else got.body, id)
                assert re.fullmatch("there is no memory for a message of .* from the server", told)
                local.works()


@pytest.mark.fault(47, "stdio")
def test_a_huge_answer_fails_over_run_url_where_there_is_no_memory_and_all_others_come() -> None:
    with Naughty() as server, Bridge(server) as bridge:
        bridge.works()
        with scarce(bridge.holds):
            for said in huge():
                with bridge.sound(said):
                    told = failure(bridge.ask(2)[-1], 2)
                    assert re.search("memory|broke off", told, re.IGNORECASE)
                    assert len(server.faults()) == 1, "a call was sent again"
        assert bridge.close().code == 0


# Servers that are not there


def nobody() -> int:
    """Return a port at which nobody listens."""
    with socket.create_server(("127.0.0.1", 0)) as listening:
        port: int = listening.getsockname()[1]
        return port


@pytest.mark.fault(47, "http")
def test_a_server_that_is_gone_is_a_502_at_once_and_answers_once_it_is_back() -> None:
    port = nobody()
    with serving(f"http://127.0.0.1:{port}/mcp") as sidecar:
        for era in (post(call(2)), modern(2), get("/mcp", STREAM_ONLY)):
            with soon():
                got = sidecar.ask(era)
            refused = f"no connection to 127.0.0.1:{port}: connection refused"
            assert (got.status, got.error) == (502, f"the server cannot be reached: {refused}")
            assert sidecar.failures() == [got.error]
        assert sidecar.ask(get("/healthz")).status == 200
        for _ in range(3):
            with Naughty(port=port) as server:
                remote = Remote(sidecar, server)
                with remote.sound():
                    pass
            assert sidecar.post(call(3)).status == 502


@pytest.mark.fault(47, "http")
def test_a_server_whose_name_nobody_knows_is_a_502() -> None:
    with serving("http://no-such-host.invalid/mcp") as sidecar:
        got = sidecar.ask(post(call(2)), 60.0)
        told = failure(got.body, 2)
        assert got.status == 502
        assert told.startswith(
            "the server cannot be reached: no connection to no-such-host.invalid:80: "
        )


@pytest.mark.fault(47, "stdio")
def test_a_server_that_is_gone_and_comes_back_costs_a_client_on_stdio_the_calls_between() -> None:
    with Naughty() as first:
        port = first.port
        bridge = Bridge(first)
    with bridge:
        with soon():
            [line] = bridge.ask(2)
        refused = f"no connection to 127.0.0.1:{port}: connection refused"
        url = f"http://127.0.0.1:{port}/mcp"
        assert failure(line, 2) == f"the server at {url} gave no answer: {refused}"
        with Naughty(port=port) as second:
            bridge.server = second
            bridge.works()
            assert bridge.close().code == 0
