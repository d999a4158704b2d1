"""Sees to it that nobody is left of the proxy or of its servers, however they end (Linux).

Servers leave as many processes behind as they can. Whatever has the marker of a cycle in its
environment is left of it: the proxy itself, its guardian and workers, servers and their
descendants, whatever they have done to their groups and parents.
"""

import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import NamedTuple

import pytest

from tests.faults.processes import LIFE, until
from tests.faults.routes import modern
from tests.faults.scale import scaled
from tests.faults.sidecar import INITIALIZE, ROOT, Client, keys, post, request, serving
from tests.faults.sidecar import call as posted
from tests.faults.wrapper import NAUGHTY, OWN, call

NOISE = 2.0  # seconds that a machine may be busy with something else
ANSWERED = 30.0  # seconds
MOMENTS = 0.4  # seconds from the start within which an end comes, where it comes early
MARK = "ORPHANS_OF"
MASKS = ("SigCgt", "SigBlk")
ENDS = ("SIGTERM", "SIGINT", "SIGHUP", "SIGKILL", "crash")


class Cycle(NamedTuple):
    """A start and an end: what ends, when, and what the server does about it.

    `moment` is in seconds after the start, None for once a first call was answered.
    """

    marker: str
    end: str
    moment: float | None
    how: tuple[str, ...]


def cycles(name: str, count: int, ends: tuple[str, ...]) -> Iterator[Cycle]:
    """Yield cycles of every kind in turn, at moments that are random but the same each time."""
    random = Random(name)
    for number in range(count):
        end = ends[number % len(ends)]
        # What crashes must have begun.
        early = end != "crash" and random.random() < 0.5
        moment = random.random() * MOMENTS if early else None
        how = random.choice(((), ("stays",), ("stays", "early")))
        yield Cycle(f"{name}-{os.getpid()}-{number}", end, moment, how)


def brood(*how: str) -> list[str]:
    """Return the command of a server whose descendants ignore EOF, TERM, INT and HUP."""
    return [sys.executable, "-IS", str(NAUGHTY), "broods", *how]


def survivors(marker: str) -> list[str]:
    """Return who lives of a marker, by number and command."""
    lines = []
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        with suppress(OSError):
            # That of a process that is no more, but was not waited for yet, is empty.
            if f"{MARK}={marker}".encode() in (entry / "environ").read_bytes().split(b"\0"):
                command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
                lines.append(f"{entry.name} {command}")
    return lines


def servers(marker: str) -> list[str]:
    """Return the servers that live, with all that they have begotten."""
    return [each for each in survivors(marker) if "naughty" in each and " serve " not in each]


def nobody_is_left(marker: str, since: float) -> None:
    until(lambda: not survivors(marker), since + LIFE + NOISE - time.monotonic(), lambda: marker)


def may_be_lost(pid: int) -> bool:
    """Return True while a SIGINT goes to Python's own handler, before a line of ours has run.

    It raises KeyboardInterrupt, which Python loses if it comes within a callback of an import.
    """
    status = Path(f"/proc/{pid}/status").read_text()
    handlers, mask = (int(re.findall(rf"{name}:\s(\w+)", status)[0], 16) for name in MASKS)
    return bool(handlers & ~mask & 1 << signal.SIGINT - 1)


def go_round(turns: Iterator[Cycle], most: int, turn: Callable[[Cycle], float]) -> None:
    """Do `turn` for each cycle, at most so many at the same time.

    It starts a proxy, brings its end about, waits for it, and returns when it could know of that.
    """

    def whole(cycle: Cycle) -> None:
        try:
            nobody_is_left(cycle.marker, turn(cycle))
        finally:
            for each in survivors(cycle.marker):
                with suppress(ProcessLookupError):
                    os.kill(int(each.partition(" ")[0]), signal.SIGKILL)

    with ThreadPoolExecutor(most) as pool:
        list(pool.map(whole, turns))


