"""Holds the table of faults to its tests: each row has one by every way that it requires."""

import re
from pathlib import Path

import pytest

from tests.faults.rows import ROWS, WAYS
from tests.faults.scale import LONG, in_short_form

ROOT = Path(__file__).resolve().parents[2]
MARKED = re.compile("mark\\.fault|each_way")


@pytest.fixture(scope="module")
def marked(request: pytest.FixtureRequest) -> set[tuple[int, str]]:
    """Return what the tests of faults show in this form; those that this run has not, are found."""
    session = request.session
    items = list(session.items)
    there = {item.path for item in items}
    for file in (ROOT / "tests").rglob("test_*.py"):
        if file not in there and MARKED.search(file.read_text("utf-8")):
            items += session.genitems(pytest.Module.from_parent(session, path=file))
    return {
        mark.args
        for item in items
        if LONG or in_short_form(item)
        for mark in item.iter_markers("fault")
    }


def test_there_are_fifty_rows_with_short_titles() -> None:
    assert list(ROWS) == list(range(1, 51))
    assert max(len(row.title) for row in ROWS.values()) <= 70
    assert all(row.ways and set(row.ways) <= set(WAYS) for row in ROWS.values())


def test_each_row_has_a_test_by_every_way_that_it_requires(marked: set[tuple[int, str]]) -> None:
    missing = [
        f"row {number} ({row.title}): {way}"
        for number, row in ROWS.items()
        for way in row.ways
        if (number, way) not in marked
    ]
    assert not missing, "\n".join(["not shown by any test:", *missing])


def test_each_mark_names_a_row_and_a_way(marked: set[tuple[int, str]]) -> None:
    there = {(number, way) for number in ROWS for way in WAYS}
    assert marked <= there, f"no such row or way: {marked - there}"
