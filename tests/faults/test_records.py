"""What becomes of the ledger where its disk fails, rows 44 and 45, and what it holds (Linux).

Everywhere the same: each call is answered as ever and soon, what was recorded before is there, and
one line of the log says why recording stopped.
"""

import os
import random
import re
import resource
import signal
import sqlite3
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, closing, contextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Any

import pytest

if sys.platform != "linux":
    pytest.skip("limits are set by prlimit, and /sys is read-only", allow_module_level=True)

from proxy.storage.ledger import BY, MAX_BYTES, LedgerFile, rows
from proxy.storage.meter import Row
from tests.faults.naughty import result
from tests.faults.processes import until
from tests.faults.recording import WAYS, Served, Way, Written, recording, stopped
from tests.faults.scale import scaled

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


def query(path: str, sql: str) -> list[Any]:
    with closing(sqlite3.connect(path, timeout=10)) as db:
        return db.execute(sql).fetchall()


def row(tool: str = "before", size: int = 10) -> Row:
    return Row(tool, None, "untouched", 1, size, size, size, size)


def filled(path: str) -> None:
    """Record one call."""
    with closing(LedgerFile(path)) as file:
        file.write([row()])


# Row 44


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


def no_database(path: str) -> str:
    Path(path).parent.mkdir()
    Path(path).write_text("a shopping list\n" * 100)
    return path


def of_another_program(path: str) -> str:
    Path(path).parent.mkdir()
    query(path, "CREATE TABLE recipes (name TEXT)")
    return path


def of_a_later_version(path: str) -> str:
    filled(path)
    query(path, "PRAGMA user_version = 99")
    return path


