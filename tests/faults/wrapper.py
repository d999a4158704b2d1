"""The wrapper as a real process, a raw client of it, and what must hold whatever happens.

`wrapped` is the oracle of every fault over stdio: each request has exactly one answer in the end,
and no process is left; `sound` adds, for faults that a session survives, that the next call works
and that no descriptor or thread is left.
"""

import json
import os
import re
import signal
import sys
import time
from collections import Counter
from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path

from tests.faults import sidecar
from tests.faults.naughty import result
from tests.faults.processes import (
    LIFE,
    STILL,
    Process,
    command_line,
    descendants,
    processes,
    still,
    until,
)
from tests.faults.sidecar import ROOT, log_messages
from tests.wire import SECONDS, Wire

if sys.platform == "win32":
    from tests.windows.system import Writer

NAUGHTY = Path(__file__).with_name("naughty.py")
WITHOUT_POLL = """
import select, sys
del select.poll
from mcp_abridge.cli import main
sys.exit(main())
"""
"""Starts the proxy as on a platform whose pipes cannot be polled."""

START = ("-c", WITHOUT_POLL) if os.environ.get("WITHOUT_POLL") else ("-m", "mcp_abridge")
OWN = (sys.executable, *START, "--log-format", "json", "--ledger", "off")
_ENDS = 400  # bytes at either end of a line that tell whose it is
_MANY = 300  # lines, more than everybody between could hold
_VALUE = rb' ?("[^"]{0,99}"|[^,}" ]{1,99})'
_ID = re.compile(
    rb'^[^{]*\{ *"jsonrpc": ?"2\.0", *"id":%b ?,|, ?"id":%b ?\}\s*$' % (_VALUE, _VALUE)
)
_CANCEL = re.compile(rb'"requestId":' + _VALUE)


class Wrapped(Wire):
    """A raw client of the wrapper, which counts questions and answers."""

    def __init__(self, command: Sequence[str]) -> None:
        self.requests: Counter[bytes] = Counter()
        self.answered: Counter[bytes] = Counter()
        self.cancelled: set[bytes] = set()
        self.ids = count(10_000)
        super().__init__(command, cwd=ROOT)

    def write(self, raw: bytes, seconds: float = SECONDS, reading: bool = True) -> None:
        for start, end in messages(raw):
            if b'"method"' in start + end:
                self.requests.update(ids(start, end))
                self.cancelled.update(_CANCEL.findall(start))
        super().write(raw, seconds, reading)

    def _take(self, size: int) -> bytes:
        raw = super()._take(size)
        for start, end in messages(raw):
            answer = b'"method"' not in start and (b'"result"' in start or b'"error"' in start)
            # One that was cut is no message.
            if answer and end.rstrip().endswith(b"}"):
                self.answered.update(ids(start, end))
        return raw

    def each_answered_once(self) -> None:
        """See to it that each request has one answer; what was cancelled may have none."""
        for id, times in self.requests.items():
            there = self.answered[id]
            assert there == times or (id in self.cancelled and there <= times), (
                f"request {id!r} was answered {there} times and asked {times} times"
            )

    def messages(self, raw: bytes) -> list[bytes]:
        """Make a request; return the lines up to its answer, without their ends."""
        [id] = ids(raw[:_ENDS], raw[-_ENDS:])
        before = self.answered[id]
        self.write(raw + b"\n")
        lines: list[bytes] = []
        while self.answered[id] == before:
            lines.append(self.line())
            assert lines[-1], f"it ended: {bytes(self.errors)!r}"
        return [line.removesuffix(b"\n") for line in lines]

    def ask(self, raw: bytes) -> bytes:
        """Make a request; return its one answer."""
        [answer] = self.messages(raw)
        return answer

    def log(self) -> list[str]:
        return log_messages(bytes(self.errors))

    @property
    def holds(self) -> Process:
        return Process(self.process)

    def groups(self) -> set[int]:
        """Return the process groups that the wrapper has started: the server's, the guardian's."""
        if sys.platform == "win32":
            return descendants(self.process.pid)
        return {group for _, parent, group in processes() if parent == self.process.pid}

    def server_pid(self) -> int:
        [pid_of_server] = [
            pid
            for pid, parent, group in processes()
            if parent == self.process.pid and pid == group and "naughty" in command_line(pid)
        ]
        return pid_of_server

    def works(self) -> None:
        id = next(self.ids)
        assert self.ask(sidecar.call(id)) == result(b"%d" % id)

    def pour(self, line: bytes) -> int:
        """Write a line again and again, and read nothing; return the bytes that were taken."""
        if sys.platform == "win32":
            writer = self.pouring = Writer(self.stdin, line * _MANY)
            return still(lambda: writer.position)
        size, last = 0, time.monotonic()
        while time.monotonic() - last < STILL:
            try:
                size += os.write(self.stdin, line[size % len(line) :])
                last = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        self.poured = size
        return size

    def pour_out(self, line: bytes) -> int:
        """Write the rest of the last line that was begun; return how many lines there were."""
        if sys.platform == "win32":
            count = self.pouring.shorten(len(line))
            self._finish(self.pouring, time.monotonic() + SECONDS, reading=True)
        else:
            count = self.poured // len(line) + 1
            super().write(line[self.poured % len(line) :])
        self.requests[ids(line, b"")[0]] += count
        return count

    @contextmanager
    def sound(self) -> Iterator[None]:
        """See to it that the test leaves nothing behind, and that the next call works."""
        self.works()
        before = self.holds.descriptors, self.holds.threads
        yield
        self.works()
        until(lambda: self.holds.descriptors <= before[0] and self.holds.threads <= before[1])

    def in_memory(self, most: int) -> AbstractContextManager[None]:
        """See to it that the test costs at most so many bytes of memory."""
        return self.holds.in_memory(most)

    def rest(self) -> list[bytes]:
        return list(iter(self.line, b""))


