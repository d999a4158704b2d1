"""The page of the first rule: its commands run as they are written, against the real server."""

import re
import time
from pathlib import Path

import pytest

from tests.pages.commands import ran

pytestmark = pytest.mark.usefixtures("servers")


@pytest.mark.long
def test_the_commands_of_the_page_work_as_written(tmp_path: Path) -> None:
    started = time.monotonic()
    completed = ran("rules/FIRST_RULE.md", tmp_path)
    assert completed.returncode == 0, completed.stdout[-2000:] + completed.stderr
    assert time.monotonic() - started < 300  # five minutes, of which most are for reading

    assert "mcp-abridge suggest: called read_graph {}: done" in completed.stderr
    assert "ok: memory.yaml: 1 rule, 2 tests" in completed.stdout
    assert "ok: rules.yaml: 1 rule, 3 tests" in completed.stdout
    # With the sample, a second tool has the same steps, and a test of its own.
    assert re.findall(r"^(\d) passed in", completed.stdout, re.MULTILINE) == ["2", "3"]
    [(before, after)] = re.findall(
        r"read_graph.*: ([\d,]+) bytes become ([\d,]+)", completed.stderr
    )[-1:]
    assert number(after) < 0.3 * number(before)
    *_, second_page, answer = re.findall(r'^\{"entities".*', completed.stdout, re.MULTILINE)
    assert '[{"name":"thing 41"' in second_page
    assert '[{"name":"thing 1"' in answer
    assert '"nextOffset":40' in answer


def number(text: str) -> int:
    return int(text.replace(",", ""))
