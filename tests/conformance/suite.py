"""Starts what the suite is run against, and runs the suite against it."""

import os
import signal
import socket
import subprocess
import time
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from random import SystemRandom

from tests.conformance import checks
from tests.conformance.checks import Run
from tests.conformance.install import suite

ROOT = Path(__file__).resolve().parents[2]
START = 30  # seconds until a server must accept
STOP = 15  # seconds until it must have ended
RUN = 600  # seconds for one run of the suite, which itself gives each scenario 30


class Unusable(Exception):
    """A server or the suite did not do its work: what happened, and the end of what it said."""


def free_port() -> int:
    """Return a port that no server of another test run gets: port 0 gives higher ones."""
    while True:
        port = SystemRandom().randrange(20_000, 32_000)
        with socket.socket() as probe, suppress(OSError):
            probe.bind(("127.0.0.1", port))
            return port


@contextmanager
def serving(
    command: Sequence[str], port: int, log: Path, env: Mapping[str, str]
) -> Iterator["subprocess.Popen[bytes]"]:
    """Have a server running that accepts connections at a port of 127.0.0.1; it writes to `log`.

    Raises Unusable if it does not start, or does not end when asked to.
    """
    with log.open("wb") as output:
        server = subprocess.Popen(
            command,
            cwd=ROOT,
            env=env,
            stdin=subprocess.DEVNULL,
            stdout=output,
            stderr=subprocess.STDOUT,
            start_new_session=True,
        )
    try:
        accepting(server, port, log)
        yield server
        server.send_signal(signal.SIGTERM)
        try:
            server.wait(STOP)
        except subprocess.TimeoutExpired:
            raise Unusable(failure(command, f"still there {STOP} s after SIGTERM", log)) from None
    finally:
        with suppress(ProcessLookupError):  # if it has ended, and nothing of its group is left
            os.killpg(server.pid, signal.SIGKILL)
        server.wait()


def accepting(server: subprocess.Popen[bytes], port: int, log: Path) -> None:
    """Return once a connection is accepted. Raises Unusable."""
    command: Sequence[str] = server.args  # type: ignore[assignment]  # given as a list above
    until = time.monotonic() + START
    while time.monotonic() < until:
        if server.poll() is not None:
            raise Unusable(failure(command, f"ended with {server.returncode} at its start", log))
        try:
            with socket.create_connection(("127.0.0.1", port), timeout=1):
                return
        except OSError:
            time.sleep(0.02)
    raise Unusable(failure(command, f"accepts nothing at port {port} after {START} s", log))


def run(url: str, revision: str, folder: Path) -> Run:
    """Run every scenario of a revision of the protocol against a URL; `folder` keeps the results.

    Raises Unusable if there are none.
    """
    folder.mkdir(parents=True)
    log = folder / "suite.log"
    options = ["--suite", "all", "--spec-version", revision, "--output-dir", str(folder)]
    command = [*suite(), "server", "--url", url, *options]
    start = time.monotonic()
    try:
        with log.open("wb") as output:
            subprocess.run(
                command,
                stdin=subprocess.DEVNULL,
                stdout=output,
                stderr=subprocess.STDOUT,
                timeout=RUN,
                check=False,
            )
        return checks.read(folder, time.monotonic() - start)
    except subprocess.TimeoutExpired:
        raise Unusable(failure(command, f"no end after {RUN} s", log)) from None
    except LookupError as none:
        raise Unusable(failure(command, str(none), log)) from None


def failure(command: Sequence[str], problem: str, log: Path) -> str:
    lines = log.read_text(errors="replace").splitlines()[-20:]
    return "\n".join([f"{problem}: {' '.join(command)}", *(f"  {line}" for line in lines)])
