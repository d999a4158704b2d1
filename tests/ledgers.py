"""Ledger files for tests: with some rows, and such that cannot be written or read."""

import os
import sqlite3
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

from mcp_abridge.storage.ledger import LedgerFile
from mcp_abridge.storage.meter import Row, Tally


def query(path: str, sql: str, *values: Any) -> list[Any]:
    with closing(sqlite3.connect(path, timeout=10)) as db:
        result = db.execute(sql, values).fetchall()
        db.commit()
        return result


def row(tool: str = "list_issues", **changed: Any) -> Row:
    names = {"tool": tool, "rule": None, "outcome": "untouched", "server": None, "client": None}
    figures = {"wire_before": 10, "wire_after": 10, "visible_before": 10, "visible_after": 10}
    return Row(**names | {"calls": 1} | figures | changed)


def filled(path: str, *counts: Tally, at: float | None = None) -> str:
    """Write counts, or else one call of the tool `before`."""
    with closing(LedgerFile(path, clock=time.time if at is None else lambda: at)) as file:
        file.write(counts or [row("before")])
    return path


def _no_database(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    Path(path).write_text("a shopping list\n" * 100)


def _of_another_program(path: str) -> None:
    os.makedirs(os.path.dirname(path))
    query(path, "CREATE TABLE recipes (name TEXT)")


def _of_another_version(path: str) -> None:
    query(filled(path), "PRAGMA user_version = 4")


def _damaged(path: str) -> None:
    filled(path, *[row(f"tool {number}") for number in range(2_000)])
    with open(path, "r+b") as file:
        file.seek(4_096)
        file.write(b"\xff" * 40_000)


BAD: dict[str, tuple[Callable[[str], None], str]] = {
    "no database": (_no_database, "file is not a database"),
    "of another program": (_of_another_program, "the file is a database of another program"),
    "of another version": (
        _of_another_version,
        "the file has version 4, from another mcp-abridge; this one writes version 5: "
        "move the file away, or name another with --ledger",
    ),
    "damaged": (_damaged, "database disk image is malformed"),
}
"""Files that are no ledgers: a function that makes one, and the reason why it is not used."""
