"""Calls of the last hour: remembered as hashes, claimed once, bounded by age and number."""

import sqlite3
from contextlib import closing
from functools import partial
from pathlib import Path

import pytest
from mcp_abridge.storage import calls
from mcp_abridge.storage.calls import RecentCalls
from mcp_abridge.storage.ledger import LedgerFile, claim_call

from tests.ledgers import filled, query


class Clock:
    now = 1_800_000_000.0

    def __call__(self) -> float:
        return self.now


def test_a_call_is_claimed_once_within_an_hour() -> None:
    clock = Clock()
    recent = RecentCalls(clock=clock)
    recent.add("a", '["get",{}]')
    assert not recent.claim("a", '["get",{}]')
    assert recent.claim("a", '["get",{"of":1}]')
    assert not recent.claim("a", '["get",{"of":1}]')
    assert recent.claim("b", '["get",{}]')
    clock.now += calls.SECONDS
    assert recent.claim("a", '["get",{}]')


def test_the_oldest_calls_are_forgotten_first(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(calls, "MOST", 3)
    recent = RecentCalls()
    for number in range(4):
        recent.add("", str(number))
    assert [recent.claim("", str(number)) for number in (3, 1, 0)] == [False, False, True]


def test_processes_share_them_in_the_ledgers_file_as_hashes(tmp_path: Path) -> None:
    path = str(tmp_path / "ledger.sqlite3")
    one, other = (RecentCalls(partial(claim_call, path)) for _ in range(2))
    one.add("here", "delete the account of Jane")
    with closing(LedgerFile(path)) as file:
        file.write((), one.drain())
    assert not other.claim("here", "delete the account of Jane")
    assert other.claim("here", "delete that of Joe")
    assert not one.claim("here", "delete that of Joe")
    assert one.drain() == set()
    assert b"Jane" not in b"".join(file.read_bytes() for file in tmp_path.iterdir())
    assert Path(path).stat().st_mode & 0o777 == 0o600


def test_the_number_of_calls_in_the_file_is_bounded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(calls, "MOST", 3)
    path = str(tmp_path / "ledger.sqlite3")
    for number in range(9):
        assert claim_call(path, b"%d" % number)
    [(count,)] = query(path, "SELECT COUNT(*) FROM recent")
    assert count <= 4
    assert not claim_call(path, b"8")


def test_if_the_file_cannot_be_used_a_process_relies_on_its_own_calls(tmp_path: Path) -> None:
    assert claim_call(str(tmp_path), b"hash")


def test_if_the_file_is_locked_no_call_is_known_to_be_the_first(tmp_path: Path) -> None:
    path = filled(str(tmp_path / "ledger.sqlite3"))
    with closing(sqlite3.connect(path, isolation_level=None)) as other:
        other.execute("BEGIN EXCLUSIVE")
        assert not claim_call(path, b"hash")
