"""The checks of the official suite that pass directly pass through the proxy."""

import subprocess
import sys
from pathlib import Path

import pytest

from tests.conformance.install import CACHE, PARTS
from tests.servers.install import require

ROOT = Path(__file__).resolve().parents[1]


@pytest.mark.usefixtures("servers")
def test_the_same_checks_pass_through_the_proxy() -> None:
    # About 9 s, of which the direct runs take 5.
    require(PARTS, CACHE)
    completed = subprocess.run(
        [sys.executable, "-m", "tests.conformance", "--short"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=150,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout
