"""Sees to it that nobody is left of the wrapper, however and whenever it or its server ends."""

import os
import subprocess
import sys
import time

import pytest

from tests.faults.orphans import Cycle, brood, cycles, environment, go_round, heard, left
from tests.faults.routes import Bridge, Naughty
from tests.faults.scale import scaled
from tests.faults.wrapper import ROOT, call

ANSWERED = 30.0  # seconds


def turn(cycle: Cycle) -> float:
    """Start the wrapper and end it, or its server."""
    command = [sys.executable, "-m", "proxy", "--rules", "none", "--ledger", "off", "--"]
    with subprocess.Popen(
        [*command, *brood(cycle.how)],
        cwd=ROOT,
        env=environment(cycle.marker),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    ) as process:
        assert process.stdin is not None
        assert process.stdout is not None
        try:
            process.stdin.write(call(1))
            process.stdin.flush()
            if cycle.moment is None:
                process.stdout.readline()
            else:
                time.sleep(cycle.moment)
            if cycle.signal is not None:
                process.send_signal(cycle.signal)
            elif cycle.end == "crash":
                process.stdin.write(call(2, "end"))
                process.stdin.flush()
            else:
                process.stdin.close()
            ended = heard(process)
            process.wait(ANSWERED)
        finally:
            process.kill()
    return ended


@pytest.mark.fault(20, "stdio")
def test_nobody_is_left_of_the_wrapper_however_and_whenever_it_ends() -> None:
    go_round(cycles("stdio", scaled(12, 200)), scaled(6, 10), turn)


@pytest.mark.fault(20, "stdio")
def test_before_a_url_there_is_nobody_who_could_be_left(monkeypatch: pytest.MonkeyPatch) -> None:
    marker = f"url-{os.getpid()}"
    for name, value in environment(marker).items():
        monkeypatch.setenv(name, value)
    with Naughty() as server, Bridge(server) as bridge:
        bridge.works()
        [alone] = left([marker])[marker]
        assert alone.startswith(f"{bridge.process.pid} ")
        bridge.process.kill()
        bridge.process.wait(ANSWERED)
        assert left([marker]) == {}
