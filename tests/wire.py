"""A client without an SDK: raw lines to and from a spawned command, with deadlines."""

import os
import selectors
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NamedTuple, Self

import orjson

CHUNK = 1 << 16
SECONDS = 60.0
PAUSE = 0.01
GROUP: dict[str, Any] = {"start_new_session": True}

if sys.platform == "win32":
    from tests.windows.system import SUSPENDED, Reader, Writer, adopted

    GROUP = SUSPENDED


class Ended(NamedTuple):
    """How a command ended: exit code (negative: a signal), what of stdout was not read, stderr."""

    code: int
    rest: bytes
    stderr: bytes


class Wire:
    """Speak raw lines with a command, in a process group of its own that is killed on leaving.

    Every wait has a deadline and raises TimeoutError with what was there and the end of stderr.
    stdout is read only while a method waits, so that a client which stops reading can be played;
    stderr is always drained.

    >>> import sys
    >>> with Wire([sys.executable, "-c", "print(input()[::-1])"]) as wire:
    ...     wire.write(b"abc\\n")
    ...     wire.line().rstrip(), wire.close()
    (b'cba', Ended(code=0, rest=b'', stderr=b''))
    """

    def __init__(
        self,
        command: Sequence[str],
        env: Mapping[str, str] | None = None,
        cwd: Path | None = None,
    ) -> None:
        self.process = subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            env=env,
            cwd=cwd,
            bufsize=0,
            **GROUP,
        )
        process = self.process
        self.pipes = [pipe for pipe in (process.stdin, process.stdout, process.stderr) if pipe]
        self.stdin, self.stdout, stderr = (pipe.fileno() for pipe in self.pipes)
        if sys.platform == "win32":
            self.job = adopted(process)
            self.reader = Reader(self.stdout)
        else:
            os.set_blocking(self.stdin, False)
            os.set_blocking(self.stdout, False)
        self.buffer = bytearray()
        self.searched = 0
        self.at_end = False
        self.errors = bytearray()
        self.drain = threading.Thread(target=self._drain, args=(stderr,))
        self.drain.start()

    def _drain(self, stderr: int) -> None:
        while chunk := os.read(stderr, CHUNK):
            self.errors += chunk

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.kill()

    def write(self, raw: bytes, seconds: float = SECONDS, reading: bool = True) -> None:
        """Write all of `raw`, as it is; meanwhile read ahead what comes, unless told not to."""
        end = time.monotonic() + seconds
        rest = memoryview(raw)
        if sys.platform == "win32":
            return self._finish(Writer(self.stdin, raw), end, reading)
        with selectors.DefaultSelector() as ready:
            ready.register(self.stdin, selectors.EVENT_WRITE)
            if reading and not self.at_end:
                ready.register(self.stdout, selectors.EVENT_READ)
            while rest:
                events = ready.select(max(0.0, end - time.monotonic()))
                if not events:
                    raise self._late(f"{len(rest)} of {len(raw)} bytes not taken", seconds)
                for key, _ in events:
                    if key.fd == self.stdin:
                        rest = rest[os.write(self.stdin, rest) :]
                    elif not self._read():
                        ready.unregister(self.stdout)

    if sys.platform == "win32":

        def _finish(self, writer: Writer, end: float, reading: bool) -> None:
            while writer.is_alive():
                if time.monotonic() > end:
                    raise self._late(
                        f"only {writer.position} of {writer.size} bytes taken", SECONDS
                    )
                if not reading or self.at_end or not self._wait(time.monotonic() + PAUSE):
                    writer.join(PAUSE)
            writer.check()

    def _read(self) -> bool:
        chunk = os.read(self.stdout, CHUNK)
        self.at_end = not chunk
        self.buffer += chunk
        return bool(chunk)

    def _wait(self, end: float) -> bool:
        """Read once more, or say False at the deadline."""
        if sys.platform == "win32":
            chunk = self.reader.read(max(0.0, end - time.monotonic()))
            self.at_end = chunk == b""
            self.buffer += chunk or b""
            return chunk is not None
        with selectors.DefaultSelector() as ready:
            ready.register(self.stdout, selectors.EVENT_READ)
            if not ready.select(max(0.0, end - time.monotonic())):
                return False
        self._read()
        return True

    def line(self, seconds: float = SECONDS) -> bytes:
        """Read one line with its newline; at the end what is left, then b''."""
        end = time.monotonic() + seconds
        while True:
            at = self.buffer.find(b"\n", self.searched)
            if at >= 0 or self.at_end:
                return self._take(at + 1 if at >= 0 else len(self.buffer))
            self.searched = len(self.buffer)
            if not self._wait(end):
                raise self._late(f"no line, only {bytes(self.buffer[-500:])!r}", seconds)

    def _take(self, size: int) -> bytes:
        raw = bytes(self.buffer[:size])
        del self.buffer[:size]
        self.searched = 0
        return raw

    def answer(self, request: bytes, seconds: float = SECONDS) -> list[bytes]:
        """Write one request's line; read the lines up to its answer, which is the last of them.

        Raises EOFError when stdout ends before.
        """
        id = orjson.loads(request)["id"]
        with suppress(BrokenPipeError):  # the end of stdout tells of it
            self.write(request, seconds)
        end = time.monotonic() + seconds
        lines: list[bytes] = []
        while line := self.line(max(0.0, end - time.monotonic())):
            lines.append(line)
            if answers(line, id):
                return lines
        self.drain.join(1)  # what a process wrote to its stderr may come after its stdout's end
        raise EOFError(f"no answer to {id!r} before the end: {lines!r}{self._stderr_tail()}")

    def send(self, method: str, number: int | str | None = None, **params: Any) -> list[bytes]:
        """Write a request and read up to its answer; without a number, a notification."""
        message: dict[str, Any] = {"jsonrpc": "2.0", "method": method}
        if number is not None:
            message["id"] = number
        if params:
            message["params"] = params
        raw = orjson.dumps(message) + b"\n"
        if number is not None:
            return self.answer(raw)
        self.write(raw)
        return []

    def shut_stdin(self) -> None:
        """Let the command see the end of its input, and go on reading what it says."""
        self.pipes[0].close()

    def close(self, seconds: float = SECONDS) -> Ended:
        """Shut stdin, read to the end, wait for the exit; then kill what is left of the group."""
        end = time.monotonic() + seconds
        self.shut_stdin()
        while not self.at_end:
            if not self._wait(end):
                raise self._late("stdout still open", seconds)
        try:
            self.process.wait(max(0.0, end - time.monotonic()))
        except subprocess.TimeoutExpired:
            raise self._late("not ended", seconds) from None
        self.kill()
        return Ended(self.process.returncode, self._take(len(self.buffer)), bytes(self.errors))

    def group_alive(self) -> bool:
        """Tell whether any process of the command's group is left, the command itself included."""
        self.process.poll()
        if sys.platform == "win32":
            return self.job.signal(0)
        try:
            os.killpg(self.process.pid, 0)
        except ProcessLookupError:
            return False
        except PermissionError:  # macOS says so of a group of zombies
            return False
        return True

    def kill(self) -> None:
        """Kill the whole group at once and close the pipes; harmless when all is over."""
        if self.group_alive():
            if sys.platform == "win32":
                self.job.signal(1)
            else:
                os.killpg(self.process.pid, signal.SIGKILL)
        self.process.wait()
        self.drain.join(SECONDS)
        for pipe in self.pipes:
            pipe.close()

    def _late(self, what: str, seconds: float) -> TimeoutError:
        return TimeoutError(f"{what} after {seconds:g} seconds{self._stderr_tail()}")

    def _stderr_tail(self) -> str:
        return f"; stderr: {bytes(self.errors[-2000:]).decode(errors='replace')}"


def answers(line: bytes, id: int | str) -> bool:
    """Tell whether a line is the result or error of the request with this id."""
    try:
        message = orjson.loads(line)
    except orjson.JSONDecodeError:
        return False
    return isinstance(message, dict) and "method" not in message and message.get("id") == id
