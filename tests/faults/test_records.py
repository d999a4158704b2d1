"""What becomes of the ledger where its disk fails, rows 44 and 45, and what it holds (Linux).

Everywhere the same: each call is answered as ever and soon, what was recorded before is there, and
one line of the log says why recording stopped.
"""

import os
import re
import sqlite3
import subprocess
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from pathlib import Path

import pytest

from proxy.storage.ledger import rows
from tests.faults.naughty import result
from tests.faults.processes import until
from tests.faults.recording import WAYS, recording
from tests.faults.rows import Way
from tests.ledgers import BAD as NO_LEDGERS
from tests.ledgers import filled, query

DAY = 86_400
EITHER = pytest.mark.parametrize(
    "way",
    [
        pytest.param("stdio", marks=pytest.mark.fault(44, "stdio")),
        pytest.param("http", marks=pytest.mark.fault(44, "http")),
    ],
)


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "ledger.sqlite3")


def nowhere_to_write(path: str) -> str:
    # Not even root may create a file here.
    return "/sys/ledger.sqlite3"


def a_folder_in_its_place(path: str) -> str:
    os.makedirs(path)
    return path


def a_pipe_in_its_place(path: str) -> str:
    Path(path).parent.mkdir()
    os.mkfifo(path)
    return path


def a_file_in_place_of_its_folder(path: str) -> str:
    Path(path).parent.write_text("not yours")
    return path


BAD: dict[str, tuple[Callable[[str], str | None], str]] = {
    **NO_LEDGERS,
    "nowhere": (
        nowhere_to_write,
        r"\[Errno \d+\] (Permission denied|Operation not permitted|Read-only .*): .*",
    ),
    "a folder": (
        a_folder_in_its_place,
        "not a regular file; --ledger takes the path of one",
    ),
    "a pipe": (a_pipe_in_its_place, "not a regular file; --ledger takes the path of one"),
    "a file as its folder": (
        a_file_in_place_of_its_folder,
        r"\[Errno 20\] Not a directory: .*",
    ),
}


@pytest.mark.parametrize(
    ("way", "make", "reason"),
    [
        pytest.param(way, *BAD[name], marks=pytest.mark.fault(44, way), id=f"{name}-{way}")
        # What is wrong with a ledger is found before it is known who records.
        for way, names in (("stdio", BAD), ("http", ["nowhere"]))
        for name in names
    ],
)
def test_a_ledger_that_cannot_be_written_stops_and_nothing_else(
    path: str, make: Callable[[str], str | None], reason: str, way: Way
) -> None:
    bad = make(path) or path
    before = Path(bad).read_bytes() if os.path.isfile(bad) else None
    with recording(way, bad, lost=None) as recorder:
        [line] = recorder.stopped()
        assert re.fullmatch(f"ledger {bad}: recording stopped: {reason}; calls go on", line)
        for _ in range(20):
            recorder.call()
        if way == "http":
            assert recorder.lost() >= 1
        assert recorder.stopped() == [line]
    assert before is None or Path(bad).read_bytes() == before


@contextmanager
def small_disk(folder: Path, size: str) -> Iterator[Path]:
    """Mount a file system of this size, which goes with the test."""
    folder.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", f"size={size}", "none", str(folder)]
    done = subprocess.run(mount, capture_output=True, check=False)
    if done.returncode:
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


@EITHER
def test_a_disk_that_becomes_full_loses_nothing_that_was_there(tmp_path: Path, way: Way) -> None:
    with small_disk(tmp_path / "disk", "400k") as disk:
        path = str(disk / "ledger.sqlite3")
        with recording(way, path, lost=20) as recorder:
            until(lambda: os.path.exists(path) and len(rows(path)) == 1)
            fill(disk / "film")
            for number in range(20):
                recorder.call(f"{number} " + "x" * 180)
            [line] = recorder.stopped()
            why = "(database or disk is full|disk I/O error)"
            assert re.fullmatch(f"ledger {path}: recording stopped: {why}; calls go on", line)
        (disk / "film").unlink()
        assert query(path, "PRAGMA integrity_check") == [("ok",)]
        assert [(each.name, each.calls) for each in rows(path)] == [("get", 1)]
        with recording(way, path) as recorder:
            recorder.call("after")
        assert {(each.name, each.calls) for each in rows(path)} == {("get", 2), ("after", 1)}


@pytest.mark.fault(44, "stdio")
def test_a_disk_that_becomes_read_only_loses_nothing_that_was_there(tmp_path: Path) -> None:
    with small_disk(tmp_path / "disk", "400k") as disk:
        path = str(disk / "ledger.sqlite3")
        with recording("stdio", path):
            pass
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with recording("stdio", path, lost=None) as recorder:
            [line] = recorder.stopped()
            why = "(attempt to write a readonly database|unable to open database file)"
            assert re.fullmatch(f"ledger {path}: recording stopped: {why}; calls go on", line)
            recorder.call()
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        assert [(each.name, each.calls) for each in rows(path)] == [("get", 1)]


@pytest.mark.fault(44, "stdio")
@pytest.mark.fault(44, "http")
def test_a_ledger_that_somebody_locks_for_too_long_stops_and_nothing_else(path: str) -> None:
    filled(path)
    with closing(sqlite3.connect(path, isolation_level=None)) as other, ExitStack() as open:
        other.execute("BEGIN IMMEDIATE")
        recorders = [open.enter_context(recording(way, path, lost=None)) for way in WAYS]
        for recorder in recorders * 10:
            recorder.call()
        for recorder in recorders:
            assert recorder.stopped() == [
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
SAID = {
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


@pytest.mark.parametrize(
    "way",
    [
        pytest.param("stdio", marks=pytest.mark.fault(45, "stdio")),
        pytest.param("http", marks=pytest.mark.fault(45, "http")),
    ],
)
def test_nothing_that_passes_is_on_disk_but_names_and_sizes(
    home: Path, tmp_path: Path, way: Way
) -> None:
    (tmp_path / "rules.yaml").write_text(PAGES)
    path = home / "mcp-abridge" / "ledger.sqlite3"
    with recording(way, str(path), "-v", "--rules", str(tmp_path / "rules.yaml")) as recorder:
        for tool, said in SAID.items():
            answer = recorder.call(tool, says=said.hex(), key="argument-secret")
            assert b"-secret" in answer
        until(lambda: path.exists() and len(rows(str(path))) == 4)
        open_ones = {each.name: each.read_bytes() for each in home.rglob("*") if each.is_file()}
    names = {path.name, f"{path.name}-shm", f"{path.name}-wal"}
    assert set(open_ones) == names
    assert {each for each in home.rglob("*") if each.is_file()} == {path}
    raw = b"".join([*open_ones.values(), path.read_bytes()])
    assert b"secret" not in raw
    assert all(tool.encode() in raw for tool in SAID)


@pytest.mark.fault(45, "stdio")
@pytest.mark.fault(45, "http")
def test_without_a_ledger_nothing_is_written(home: Path) -> None:
    for way in WAYS:
        with recording(way, "off") as recorder:
            recorder.call()
    assert list(home.iterdir()) == []
