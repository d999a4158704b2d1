"""Retention of the ledger: single calls while there is room, else sums of days; none forever.

Invariant: for any number of records, the pages in use have no more than MOST_BYTES and one flush,
and the file no more than twice as much. Sums are made only if needed, and change no report over
days.
"""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    import sqlite3

KEPT_DAYS = 400
MOST_BYTES = 16 << 20
"""More than a hundred thousand single calls."""

_DAY = 86_400
_HOUR = 3_600
_MINUTE = 60
_FREED = 2  # the limit divided by the bytes in use after room was made

# The columns to group by, and the columns to sum; the session, which no report shows, is lost.
_TABLES = {
    "calls": (
        "server, client, tool, rule, outcome",
        ("calls", "wire_before", "wire_after", "visible_before", "visible_after"),
    ),
    "warnings": ("server, client, tool, rule, kind", ("count",)),
}
# The age in seconds from which rows are summed up, and the expression to group them by.
_SUMS = (
    (_DAY, "date(time, 'unixepoch', 'localtime')"),
    (_HOUR, f"time / {_HOUR}"),
    (_MINUTE, f"time / {_MINUTE}"),
)


def prune(db: "sqlite3.Connection", now: float) -> None:
    """Delete rows older than KEPT_DAYS."""
    for table in _TABLES:
        (oldest,) = db.execute(f"SELECT MIN(time) FROM {table}").fetchone()
        # A day of grace, so that rows are deleted at most once a day.
        if oldest is not None and oldest < now - (KEPT_DAYS + 1) * _DAY:
            db.execute(f"DELETE FROM {table} WHERE time < ?", (int(now) - KEPT_DAYS * _DAY,))


def crowded(db: "sqlite3.Connection", most: int) -> bool:
    """Return True if the pages in use have more than `most` bytes."""
    return _used(db) > most


def make_room(db: "sqlite3.Connection", now: float, most: int) -> None:
    """Bring the pages in use well below `most` bytes; to be called within a transaction.

    First, calls of one kind become sums of days, except those of the last day. Then the latter
    become sums of hours, and of minutes. If that is not enough, because there are too many kinds,
    the oldest rows are deleted.
    """
    for age, span in _SUMS:
        if crowded(db, most // _FREED):
            for table in _TABLES:
                _sum_up(db, table, int(now) - age, span)
    while crowded(db, most // _FREED) and _forget_half(db):
        pass


def _sum_up(db: "sqlite3.Connection", table: str, before: int, span: str) -> None:
    same, figures = _TABLES[table]
    sums = ", ".join(f"SUM({each})" for each in figures)
    (last,) = db.execute(f"SELECT MAX(rowid) FROM {table}").fetchone()
    old = "WHERE time < ? AND rowid <= ?"
    db.execute(
        f"""INSERT INTO {table} (time, session, {same}, {", ".join(figures)})
        SELECT MAX(time), '', {same}, {sums} FROM {table} {old} GROUP BY {same}, {span}""",
        (before, last),
    )
    db.execute(f"DELETE FROM {table} {old}", (before, last))


def _forget_half(db: "sqlite3.Connection") -> bool:
    """Delete the older half of all rows; return False if there is none to delete."""
    gone = 0
    for table in _TABLES:
        gone += db.execute(
            f"""DELETE FROM {table} WHERE rowid IN (SELECT rowid FROM {table}
            ORDER BY time LIMIT (SELECT (COUNT(*) + 1) / 2 FROM {table}))"""
        ).rowcount
    return gone > 0


def _used(db: "sqlite3.Connection") -> int:
    figures = [
        db.execute(f"PRAGMA {each}").fetchone()[0]
        for each in ("page_count", "freelist_count", "page_size")
    ]
    pages, free, size = figures
    used: int = (pages - free) * size
    return used
