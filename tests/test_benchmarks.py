"""Shows that the benchmarks measure right answers only, and run."""

import subprocess
import sys

import pytest

from tests.benchmarks import commands, load
from tests.benchmarks.legs import LEGS
from tests.faults.scale import scaled

SHORT = ("HTTP to stdio: small", "stdio to HTTP: large, project", "HTTP to HTTP: small")


@pytest.mark.parametrize("name", SHORT[: scaled(1, 3)])
def test_a_leg_over_http_can_be_measured(name: str) -> None:
    [leg] = [leg for leg in LEGS if leg.name == name]
    figures = leg.measure(leg, 0.01)
    assert len(figures.direct) == len(figures.wrapped) >= 2
    assert min(*figures.direct, *figures.wrapped) > 0


@pytest.mark.long
def test_the_load_on_the_knowledge_base_is_printed_for_each_kind_of_request() -> None:
    completed = subprocess.run(
        [sys.executable, "-m", "tests.benchmarks.load", "--seconds", "1", "-c", "2"],
        cwd=commands.ROOT,
        env=commands.environment(),
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=170,
        check=False,
    )
    assert (completed.returncode, completed.stderr) == (0, ""), completed.stdout
    rows = completed.stdout.splitlines()
    for row, kind in zip(rows[2:], load.KINDS, strict=False):
        assert row.split(maxsplit=1)[1].startswith(kind)
    assert [row.endswith("failures 0") for row in rows].count(True) == 2
