"""What a ledger keeps: it never grows without end, and what it loses first is what nobody asks."""

import os
import sqlite3
from collections.abc import Iterable, Iterator
from contextlib import closing
from pathlib import Path

import pytest

from proxy.storage.ledger import BY, Counted, LedgerFile, rows, warnings
from proxy.storage.meter import Row, Warnings
from proxy.storage.retention import KEPT_DAYS

DAY = 86_400
NOW = 1_800_000_000.0
MOST = 400_000


class Clock:
    """The time of day, which a test sets."""

    def __init__(self, now: float) -> None:
        self.now = now

    def __call__(self) -> float:
        return self.now


@pytest.fixture
def path(tmp_path: Path) -> str:
    return str(tmp_path / "state" / "ledger.sqlite3")


@pytest.fixture
def clock() -> Clock:
    return Clock(NOW)


@pytest.fixture
def book(path: str, clock: Clock) -> Iterator[LedgerFile]:
    with closing(LedgerFile(path, most=MOST, clock=clock)) as book:
        yield book


def calls(count: int, tool: str = "list") -> Iterator[tuple[str | None, str | None, Row]]:
    for number in range(count):
        row = Row(f"{tool} {number % 5}", "a rule", "shaped", 1, 1_000 + number, 100, 900, 90)
        yield "a server", ("one", None)[number % 2], row


def write(book: LedgerFile, rows: Iterable[tuple[str | None, str | None, Row]]) -> None:
    book.write(list(rows), "a session")


def count(path: str, table: str = "calls") -> int:
    with closing(sqlite3.connect(path)) as db:
        found: int = db.execute(f"SELECT COUNT(*) FROM {table}").fetchone()[0]
        return found


@pytest.mark.fault(45, "inside")
def test_calls_of_earlier_days_become_sums_of_days_where_there_is_no_room(
    path: str, book: LedgerFile, clock: Clock
) -> None:
    warned = [("a server", None, Warnings("list 1", "a rule", "a kind", 2))]
    for day in range(20):
        clock.now = NOW + day * DAY
        before = {by: rows(path, by=by) for by in BY} if day else {}
        book.write((), "a session", warned)
        assert not day or {by: rows(path, by=by) for by in BY} == before
        write(book, calls(500))
    assert [each.calls for each in rows(path, by="server")] == [20 * 500]
    assert [each.calls for each in rows(path, by="day")] == [500] * 20
    assert warnings(path) == [Counted("a rule", "a kind", 40)]
    assert count(path) < 20 * 500
    assert os.path.getsize(path) <= MOST * 2


def test_calls_of_the_last_day_keep_their_hours(path: str, book: LedgerFile, clock: Clock) -> None:
    for hour in range(20 * 24):
        clock.now = NOW + hour * 3_600
        write(book, calls(50))
    looked = clock.now - 12 * 3_600 + 1
    assert [each.calls for each in rows(path, looked, by="server")] == [12 * 50]
    assert [each.calls for each in rows(path, by="server")] == [20 * 24 * 50]


@pytest.mark.parametrize(("seconds", "flushes"), [(60, 400), (1, 1_000)])
def test_so_many_calls_in_a_day_that_there_is_no_room_become_sums_of_hours_and_minutes(
    path: str, book: LedgerFile, clock: Clock, seconds: int, flushes: int
) -> None:
    for flush in range(flushes):
        clock.now = NOW + flush * seconds
        write(book, calls(20))
    assert [each.calls for each in rows(path, by="server")] == [flushes * 20]
    looked = clock.now - 30 * seconds + 1
    assert [each.calls for each in rows(path, looked, by="server")] == [30 * 20]
    assert os.path.getsize(path) <= MOST * 2


@pytest.mark.fault(45, "inside")
def test_of_more_names_than_there_is_room_for_the_oldest_go(
    path: str, book: LedgerFile, clock: Clock
) -> None:
    for second in range(120):
        clock.now = NOW + second
        write(book, calls(50, f"tool {second}"))
        assert f"tool {second} 4" in {each.name for each in rows(path)}
        assert os.path.getsize(path) <= MOST * 2
    names = {each.name for each in rows(path)}
    assert "tool 118 0" in names
    assert "tool 0 0" not in names


@pytest.mark.fault(45, "inside")
def test_a_flood_of_warnings_finds_no_more_room(path: str, book: LedgerFile) -> None:
    for flush in range(100):
        warned = [(None, None, Warnings("get", "a rule", f"{flush} {n}", 1)) for n in range(100)]
        book.write((), "a session", warned)
    assert count(path, "warnings") >= 100
    assert os.path.getsize(path) <= MOST * 2


@pytest.mark.fault(45, "inside")
def test_what_is_freed_is_used_again_and_the_log_of_writes_stays_small(
    path: str, book: LedgerFile, clock: Clock
) -> None:
    for day in range(40):
        clock.now = NOW + day * DAY
        write(book, calls(1_000))
    folder = Path(path).parent
    assert sum(file.stat().st_size for file in folder.iterdir()) <= 3_000_000


def test_a_process_that_runs_for_long_forgets_what_is_too_old(
    path: str, book: LedgerFile, clock: Clock
) -> None:
    write(book, calls(1, "old"))
    clock.now = NOW + (KEPT_DAYS - 1) * DAY
    write(book, calls(1, "new"))
    assert {each.name for each in rows(path)} == {"old 0", "new 0"}
    clock.now = NOW + (KEPT_DAYS + 2) * DAY
    write(book, calls(1, "newer"))
    assert {each.name for each in rows(path)} == {"new 0", "newer 0"}
