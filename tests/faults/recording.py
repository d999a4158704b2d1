"""Those who write a ledger, as real processes: the wrapper and the sidecar before a command.

A call must be answered as ever, and soon, whatever becomes of the ledger. In the end each says how
many calls it could not record.
"""

import itertools
import json
import re
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Literal, Protocol

from tests.faults.processes import until
from tests.faults.routes import META, NAUGHTY, answer_of, stateless
from tests.faults.sidecar import ROOT, Sidecar, compact, get, serving, soon
from tests.wire import Wire

Way = Literal["stdio", "http"]
WAYS: tuple[Way, ...] = ("stdio", "http")
SERVER = ("--", sys.executable, str(NAUGHTY), "puppet")
CREDENTIALS = ("Authorization: Bearer a-secret", "X-Api-Key: key-secret", "Cookie: a=c-secret")
LOST = re.compile(r"calls that the ledger did not record: (\d+)")


class Recorder(Protocol):
    """Somebody who has calls made and writes a ledger."""

    pid: int
    calls: int

    def call(self, tool: str = "get", **arguments: object) -> bytes:
        """Make a call, and return its answer, which must come soon."""

    def log(self) -> list[str]:
        """Return what it has said so far, but for its lines about requests."""


class Written(Wire):
    """The wrapper."""

    def __init__(self, ledger: str, *options: str) -> None:
        own = [sys.executable, "-m", "proxy", "--log-format", "json", "--ledger", ledger]
        super().__init__([*own, *options, *SERVER], cwd=ROOT)
        self.pid = self.process.pid
        self.ids = itertools.count(100_000)
        self.calls = 0

    def call(self, tool: str = "get", **arguments: object) -> bytes:
        self.calls += 1
        with soon():
            [line] = self.answer(_call(next(self.ids), tool, arguments) + b"\n")
        return line

    def log(self) -> list[str]:
        lines = [json.loads(line) for line in bytes(self.errors).splitlines()]
        return [line["message"] for line in lines]


class Served:
    """The sidecar, asked by a client of the stateless era."""

    def __init__(self, sidecar: Sidecar) -> None:
        self.sidecar = sidecar
        self.pid = sidecar.pid
        self.ids = itertools.count(100_000)
        self.calls = 0

    def call(self, tool: str = "get", **arguments: object) -> bytes:
        self.calls += 1
        raw = _call(next(self.ids), tool, arguments, _meta=META)
        with soon():
            return answer_of(self.sidecar.post(raw, *stateless(tool), *CREDENTIALS))

    def log(self) -> list[str]:
        return [line["message"] for line in tuple(self.sidecar.said) if "message" in line]

    def lost(self) -> int:
        """Return how many calls were not recorded, as its figures have it."""
        figures = self.sidecar.ask(get("/metrics")).body.decode()
        [count] = re.findall(r"^mcp_abridge_unrecorded_calls_total (\d+)", figures, re.MULTILINE)
        return int(count)


@contextmanager
def recording(way: Way, ledger: str, *options: str, lost: int | None = 0) -> Iterator[Recorder]:
    """Start one; once it has ended in order, so many calls must not have been recorded.

    None: as many as it was asked to make.
    """
    options = options if "--rules" in options else ("--rules", "none", *options)
    recorder: Written | Served
    if way == "stdio":
        with Written(ledger, *options) as recorder:
            recorder.call()
            yield recorder
            assert recorder.close().code == 0
    else:
        with serving("--ledger", ledger, *options, *SERVER) as sidecar:
            recorder = Served(sidecar)
            recorder.call()
            yield recorder
    said = [int(found[1]) for line in recorder.log() if (found := LOST.fullmatch(line))]
    assert said == ([recorder.calls] if lost is None else [lost] if lost else [])


def stopped(recorder: Recorder) -> list[str]:
    """Wait until recording has stopped; return all that was said of the ledger."""
    until(lambda: any("recording stopped" in line for line in recorder.log()))
    return [line for line in recorder.log() if "ledger" in line]


def _call(id: int, tool: str, arguments: dict[str, object], **params: object) -> bytes:
    held = {"name": tool, "arguments": arguments, **params}
    return compact({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": held})