def turn_of_wrapper(cycle: Cycle) -> float:
    """Start the wrapper and end it, or its server."""
    with subprocess.Popen(
        [*OWN, "--rules", "none", "--", *brood(*cycle.how)],
        cwd=ROOT,
        env={**os.environ, MARK: cycle.marker},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        bufsize=0,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(call(1))
            if cycle.moment is None:
                process.stdout.readline()
            else:
                time.sleep(cycle.moment)
            if cycle.end == "crash":
                process.stdin.write(call(2, "end"))
            elif cycle.end == "EOF":
                process.stdin.close()
            else:
                while cycle.end == "SIGINT" and may_be_lost(process.pid):
                    time.sleep(0.001)
                process.send_signal(signal.Signals[cycle.end])
            # One that is still starting, and so has one thread, cannot know of its end yet.
            while process.poll() is None and len(os.listdir(f"/proc/{process.pid}/task")) == 1:
                time.sleep(0.01)
            ended = time.monotonic()
            process.wait(ANSWERED)
        finally:
            process.kill()
    return ended


def turn_of_sidecar(cycle: Cycle) -> float:
    """Start the sidecar, have it asked in every way, and end it, or its servers."""
    drains = keys(limits={"drain_seconds": 0.5})
    number = signal.SIGTERM if cycle.end == "crash" else signal.Signals[cycle.end]
    with serving(*drains, "--", *brood(*cycle.how), env={MARK: cycle.marker}) as sidecar:
        # Three sessions, and a call of none.
        clients = [Client(sidecar.port) for _ in range(4)]
        for client, raw in zip(clients, (modern(1), *[post(INITIALIZE)] * 3), strict=True):
            client.send(raw)
        answers = [client.answer() for client in clients if cycle.moment is None]
        assert {each.status for each in answers} <= {200}, answers
        clients.pop().reset()
        time.sleep(cycle.moment or 0)
        if cycle.end == "crash":
            sessions = [f"Mcp-Session-Id: {each.one('mcp-session-id')}" for each in answers[1:]]
            for raw in (*(post(posted(2, "end"), each) for each in sessions), modern(2, "end")):
                assert b"SIGKILL" in sidecar.ask(raw).body
            until(lambda: not servers(cycle.marker), LIFE)
        ended = time.monotonic()
        sidecar.process.send_signal(number)
        code = sidecar.process.wait(20.0)
        assert code == (-signal.SIGKILL if cycle.end == "SIGKILL" else 0)
        for client in clients:
            client.socket.close()
    return ended


@pytest.mark.fault(20, "stdio")
def test_no_process_survives_the_wrapper_however_and_whenever_it_ends() -> None:
    go_round(cycles("stdio", scaled(6, 200), ("EOF", *ENDS)), scaled(6, 10), turn_of_wrapper)


@pytest.mark.fault(19, "http")
@pytest.mark.fault(20, "http")
@pytest.mark.fault(29, "http")
def test_no_process_survives_the_sidecar_however_and_whenever_it_ends() -> None:
    ends = tuple(end for end in ENDS if end != "SIGHUP")  # without a terminal, it ends no sidecar
    go_round(cycles("serve", scaled(5, 100), ends), scaled(5, 10), turn_of_sidecar)


@pytest.mark.fault(29, "http")
def test_no_process_survives_its_session_while_the_sidecar_lives() -> None:
    marker = f"over-{os.getpid()}"
    limits = keys(limits={"sessions": 4, "idle_seconds": 2})
    with serving(*limits, "--", *brood("stays"), env={MARK: marker}) as sidecar:
        before = sidecar.resources
        ended, crashed = sidecar.begin(), sidecar.begin()
        assert sidecar.ask(request("DELETE", "/mcp", ended)).status == 204
        assert b"SIGKILL" in sidecar.post(posted(2, "end"), crashed).body
        assert b"SIGKILL" in sidecar.ask(modern(2, "end")).body
        *_, last = [sidecar.begin() for _ in range(6)]  # more than there is room for
        with sidecar.client() as client:
            client.send(post(INITIALIZE, "Accept: application/json"))
            client.reset()
        assert sidecar.ask(modern(3)).status == 200
        assert sidecar.post(posted(3), last).status == 200
        assert servers(marker)
        # The last of them are ended because nobody uses them.
        until(lambda: not servers(marker), 3.0 + 2 * LIFE, lambda: str(survivors(marker)))
        sidecar.settles(before)
    assert not survivors(marker)
