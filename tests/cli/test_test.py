"""`test`: what is printed, the exit codes, the JUnit report, the filling of cases."""

import re
from pathlib import Path
from xml.etree import ElementTree

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


def test_rules_without_a_test_fail_if_tests_are_required(path: Path, run: Run) -> None:
    out = run("test", path, "--require-tests", "-k", "a page", code=1).out
    assert f"FAILED {path}:10: other: the rule has no test\n" in out
    assert "1 passed, 1 without a test in " in out


def test_the_outcome_is_written_as_junit_xml(path: Path, tmp_path: Path, run: Run) -> None:
    path.write_text(RULES.replace("wrong", '"wr\\u0001ng <&>"'))

    run("test", path, "--junit", tmp_path / "out.xml", code=1)
    root = ElementTree.parse(tmp_path / "out.xml").getroot()
    assert root is not None
    [suite] = root
    assert (suite.get("name"), suite.get("tests"), suite.get("failures")) == (str(path), "3", "1")
    assert [(case.get("classname"), case.get("name"), case.get("line")) for case in suite] == [
        ("issues", "a page", "7"),
        ("issues", "wr\\x01ng <&>", "8"),
        ("issues", "case 3", "9"),
    ]
    [failure] = suite[1]
    assert failure.get("message") == "items[0]: expected 2, found 1"


def test_a_report_that_cannot_be_written_is_an_error(path: Path, tmp_path: Path, run: Run) -> None:
    err = run("test", path, "-k", "a page", "--junit", tmp_path / "none" / "out.xml", code=2).err
    reason = f"{tmp_path / 'none' / 'out.xml'}: No such file or directory"
    assert err == f"mcp-abridge test: {reason}\n"


def test_update_fills_cases_without_an_expectation_and_then_runs(path: Path, run: Run) -> None:
    path.write_text(RULES.replace(", expect_at: {items: [2], pagination.total: 2}", ""))

    out = run("test", path, "--update").out
    assert out.startswith(f"filled {path}:8: issues: wrong: expect\n3 passed in ")
    assert '- {name: wrong, given: {items: [1]}, expect: {"items": [1], "pagination": {' in (
        path.read_text()
    )
