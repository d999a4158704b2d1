"""The ledger: what is counted is on disk, whole rows only, and no fault of the disk ends a call."""

import os
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest

from proxy.storage import ledger as module
from proxy.storage.ledger import (
    Counted,
    Figures,
    Ledger,
    LedgerError,
    LedgerFile,
    default_path,
    rows,
    warnings,
)
from proxy.storage.meter import Meters, Row, Sizes, Warnings
from proxy.storage.retention import KEPT_DAYS

ROOT = Path(__file__).parents[2]
SIZES = Sizes(wire_before=1_000, wire_after=100, visible_before=900, visible_after=90)
DAY = 86_400

Start = Callable[..., "subprocess.Popen[str]"]


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "ledger.sqlite3")


@pytest.fixture
def start() -> Iterator[Start]:
    """Start Python processes that end with the test."""
    started: list[subprocess.Popen[str]] = []

    def python(script: str, *arguments: str) -> "subprocess.Popen[str]":
        process = subprocess.Popen(
            [sys.executable, "-c", script, *arguments],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            text=True,
        )
        started.append(process)
        return process

    yield python
    for process in started:
        with process:
            process.kill()


def query(path: str, sql: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(path, timeout=10)) as db:
        found = db.execute(sql, values).fetchall()
        db.commit()
        return found


def row(tool: str = "list_issues", **changed: Any) -> Row:
    figures = {"wire_before": 10, "wire_after": 10, "visible_before": 10, "visible_after": 10}
    return Row(
        **{"tool": tool, "rule": None, "outcome": "untouched", "calls": 1} | figures | changed
    )


def of(
    *rows: Row, server: str | None = None, client: str | None = None
) -> list[tuple[str | None, str | None, Row]]:
    return [(server, client, each) for each in rows]


def filled(path: str, *rows: Row) -> str:
    with closing(LedgerFile(path)) as book:
        book.write(of(*(rows or [row("before")])), "a session")
    return path


def recorded(path: str, **options: Any) -> tuple[Ledger, list[str]]:
    """Record one shaped call and two untouched ones; return the closed ledger and its warnings."""
    warnings: list[str] = []
    meters = Meters()
    meter = meters.of(None, None)
    ledger = Ledger(path, meters, warn=warnings.append, interval=60, **options)
    meter.count("list_issues", "issues", SIZES, "shaped")
    meter.passed("get_me", 30)
    meter.passed("get_me", 30)
    assert ledger.close(timeout=30)
    return ledger, warnings


def test_what_a_meter_counts_is_recorded_at_the_latest_on_close(path: str) -> None:
    ledger, warnings = recorded(path)

    ((session,),) = query(path, "SELECT DISTINCT session FROM calls")
    now = pytest.approx(time.time(), abs=60)
    assert query(path, "SELECT * FROM calls") == [
        (now, session, None, None, "list_issues", "issues", "shaped", 1, 1_000, 100, 900, 90),
        (now, session, None, None, "get_me", None, "untouched", 2, 60, 60, 60, 60),
    ]
    assert (ledger.lost, warnings) == (0, [])


def test_calls_are_recorded_while_the_process_runs(path: str) -> None:
    meters = Meters()
    meter = meters.of(None, None)
    ledger = Ledger(path, meters, warn=pytest.fail, interval=0.01)
    for number in range(3):
        meter.passed(f"tool {number}", 30)
        deadline = time.monotonic() + 30
        while not (os.path.exists(path) and len(rows(path)) == number + 1):
            assert time.monotonic() < deadline
    assert ledger.close(timeout=30)


def test_the_first_call_is_recorded_long_before_the_interval_is_over(path: str) -> None:
    meters = Meters()
    ledger = Ledger(path, meters, warn=pytest.fail, interval=60)
    meters.of(None, None).passed("get_me", 30)
    deadline = time.monotonic() + 30
    while not os.path.exists(path) or not rows(path):
        assert time.monotonic() < deadline
        time.sleep(0.01)
    assert ledger.close(timeout=30)


