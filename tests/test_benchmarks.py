"""Shows that the benchmarks measure right answers only, and run."""

import subprocess
import sys

import pytest

from proxy.ruleset import selection as ruleset
from tests.benchmarks import commands, load
from tests.benchmarks.kinds import Leg, calls
from tests.benchmarks.legs import LEGS
from tests.benchmarks.web_client import WrongAnswer


@pytest.mark.parametrize("name", sorted({leg.rules for leg in LEGS} - {"none", ""}))
def test_the_rules_of_every_leg_load(name: str) -> None:
    [file] = ruleset.load([str(commands.RULES / f"{name}.yaml")])
    assert file.rules


def test_a_wrong_answer_is_no_measurement() -> None:
    same, short = Leg("a", calls), Leg("b", calls, most=10)
    same.check(b"answer\n", b"answer\n")
    short.check(b"a long answer\n", b"answer\n")
    with pytest.raises(WrongAnswer, match="not the 7 bytes of a direct answer: Answer"):
        same.check(b"answer\n", b"Answer\n")
    with pytest.raises(WrongAnswer, match="14 bytes, expected 10 at most: a long answer"):
        short.check(b"a long answer\n", b"a long answer\n")
    with pytest.raises(WrongAnswer, match="isError"):
        Leg("c", calls, most=100).check(b"", b'{"result":{"isError":true}}')


SHORT = ("HTTP to stdio: small", "stdio to HTTP: large, project", "HTTP to HTTP: small")


@pytest.mark.parametrize("name", SHORT)
def test_a_leg_over_http_can_be_measured(name: str) -> None:
    [leg] = [leg for leg in LEGS if leg.name == name]
    figures = leg.measure(leg, 0.01)
    assert len(figures.direct) == len(figures.wrapped) >= 2
    assert min(*figures.direct, *figures.wrapped) > 0


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
    assert [row.split()[:2] for row in rows[2:7]] == [["2", kind] for kind in load.KINDS]
    assert [row.endswith("failures 0") for row in rows].count(True) == 2
