"""Tests of the table of faults: what it says of rows whose tests pass, fail or are not there."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).resolve().parents[2]
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
@pytest.mark.fault(1, "http")
@pytest.mark.fault(1, "inside")
def test_is_left_out(): raise RuntimeError

@pytest.mark.fault(3, "inside")
def test_cannot_begin(nothing): pass
"""


def table_of(folder: Path, tests: str, *options: str) -> "subprocess.CompletedProcess[str]":
    """Run some tests with the table, and no other plugin but xdist: each takes long to load."""
    (folder / "test_some.py").write_text(tests)
    (folder / "conftest.py").write_text("from tests.faults.conftest import *\n")
    plugins = ("-p", "xdist", "-p", "tests.faults.table")
    return subprocess.run(
        [sys.executable, "-m", "pytest", *plugins, "-q", *options, str(folder)],
        cwd=folder,
        env={
            **os.environ,
            "PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1",
            "PYTHONPATH": str(ROOT),
            "FAULTS": "short",
        },
        capture_output=True,
        text=True,
        check=False,
    )


def test_a_row_is_held_where_every_way_has_a_test_and_all_pass(tmp_path: Path) -> None:
    ended = table_of(tmp_path, FILE, "-n", "1")
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


def test_a_run_fails_where_all_tests_pass_but_a_row_has_none(tmp_path: Path) -> None:
    ended = table_of(tmp_path, "def test_passes(): pass\n", "-n", "0")
    assert "1 passed" in ended.stdout
    assert ended.returncode == 1


def test_a_mark_of_no_row_ends_the_run(tmp_path: Path) -> None:
    tests = 'import pytest\n@pytest.mark.fault(51, "stdio")\ndef test_a(): pass\n'
    ended = table_of(tmp_path, tests, "-n", "0")
    assert ended.returncode == pytest.ExitCode.USAGE_ERROR
    assert "test_a: no row and way of the table: (51, 'stdio')" in ended.stdout + ended.stderr
