"""The questions of questions.yaml; of a count or a greatest value, all rows are evidence, too."""

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import msgspec
import yaml

from tests.answers import structured as s
from tests.answers import texts as t
from tests.answers.question import Entry, Group, Question, Row
from tests.answers.sets import entry_question


def _rows(
    rows: Sequence[Mapping[str, Any]], *names: str, key: str = "", near: int = 0
) -> tuple[Row, ...]:
    def text(value: str | float) -> str:
        return value if isinstance(value, str) else repr(value)

    return tuple(
        Row(tuple(text(row[name]) for name in names), near=near, key=text(row[key]) if key else "")
        for row in rows
    )


def _labels() -> tuple[Row, ...]:
    return tuple(
        Row(
            (str(issue["number"]), *(label["name"] for label in issue["labels"])),
            key=str(issue["id"]),
        )
        for issue in s.issues()
    )


def _packages(member: str) -> tuple[Row, ...]:
    packages = ({"name": name, **each} for name, each in s.packages()["packages"].items())
    return _rows(list(packages), "name", member)


EVERY_ROW: dict[str, Callable[[], tuple[Row, ...]]] = {
    "list_issues/security": _labels,
    "list_issues/comments": lambda: _rows(s.issues(), "number", "comments", key="id"),
    "list_orders/refunded": lambda: _rows(s.orders(), "number", "status", key="id"),
    "list_orders/largest": lambda: _rows(s.orders(), "number", "total", key="id"),
    "lint/most": lambda: _rows(s.lint(), "file", "line", "rule"),
    "get_metrics/peak": lambda: tuple(
        Row((time, repr(value))) for time, value in s.metrics()["series"][0]["points"]
    ),
    "list_packages/gpl": lambda: _packages("license"),
    "list_packages/largest": lambda: _packages("size"),
    "read_query/paid": lambda: _rows(s.orders()[:300], "number", "status", near=60),
    "export_customers/portugal": lambda: tuple(
        Row((row[0], row[2], row[3])) for row in s.customers()
    ),
    "read_events/denied": lambda: _rows(s.events(), "time", "type"),
    "get_sync_status/found": lambda: tuple(
        Row((file,)) for file in s.sync()["progress"]["discoveredFileIds"]
    ),
    "read_file/errors": lambda: tuple(
        Row((line.split()[5],), ("ERROR",)) for line in t.app_log().split("\n") if " ERROR " in line
    ),
}


@cache
def questions() -> tuple[Question, ...]:
    file = Path(__file__).with_suffix(".yaml")
    groups = msgspec.convert(
        yaml.safe_load(file.read_text()), dict[Group, dict[str, dict[str, Entry]]]
    )
    return tuple(
        entry_question(
            name, entry, EVERY_ROW[name]() if entry.every_row else (), group=group, tool=tool
        )
        for group, tools in groups.items()
        for tool, entries in tools.items()
        for word, entry in entries.items()
        for name in [f"{tool}/{word}"]
    )
