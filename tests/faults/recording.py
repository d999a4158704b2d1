"""Those who write a ledger, as real processes: the wrapper and the sidecar before a command.

A call must be answered as ever, and soon, whatever becomes of the ledger. In the end each says how
many calls it could not record.
"""

import itertools
import json
import re
from collections.abc import Iterator
from contextlib import contextmanager

import pytest

from tests.faults.asking import STARTS, Client
from tests.faults.processes import until
from tests.faults.routes import Local
from tests.faults.rows import Way
from tests.faults.sidecar import call, get, soon
from tests.faults.wrapper import naughty

WAYS: tuple[Way, ...] = ("stdio", "http")
SERVER = naughty("puppet")
CREDENTIALS = ("Authorization: Bearer a-secret", "X-Api-Key: key-secret", "Cookie: a=c-secret")
LOST = re.compile(r"calls that the ledger did not record: (\d+)")


def by_ways(row: int) -> pytest.MarkDecorator:
    """Have a test show a row by each way."""
    marked = [pytest.param(way, marks=pytest.mark.fault(row, way)) for way in WAYS]
    return pytest.mark.parametrize("way", marked)


class Recorder:
    """Somebody who has calls made and writes a ledger."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.ids = itertools.count(100_000)
        self.calls = 0

    def call(self, tool: str = "get", **arguments: object) -> bytes:
        self.calls += 1
        with soon():
            return self.client.ask(call(next(self.ids), tool, arguments=arguments))

    def log(self) -> list[str]:
        """Return what it has said so far, but for its lines about requests."""
        lines = [json.loads(line) for line in self.client.errors.splitlines()]
        return [line["message"] for line in lines if "message" in line]

    def lost(self) -> int:
        """Return how many calls were not recorded, as the figures of a sidecar have it."""
        assert isinstance(self.client, Local)
        figures = self.client.sidecar.ask(get("/metrics")).body.decode()
        [count] = re.findall(r"^mcp_abridge_unrecorded_calls_total (\d+)", figures, re.MULTILINE)
        return int(count)

    def stopped(self) -> list[str]:
        """Wait until recording has stopped; return all that was said of the ledger."""
        until(lambda: any("recording stopped" in line for line in self.log()))
        return [line for line in self.log() if "ledger" in line]


@contextmanager
def recording(way: Way, ledger: str, *options: str, lost: int | None = 0) -> Iterator[Recorder]:
    """Start one; once it has ended in order, so many calls must not have been recorded.

    None: as many as it was asked to make.
    """
    with STARTS[way](*options, "--ledger", ledger, server=SERVER) as client:
        if isinstance(client, Local):
            client.headers += CREDENTIALS
        recorder = Recorder(client)
        recorder.call()
        yield recorder
    said = [int(found[1]) for line in recorder.log() if (found := LOST.fullmatch(line))]
    assert said == ([recorder.calls] if lost is None else [lost] if lost else [])
