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

# What starts a server has one thread; whatever runs the tests may have more.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")


class Started(Shutdown):
    """An Ending and the child it is for."""

    child: ChildProcess


@pytest.fixture
def said(tmp_path: Path) -> Callable[[], str]:
    return lambda: (tmp_path / "log").read_text()


@pytest.fixture
def begin(tmp_path: Path, said: object) -> Iterator[Callable[..., Started]]:
    with ExitStack() as ends:
        log = os.open(tmp_path / "log", os.O_WRONLY | os.O_CREAT)
        ends.callback(os.close, log)

        def start(script: str | None, cause: str | None = None) -> Started:
            server = child.stillborn() if script is None else child.spawn(["/bin/sh", "-c", script])
            outlet = PipeWriter(server.stdin, lambda: None)
            ends.callback(os.close, server.stdout)
            ends.callback(os.close, server.stderr)
            ends.callback(outlet.close)
            ends.callback(server.release)
            ends.callback(lambda: until(server.ended))
            ends.callback(server.signal, signal.SIGKILL)
            ending = Started(server, outlet, PipeReader(server.stdout), Log(descriptor=log), cause)
            ending.child = server
            return ending

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
    begin: Callable[..., Started], script: str | None, code: int, reason: str, unexpected: bool
) -> None:
    ending = begin(script, None if script else "no such command")
    until(ending.child.ended)
    ending.report("output over")
    ending.wait()
    assert (ending.code, ending.reason, ending.unexpected) == (code, reason, unexpected)


def test_the_end_of_a_client_closes_the_stdin_of_the_server(
    begin: Callable[..., Started],
) -> None:
    ending = begin("cat; exit 5")
    ending.report("client ended")
    ending.report("output over")
    ending.wait()
    assert ending.code == 5


def test_what_ignores_everything_is_killed_and_that_is_said(
    begin: Callable[..., Started], said: Callable[[], str]
) -> None:
    ending = begin("trap '' TERM; echo up; while :; do sleep 1; done")
    assert os.read(ending.child.stdout, 9) == b"up\n"
    ending.report("output over")
    ending.refuse(2, "bad rules")
    ending.wait()
    assert ending.child.code == -signal.SIGKILL
    assert (ending.code, ending.reason, ending.unexpected) == (2, "bad rules", False)
    assert said().splitlines() == [
        "mcp-abridge: warning: the server did not end by itself: sent it SIGTERM",
        "mcp-abridge: warning: the server did not end on SIGTERM: sent it SIGKILL",
    ]


@pytest.mark.parametrize("idle", [True, False])
def test_output_that_never_ends_is_given_up_once_everybody_within_reach_has_ended(
    begin: Callable[..., Started], idle: bool
) -> None:
    ending = begin("exit 0")
    until(ending.child.ended)
    # Nobody tells that the output is over: the reader waits for a process out of reach, or failed.
    ending._stdout.idle = idle
    ending.refuse(2, "bad rules")
    ending.wait()
    assert ending.code == 2


@pytest.mark.parametrize("event", ["client began", "client ended"])
def test_a_client_that_has_asked_or_will_not_is_not_waited_for(
    begin: Callable[..., Started], event: str
) -> None:
    ending = begin(None, "no such command")
    ending.report(event)
    ending.wait_for_question()
    assert ending._has_input is (event == "client began")
    assert ending._input_ended is (event == "client ended")


def test_what_the_server_leaves_in_its_group_is_ended_and_the_guardian_let_go(
    begin: Callable[..., Started],
) -> None:
    ending = begin("trap '' TERM; sleep 600 >/dev/null 2>&1 & exit 0")
    until(ending.child.ended)
    ending.report("output over")
    ending.wait()
    assert ending.child.signal(0)
    ending.sweep()
    assert ending.child.guardian is None
    until(lambda: not ending.child.signal(0))
    assert ending.code == 0
