"""The page on scripts: its commands run as they are written, and its rules pass their tests."""

import json
import os
import re
import subprocess
import sys
from pathlib import Path

from mcp_abridge.cli import main
from mcp_abridge.ruleset.selection import load

from tests.wrapped import ROOT, START

PAGE = (ROOT / "examples" / "scripts.md").read_text()
SERVERS = {"mcpServers": {"docs": {"command": "python", "args": ["server.py"]}}}


def test_the_commands_of_the_page_work_as_written(tmp_path: Path) -> None:
    commands, home = tmp_path / "bin", tmp_path / "home"
    for folder in (commands, home / ".cursor"):
        folder.mkdir(parents=True)
    (home / ".cursor" / "mcp.json").write_text(json.dumps(SERVERS))
    for name, start in (("mcp-abridge", START), ("python", None)):
        text = f'#!/bin/sh\nexec "{sys.executable}" "$@"\n' if start is None else start
        head = "" if start is None else f"#!{sys.executable}\n"
        (commands / name).write_text(head + text)
        (commands / name).chmod(0o755)
    (tmp_path / "examples").symlink_to(ROOT / "examples")
    lines = "\n".join(re.findall(r"^```sh\n(.*?)^```$", PAGE, re.DOTALL | re.MULTILINE))
    environment = {"PATH": f"{commands}:{os.environ['PATH']}", "HOME": str(home)}
    completed = subprocess.run(
        ["bash", "-ec", lines],
        cwd=tmp_path,
        env={**os.environ, **environment, "XDG_STATE_HOME": str(home / "state")},
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout[-2000:] + completed.stderr
    wrapped = json.loads((home / ".cursor" / "mcp.json").read_text())["mcpServers"]["docs"]
    assert "--scripts on -- python server.py" in " ".join(wrapped["args"])
    [file] = load([str(tmp_path / "types.yaml")])
    assert [rule.name for rule in file.rules] == ["get_document", "list_documents"]
    assert "passed" in completed.stdout


def test_the_rules_of_the_page_pass_their_tests(tmp_path: Path) -> None:
    [rules] = re.findall(r"```yaml\n(.*?)```", PAGE, re.DOTALL)
    (tmp_path / "rules.yaml").write_text(rules)
    assert main(["test", "--require-tests", str(tmp_path / "rules.yaml")]) == 0
