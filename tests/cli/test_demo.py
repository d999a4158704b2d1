"""`demo`: real servers, a real client, and a table of what the model sees."""

import re
import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.test_current_folder import NAMES, lay
from tests.wrapped import START


@pytest.mark.fault(51, "stdio")
def test_the_demo_shows_real_calls_and_runs_nothing_of_the_current_folder(tmp_path: Path) -> None:
    folder, traces, program = (tmp_path / name for name in ("checkout", "traces", "program"))
    folder.mkdir()
    lay(folder, NAMES, traces)
    program.write_text(START)
    output = subprocess.run(
        [sys.executable, str(program), "demo"],
        cwd=folder,
        env={"PATH": "", "HOME": str(tmp_path), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert not traces.exists(), traces.read_text()
    rows = [
        re.split(r" {2,}", line.strip())
        for line in output.splitlines()
        if line.startswith((" fullsync ", " obsidian "))
    ]
    assert len(rows) == 6
    for *_, before, after, smaller in rows:
        counted = [int(number.replace(",", "")) for number in (before, after, smaller)]
        assert counted[0] > 400_000
        assert counted[1] < 13_000  # 10,000 characters, some of which take several bytes
        assert counted[2] == round(counted[0] / counted[1])
