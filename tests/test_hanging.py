"""Shows that a test that never ends ends the run, which names it."""

import os
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]

HANGS = """
import threading
import pytest

@pytest.fixture
def lock():
    lock = threading.Lock()
    with lock:
        yield
        lock.acquire()

def test_bad(lock):
    with open("runs", "a") as runs:
        print("run", file=runs)
    assert False, "a failure, and then no end of what follows it"

def test_not_reached():
    pass
"""

# Keeps the other worker going for long enough to be handed the bad test as well.
LONG = """
import time

import pytest

@pytest.mark.parametrize("second", range(100))
def test_long(second):
    time.sleep(1)
"""


def test_a_run_ends_with_the_name_of_a_test_that_hangs(tmp_path: Path) -> None:
    (folder := tmp_path / "planted").mkdir()
    (folder / "test_bad.py").write_text(HANGS)
    (folder / "test_long.py").write_text(LONG)
    ours = ["-c", str(ROOT / "pyproject.toml"), "-p", "tests.conftest"]
    places = ["--rootdir", str(folder), "--basetemp", str(tmp_path / "base"), str(folder)]
    quick = ["-o", "faulthandler_timeout=10", "-p", "no:cacheprovider"]
    done = subprocess.run(
        [sys.executable, "-m", "pytest", "-n", "2", "--dist", "loadfile", *ours, *quick, *places],
        cwd=folder,
        env=os.environ | {"PYTHONPATH": str(ROOT)},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 1, done.stdout
    assert "crashed while running 'test_bad.py::test_bad'" in done.stdout
    assert (folder / "runs").read_text() == "run\n"
