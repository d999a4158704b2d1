"""Every case of every rule file of the project: the bundled ones, and those of the examples."""

from operator import truediv
from pathlib import Path
from statistics import median

import pytest
from mcp_abridge.cli.figures import BYTES_PER_TOKEN
from mcp_abridge.replay import cases
from mcp_abridge.replay.exchanges import recorded
from mcp_abridge.replay.play import Replay
from mcp_abridge.ruleset.selection import load

from tests.reference.bundled_page import bundled, size

ROOT = Path(__file__).resolve().parents[1]
FILES = sorted([*ROOT.glob("rules/*.yaml"), *ROOT.glob("examples/*/rules*.yaml")])


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_rule_has_a_case_beside_it_and_each_passes(path: Path) -> None:
    [file] = load([str(path)], allow_python=True)

    assert [rule.name for rule in file.rules if not rule.tests] == []
    wrong = [result for result in cases.run(file) if not result.ok]
    assert not wrong, "\n".join(f"{each.rule}: {each.case}: {each.message}" for each in wrong)


def test_no_bundled_file_needs_more_than_the_rule_language() -> None:
    load([path.stem for path in ROOT.glob("rules/*.yaml")])


def test_the_tokens_of_a_report_are_the_median_of_recorded_answers() -> None:
    answers = [
        Replay(bundled(path.parent.name), recorded(path.read_bytes())).answer
        for path in (ROOT / "rules" / "fixtures").rglob("*.json")
    ]
    ratios = [truediv(*size(each)) for each in answers]
    assert abs(median(ratios) - BYTES_PER_TOKEN) < 0.15
