"""The ledger: counts are on disk, in bounded space, and no fault of the disk ends a call."""

import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge.storage.ledger import KEPT_DAYS, Ledger, LedgerError, LedgerFile, default_path
from mcp_abridge.storage.ledger_totals import Figures, definitions, rows, warnings
from mcp_abridge.storage.meter import Definitions, Meters, Row, Warnings

from tests.faults.processes import until
from tests.ledgers import BAD, filled, query, row

ROOT = Path(__file__).parents[2]
SIZES = (1_000, 100), (900, 90)
DAY = 86_400
NOW = 1_800_000_000.0
SMALL = 400_000


class Clock:
    """The time of day, which a test sets."""

    now = NOW

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "ledger.sqlite3")


@pytest.fixture
def small(path: str, clock: Clock) -> Iterator[LedgerFile]:
    """Open a ledger that may have few bytes."""
    with closing(LedgerFile(path, max_bytes=SMALL, clock=clock)) as file:
        yield file


def names(path: str, since: float | None = None, by: str = "tool") -> list[str | None]:
    return [each.name for each in rows(path, since, by)]


def test_calls_of_one_kind_in_a_minute_are_one_row(path: str, clock: Clock) -> None:
    with closing(LedgerFile(path, clock=clock)) as file:
        for second in range(0, 120, 10):
            clock.now = NOW + second
            file.write([row(), row(client="codex"), Warnings("jobs", "kind", 2)])

    assert query(path, "SELECT time, calls, wire_before FROM calls") == [
        (NOW, 6, 60), (NOW, 6, 60), (NOW + 60, 6, 60), (NOW + 60, 6, 60)
    ]  # fmt: skip
    assert query(path, "SELECT time, rule, kind, count FROM warnings") == [
        (NOW, "jobs", "kind", 12), (NOW + 60, "jobs", "kind", 12)
    ]  # fmt: skip


@pytest.mark.parametrize(("interval", "times"), [(60, 1), (0.01, 3)])
def test_the_first_call_is_recorded_at_once_and_others_after_an_interval(
    path: str, interval: float, times: int
) -> None:
    meters = Meters()
    ledger = Ledger(path, meters, warn=pytest.fail, interval=interval)
    for number in range(1, times + 1):
        meters.of(None, None).count_untouched(f"tool {number}", 30)
        meters.of(None, None).warned("jobs", f"kind {number}")
        until(lambda: os.path.exists(path) and len(rows(path)) == number)  # noqa: B023
        until(lambda: interval == 60 or len(warnings(path)) == number)  # noqa: B023
    assert ledger.close(timeout=30)


def test_names_that_no_file_can_hold_are_recorded_in_part(path: str) -> None:
    meters = Meters()
    meter = meters.of("s" * 1_000_000, "\ud800")
    ledger = Ledger(path, meters, warn=pytest.fail, interval=60)
    meter.count("\ud800tool", "\udfffrule", "shaped", *SIZES)
    meter.warned("\udfffrule", "\ud800kind")
    ledger.close(timeout=30)

    assert warnings(path) == [Warnings("?rule", "?kind", 1)]
    assert query(path, "SELECT server, client, tool, rule FROM calls") == [
        ("s" * 200, "?", "?tool", "?rule")
    ]


@pytest.mark.fault(45, "inside")
@pytest.mark.parametrize("umask", [0, 0o022], ids=oct)
def test_the_ledger_is_its_owners_alone(tmp_path: Path, umask: int) -> None:
    folder = tmp_path / "home" / "state"
    before = os.umask(umask)
    try:
        with closing(LedgerFile(str(folder / "ledger.sqlite3"))) as file:
            file.write([row()])
            modes = {each.name: oct(each.stat().st_mode & 0o777) for each in folder.iterdir()}
    finally:
        os.umask(before)

    files = ("ledger.sqlite3", "ledger.sqlite3-shm", "ledger.sqlite3-wal")
    assert modes == dict.fromkeys(files, "0o600")
    assert {oct(each.stat().st_mode & 0o777) for each in (folder, folder.parent)} == {"0o700"}


