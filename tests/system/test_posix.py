"""How a server is started, and signals arrive; how its group ends is shown in tests/faults."""

import os
import signal
import subprocess
import sys
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack

import pytest
from mcp_abridge.system import posix
from mcp_abridge.system.posix import ChildProcess

from tests.faults.processes import until

# What starts a server has one thread; whatever runs the tests may have more.
pytestmark = pytest.mark.filterwarnings("ignore:.*multi-threaded.*:DeprecationWarning")

Spawn = Callable[..., ChildProcess]
BUSY = """
import hashlib, os, signal, threading
from mcp_abridge.system import posix
posix.hold_signals()
posix.listen(posix.absent(), os._exit)
threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGTERM)).start()
hashlib.pbkdf2_hmac("sha256", b"", b"", 1 << 30)
"""
"""Listens to signals while its main thread is in C code for minutes."""


@pytest.fixture
def spawn() -> Iterator[Spawn]:
    with ExitStack() as ends:

        def start(command: list[str], mask: Iterable[int] = ()) -> ChildProcess:
            started = posix.spawn(command, mask)

            def end() -> None:
                started.release()
                started.signal(signal.SIGKILL)
                until(started.ended)
                for descriptor in (started.stdin, started.stdout, started.stderr):
                    os.close(descriptor)

            ends.callback(end)
            return started

        yield start


def test_it_holds_no_pipe_but_its_own(spawn: Spawn) -> None:
    first = spawn(["cat"])
    spawn(["cat"])
    os.close(first.stdin)
    # It would never see the end of its input if the second one held the other end of it.
    until(first.ended)
    first.stdin = os.open(os.devnull, os.O_WRONLY)


def test_signals_that_the_proxy_blocks_are_not_blocked_in_the_server(spawn: Spawn) -> None:
    before = signal.pthread_sigmask(signal.SIG_BLOCK, ())
    try:
        mask = posix.hold_signals()
        assert signal.SIGTERM in signal.pthread_sigmask(signal.SIG_BLOCK, ())
        started = spawn(["/bin/sh", "-c", "read line"], mask)
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
    assert started.signal(signal.SIGTERM)
    until(started.ended)
    assert started.code == -signal.SIGTERM


@pytest.mark.parametrize("command", [["no-such-command-anywhere"], [os.devnull]])
def test_a_command_that_cannot_be_started_is_an_error_and_leaves_no_descriptor(
    command: list[str],
) -> None:
    lowest = os.dup(0)
    os.close(lowest)
    with pytest.raises((FileNotFoundError, PermissionError)):
        posix.spawn(command)
    again = os.dup(0)
    os.close(again)
    assert again == lowest


def test_a_signal_that_python_ignores_is_not_ignored_by_the_server(spawn: Spawn) -> None:
    # A shell cannot take back that SIGPIPE was ignored when it was started, so it shows.
    started = spawn(["/bin/sh", "-c", "kill -s PIPE $$; echo"])
    until(started.ended)
    assert started.code == -signal.SIGPIPE


def test_a_signal_arrives_while_no_handler_of_python_can_run() -> None:
    assert subprocess.run([sys.executable, "-c", BUSY], timeout=30).returncode == signal.SIGTERM
