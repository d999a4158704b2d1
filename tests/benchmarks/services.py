"""What listens: the benchmark server over HTTP, and the sidecar before a URL or a command."""

import signal
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.benchmarks.commands import ROOT, environment, options
from tests.conformance.suite import accepting

PATIENCE = 15.0  # seconds for a service to end when it is asked to


def web_server(port: int, server: Sequence[str] = ()) -> list[str]:
    """Return the command of the benchmark server over HTTP, with these options."""
    return [sys.executable, "-m", "tests.benchmarks.web_server", f"--port={port}", *server]


def sidecar(port: int, rules: str, *upstream: str) -> list[str]:
    """Return the command of a sidecar before a URL, or before a command after `--`."""
    listen = f"127.0.0.1:{port}"
    serve = [sys.executable, "-m", "proxy", "serve", "--listen", listen]
    return [*serve, *options(rules), *upstream]


def remote(rules: str, url: str) -> list[str]:
    """Return the command of the wrapper before a URL."""
    return [sys.executable, "-m", "proxy", "run", *options(rules), url]


def url(port: int) -> str:
    return f"http://127.0.0.1:{port}/mcp"


@contextmanager
def service(
    command: Sequence[str], port: int, more: Mapping[str, str] | None = None
) -> Iterator["subprocess.Popen[bytes]"]:
    """Have a command running that listens at a port; what it logs goes to a file, as in use.

    `more` is added to its environment. Raises tests.conformance.suite.Unusable where it does not
    start.
    """
    with TemporaryDirectory(prefix="mcp-abridge-bench-") as folder:
        log = Path(folder) / "log"
        with log.open("wb") as said:
            process = subprocess.Popen(
                command,
                stdin=subprocess.DEVNULL,
                stdout=said,
                stderr=said,
                env=environment() | dict(more or {}),
                cwd=ROOT,
                start_new_session=True,
            )
        try:
            accepting(process, port, log)
            yield process
        finally:
            process.send_signal(signal.SIGTERM)
            try:
                process.wait(PATIENCE)
            except subprocess.TimeoutExpired:
                process.kill()
                process.wait()