@pytest.mark.parametrize(
    ("state", "folder"),
    [("/state", "/state"), ("", "/ann/.local/state"), ("relative", "/ann/.local/state")],
)
def test_the_ledger_lies_in_the_xdg_state_folder(
    state: str, folder: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/ann")
    monkeypatch.setenv("XDG_STATE_HOME", state)
    assert default_path() == f"{folder}/mcp-abridge/ledger.sqlite3"


@pytest.mark.fault(44, "inside")
def test_eight_processes_write_one_new_ledger_at_once(path: str) -> None:
    script = """
import sys
from mcp_abridge.storage.ledger import (Ledger)
from mcp_abridge.storage.meter import Meters
meters = Meters()
meter = meters.of(sys.argv[2], None)
ledger = Ledger(sys.argv[1], meters, warn=print, interval=0.001, patience=60)
for number in range(2_000):
    meter.count("list_issues", "issues", "shaped", (1_000, 100), (900, 90))
print(ledger.close(timeout=120), ledger.unrecorded)
"""
    command, pipe = [sys.executable, "-c", script, path], subprocess.PIPE
    processes = [
        subprocess.Popen([*command, f"server {number}"], cwd=ROOT, stdout=pipe, stderr=pipe)
        for number in range(8)
    ]
    outputs = [process.communicate(timeout=120) for process in processes]

    assert outputs == [(b"True 0\n", b"")] * 8
    sums = {(each.calls, each.wire_before) for each in rows(path, by="server")}
    assert sums == {(2_000, 2_000_000)}
    assert len(rows(path, by="server")) == 8
    assert query(path, "PRAGMA journal_mode") == [("wal",)]


@pytest.mark.fault(44, "inside")
@pytest.mark.parametrize(("make", "reason"), BAD.values(), ids=BAD)
def test_a_file_that_is_no_ledger_is_not_read(
    path: str, make: Callable[[str], None], reason: str
) -> None:
    make(path)
    with pytest.raises(LedgerError) as error:
        rows(path)
    assert str(error.value) == f"{path}: {reason}"


def test_rows_that_are_too_old_go_with_the_first_record_of_a_day(path: str, clock: Clock) -> None:
    with closing(LedgerFile(path, clock=clock)) as file:
        for days, tool in ((0, "first"), (3, "second"), (KEPT_DAYS + 2, "third")):
            clock.now = NOW + days * DAY
            file.write([row(tool), Warnings(tool, "kind", 2)])

    assert set(names(path)) == {"second", "third"}
    assert {each.rule for each in warnings(path)} == {"second", "third"}


def calls(count: int, tool: str = "list") -> Iterator[Row]:
    for number in range(count):
        client = ("one", None)[number % 2]
        kind = {"outcome": "shaped", "rule": "a rule", "client": client}
        yield row(f"{tool} {number}", largest=10, **kind)


@pytest.mark.fault(45, "inside")
def test_in_a_full_file_rows_become_sums_of_days_and_no_report_of_days_changes(
    path: str, small: LedgerFile, clock: Clock
) -> None:
    for flush in range(600):
        clock.now = NOW + flush * DAY // 4
        small.write([*calls(20), Warnings("a rule", "a kind", 2)])

    assert query(path, "SELECT COUNT(*) FROM calls")[0][0] < 600 * 20 / 2
    assert {(each.calls, each.largest) for each in rows(path)} == {(600, 10)}
    assert {each.calls for each in rows(path, by="day")[1:-1]} == {4 * 20}
    assert warnings(path) == [Warnings("a rule", "a kind", 1200)]
    assert [each.calls for each in rows(path, clock.now - 3 * DAY // 4, by="rule")] == [4 * 20]
    assert os.path.getsize(path) <= SMALL * 2


@pytest.mark.fault(45, "inside")
def test_of_more_names_than_there_is_room_for_the_oldest_go(
    path: str, small: LedgerFile, clock: Clock
) -> None:
    for second in range(80):
        clock.now = NOW + second * 30
        kinds = {f"{second} {number}" * 9 for number in range(50)}
        flood = [Warnings("a rule", kind, 1) for kind in kinds]
        small.write([*calls(50, f"tool {second}"), *flood])
        assert f"tool {second} 4" in names(path)
        assert {each.kind for each in warnings(path)} >= kinds
        assert os.path.getsize(path) <= SMALL * 2
    assert "tool 78 0" in names(path)
    assert "tool 0 0" not in names(path)
    # Besides, SQLite keeps the last thousand pages that it wrote.
    assert os.path.getsize(f"{path}-wal") <= 5_000_000


def test_the_figures_are_summed_as_asked_and_the_largest_come_first(path: str) -> None:
    shaped: dict[str, Any] = {
        "server": "github",
        "outcome": "shaped",
        "rule": "issues",
        "wire_before": 1_000,
        "visible_before": 900,
    }
    filled(
        path,
        row("get_me", calls=5, server="github", client="codex"),
        row(**shaped, client="codex"),
        row(**shaped),
        row(outcome="failed", rule="issues", server="github"),
        row("git_log", outcome="view", wire_before=0, visible_before=0, server="git"),
    )
    filled(path, row("git_log", outcome="shadow", rule="r", wire_after=4, visible_after=3))
    for largest in (50, 30):
        filled(path, row("cut", cuts_before=3, cuts_after=1, largest=largest))

    assert rows(path, by="tool") == [
        Figures("list_issues", 3, 2, 1, 2_010, 30, 1_810, 30, 0, 0, 0, 0, 0),
        Figures("cut", 2, 0, 0, 20, 20, 20, 20, 0, 0, 6, 2, 50),
        Figures("git_log", 2, 1, 0, 10, 20, 10, 20, 7, 0, 0, 0, 0),
        Figures("get_me", 5, 0, 0, 10, 10, 10, 10, 0, 0, 0, 0, 0),
    ]
    today = time.strftime("%Y-%m-%d")
    for by, sums in {
        "server": [("github", 8), (None, 3), ("git", 1)],
        "rule": [(None, 8), ("issues", 3), ("r", 1)],
        "client": [(None, 6), ("codex", 6)],
        "day": [(today, 12)],
    }.items():
        assert [(each.name, each.calls) for each in rows(path, by=by)] == sums


def test_only_later_rows_are_summed_and_days_come_in_order(path: str) -> None:
    for age, tool in ((3, "a"), (2, "b"), (1, "c")):
        filled(path, row(tool, visible_before=10 * age), at=NOW - age * DAY)

    assert names(path, NOW - 2.5 * DAY) == ["b", "c"]
    assert names(path, NOW - DAY + 59) == ["c"]
    assert names(path, NOW - DAY + 60) == []
    days = names(path, by="day")
    assert len(days) == 3
    assert days == sorted(days, key=str)


def test_warnings_and_tool_lists_are_summed_since_then_and_the_most_come_first(path: str) -> None:
    for age, rule, kind, count in (
        (3, "jobs", "old", 9),
        (1, "jobs", "no case", 1),
        (0, "jobs", "no case", 1),
        (0, "jobs", "status", 5),
        (0, "others", "no case", 1),
    ):
        lists = Definitions(kind, 1, 9, count)
        filled(path, Warnings(rule, kind, count), lists, at=NOW - age * DAY)
    sums = [("jobs", "status", 5), ("jobs", "no case", 2), ("others", "no case", 1)]

    assert warnings(path, NOW - 2 * DAY) == [Warnings(*each) for each in sums]
    assert warnings(path)[0] == Warnings("jobs", "old", 9)
    listed = [("status", 1, 9, 5), ("no case", 3, 27, 3)]
    assert definitions(path, NOW - 2 * DAY) == [Definitions(*each) for each in listed]


def test_a_missing_ledger_cannot_be_read(path: str) -> None:
    with pytest.raises(LedgerError) as error:
        rows(path)

    assert str(error.value) == f"{path}: no such file"
    os.makedirs(os.path.dirname(path))
    Path(path).touch()  # by a process that has not yet created the tables
    assert rows(path) == []


def test_a_path_with_characters_of_a_url_is_read_as_it_is(tmp_path: Path) -> None:
    path = filled(str(tmp_path / "what?mode=memory&x=%41 #1" / "ledger.sqlite3"))

    assert names(path) == ["before"]


def test_a_ledger_whose_first_writer_was_killed_while_it_created_it_is_an_empty_one(
    path: str,
) -> None:
    script = """
import os, sqlite3, sys
db = sqlite3.connect(sys.argv[1], isolation_level=None)
db.executescript("PRAGMA cache_size = 1; BEGIN; CREATE TABLE calls (name)")
db.executemany("INSERT INTO calls VALUES (?)", [("x" * 9_000,)] * 99)
os._exit(0)
"""
    os.mkdir(os.path.dirname(path))
    subprocess.run([sys.executable, "-c", script, path], check=True)
    assert os.path.getsize(path) > 0
    assert rows(path) == []