def test_each_call_is_recorded_under_the_names_of_its_server_and_client(path: str) -> None:
    meters = Meters()
    ledger = Ledger(path, meters, warn=pytest.fail, interval=60)
    meters.of("github", None).passed("get_me", 30)
    meters.of("github", "claude-code").passed("get_me", 31)
    meters.of("git", "codex").count("git_log", "log", SIZES, "shaped")
    ledger.close(timeout=30)

    assert query(path, "SELECT server, client, tool, wire_before FROM calls") == [
        ("github", None, "get_me", 30),
        ("github", "claude-code", "get_me", 31),
        ("git", "codex", "git_log", 1_000),
    ]
    assert len(query(path, "SELECT DISTINCT session FROM calls")) == 1


def test_warnings_are_recorded_in_a_table_of_their_own(path: str) -> None:
    meters = Meters()
    ledger = Ledger(path, meters, warn=pytest.fail, interval=60)
    for client in (None, "codex", "codex"):
        meters.of("jobs", client).warned("get_job", "jobs", "recast: no case fits")
    assert ledger.close(timeout=30)

    ((session,),) = query(path, "SELECT DISTINCT session FROM warnings")
    now = pytest.approx(time.time(), abs=60)
    assert query(path, "SELECT * FROM warnings") == [
        (now, session, "jobs", None, "get_job", "jobs", "recast: no case fits", 1),
        (now, session, "jobs", "codex", "get_job", "jobs", "recast: no case fits", 2),
    ]
    assert rows(path) == []


def test_each_process_has_a_session_of_its_own(path: str) -> None:
    recorded(path)
    recorded(path)

    assert query(path, "SELECT COUNT(*) FROM calls GROUP BY session") == [(2,), (2,)]


def test_names_that_no_file_can_hold_are_recorded_as_far_as_they_can_be(path: str) -> None:
    meters = Meters()
    meter = meters.of("s" * 1_000_000, "\ud800")
    ledger = Ledger(path, meters, warn=pytest.fail, interval=60)
    meter.count("\ud800tool", "\udfffrule", SIZES, "shaped")
    meter.warned("\ud800tool", "\udfffrule", "\ud800kind")
    ledger.close(timeout=30)

    assert query(path, "SELECT server, client, tool, rule, kind FROM warnings") == [
        ("s" * 200, "?", "?tool", "?rule", "?kind")
    ]

    assert query(path, "SELECT server, client, tool, rule FROM calls") == [
        ("s" * 200, "?", "?tool", "?rule")
    ]


def test_a_process_without_calls_leaves_no_file(path: str) -> None:
    assert Ledger(path, Meters(), warn=pytest.fail, interval=60).close(timeout=30)

    assert not os.path.exists(os.path.dirname(path))


@pytest.mark.fault(45, "inside")
@pytest.mark.parametrize("umask", [0, 0o022, 0o777], ids=oct)
def test_the_ledger_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "home" / "state"
    before = os.umask(umask)
    try:
        with closing(LedgerFile(str(folder / "ledger.sqlite3"))) as book:
            book.write(of(row()), "a session")
            modes = {each.name: oct(each.stat().st_mode & 0o777) for each in folder.iterdir()}
    finally:
        os.umask(before)

    names = ("ledger.sqlite3", "ledger.sqlite3-shm", "ledger.sqlite3-wal")
    assert modes == dict.fromkeys(names, "0o600")
    assert {oct(each.stat().st_mode & 0o777) for each in (folder, folder.parent)} == {"0o700"}


def test_a_folder_that_was_there_keeps_its_mode(path: str) -> None:
    folder = Path(path).parent
    folder.mkdir()
    folder.chmod(0o750)
    filled(path)

    assert oct(folder.stat().st_mode & 0o777) == "0o750"


def test_the_ledger_lies_in_the_xdg_state_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/where/ann/lives")
    monkeypatch.setenv("XDG_STATE_HOME", "/state")
    assert default_path() == "/state/mcp-abridge/ledger.sqlite3"
    for ignored in ("", "relative/state"):
        monkeypatch.setenv("XDG_STATE_HOME", ignored)
        assert default_path() == "/where/ann/lives/.local/state/mcp-abridge/ledger.sqlite3"
    monkeypatch.delenv("XDG_STATE_HOME")
    assert default_path() == "/where/ann/lives/.local/state/mcp-abridge/ledger.sqlite3"


def test_a_start_does_not_import_sqlite(path: str, start: Start) -> None:
    script = """
import sys
from proxy.storage.ledger import Ledger
from proxy.storage.meter import Meters
ledger = Ledger(sys.argv[1], Meters(), warn=print)
print("sqlite3" in sys.modules)
print(ledger.close(timeout=30))
"""
    out, err = start(script, path).communicate(timeout=60)

    assert (out, err) == ("False\nTrue\n", "")


