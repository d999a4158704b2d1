"""The rule files that pages show pass their tests."""

from pathlib import Path

import pytest
from mcp_abridge.replay import cases
from mcp_abridge.ruleset.loading import rulefile

from tests.pages import Block, blocks, pages

SHOWN = [
    (page, block)
    for page in pages()
    if page.name != "PYTHON.md"  # test_python_page has the Python that its rules name
    for block in blocks(page, "yaml")
    if block.text.startswith("version: 1\n") and "\nrules:\n" in block.text
]


@pytest.mark.parametrize(
    ("page", "block"), [pytest.param(*each, id=f"{each[0]}:{each[1].line}") for each in SHOWN]
)
def test_a_rule_file_that_a_page_shows_passes_its_tests(page: Path, block: Block) -> None:
    read = rulefile.read(f"{page}:{block.line}", block.text.encode())
    assert read.rules is not None, read.problems
    verdicts = list(cases.run(read.rules))
    assert [each.message for each in verdicts if not each.ok] == []
    assert bool(verdicts) == ("tests:" in block.text)
