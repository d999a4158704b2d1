"""`test`: what is printed, and the exit codes."""

import re
from pathlib import Path

import pytest

from tests.cli.conftest import Run

RULES = """\
version: 1
rules:
  - name: issues
    tools: list
    response: [{drop: b}, {paginate: {at: items, limit: 2}}]
    tests:
      - {name: a page, given: {items: [1, 2, 3], b: 1}, expect_at: {items: [1, 2]}}
      - {name: wrong, given: {items: [1]}, expect_at: {items: [2], pagination.total: 2}}
      - {arguments: {limit: 99}, refused: "limit: 99 is greater than the maximum of 20"}
  - tools: other
    response: [{drop: b}]
"""


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "rules.yaml"
    path.write_text(RULES)
    return path


def test_a_failure_is_printed_with_its_differences_and_the_exit_code_is_1(
    path: Path, run: Run
) -> None:
    out, err = run("test", path, code=1)
    *lines, summary = out.splitlines()
    assert lines == [
        f"FAILED {path}:8: issues: wrong",
        "    items[0]: expected 2, found 1",
        "    pagination.total: expected 2, found 1",
    ]
    assert re.fullmatch(r"2 passed, 1 failed in \d+\.\d\d s", summary)
    assert err == ""
    run("test", path, "-k", "A PAGE")
    err = run("test", path, "-k", "typo", code=2).err
    assert err == "mcp-abridge test: no case has 'typo' in its rule or its name\n"
