"""The sums of a ledger, for reports: what a process that records never needs."""

import os
from contextlib import closing
from typing import Any

from msgspec import Struct

from mcp_abridge.storage.ledger import DATE, LedgerError, check_regular, is_new
from mcp_abridge.storage.meter import LOOK_SIGNS, Definitions, Looks, Warnings

_BY = {
    "tool": "tool",
    "server": "NULLIF(server, '')",
    "rule": "NULLIF(rule, '')",
    "client": "NULLIF(client, '')",
    "day": DATE,
    "hour": "strftime('%Y-%m-%d %H:00', time, 'unixepoch', 'localtime')",
}
BY = tuple(_BY)
"""The keys that `rows` can sum by."""


class Figures(Struct, frozen=True):
    """The sums of one tool, server, rule, client, day or hour; `name` is None if it was not known.

    Calls of shadow rules count with the sizes that were really sent; `shadow_saves` are the visible
    bytes that these rules would have saved. `client_cut` to `largest` are those of a Row, `looks`
    to `called_again` those of Looks.
    """

    name: str | None
    calls: int
    shaped: int
    failed: int
    wire_before: int
    wire_after: int
    visible_before: int
    visible_after: int
    shadow_saves: int
    client_cut: int
    cuts_before: int
    cuts_after: int
    largest: int
    looks: int = 0
    asked_all: int = 0
    asked_parts: int = 0
    called_again: int = 0


def asked_on(sums: Figures | Looks) -> int:
    """Return the answers of which more was asked for, such as a rule may show at once."""
    return sums.asked_all + sums.asked_parts


def rows(path: str, since: float | None = None, by: str = "tool") -> list[Figures]:
    """Return the sums of the ledger at `path`, the most bytes that the model read first.

    `since` is a time in unix seconds (None: no limit), of which the minute counts; `by` is one of
    BY; days and hours are in order. Raises LedgerError if the file is missing or cannot be read.
    """
    order = "name" if by in ("day", "hour") else "seen_after DESC, seen_before DESC, name"
    query = f"""SELECT {_BY[by]} AS name, SUM(calls),
            SUM(calls * (outcome IN ('shaped', 'page', 'view'))),
            SUM(calls * (outcome = 'failed')), SUM(wire_before),
            SUM(CASE outcome WHEN 'shadow' THEN wire_before ELSE wire_after END),
            SUM(visible_before) AS seen_before,
            SUM(CASE outcome WHEN 'shadow' THEN visible_before ELSE visible_after END)
                AS seen_after,
            SUM((visible_before - visible_after) * (outcome = 'shadow')),
            SUM(client_cut), SUM(cuts_before), SUM(cuts_after), MAX(largest)
        FROM calls WHERE time >= ? GROUP BY 1 ORDER BY {order}"""
    look_sums = looks(path, since, by)
    return [Figures(*each, *look_sums.get(each[0], ())) for each in _read(path, query, since)]


def looks(
    path: str, since: float | None = None, by: str = "tool", server: str | None = None
) -> dict[str | None, tuple[int, ...]]:
    """Return the sums of Looks by name, of one server or of all; see `rows`."""
    sums = ", ".join(f"SUM({sign})" for sign in LOOK_SIGNS)
    query = f"""SELECT {_BY[by]}, {sums} FROM looks
        WHERE time >= ? AND (? IS NULL OR server = ?) GROUP BY 1"""
    groups = _read(path, query, since, server, server, table="looks")
    return {name: tuple(figures) for name, *figures in groups}


def warnings(path: str, since: float | None = None) -> list[Warnings]:
    """Return the warnings by rule and kind, the most frequent first; see `rows`."""
    query = """SELECT rule, kind, SUM(count) AS times FROM warnings WHERE time >= ?
        GROUP BY rule, kind ORDER BY times DESC, rule, kind"""
    return [Warnings(*each) for each in _read(path, query, since)]


def definitions(path: str, since: float | None = None) -> list[Definitions]:
    """Return the tool lists by server, the longest first; see `rows`."""
    query = """SELECT NULLIF(server, ''), SUM(sessions), SUM(before), SUM(after) AS bytes
        FROM definitions WHERE time >= ? GROUP BY 1 ORDER BY bytes DESC, 1"""
    return [Definitions(*each) for each in _read(path, query, since)]


def _read(
    path: str, query: str, since: float | None, *values: object, table: str = "calls"
) -> list[tuple[Any, ...]]:
    """Return the rows of a query; none if an earlier version has not made its table yet."""
    import sqlite3
    from urllib.parse import quote

    if not os.path.exists(path):
        raise LedgerError(f"{path}: no such file")
    # Not `ro`: if a process was killed while it created the file, that has to be undone.
    name = f"file:{quote(path)}?mode=rw"
    try:
        check_regular(path)
        with closing(sqlite3.connect(name, uri=True, timeout=5, isolation_level=None)) as db:
            db.execute("BEGIN")  # one view of the file, also while others create it
            has_table = "SELECT 1 FROM sqlite_master WHERE type = 'table' AND name = ?"
            if is_new(db) or not db.execute(has_table, (table,)).fetchall():
                return []
            start = -1 if since is None else since // 60 * 60
            return db.execute(query, (start, *values)).fetchall()
    except (OSError, sqlite3.Error, LedgerError) as error:
        raise LedgerError(f"{path}: {error}") from error