@pytest.mark.fault(44, "inside")
def test_eight_processes_write_one_new_ledger_at_once(path: str, start: Start) -> None:
    script = """
import sys
from proxy.storage.ledger import Ledger
from proxy.storage.meter import Meters, Sizes
meters = Meters()
meter = meters.of(sys.argv[2], None)
ledger = Ledger(sys.argv[1], meters, warn=print, interval=0.001, patience=60)
print("ready", flush=True)
sys.stdin.readline()
for number in range(2_000):
    meter.count("list_issues", "issues", Sizes(1_000, 100, 900, 90), "shaped")
    meter.passed("get_me", 30)
print(ledger.close(timeout=120), ledger.lost)
"""
    processes = [start(script, path, f"server {number}") for number in range(8)]
    for process in processes:
        assert process.stdout is not None
        assert process.stdout.readline() == "ready\n"
    for process in processes:
        assert process.stdin is not None
        process.stdin.write("\n")
        process.stdin.flush()

    assert [process.communicate(timeout=120) for process in processes] == [("True 0\n", "")] * 8
    assert sorted(rows(path, by="server"), key=lambda each: str(each.name)) == [
        Figures(
            name=f"server {number}",
            calls=4_000,
            shaped=2_000,
            failed=0,
            wire_before=2_000 * 1_030,
            wire_after=2_000 * 130,
            visible_before=2_000 * 930,
            visible_after=2_000 * 120,
            shadow_saves=0,
        )
        for number in range(8)
    ]
    assert query(path, "PRAGMA journal_mode") == [("wal",)]


@pytest.mark.fault(44, "inside")
def test_a_process_killed_while_it_writes_leaves_no_half_row_and_no_half_flush(
    path: str, start: Start
) -> None:
    script = """
import sys
from proxy.storage.ledger import LedgerFile
from proxy.storage.meter import Row
book = LedgerFile(sys.argv[1])
for number in range(1_000_000):
    tool = f"{sys.argv[2]} {number}"
    row = Row(tool, None, "untouched", 1, 1, 1, 1, 1)
    book.write([(None, None, row)] * 500, "a session")
"""
    filled(path)
    for life in range(4):
        known = query(path, "SELECT COUNT(*) FROM calls")[0][0]
        process = start(script, path, f"life {life}")
        deadline = time.monotonic() + 60
        while query(path, "SELECT COUNT(*) FROM calls")[0][0] < known + 3_000:
            assert time.monotonic() < deadline
        process.kill()
        process.wait()

    assert query(path, "PRAGMA integrity_check") == [("ok",)]
    assert {each.calls for each in rows(path) if each.name != "before"} == {500}
    filled(path, row("after"))
    assert "after" in {each.name for each in rows(path)}


STOPPED = """
import os, sqlite3, sys
from proxy.storage.ledger import Ledger, rows
from proxy.storage.meter import Meters, Sizes

meters = Meters()
meter = meters.of(None, None)
ledger = Ledger(sys.argv[1], meters, warn=print, interval=60)
{setting}
for number in range(500):
    meter.count("list_issues", "issues", Sizes(1, 1, 1, 1), "shaped")
print(ledger.close(timeout=60), ledger.lost)
"""


@pytest.mark.fault(44, "inside")
@pytest.mark.skipif(os.name != "posix", reason="file permissions are POSIX's")
def test_a_read_only_folder_ends_the_recording_and_nothing_else(start: Start) -> None:
    # Root may write anywhere, so the child gives that up.
    setting = """
os.chmod(os.path.dirname(sys.argv[1]), 0o555)
if os.geteuid() == 0:
    os.setuid(65534)
"""
    with tempfile.TemporaryDirectory() as folder:
        path = os.path.join(folder, "ledger.sqlite3")
        out, err = start(STOPPED.format(setting=setting), path).communicate(timeout=60)

        assert out == (
            f"ledger {path}: recording stopped: [Errno 13] Permission denied: {path!r}; "
            "calls go on\nTrue 500\n"
        )
        assert err == ""
        os.chmod(folder, 0o700)
        assert os.listdir(folder) == []


