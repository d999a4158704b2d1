"""Starts sidecars from one process that has read their modules: each would take half a second anew.

That process forks another one for each, which runs the program as if it had just been started: in a
session of its own, with its own streams, arguments and variables (Linux).
"""

import atexit
import json
import os
import select
import socket
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache

from mcp_abridge.system import platform

from tests.wrapped import ROOT, START

PROGRAM = (sys.executable, "-c", START)
# What differs from test to test, and is read whenever it is used. Others may be read at an import.
READ_LATE = {"PYTEST_CURRENT_TEST", "XDG_STATE_HOME"}

PARENT = f"""
import json, os, pkgutil, socket, sys
sys.path.insert(0, {str(ROOT / "proxy")!r})
import aiohttp.web, prometheus_client, sqlite3
from mcp_abridge.cli import main
import mcp_abridge.ruleset.loading, mcp_abridge.transports.sidecar
for package in (mcp_abridge.ruleset.loading, mcp_abridge.transports.sidecar):
    for module in pkgutil.walk_packages(package.__path__, package.__name__ + "."):
        __import__(module.name)

def forked():
    connection, waiting = socket.socket(fileno=int(sys.argv[1])), []
    while True:
        raw, streams, *_ = socket.recv_fds(connection, 1 << 18, 3)
        if not raw:
            os._exit(0)
        waiting = [each for each in waiting if os.waitpid(each, os.WNOHANG) == (0, 0)]
        if not (own := os.fork()):
            break
        waiting.append(own)
        for each in streams:
            os.close(each)
    connection.close()
    stdout, stderr, report = streams
    # Between the two stands who waits for the end, and reports it.
    if child := os.fork():
        os.close(stdout)
        os.close(stderr)
        os.write(report, b"%d\\n" % child)
        os.write(report, b"%d\\n" % os.waitpid(child, 0)[1])
        os._exit(0)
    os.setsid()
    os.dup2(stdout, 1)
    os.dup2(stderr, 2)
    for each in streams:
        os.close(each)
    return json.loads(raw)

arguments, folder, variables = forked()
for name, number in {{"stdout": 1, "stderr": 2}}.items():
    stream = open(number, "w", errors="backslashreplace", closefd=False)
    setattr(sys, name, stream)
    setattr(sys, f"__{{name}}__", stream)
os.chdir(folder)
os.environ.clear()
os.environ.update(variables)
sys.argv[1:] = arguments
sys.exit(main())
"""


def start(command: Sequence[str], env: Mapping[str, str] | None) -> "subprocess.Popen[bytes]":
    """Start a sidecar without a terminal, wherever the tests run."""
    if env is None and tuple(command[: len(PROGRAM)]) == PROGRAM and _can_fork():
        return Forked(command[len(PROGRAM) :])
    return subprocess.Popen(
        command,
        env={**os.environ, **(env or {})},
        stdin=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        **platform.DETACHED,
    )


class Forked(subprocess.Popen[bytes]):
    """A sidecar that was started in this way, and is used as any other process."""

    def __init__(self, arguments: Sequence[str]) -> None:
        self._child_created = False  # for the destructor: nobody here waits for it
        self.args, self.stdin, self.stdout = list(arguments), None, None
        self.returncode = None
        request = json.dumps([arguments, os.getcwd(), dict(os.environ)]).encode()
        (errors, stderr), (self._report, report) = os.pipe(), os.pipe()
        socket.send_fds(_parent(), [request], [1, stderr, report])
        os.close(stderr)
        os.close(report)
        self.stderr = open(errors, "rb")  # noqa: SIM115  # whoever reads it closes it
        self.pid = int(self._line())

    def _line(self) -> bytes:
        line = b""
        while not line.endswith(b"\n"):
            more = os.read(self._report, 1)
            if not more:
                raise ChildProcessError(f"nobody reports on it: {self.args!r}")
            line += more
        return line

    def poll(self) -> int | None:
        return self._ended(0.0)

    def _ended(self, seconds: float | None) -> int | None:
        """Return the exit code, once it has ended, within so many seconds."""
        if self.returncode is None and select.select([self._report], [], [], seconds)[0]:
            self.returncode = os.waitstatus_to_exitcode(int(self._line()))
            os.close(self._report)
        return self.returncode

    def wait(self, timeout: float | None = None) -> int:
        code = self._ended(timeout)
        if code is None:
            raise subprocess.TimeoutExpired(self.args, timeout or 0.0)
        return code

    def send_signal(self, sig: int) -> None:
        if self.poll() is None:
            os.kill(self.pid, sig)


def _can_fork() -> bool:
    """Return True if a sidecar that is started now would be no other one when forked."""
    return sys.platform == "linux" and _variables() == _variables_of_parent()


def _variables() -> dict[str, str]:
    return {name: text for name, text in os.environ.items() if name not in READ_LATE}


@cache
def _variables_of_parent() -> dict[str, str]:
    return _variables()


@cache
def _parent() -> socket.socket:
    """Start the process that forks; it ends with this one."""
    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    with theirs:
        command = [sys.executable, "-c", PARENT, str(theirs.fileno())]
        process = subprocess.Popen(
            command, stdin=subprocess.DEVNULL, pass_fds=[theirs.fileno()], **platform.DETACHED
        )

    def end() -> None:
        ours.close()
        process.wait()

    atexit.register(end)
    return ours
