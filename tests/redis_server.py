"""A real Redis on a free port of loopback, that keeps nothing on disk; skipped without one."""

import shutil
import signal
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.conformance.suite import free_port

PROGRAM = "redis-server"


class RedisServer:
    """One that can be stopped and started again, halted and let go on, with the same port.

    Raises OSError with its output if it does not start.
    """

    def __init__(self, port: int, *options: str) -> None:
        self.port = port
        self.url = f"redis://127.0.0.1:{port}/0"
        self._options = options
        self._process: subprocess.Popen[str] | None = None
        self.start()

    def start(self) -> None:
        """Start it, and return when it takes connections."""
        command = [PROGRAM, "--port", str(self.port), "--bind", "127.0.0.1"]
        never = ["--save", "", "--appendonly", "no"]
        process = subprocess.Popen(
            [*command, *never, *self._options],
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.STDOUT,
            text=True,
        )
        self._process = process
        assert process.stdout is not None
        output = ""
        # It writes a few lines more, far fewer than a pipe holds.
        while "Ready to accept connections" not in (line := process.stdout.readline()):
            output += line
            if not line:
                self.stop()
                raise OSError(output)

    def stop(self) -> None:
        """End it at once, with everything that it held."""
        if self._process is None:
            return
        self._process.kill()
        self._process.wait()
        if self._process.stdout is not None:
            self._process.stdout.close()
        self._process = None

    @contextmanager
    def halted(self) -> Iterator[None]:
        """Have it do nothing for a while: its connections stay open, and nothing is answered."""
        assert self._process is not None
        self._process.send_signal(signal.SIGSTOP)
        try:
            yield
        finally:
            self._process.send_signal(signal.SIGCONT)


@contextmanager
def redis_server(*options: str) -> Iterator[RedisServer]:
    """Start a Redis for a test, and end it."""
    if shutil.which(PROGRAM) is None:
        pytest.skip(f"{PROGRAM} is not installed (on Debian and Ubuntu: apt install {PROGRAM})")
    server = RedisServer(free_port(), *options)
    try:
        yield server
    finally:
        server.stop()
