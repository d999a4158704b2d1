"""What a ledger keeps: each call where there is room, else sums of days, and nothing for ever.

Invariant: whatever is recorded, what is in use has no more than MOST_BYTES and one flush, and the
file no more than twice as much. Sums are made only where there is need, and change no report that
looks back for days.
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
_FREED = 2  # how many times less than it may be is in use after room was made

# What is summed by, and what is summed; the session, which no report names, is lost.
_TABLES = {
    "calls": (
        "server, client, tool, rule, outcome",
        ("calls", "wire_before", "wire_after", "visible_before", "visible_after"),
    ),
    "warnings": ("server, client, tool, rule, kind", ("count",)),
}
# The age in seconds from which rows are summed up, and what they then share.
_SUMS = (
    (_DAY, "date(time, 'unixepoch', 'localtime')"),
    (_HOUR, f"time / {_HOUR}"),
    (_MINUTE, f"time / {_MINUTE}"),
)


def prune(db: "sqlite3.Connection", now: float) -> None:
    """Forget what is older than KEPT_DAYS."""
    for table in _TABLES:
        (oldest,) = db.execute(f"SELECT MIN(time) FROM {table}").fetchone()
        # A day of grace: at most once in a day there is anything to delete.
        if oldest is not None and oldest < now - (KEPT_DAYS + 1) * _DAY:
            db.execute(f"DELETE FROM {table} WHERE time < ?", (int(now) - KEPT_DAYS * _DAY,))


def crowded(db: "sqlite3.Connection", most: int) -> bool:
    """Return True if the pages in use have more than `most` bytes."""
    return _used(db) > most


def make_room(db: "sqlite3.Connection", now: float, most: int) -> None:
    """Bring the pages in use well below `most` bytes; for within a transaction.

    First calls of one kind become sums of days, but for the last day's; then those become sums of
    hours, and of minutes. Where that is not enough, for there are too many kinds, the oldest go.
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
    """Forget the older half of all rows; False where there is none to forget."""
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
