"""The table of faults: each row has a test by every way, and what it says of tests that fail."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.rows import ROWS, WAYS
from tests.faults.scale import LONG, in_short_form

ROOT = Path(__file__).resolve().parents[2]
MARKED = re.compile("mark\\.fault|each_way|by_ways|by_both")
FILE = """\
import pytest

@pytest.mark.fault(1, "stdio")
@pytest.mark.fault(1, "http")
def test_passes(): pass

@pytest.mark.fault(2, "stdio")
@pytest.mark.fault(2, "http")
@pytest.mark.parametrize("n", [0, 1])
def test_divides(n): 1 / n

@pytest.mark.fault(3, "stdio")
def test_is_skipped(): pytest.skip("not here")

@pytest.mark.long_form
@pytest.mark.fault(1, "inside")
def test_is_left_out(): raise RuntimeError

@pytest.mark.fault(3, "inside")
def test_cannot_begin(nothing): pass
"""


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
    marked = {
        mark.args
        for item in items
        if LONG or in_short_form(item)
        for mark in item.iter_markers("fault")
    }
    missing = [
        f"row {number} ({row.title}): {way}"
        for number, row in ROWS.items()
        for way in row.ways
        if (number, way) not in marked
    ]
    assert not missing, "\n".join(["not shown by any test:", *missing])
    there_are = {(number, way) for number in ROWS for way in WAYS}
    assert marked <= there_are, f"no such row or way: {marked - there_are}"
    assert list(ROWS) == list(range(1, 51))


def test_a_row_is_held_if_every_way_has_a_test_and_all_pass(tmp_path: Path) -> None:
    (tmp_path / "test_some.py").write_text(FILE)
    (tmp_path / "conftest.py").write_text("from tests.faults.conftest import *\n")
    # No other plugin but xdist: each takes long to load.
    command = ["pytest", "-p", "xdist", "-p", "tests.faults.table", "-q", "-n", "1", str(tmp_path)]
    known = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTHONPATH": str(ROOT), "FAULTS": "short"}
    ended = subprocess.run(
        [sys.executable, "-m", *command],
        cwd=tmp_path,
        env={**os.environ, **known},
        capture_output=True,
        text=True,
        check=False,
    )
    assert ended.returncode == 1, ended.stdout + ended.stderr
    rows = {found[1]: found[0] for found in re.finditer(r"(?m)^ +(\d+)  .*$", ended.stdout)}
    assert [re.split(r"  +", rows[str(number)])[3:] for number in (1, 2, 3, 4)] == [
        ["held 1", "held 1", "-"],
        ["FAILED 1", "FAILED 1", "-"],
        ["FAILED 1", "NO TEST", "FAILED 1"],
        ["NO TEST", "NO TEST", "-"],
    ]
    others = ", ".join(map(str, range(2, 51)))
    assert f"held: 1 of 50 rows; not held: {others}" in ended.stdout
    assert "faults, in the short form: smaller sizes, and not every test" in ended.stdout
