"""`demo`: real servers, a real client, and a table of what the model sees."""

import re
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[2]


def test_the_demo_shows_real_calls_before_and_after(tmp_path: Path) -> None:
    output = subprocess.run(
        [sys.executable, "-m", "mcp_abridge", "demo"],
        cwd=tmp_path,
        env={"PYTHONPATH": str(ROOT / "proxy"), "PATH": "", "HOME": str(tmp_path), "NO_COLOR": "1"},
        capture_output=True,
        text=True,
        check=True,
    ).stdout

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
