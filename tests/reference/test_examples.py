import re
from typing import Any

import pytest

from proxy.ruleset.loading import rulefile
from proxy.testing import cases
from proxy.transforms import TRANSFORMS
from proxy.transforms.base import Transform
from tests.reference import examples


def blocks(name: str) -> list[str]:
    text = "\n\n".join(examples.example(TRANSFORMS[name]))
    return re.findall(r"```yaml\n(.*?)\n```", text, re.DOTALL)


EXAMPLES = [
    pytest.param(name, block, id=f"{name}-{number}")
    for name in TRANSFORMS
    for number, block in enumerate(blocks(name))
]


def test_few_examples_cannot_be_shown_as_rules() -> None:
    assert {name for name in TRANSFORMS if not blocks(name)} == {"parse", "abridge"}


@pytest.mark.parametrize(("name", "block"), EXAMPLES)
def test_an_example_passes_as_the_test_of_a_rule(name: str, block: str) -> None:
    rule = f"version: 1\nrules:\n  - tools: list\n{_indented(block)}"
    read = rulefile.read("example.yaml", rule.encode())
    assert read.rules is not None, read.problems
    assert [step.name for step in read.rules.rules[0].pipeline] == [name]
    verdicts = list(cases.run(read.rules))
    assert verdicts
    assert [verdict.message for verdict in verdicts if not verdict.ok] == []


@pytest.mark.parametrize(("name", "block"), EXAMPLES)
def test_an_example_reads_as_the_step_that_the_doctest_has(name: str, block: str) -> None:
    rule = f"version: 1\nrules:\n  - tools: list\n{_indented(block)}"
    read = rulefile.read("example.yaml", rule.encode())
    assert read.rules is not None, read.problems
    steps = [shown.step for shown in examples.runs(TRANSFORMS[name])]
    assert _plain(read.rules.rules[0].pipeline[0]) in map(_plain, steps)


def test_only_windows_add_arguments() -> None:
    adding = {
        name
        for name, kind in TRANSFORMS.items()
        if any(shown.step.parameters for shown in examples.runs(kind))
    }
    assert adding == {name for name, kind in TRANSFORMS.items() if kind.window}


def _indented(block: str) -> str:
    return "".join(f"    {line}\n" for line in block.splitlines())


def _plain(step: Transform) -> Any:
    """Return a step as it would be written: expressions are not equal to each other."""
    return step.name, examples.options(step)