def damaged(path: str) -> str:
    with closing(LedgerFile(path)) as file:
        file.write([row(f"tool {number}") for number in range(2_000)])
    with open(path, "r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * 40_000)
    return path


BAD: dict[Callable[[str], str], str] = {
    nowhere_to_write: r"\[Errno \d+\] (Permission denied|Operation not permitted|Read-only .*): .*",
    a_folder_in_its_place: "a directory, not a file; --ledger takes the path of a file",
    a_pipe_in_its_place: "a named pipe, not a file; --ledger takes the path of a file",
    a_file_in_place_of_its_folder: r"\[Errno 20\] Not a directory: .*",
    no_database: "file is not a database",
    of_another_program: "the file is a database of another program",
    of_a_later_version: "the file has version 99, from a later mcp-abridge; this one knows 3",
    damaged: "database disk image is malformed",
}


@EITHER
@pytest.mark.parametrize("made", BAD, ids=[made.__name__ for made in BAD])
def test_a_ledger_that_cannot_be_written_stops_and_nothing_else(
    path: str, made: Callable[[str], str], way: Way
) -> None:
    bad, why = made(path), BAD[made]
    before = Path(bad).read_bytes() if os.path.isfile(bad) else None
    with recording(way, bad, lost=None) as recorder:
        [line] = stopped(recorder)
        assert re.fullmatch(f"ledger {bad}: recording stopped: {why}; calls go on", line)
        for _ in range(20):
            recorder.call()
        if isinstance(recorder, Served):
            assert recorder.lost() >= 1
        assert stopped(recorder) == [line]
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
            [line] = stopped(recorder)
            why = "(database or disk is full|disk I/O error)"
            assert re.fullmatch(f"ledger {path}: recording stopped: {why}; calls go on", line)
        (disk / "film").unlink()
        assert query(path, "PRAGMA integrity_check") == [("ok",)]
        assert [(each.name, each.calls) for each in rows(path)] == [("get", 1)]
        with recording(way, path) as recorder:
            recorder.call("after")
        assert {(each.name, each.calls) for each in rows(path)} == {("get", 2), ("after", 1)}


@EITHER
def test_a_disk_that_becomes_read_only_loses_nothing_that_was_there(
    tmp_path: Path, way: Way
) -> None:
    with small_disk(tmp_path / "disk", "400k") as disk:
        path = str(disk / "ledger.sqlite3")
        with recording(way, path):
            pass
        subprocess.run(["mount", "-o", "remount,ro", str(disk)], check=True)
        with recording(way, path, lost=None) as recorder:
            [line] = stopped(recorder)
            why = "(attempt to write a readonly database|unable to open database file)"
            assert re.fullmatch(f"ledger {path}: recording stopped: {why}; calls go on", line)
            recorder.call()
        subprocess.run(["mount", "-o", "remount,rw", str(disk)], check=True)
        assert [(each.name, each.calls) for each in rows(path)] == [("get", 1)]


@EITHER
def test_a_file_that_may_not_grow_ends_the_recording(path: str, way: Way) -> None:
    with recording(way, path, lost=20) as recorder:
        until(lambda: os.path.exists(path) and len(rows(path)) == 1)
        size = os.path.getsize(f"{path}-wal")
        resource.prlimit(recorder.pid, resource.RLIMIT_FSIZE, (size, size))
        for number in range(20):
            recorder.call(f"{number} " + "x" * 180)
        assert stopped(recorder) == [
            f"ledger {path}: recording stopped: disk I/O error; calls go on"
        ]
    assert query(path, "PRAGMA integrity_check") == [("ok",)]
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
            assert stopped(recorder) == [
                f"ledger {path}: recording stopped: database is locked; calls go on"
            ]
            recorder.call()
        other.execute("ROLLBACK")
        assert [each.name for each in rows(path)] == ["before"]


@pytest.mark.fault(44, "stdio")
@pytest.mark.fault(44, "http")
def test_several_who_write_one_new_ledger_lose_nothing(path: str) -> None:
    calls = scaled(200, 3_000)
    with ExitStack() as open:
        recorders = [open.enter_context(recording(way, path)) for way in (*WAYS, *WAYS)]

        def make(number: int) -> None:
            for _ in range(calls):
                recorders[number].call(f"tool {number}")

        threads = [threading.Thread(target=make, args=(number,)) for number in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
    found = {each.name: each.calls for each in rows(path)}
    assert found == {"get": 4, **{f"tool {number}": calls for number in range(4)}}
    assert query(path, "PRAGMA integrity_check") == [("ok",)]


def recorded(path: str) -> int:
    """Return how many calls there are in a ledger, which need not be there yet."""
    return sum(each.calls for each in rows(path)) if os.path.exists(path) else 0


@pytest.mark.fault(44, "stdio")
def test_one_that_is_killed_while_it_writes_leaves_no_half_row(path: str) -> None:
    chance = random.Random(44)
    made = 0
    for _ in range(scaled(2, 30)):
        with Written(path, "--rules", "none") as wire:
            before = recorded(path)
            while recorded(path) == before:
                wire.call(f"tool {chance.randrange(100)}")
            # It writes every second: the end comes now and then while it does.
            for _ in range(chance.randrange(1_000)):
                wire.call(f"tool {chance.randrange(100)}")
            os.kill(wire.pid, signal.SIGKILL)
            made += wire.calls
    assert query(path, "PRAGMA integrity_check") == [("ok",)]
    size = len(result(b"100000"))
    for each in rows(path):
        sizes = (each.wire_before, each.wire_after, each.visible_before, each.visible_after)
        assert set(sizes) == {each.calls * size}
    assert 0 < recorded(path) <= made
    with recording("stdio", path) as recorder:
        recorder.call("after")
    assert "after" in {each.name for each in rows(path)}


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


def there(folder: Path, count: int) -> bool:
    """Say whether a folder has so many files and folders in it."""
    return len(list(folder.rglob("*"))) == count


@pytest.mark.fault(45, "stdio")
@pytest.mark.fault(45, "http")
def test_the_ledger_is_its_owners_alone_whatever_the_umask(path: str) -> None:
    before = os.umask(0)
    try:
        for way in WAYS:
            folder = Path(path).with_name(way)
            with recording(way, str(folder / "state" / "ledger.sqlite3")):
                until(partial(there, folder, 4))
                modes = {each.name: oct(each.stat().st_mode & 0o777) for each in folder.rglob("*")}
            assert modes.pop("state") == oct(folder.stat().st_mode & 0o777) == "0o700"
            assert set(modes.values()) == {"0o600"}
    finally:
        os.umask(before)


@pytest.mark.fault(45, "stdio")
@pytest.mark.fault(45, "http")
def test_without_a_ledger_nothing_is_written(home: Path) -> None:
    for way in WAYS:
        with recording(way, "off") as recorder:
            recorder.call()
    assert list(home.iterdir()) == []


@pytest.mark.fault(45, "stdio")
def test_a_ledger_that_has_grown_too_large_is_made_smaller_and_reports_the_same(path: str) -> None:
    first = int(time.time()) // DAY * DAY - 20 * DAY
    kinds = [f"a rather long name of a tool, {number}" for number in range(10)]
    figures = "'a rule', 'shaped', 1, 100000, 900, 90000, 800"
    LedgerFile(path).close()
    with closing(sqlite3.connect(path)) as db:
        db.executemany(
            f"INSERT INTO calls VALUES (?, 'a server', 'a client', ?, {figures})",
            ((first + minute * 60, tool) for minute in range(19 * 1_440) for tool in kinds),
        )
        db.commit()
    calls = 19 * 1_440 * len(kinds)
    assert os.path.getsize(path) > MAX_BYTES
    before = {by: rows(path, by=by) for by in BY}
    with recording("stdio", path):
        # The end waits for two seconds only, which a busy machine may need more of for so much.
        until(lambda: sum(each.calls for each in rows(path)) > calls)
    for by in BY:
        after = {each.name: each for each in rows(path, by=by)}
        assert {each.name for each in before[by]} <= set(after)
        assert sum(each.calls for each in after.values()) == calls + 1
    assert [each for each in rows(path) if each.name != "get"] == before["tool"]
    [(pages, free, size)] = query(
        path,
        "SELECT page_count, freelist_count, page_size"
        " FROM pragma_page_count, pragma_freelist_count, pragma_page_size",
    )
    assert (pages - free) * size < MAX_BYTES