def messages(raw: bytes) -> Iterator[tuple[bytes, bytes]]:
    """Yield the first and last bytes of each message in some lines, also of those in batches."""
    for line in raw.split(b"\n"):
        try:
            each = json.loads(line) if line[:1] == b"[" else []
        except (ValueError, RecursionError):
            each = []
        for one in [json.dumps(message).encode() for message in each] or [line]:
            yield one[:_ENDS], one[-_ENDS:]


def ids(start: bytes, end: bytes) -> list[bytes]:
    """Return the id of a message, as it is spelled, if it stands first or last."""
    match = _ID.match(start) or _ID.search(end)
    return [match[1] or match[2]] if match else []


@contextmanager
def wrapped(
    fault: str, *arguments: str, options: tuple[str, ...] = (), once: bool = True
) -> Iterator[Wrapped]:
    """Start the wrapper and make a first call; in the end see to it that nothing is left open.

    If the server itself answers more than `once`, so does the wrapper.
    """
    with Wrapped(command(fault, *arguments, options=options)) as wire:
        wire.write(call(1))
        while not answers(wire.line(), 1):
            pass
        groups = wire.groups()
        assert groups
        yield wire
        until(lambda: not groups & {group for _, _, group in processes()}, LIFE)
        if once:
            wire.each_answered_once()
        assert b"Traceback" not in wire.errors, wire.errors.decode(errors="replace")


def command(fault: str, *arguments: str, options: tuple[str, ...] = ()) -> list[str]:
    own = [] if "--rules" in options else ["--rules", "none"]
    return [*OWN, *own, *options, *naughty(fault, *arguments)]


def naughty(*fault: str) -> tuple[str, ...]:
    """Return the end of a command line that stands before the naughty server."""
    return ("--", sys.executable, str(NAUGHTY), *fault)


def call(id: int, name: str = "ok") -> bytes:
    return sidecar.call(id, name) + b"\n"


def ok(id: int, text: str = "ok") -> bytes:
    return result(b"%d" % id, text) + b"\n"


def answers(line: bytes, id: int) -> bool:
    """Return True if a line is the server's usual answer to a call."""
    assert line, "the wrapper ended before it answered"
    return line.strip(b"\xef\xbb\xbf\r\n") == ok(id)[:-1]


def codes(how: str) -> tuple[int, str]:
    """Return the exit code for a server that ends so, and how that is said."""
    if how.isdigit():
        return int(how), f"the server ended with exit code {how}"
    return 128 + getattr(signal, how), f"the server was ended by {how}"