@pytest.mark.fault(44, "inside")
@pytest.mark.skipif(os.name != "posix", reason="file permissions are POSIX's")
def test_a_read_only_file_ends_the_recording_and_nothing_else(start: Start) -> None:
    setting = """
os.chmod(sys.argv[1], 0o444)
os.chmod(os.path.dirname(sys.argv[1]), 0o555)
if os.geteuid() == 0:
    os.setuid(65534)
"""
    with tempfile.TemporaryDirectory() as folder:
        path = filled(os.path.join(folder, "ledger.sqlite3"))
        out, err = start(STOPPED.format(setting=setting), path).communicate(timeout=60)

        assert out == (
            f"ledger {path}: recording stopped: attempt to write a readonly database; "
            "calls go on\nTrue 500\n"
        )
        assert err == ""
        os.chmod(folder, 0o700)
        assert [each.name for each in rows(path)] == ["before"]


@pytest.mark.fault(44, "inside")
@pytest.mark.skipif(os.name != "posix", reason="resource limits are POSIX's")
def test_a_full_disk_ends_the_recording_and_leaves_what_was_there(path: str, start: Start) -> None:
    # A limit on the size of files fails a write as a full disk does: in the middle of a flush.
    setting = """
import resource
from proxy.storage.ledger import LedgerFile
from proxy.storage.meter import Row
book = LedgerFile(sys.argv[1])
book.write([(None, None, Row("before", None, "untouched", 1, 1, 1, 1, 1))], "a session")
size = os.path.getsize(sys.argv[1] + "-wal")
resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.getrlimit(resource.RLIMIT_FSIZE)[1]))
"""
    out, err = start(STOPPED.format(setting=setting), path).communicate(timeout=60)

    assert out == f"ledger {path}: recording stopped: disk I/O error; calls go on\nTrue 500\n"
    assert err == ""
    assert query(path, "PRAGMA integrity_check") == [("ok",)]
    assert [each.name for each in rows(path)] == ["before"]


