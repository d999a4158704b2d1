"""Real processes in groups of their own: started, signalled, ended, never left behind."""

import os
import signal
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

import pytest

from proxy.transports.stdio import child
from proxy.transports.stdio.child import ChildProcess
from tests.faults.processes import until

STUBBORN = """
import os, signal
for number in (signal.SIGTERM, signal.SIGHUP, signal.SIGINT):
    signal.signal(number, signal.SIG_IGN)
os.fork()
os.write(1, b"up\\n")
while True:
    signal.pause()
"""


Spawn = Callable[..., ChildProcess]


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    with ExitStack() as ends:

        def start(command: list[str], mask: Iterable[int] = ()) -> ChildProcess:
            started = child.spawn(command, mask)

            def end() -> None:
                started.release()
                started.signal(signal.SIGKILL)
                until(started.ended)
                for descriptor in (started.stdin, started.stdout, started.stderr):
                    os.close(descriptor)

            ends.callback(end)
            return started

        yield start


def python(script: str, *words: str) -> list[str]:
    return [sys.executable, "-c", script, *words]


def test_a_server_has_our_environment_and_folder_a_session_and_three_pipes(
    spawn: Spawn, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ABRIDGE_TEST", "ü 1")
    script = (
        "import os,sys; print(os.environ['ABRIDGE_TEST'], os.getcwd(), sys.argv[1], input());"
        "print(os.getsid(0), os.getpgid(0), file=sys.stderr)"
    )
    started = spawn(python(script, "ä b"))
    os.write(started.stdin, b"line\n")
    until(started.ended)
    assert os.read(started.stdout, 999).decode() == f"ü 1 {os.getcwd()} ä b line\n"
    assert os.read(started.stderr, 999).decode() == f"{started.pid} {started.pid}\n"
    assert started.code == 0


def test_it_holds_no_pipe_but_its_own(spawn: Spawn) -> None:
    first = spawn(["cat"])
    spawn(["cat"])
    os.close(first.stdin)
    # It would never see the end of its input if the second one held the other end of it.
    until(first.ended)
    first.stdin = os.open(os.devnull, os.O_WRONLY)


def test_signals_that_we_hold_back_are_not_held_back_for_the_server(spawn: Spawn) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        mask = child.hold_signals()
        assert signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        started = spawn(["/bin/sh", "-c", "read line"], mask)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert started.signal(signal.SIGTERM)
    until(started.ended)
    assert started.code == -signal.SIGTERM


@pytest.mark.parametrize("command", [["no-such-command-anywhere"], [os.devnull]])
def test_what_cannot_be_started_is_an_error_and_leaves_no_descriptor(command: list[str]) -> None:
    lowest = os.dup(0)
    os.close(lowest)
    with pytest.raises((FileNotFoundError, PermissionError)):
        child.spawn(command)
    again = os.dup(0)
    os.close(again)
    assert again == lowest


@pytest.mark.parametrize(
    ("script", "code"),
    # A shell cannot take back that SIGPIPE was ignored when it was started, so it shows.
    [("exit 3", 3), ("kill -s KILL $$", -9), ("kill -s PIPE $$; echo", -signal.SIGPIPE)],
)
def test_its_exit_code_is_known_once_it_has_ended(script: str, code: int, spawn: Spawn) -> None:
    started = spawn(["/bin/sh", "-c", script])
    until(started.ended)
    assert started.code == code


def test_a_signal_reaches_the_whole_group(spawn: Spawn) -> None:
    started = spawn(python(STUBBORN))
    assert os.read(started.stdout, 3) == b"up\n"
    assert os.read(started.stdout, 3) == b"up\n"
    assert started.signal(signal.SIGTERM)
    assert not started.ended()
    started.signal(signal.SIGKILL)
    until(started.ended)
    assert os.read(started.stdout, 3) == b"", "the other one still holds the pipe"
    until(lambda: not started.signal(0))


def test_a_guardian_that_was_released_is_gone_and_the_group_lives(spawn: Spawn) -> None:
    started = spawn(["/bin/sh", "-c", "read line"])
    assert started.guardian is not None
    guardian = started.guardian.pid
    os.kill(guardian, 0)
    started.release()
    with pytest.raises(ProcessLookupError):
        os.kill(guardian, 0)
    assert not started.ended()


def test_the_guardian_ends_even_a_group_that_ignores_everything() -> None:
    # Somebody between us and the group, so that there is somebody to be killed.
    script = (
        "import os, sys; from proxy.transports.stdio import child;"
        f"one = child.spawn({python(STUBBORN)!r});"
        "assert os.read(one.stdout, 6); assert one.guardian;"
        "print(one.pid, flush=True); sys.stdin.read()"
    )
    between = child.spawn(python(script))
    group = int(os.read(between.stdout, 20))
    os.killpg(group, 0)
    assert between.pid is not None
    os.kill(between.pid, signal.SIGKILL)
    until(between.ended)
    until(lambda: not ChildProcess(0, 0, 0, group).signal(0))
    for descriptor in (between.stdin, between.stdout, between.stderr):
        os.close(descriptor)
