"""Holds the table of faults to its tests: each row has one by every way that it requires."""

import re
from pathlib import Path

import pytest

from tests.faults.rows import ROWS, WAYS

ROOT = Path(__file__).resolve().parents[2]
MARKED = re.compile("mark\\.fault|each_way|by_ways|by_both")


def test_each_row_has_a_test_by_every_way_that_it_requires(
    request: pytest.FixtureRequest,
) -> None:
    session = request.session
    items = list(session.items)
    there = {item.path for item in items}
    # Those that this run has not are looked for.
    for file in (ROOT / "tests").rglob("test_*.py"):
        if file not in there and MARKED.search(file.read_text("utf-8")):
            items += session.genitems(pytest.Module.from_parent(session, path=file))
    marked = {mark.args for item in items for mark in item.iter_markers("fault")}
    missing = [
        f"row {number} ({row.title}): {way}"
        for number, row in ROWS.items()
        for way in row.ways
        if (number, way) not in marked
    ]
    assert not missing, "\n".join(["not shown by any test:", *missing])
    there_are = {(number, way) for number in ROWS for way in WAYS}
    assert marked <= there_are, f"no such row or way: {marked - there_are}"
    assert list(ROWS) == list(range(1, 54))
