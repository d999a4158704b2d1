"""The ledger when its disk fails, rows 44 and 45, and its contents (Linux).

Everywhere the same: each call is answered as ever and soon, what was recorded before is there, and
one line of the log says why recording stopped, and in the end how many calls were not recorded.
"""

import itertools
import json
import os
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

from proxy.storage.ledger import rows
from tests.faults.asking import STARTS, Client
from tests.faults.naughty import result
from tests.faults.processes import until
from tests.faults.routes import Local
from tests.faults.rows import Way
from tests.faults.sidecar import call, get, soon
from tests.faults.wrapper import naughty
from tests.ledgers import filled, query

WAYS: tuple[Way, ...] = ("stdio", "http")
SERVER = naughty("puppet")
CREDENTIALS = ("Authorization: Bearer a-secret", "X-Api-Key: key-secret", "Cookie: a=c-secret")
LOST_CALLS = re.compile(r"calls that the ledger did not record: (\d+)")


def by_ways(row: int) -> pytest.MarkDecorator:
    """Have a test show a row by each way."""
    marked = [pytest.param(way, marks=pytest.mark.fault(row, way)) for way in WAYS]
    return pytest.mark.parametrize("way", marked)


class Recorder:
    """A proxy that writes a ledger, and its client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.ids = itertools.count(100_000)
        self.calls = 0

    def call(self, tool: str = "get", **arguments: object) -> bytes:
        self.calls += 1
        with soon():
            return self.client.ask(call(next(self.ids), tool, arguments=arguments))

    def log(self) -> list[str]:
        """Return the messages of its log so far, but for lines about requests."""
        lines = [json.loads(line) for line in self.client.errors.splitlines()]
        return [line["message"] for line in lines if "message" in line]

    def lost_calls(self) -> int:
        """Return how many calls were not recorded, as the figures of a sidecar have it."""
        assert isinstance(self.client, Local)
        figures = self.client.sidecar.ask(get("/metrics")).body.decode()
        [count] = re.findall(r"^mcp_abridge_unrecorded_calls_total (\d+)", figures, re.MULTILINE)
        return int(count)

    def ledger_lines(self) -> list[str]:
        """Wait until recording has stopped; return all that was said of the ledger."""
        until(lambda: any("recording stopped" in line for line in self.log()))
        return [line for line in self.log() if "ledger" in line]


@contextmanager
def recording(
    way: Way, ledger: str, *options: str, lost_count: int | None = 0
) -> Iterator[Recorder]:
    """Start one; once it has ended in order, so many calls must not have been recorded.

    None: as many as it was asked to make.
    """
    with STARTS[way](*options, "--ledger", ledger, server=SERVER) as client:
        if isinstance(client, Local):
            client.headers += CREDENTIALS
        recorder = Recorder(client)
        recorder.call()
        yield recorder
    counts = [int(match[1]) for line in recorder.log() if (match := LOST_CALLS.fullmatch(line))]
    assert counts == (
        [recorder.calls] if lost_count is None else [lost_count] if lost_count else []
    )


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "ledger.sqlite3")


NO_FILE = "not a regular file; --ledger takes the path of one"
# Not even root may create a file in /sys. Files that are no ledgers stand in
# tests/storage/test_ledger.py.
NOWHERE = r"\[Errno \d+\] (Permission denied|Operation not permitted|Read-only .*): .*"
PLACES: dict[str, tuple[Callable[[str], None], str]] = {
    "/sys/ledger.sqlite3": (lambda path: None, NOWHERE),
    "folder": (os.mkdir, NO_FILE),
    "pipe": (os.mkfifo, NO_FILE),
}


@by_ways(44)
def test_a_ledger_that_cannot_be_written_stops_and_calls_go_on(tmp_path: Path, way: Way) -> None:
    for name, (make, reason) in PLACES.items():
        bad = str(tmp_path / name)
        make(bad)
        with recording(way, bad, lost_count=None) as recorder:
            [line] = recorder.ledger_lines()
            assert re.fullmatch(f"ledger {bad}: recording stopped: {reason}; calls go on", line)
            for _ in range(20):
                recorder.call()
            if way == "http":
                assert recorder.lost_calls() >= 1
            assert recorder.ledger_lines() == [line]


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a file system of this size, which goes with the test."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    completed = subprocess.run(mount, capture_output=True, check=False)
    if completed.returncode:
        pytest.skip("no right to mount a small disk; limits on files are tried elsewhere")
    try:
        yield folder
    finally:
        subprocess.run(["umount", "--lazy", str(folder)], check=True)


def fill(film: Path) -> None:
    """Write until the disk is full."""
    with open(film, "wb", 0) as file, suppress(OSError):
        while True:
            file.write(bytes(1_000))


@by_ways(44)
def test_a_full_disk_loses_no_earlier_record(tmp_path: Path, way: Way) -> None:
    with small_disk(tmp_path / "disk", "400k") as disk:
        path = str(disk / "ledger.sqlite3")
        with recording(way, path, lost_count=20) as recorder:
            until(lambda: os.path.exists(path) and len(rows(path)) == 1)
            fill(disk / "film")
            for number in range(20):
                recorder.call(f"{number} " + "x" * 180)
            [line] = recorder.ledger_lines()
            why = "(database or disk is full|disk I/O error)"
            assert re.fullmatch(f"ledger {path}: recording stopped: {why}; calls go on", line)
        (disk / "film").unlink()
        assert query(path, "PRAGMA integrity_check") == [("ok",)]
        assert [(each.name, each.calls) for each in rows(path)] == [("get", 1)]
        with recording(way, path) as recorder:
            recorder.call("after")
        assert {(each.name, each.calls) for each in rows(path)} == {("get", 2), ("after", 1)}


@pytest.mark.fault(44, "stdio")
@pytest.mark.fault(44, "http")
def test_a_ledger_that_is_locked_for_too_long_stops_and_calls_go_on(path: str) -> None:
    filled(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other, ExitStack() as open:
        other.execute("BEGIN IMMEDIATE")
        recorders = [open.enter_context(recording(way, path, lost_count=None)) for way in WAYS]
        for recorder in recorders * 10:
            recorder.call()
        for recorder in recorders:
            assert recorder.ledger_lines() == [
                f"ledger {path}: recording stopped: database is locked; calls go on"
            ]
            recorder.call()
        other.execute("ROLLBACK")
        assert [each.name for each in rows(path)] == ["before"]


# Row 45: names and sizes are all that is ever written, so there is no content to be redacted.

PAGES = """\
version: 1
rules:
- {tools: pages, response: [{paginate: {limit: 1}}]}
- {tools: fails, response: [{jmespath: abs(@)}]}
"""
TEXTS = {
    "pages": result(b"ID", '["first-secret","second-secret"]'),
    "fails": result(b"ID", '{"a":"failing-secret"}'),
    "refuses": b'{"jsonrpc":"2.0","id":ID,"error":{"code":-1,"message":"refusing-secret"}}',
}


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that all of a process's usual places are in."""
    home = tmp_path / "home"
    home.mkdir()
    for name in ("HOME", "TMPDIR", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"):
        monkeypatch.setenv(name, str(home))
    return home


@by_ways(45)
def test_names_and_sizes_are_on_disk_and_no_text(home: Path, tmp_path: Path, way: Way) -> None:
    (tmp_path / "rules.yaml").write_text(PAGES)
    path = home / "mcp-abridge" / "ledger.sqlite3"
    with recording(way, str(path), "-v", "--rules", str(tmp_path / "rules.yaml")) as recorder:
        for tool, text in TEXTS.items():
            answer = recorder.call(tool, says=text.hex(), key="argument-secret")
            assert b"-secret" in answer
        until(lambda: path.exists() and len(rows(str(path))) == 4)
        open_ones = {each.name: each.read_bytes() for each in home.rglob("*") if each.is_file()}
    names = {path.name, f"{path.name}-shm", f"{path.name}-wal"}
    assert set(open_ones) == names
    assert {each for each in home.rglob("*") if each.is_file()} == {path}
    raw = b"".join([*open_ones.values(), path.read_bytes()])
    assert b"secret" not in raw
    assert all(tool.encode() in raw for tool in TEXTS)


@pytest.mark.fault(45, "stdio")
@pytest.mark.fault(45, "http")
def test_without_a_ledger_nothing_is_written(home: Path) -> None:
    for way in WAYS:
        with recording(way, "off") as recorder:
            recorder.call()
    assert list(home.iterdir()) == []
