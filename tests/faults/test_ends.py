"""Sees to it that nobody is left of the sidecar, or of its sessions, however they end (Linux)."""

import os
import signal
import time
from pathlib import Path

import pytest

from tests.faults.orphans import Cycle, End, brood, cycles, environment, go_round, left
from tests.faults.processes import LIFE, until
from tests.faults.routes import modern
from tests.faults.scale import scaled
from tests.faults.sidecar import (
    INITIALIZE,
    STREAM,
    Client,
    call,
    get,
    keys,
    post,
    request,
    serving,
)

ENDS: tuple[End, ...] = ("TERM", "INT", "HUP", "KILL", "crash")


def turn(cycle: Cycle) -> float:
    """Start the sidecar, have it asked in every way, and end it, or its servers."""
    drains = keys(limits={"drain_seconds": 0.5})
    with serving(*drains, "--", *brood(cycle.how), env=environment(cycle.marker)) as sidecar:
        clients, sessions = begun(sidecar.port, answered=cycle.moment is None)
        if cycle.moment is not None:
            time.sleep(cycle.moment)
        if cycle.end == "crash":
            for raw in (*(post(call(2, "end"), each) for each in sessions), modern(2, "end")):
                assert b"SIGKILL" in sidecar.ask(raw).body
            until(lambda: not servers(cycle.marker), LIFE)
        ended = time.monotonic()
        sidecar.process.send_signal(cycle.signal or signal.SIGTERM)
        code = sidecar.process.wait(20.0)
        assert code == (-signal.SIGKILL if cycle.end == "KILL" else 0)
        for client in clients:
            client.socket.close()
    return ended


def begun(port: int, *, answered: bool) -> tuple[list[Client], list[str]]:
    """Begin three sessions, and make a call of none; one client goes away without a word.

    Returns those that stay, and the sessions, where their clients were answered.
    """
    raw = [modern(1), post(INITIALIZE), post(INITIALIZE), post(INITIALIZE)]
    clients = [Client(port) for _ in raw]
    for client, each in zip(clients, raw, strict=True):
        client.send(each)
    sessions = []
    if answered:
        answers = [client.answer() for client in clients]
        assert {each.status for each in answers} == {200}, answers
        sessions = [f"Mcp-Session-Id: {each.one('mcp-session-id')}" for each in answers[1:]]
    clients.pop().reset()
    return clients, sessions


def servers(marker: str) -> list[str]:
    """Return the servers that live, with all that they have begotten."""
    there = left([marker]).get(marker, [])
    return [each for each in there if "naughty" in each and " serve " not in each]


@pytest.mark.fault(19, "http")
@pytest.mark.fault(20, "http")
@pytest.mark.fault(29, "http")
def test_nobody_is_left_of_the_sidecar_however_and_whenever_it_ends() -> None:
    go_round(cycles("serve", scaled(5, 100), ENDS), scaled(5, 10), turn)


def killed_as_it_starts_a_server(marker: str) -> None:
    """Kill a sidecar as soon as it has a new child, which need not be known to its guardian yet."""
    with serving("--", *brood(("stays", "early")), env=environment(marker)) as sidecar:
        children = Path(f"/proc/{sidecar.pid}/task/{sidecar.pid}/children")
        before = children.read_text()
        with sidecar.client() as client:
            client.send(post(INITIALIZE))
            end = time.monotonic() + 20.0
            while children.read_text() == before:
                assert time.monotonic() < end
            sidecar.process.kill()
            sidecar.process.wait()


@pytest.mark.fault(20, "http")
def test_a_sidecar_that_is_killed_while_it_starts_a_server_leaves_nobody() -> None:
    markers = [f"killed-{os.getpid()}-{number}" for number in range(scaled(3, 30))]
    for marker in markers:
        killed_as_it_starts_a_server(marker)
    until(lambda: not left(markers), LIFE, lambda: str(left(markers)))


BROODS = brood(("stays",))


@pytest.mark.fault(29, "http")
def test_nobody_is_left_of_a_session_that_is_over_while_the_sidecar_lives() -> None:
    marker = f"over-{os.getpid()}"
    env = environment(marker)
    limits = keys(limits={"sessions": 4, "idle_seconds": 2})
    with serving(*limits, "--", *BROODS, env=env) as sidecar:
        before = sidecar.left
        ended, crashed = sidecar.begin(), sidecar.begin()
        assert sidecar.ask(request("DELETE", "/mcp", ended)).status == 204
        assert b"SIGKILL" in sidecar.post(call(2, "end"), crashed).body
        assert b"SIGKILL" in sidecar.ask(modern(2, "end")).body
        *_, last = [sidecar.begin() for _ in range(6)]  # more than there is room for
        with sidecar.client() as client:
            client.send(get("/mcp/sse", STREAM))
            client.until(b"session_id=")
            client.reset()
        with sidecar.client() as client:
            client.send(post(INITIALIZE, "Accept: application/json"))
            client.reset()
        assert sidecar.ask(modern(3)).status == 200
        assert sidecar.post(call(3), last).status == 200
        assert servers(marker)
        # The last of them are ended because nobody uses them.
        until(lambda: not servers(marker), 3.0 + 2 * LIFE, lambda: str(left([marker])))
        sidecar.settles(before)
    assert not left([marker])
