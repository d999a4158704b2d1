"""Jobs and results between two processes: a job has the same result in both."""

import pickle
from pathlib import Path

import pytest
from mcp_abridge.document.tree import encode, loads
from mcp_abridge.replay import cases
from mcp_abridge.ruleset.selection import load
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from mcp_abridge.shaping.pipeline import shape

from tests.builders import rule
from tests.faults.scale import scaled

ROOT = Path(__file__).resolve().parents[3]
FILES = sorted([*ROOT.glob("rules/*.yaml"), *ROOT.glob("examples/*/rules*.yaml")])[:: scaled(4, 1)]


def there_and_back(job: ShapeJob) -> ShapeResult:
    """Shape a job as another process would, to which only bytes can be sent."""
    result: ShapeResult = pickle.loads(pickle.dumps(shape(pickle.loads(pickle.dumps(job)))))
    return result


@pytest.mark.parametrize("path", FILES, ids=lambda path: str(path.relative_to(ROOT)))
def test_every_case_of_a_rule_file_comes_out_the_same_in_another_process(path: Path) -> None:
    [file] = load([str(path)], allow_python=True)
    shaped = [
        pair
        for owner, _, case in cases.cases(file)
        if not owner.foreign  # those are never sent to another process
        for pair in cases.play_case(file, owner, case).play.shaped
    ]

    assert shaped or all(owner.foreign for owner in file.rules)
    assert [there_and_back(job) for job, _ in shaped] == [outcome for _, outcome in shaped]


def test_numbers_among_the_arguments_are_spelled_as_they_came() -> None:
    arguments = loads(b'{"a":1.10,"b":[12345678901234567890123,1e400]}')
    job = ShapeJob(rule=rule("response: [{keep: [a]}]"), tool="t", id=b"1", arguments=arguments)

    received = pickle.loads(pickle.dumps(job))

    assert encode(received.arguments) == b'{"a":1.10,"b":[12345678901234567890123,1e400]}'
