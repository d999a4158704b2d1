"""The ledger when its disk fails, rows 44 and 45, and its contents (Linux).

Everywhere the same: each call is answered as ever and soon, what was recorded before is there, and
one line of the log says why recording stopped, and in the end how many calls were not recorded.
"""

import itertools
import os
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager, suppress
from pathlib import Path

import pytest
from mcp_abridge.storage.ledger_totals import rows

from tests.conftest import HOME
from tests.faults.asking import Client, Start, each_way, on_stdio
from tests.faults.naughty import result
from tests.faults.processes import until
from tests.faults.routes import Local
from tests.faults.sidecar import ENDED, call, soon
from tests.faults.wrapper import Wrapped, naughty
from tests.ledgers import filled, query
from tests.platforms import on_posix

SERVER = naughty("puppet")
LOST_CALLS = re.compile(r"(?:warning: )?calls that the ledger did not record: (\d+)")


class Recorder:
    """A proxy that writes a ledger, and its client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self.ids = itertools.count(100_000)
        self.call()

    def call(self, tool: str = "get", **arguments: object) -> bytes:
        with soon():
            return self.client.ask(call(next(self.ids), tool, arguments=arguments))

    def reason_to_stop(self, ledger: str) -> str:
        """Wait until recording has stopped; return the reason that the log has once."""
        until(lambda: "recording stopped" in str(self.client.log()))
        [line] = [each for each in self.client.log() if "ledger" in each]
        match = re.fullmatch(
            f"warning: ledger {re.escape(ledger)}: recording stopped: (.*); calls go on", line
        )
        assert match, line
        return match[1]


@contextmanager
def recording(ledger: str, *options: str, lost_count: int = 0) -> Iterator[Recorder]:
    """Start one; once it has ended in order, so many calls must not have been recorded."""
    with on_stdio(*options, "--ledger", ledger, server=SERVER) as client:
        yield Recorder(client)
    counts = [int(match[1]) for each in client.log() if (match := LOST_CALLS.fullmatch(each))]
    assert counts == ([lost_count] if lost_count else [])


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "ledger.sqlite3")


def make_pipe(path: str) -> None:
    os.mkfifo(path)


# Not even root may create a file in /sys. Files that are no ledgers stand in
# tests/storage/test_ledger.py.
NOWHERE = r"\[Errno \d+\] (Permission denied|Operation not permitted|Read-only .*): .*"
NO_FILE = "not a regular file; --ledger takes the path of one"
PLACES = [
    pytest.param("/sys/ledger.sqlite3", str, NOWHERE, marks=on_posix("no /sys")),
    pytest.param("pipe", make_pipe, NO_FILE, marks=on_posix("no pipes that are files")),
    ("folder", os.mkdir, NO_FILE),
]


@pytest.mark.fault(44, "stdio")
@pytest.mark.parametrize(("name", "make", "reason"), PLACES)
def test_a_ledger_that_cannot_be_written_stops_and_calls_go_on(
    tmp_path: Path, name: str, make: Callable[[str], object], reason: str
) -> None:
    bad = str(tmp_path / name)
    make(bad)
    with recording(bad, lost_count=21) as recorder:
        assert re.fullmatch(reason, recorder.reason_to_stop(bad))
        for _ in range(20):
            recorder.call()


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


@on_posix("no disk that can be mounted")
@pytest.mark.fault(44, "stdio")
def test_a_full_disk_loses_no_earlier_record(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "400k") as disk:
        path = str(disk / "ledger.sqlite3")
        with recording(path, lost_count=20) as recorder:
            until(lambda: os.path.exists(path) and len(rows(path)) == 1)
            fill(disk / "film")
            for number in range(20):
                recorder.call(f"{number} " + "x" * 180)
            why = recorder.reason_to_stop(path)
            assert re.fullmatch("(database or disk is full|disk I/O error)", why)
        (disk / "film").unlink()
        assert query(path, "PRAGMA integrity_check") == [("ok",)]
        assert [(each.name, each.calls) for each in rows(path)] == [("get", 1)]
        with recording(path) as recorder:
            recorder.call("after")
        assert {(each.name, each.calls) for each in rows(path)} == {("get", 2), ("after", 1)}


@pytest.mark.fault(44, "stdio")
def test_a_ledger_that_is_locked_for_too_long_stops_and_calls_go_on(path: str) -> None:
    filled(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        with recording(path, lost_count=2) as recorder:
            assert recorder.reason_to_stop(path) == "database is locked"
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
CREDENTIALS = ("Authorization: Bearer a-secret", "X-Api-Key: key-secret", "Cookie: a=c-secret")


@pytest.fixture
def home(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Return a folder that all of a process's usual places are in."""
    home = tmp_path / "home"
    home.mkdir()
    for name in (
        *HOME,
        "TMPDIR",
        "TEMP",
        "TMP",
        "APPDATA",
        "LOCALAPPDATA",
        "XDG_STATE_HOME",
        "XDG_CACHE_HOME",
        "XDG_CONFIG_HOME",
    ):
        monkeypatch.setenv(name, str(home))
    return home


@each_way(45)
def test_names_and_sizes_are_on_disk_and_no_text(start: Start, home: Path, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(PAGES)
    path = home / "mcp-abridge" / "ledger.sqlite3"
    options = ("--ledger", str(path), "-v", "--rules", str(tmp_path / "rules.yaml"))
    with start(*options, server=SERVER) as client:
        if isinstance(client, Local):
            client.headers += CREDENTIALS
        recorder = Recorder(client)
        for tool, text in TEXTS.items():
            answer = recorder.call(tool, says=text.hex(), key="argument-secret")
            assert b"-secret" in answer
        until(lambda: path.exists() and len(rows(str(path))) == 4)
        open_ones = {each.name: each.read_bytes() for each in home.rglob("*") if each.is_file()}
    # The wrapper shares hashes of calls there, with a secret beside them.
    open_ones.pop(f"{path.name}.secret", None)
    assert set(open_ones) == {path.name, f"{path.name}-shm", f"{path.name}-wal"}
    closed = {each.name for each in home.rglob("*") if each.is_file()}
    if isinstance(client, Wrapped) or ENDED == 0:
        assert closed - {f"{path.name}.secret"} == {path.name}
    raw = b"".join([*open_ones.values(), path.read_bytes()])
    assert b"secret" not in raw
    assert all(tool.encode() in raw for tool in TEXTS)


@pytest.mark.fault(45, "stdio")
def test_without_a_ledger_nothing_is_written(home: Path) -> None:
    with recording("off") as recorder:
        recorder.call()
    assert list(home.iterdir()) == []