@pytest.mark.fault(44, "inside")
def test_a_locked_ledger_ends_the_recording_when_patience_does(path: str) -> None:
    with closing(sqlite3.connect(filled(path), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        ledger, warnings = recorded(path, patience=0.05)
        other.execute("ROLLBACK")

    assert warnings == [f"ledger {path}: recording stopped: database is locked; calls go on"]
    assert ledger.lost == 3
    assert [each.name for each in rows(path)] == ["before"]


def test_a_lock_that_is_released_in_time_costs_no_row(path: str) -> None:
    meters = Meters()
    meter = meters.of(None, None)
    with closing(sqlite3.connect(filled(path), isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        ledger = Ledger(path, meters, warn=pytest.fail, interval=60, patience=60)
        meter.passed("get_me", 30)
        assert not ledger.close(timeout=0.05)
        other.execute("ROLLBACK")
        assert ledger.close(timeout=60)

    assert {each.name for each in rows(path)} == {"before", "get_me"}


@pytest.mark.fault(44, "inside")
def test_a_file_that_is_no_database_is_left_as_it_is(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    Path(path).write_text("a shopping list\n" * 100)
    ledger, warnings = recorded(path)

    assert warnings == [f"ledger {path}: recording stopped: file is not a database; calls go on"]
    assert ledger.lost == 3
    assert Path(path).read_text() == "a shopping list\n" * 100
    with pytest.raises(LedgerError) as refused:
        rows(path)
    assert str(refused.value) == f"{path}: file is not a database"


@pytest.mark.fault(44, "inside")
def test_a_database_of_another_program_is_left_as_it_is(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    query(path, "CREATE TABLE recipes (name TEXT)")
    before = Path(path).read_bytes()
    _, warnings = recorded(path)

    reason = "the file is a database of another program"
    assert warnings == [f"ledger {path}: recording stopped: {reason}; calls go on"]
    assert Path(path).read_bytes() == before
    with pytest.raises(LedgerError) as refused:
        rows(path)
    assert str(refused.value) == f"{path}: {reason}"


@pytest.mark.fault(44, "inside")
def test_a_ledger_of_a_later_version_is_left_as_it_is(path: str) -> None:
    query(filled(path), "PRAGMA user_version = 99")
    _, warnings = recorded(path)

    reason = "the file has version 99, from a later mcp-abridge; this one knows 2"
    assert warnings == [f"ledger {path}: recording stopped: {reason}; calls go on"]
    assert query(path, "SELECT tool FROM calls") == [("before",)]
    with pytest.raises(LedgerError) as refused:
        rows(path)
    assert str(refused.value) == f"{path}: {reason}"


@pytest.mark.fault(44, "inside")
def test_a_damaged_ledger_ends_the_recording(path: str) -> None:
    filled(path, *[row(f"tool {number}") for number in range(2_000)])
    with open(path, "r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * 40_000)
    ledger, warnings = recorded(path)

    reason = "database disk image is malformed"
    assert warnings == [f"ledger {path}: recording stopped: {reason}; calls go on"]
    assert ledger.lost == 3


@pytest.mark.fault(44, "inside")
def test_recording_stops_once_and_goes_on_counting_what_it_loses(path: str) -> None:
    os.makedirs(path)  # a folder in the place of the file
    warnings: list[str] = []
    meters = Meters()
    meter = meters.of(None, None)
    losses: list[int] = []
    ledger = Ledger(path, meters, warn=warnings.append, lose=losses.append, interval=0.01)
    for number in range(1, 4):
        meter.passed("get_me", 30)
        deadline = time.monotonic() + 30
        while ledger.lost < number:
            assert time.monotonic() < deadline
    assert ledger.close(timeout=30)

    assert warnings == [
        f"ledger {path}: recording stopped: a directory, not a file;"
        " --ledger takes the path of a file; calls go on"
    ]
    assert ledger.lost == 3
    assert losses == [1, 1, 1]


def test_an_older_ledger_is_brought_up_to_date_and_keeps_its_rows(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    version = len(module._MIGRATIONS)
    with closing(LedgerFile(path)) as still_running:
        still_running.write(of(row("before")), "a session")
        later = (*module._MIGRATIONS, ("ALTER TABLE calls ADD COLUMN country TEXT",))
        monkeypatch.setattr(module, "_MIGRATIONS", later)
        filled(path, row("after"))
        # The process of the older version goes on writing what it knows.
        still_running.write(of(row("meanwhile")), "a session")

    assert query(path, "PRAGMA user_version") == [(version + 1,)]
    assert query(path, "SELECT tool, country FROM calls") == [
        ("before", None),
        ("after", None),
        ("meanwhile", None),
    ]


def test_a_ledger_from_before_there_were_warnings_is_read_and_then_written(path: str) -> None:
    filled(path)
    query(path, "DROP TABLE warnings")
    query(path, "PRAGMA user_version = 1")
    assert [each.name for each in rows(path)] == ["before"]
    assert warnings(path) == []

    with closing(LedgerFile(path)) as book:
        book.write((), "a session", [(None, None, Warnings("get_job", "jobs", "kind", 3))])

    assert [each.name for each in rows(path)] == ["before"]
    assert warnings(path) == [Counted("jobs", "kind", 3)]


def test_a_migration_that_fails_leaves_the_ledger_as_it_was(
    path: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    filled(path)
    later = (*module._MIGRATIONS, ("ALTER TABLE calls ADD COLUMN country TEXT", "nonsense"))
    monkeypatch.setattr(module, "_MIGRATIONS", later)
    _, warnings = recorded(path)
    monkeypatch.undo()

    assert warnings == [
        f'ledger {path}: recording stopped: near "nonsense": syntax error; calls go on'
    ]
    assert query(path, "PRAGMA user_version") == [(len(module._MIGRATIONS),)]
    assert [each.name for each in rows(path)] == ["before"]


@pytest.mark.parametrize(("age_in_days", "kept"), [(KEPT_DAYS - 1, True), (KEPT_DAYS + 2, False)])
def test_rows_older_than_the_age_bound_go_when_a_ledger_is_opened(
    path: str, age_in_days: int, kept: bool
) -> None:
    filled(path, row("old"), row("new"))
    then = int(time.time()) - age_in_days * DAY
    query(path, "UPDATE calls SET time = ? WHERE tool = 'old'", then)
    filled(path, row("newer"))

    assert {each.name for each in rows(path)} == {"new", "newer"} | ({"old"} if kept else set())


@pytest.mark.parametrize(("age_in_days", "kept"), [(KEPT_DAYS - 1, 2), (KEPT_DAYS + 2, 0)])
def test_warnings_older_than_the_age_bound_go_too(path: str, age_in_days: int, kept: int) -> None:
    with closing(LedgerFile(path)) as book:
        book.write((), "a session", [(None, None, Warnings("get_job", "jobs", "kind", 2))])
    query(path, "UPDATE warnings SET time = time - ?", age_in_days * DAY)
    filled(path, row("newer"))

    assert sum(each.count for each in warnings(path)) == kept


def test_the_figures_are_summed_as_asked_and_those_that_saved_most_come_first(path: str) -> None:
    with closing(LedgerFile(path)) as book:
        shaped: dict[str, Any] = {
            "outcome": "shaped",
            "rule": "issues",
            "wire_before": 1_000,
            "visible_before": 900,
        }
        book.write(
            of(row("get_me", calls=5), row(**shaped), server="github", client="codex"), "one"
        )
        book.write(of(row(**shaped), row(outcome="failed", rule="issues"), server="github"), "two")
        book.write(
            of(row("git_log", outcome="view", wire_before=0, visible_before=0), server="git"), "3"
        )

    assert rows(path, by="tool") == [
        Figures("list_issues", 3, 2, 1, 2_010, 30, 1_810, 30, 0),
        Figures("get_me", 5, 0, 0, 10, 10, 10, 10, 0),
        Figures("git_log", 1, 1, 0, 0, 10, 0, 10, 0),
    ]
    assert [(each.name, each.calls) for each in rows(path, by="server")] == [
        ("github", 8),
        ("git", 1),
    ]
    assert [(each.name, each.calls) for each in rows(path, by="rule")] == [("issues", 3), (None, 6)]
    assert [(each.name, each.calls) for each in rows(path, by="client")] == [
        ("codex", 6),
        (None, 3),
    ]
    assert [(each.name, each.calls) for each in rows(path, by="day")] == [
        (time.strftime("%Y-%m-%d"), 9)
    ]


def test_a_shadow_rule_has_saved_nothing(path: str) -> None:
    filled(path, row("x", outcome="shadow", rule="r", wire_after=4, visible_after=3))

    assert rows(path) == [Figures("x", 1, 0, 0, 10, 10, 10, 10, 7)]


def test_only_what_was_recorded_since_is_summed_and_days_come_in_order(path: str) -> None:
    filled(path, row("a"), row("b"), row("c", visible_before=99))
    now = time.time()
    for tool, age in (("a", 3), ("b", 2), ("c", 1)):
        query(path, "UPDATE calls SET time = ? WHERE tool = ?", int(now - age * DAY), tool)

    assert {each.name for each in rows(path, since=now - 2.5 * DAY)} == {"b", "c"}
    days = [each.name for each in rows(path, by="day")]
    assert len(days) == 3
    assert days == sorted(days, key=str)


def test_warnings_are_summed_by_rule_and_kind_since_then_and_the_most_come_first(path: str) -> None:
    with closing(LedgerFile(path)) as book:
        book.write(
            (),
            "a session",
            [
                ("jobs", None, Warnings("get_job", "jobs", "old", 9)),
                ("jobs", None, Warnings("get_job", "jobs", "no case", 1)),
                ("jobs", "codex", Warnings("list_jobs", "jobs", "no case", 1)),
                (None, None, Warnings("get_job", "jobs", "status", 5)),
                (None, None, Warnings("get_job", "others", "no case", 1)),
            ],
        )
    query(path, "UPDATE warnings SET time = time - ? WHERE kind = 'old'", 3 * DAY)
    recent = [Counted("jobs", "status", 5), Counted("jobs", "no case", 2)]
    recent.append(Counted("others", "no case", 1))

    assert warnings(path, time.time() - 2 * DAY) == recent
    assert warnings(path) == [Counted("jobs", "old", 9), *recent]


def test_a_missing_ledger_cannot_be_read(path: str) -> None:
    with pytest.raises(LedgerError) as refused:
        rows(path)

    assert str(refused.value) == f"{path}: no such file"
    assert not os.path.exists(path)


def test_a_ledger_just_created_has_no_rows_yet(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    Path(path).touch()

    assert rows(path) == []


def test_a_path_with_characters_of_a_url_is_read_as_it_is(tmp_path: Path) -> None:
    path = filled(str(tmp_path / "what?mode=memory&x=%41 #1" / "ledger.sqlite3"))

    assert [each.name for each in rows(path)] == ["before"]
