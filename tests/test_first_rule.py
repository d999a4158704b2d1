"""The page of the first rule: its commands run as they are written, against the real server."""

import os
import re
import subprocess
import sys
import time
from pathlib import Path

import pytest

from tests import servers
from tests.wrapped import ROOT, START

pytestmark = pytest.mark.usefixtures("servers")

PAGE = ROOT / "rules" / "FIRST_RULE.md"
# `npx` would download the package; this one starts the same package, which is pinned here.
NPX = """#!/bin/sh
[ "$1 $2" = "-y @modelcontextprotocol/server-memory" ] && exec {node} {server}
echo "npx: unexpected: $*" >&2; exit 1
"""


def test_the_commands_of_the_page_work_as_written(tmp_path: Path) -> None:
    commands = tmp_path / "bin"
    commands.mkdir()
    node, server = servers.node(), servers.package("server-memory")
    program(commands / "npx", NPX.format(node=node, server=server))
    program(commands / "mcp-abridge", f"#!{sys.executable}\n{START}")
    lines = "\n".join(re.findall(r"^```sh\n(.*?)^```$", PAGE.read_text(), re.DOTALL | re.MULTILINE))
    started = time.monotonic()
    completed = subprocess.run(
        ["bash", "-ec", lines],
        cwd=tmp_path,
        env={**os.environ, "PATH": f"{commands}:{os.environ['PATH']}"},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
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


def program(path: Path, text: str) -> None:
    path.write_text(text)
    path.chmod(0o755)


def number(text: str) -> int:
    return int(text.replace(",", ""))
