"""What is made of the end of a server, with real ones; whole sessions stand in tests/faults."""

import os
import signal
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path

import pytest

from proxy.transports.log import Log
from proxy.transports.stdio import child
from proxy.transports.stdio.child import ChildProcess
from proxy.transports.stdio.pipes import PipeReader, PipeWriter
from proxy.transports.stdio.shutdown import Shutdown
from tests.faults.processes import until

Begin = Callable[..., tuple[ChildProcess, Shutdown]]


@pytest.fixture
def begin(tmp_path: Path) -> Iterator[Begin]:
    with ExitStack() as ends:
        log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
        ends.callback(os.close, log)

        def start(script: str | None, cause: str | None = None) -> tuple[ChildProcess, Shutdown]:
            server = child.stillborn() if script is None else child.spawn(["/bin/sh", "-c", script])
            outlet = PipeWriter(server.stdin, lambda: None)
            ends.callback(os.close, server.stdout)
            ends.callback(os.close, server.stderr)
            ends.callback(outlet.close)
            ends.callback(server.release)
            ends.callback(lambda: until(server.ended))
            ends.callback(server.signal, signal.SIGKILL)
            stdout = PipeReader(server.stdout)
            return server, Shutdown(server, outlet, stdout, Log(descriptor=log), cause)

        yield start


@pytest.mark.parametrize(
    ("script", "code", "reason", "unexpected"),
    [
        (None, 127, "no such command", False),
        ("exit 0", 0, "the server ended with exit code 0", False),
        ("exit 3", 3, "the server ended with exit code 3", True),
        ("kill -s KILL $$", 137, "the server was ended by SIGKILL", True),
        ("kill -s USR1 $$", 128 + signal.SIGUSR1, "the server was ended by SIGUSR1", True),
    ],
)
def test_the_exit_code_is_the_server_s_and_the_reason_says_it(
    begin: Begin, script: str | None, code: int, reason: str, unexpected: bool
) -> None:
    server, ending = begin(script, None if script else "no such command")
    until(server.ended)
    ending.report("output over")
    ending.wait()
    assert (ending.code, ending.reason, ending.unexpected) == (code, reason, unexpected)


def test_what_ignores_everything_is_killed_and_that_is_said(begin: Begin, tmp_path: Path) -> None:
    server, ending = begin("trap '' TERM; echo up; while :; do sleep 1; done")
    assert os.read(server.stdout, 9) == b"up\n"
    ending.report("output over")
    ending.refuse(2, "bad rules")
    ending.wait()
    assert server.code == -signal.SIGKILL
    assert (ending.code, ending.reason, ending.unexpected) == (2, "bad rules", False)
    assert (tmp_path / "log").read_text().splitlines() == [
        "mcp-abridge: warning: the server did not end by itself: sent it SIGTERM",
        "mcp-abridge: warning: the server did not end on SIGTERM: sent it SIGKILL",
    ]


@pytest.mark.parametrize("idle", [True, False])
def test_output_that_never_ends_is_given_up_once_everybody_within_reach_has_ended(
    begin: Begin, idle: bool
) -> None:
    server, ending = begin("exit 0")
    until(server.ended)
    # Nobody tells that the output is over: the reader waits for a process out of reach, or failed.
    ending._stdout.idle = idle
    ending.refuse(2, "bad rules")
    ending.wait()
    assert ending.code == 2


@pytest.mark.parametrize("event", ["client began", "client ended"])
def test_a_client_that_has_asked_or_will_not_is_not_waited_for(begin: Begin, event: str) -> None:
    _, ending = begin(None, "no such command")
    ending.report(event)
    ending.wait_for_question()
    assert ending._has_input is (event == "client began")
    assert ending._input_ended is (event == "client ended")


def test_what_the_server_leaves_in_its_group_is_ended_and_the_guardian_let_go(
    begin: Begin,
) -> None:
    server, ending = begin("trap '' TERM; sleep 600 >/dev/null 2>&1 & exit 0")
    until(server.ended)
    ending.report("output over")
    ending.wait()
    assert server.signal(0)
    ending.sweep()
    assert server.guardian is None
    until(lambda: not server.signal(0))
    assert ending.code == 0
