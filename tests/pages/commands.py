"""Runs the commands of a page as they are written, in a folder of their own with what they need.

All `sh` blocks of a page are one script, but for the lines of NOT_RUN. A port that a page names
stands for a free one. No line needs its `&`: programs that listen return once they do.
"""

import json
import os
import re
import shlex
import shutil
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tests.cli.test_weigh import ROWS, claude, result, use
from tests.conformance.suite import free_port
from tests.pages import ROOT, blocks, files_of, programs
from tests.plain_server import IMPORT

SECONDS = 100
NOT_RUN = {
    r"(pip|pipx|apk|apt-get|uv|uvx) ": "needs a registry of packages",
    r"docker ": "needs a registry of images",
    r"kubectl ": "needs a cluster",
    r"make (demo|unit|test) ": "is what runs this test",
    r"(claude|codex) ": "`make clients` runs it with the real program",
    r"mcp-abridge .*https://mcp\.example\.org": "needs a network service",
}
"""The beginnings of the lines that are not run, and the reason why."""

_PORT = re.compile(r"(?<=[:= ])(?:3000|6379|8080|8808|8809)\b")
_RULES = "version: 1\nrules:\n  - tools: list_issues\n    response: [{keep: [number, title]}]\n"
_SERVER = f"""{IMPORT}
tool = {{"name": "list_issues", "inputSchema": {{"type": "object"}}}}
serve("plain", "1", [tool], lambda tool, arguments: {{"content": []}})
"""
_MEMORY = {"type": "entity", "name": "thing", "entityType": "thing", "observations": ["a" * 90] * 4}


def lines_of(text: str) -> Iterator[tuple[str, bool]]:
    """Yield the command lines of a block, each whole; and whether it is run."""
    rest = iter(text.splitlines(keepends=True))
    for line in rest:
        while line.endswith("\\\n"):
            line += next(rest)
        mark = re.search(r"<<'?(\w+)'?", line)
        for inner in rest if mark else ():
            line += inner
            if mark and inner.strip() == mark[1]:
                break
        yield line, not any(re.match(beginning, line) for beginning in NOT_RUN)


def ran(page: str | Path, folder: Path) -> subprocess.CompletedProcess[str]:
    """Run the commands of a page in an empty folder, which then holds what they wrote."""
    ports: dict[str, str] = {}

    def freed(text: str) -> str:
        return _PORT.sub(lambda port: ports.setdefault(port[0], str(free_port())), text)

    _set_up(folder)
    for name, text in files_of(Path(page)).items():
        (folder / name).write_text(text)
    for file in (*folder.glob("examples/*/*.yaml"), *folder.glob("*.yaml")):
        file.write_text(freed(file.read_text()))
    lines = [line for block in blocks(Path(page), "sh") for line in lines_of(block.text)]
    script = freed("".join(line.removesuffix(" &\n") + "\n" for line, run in lines if run))
    for name in re.findall(r"-o (\S+)", script):
        (folder / name).unlink(missing_ok=True)
    # Files, not pipes: what goes on in the background keeps its stdout.
    out, error = folder / "out", folder / "error"
    with out.open("w") as stdout, error.open("w") as stderr:
        process = subprocess.Popen(
            ["bash", "-ec", script],
            cwd=folder,
            env={**os.environ, **_environment(folder)},
            stdin=subprocess.DEVNULL,
            stdout=stdout,
            stderr=stderr,
            start_new_session=True,
        )
    try:
        code = process.wait(SECONDS)
    finally:
        with suppress(ProcessLookupError):
            os.killpg(process.pid, signal.SIGTERM)
    return subprocess.CompletedProcess(script, code, out.read_text(), error.read_text())


def _environment(folder: Path) -> dict[str, str]:
    home = folder / "home"
    return {
        "PATH": f"{folder / 'bin'}:{os.environ['PATH']}",
        "HOME": str(home),
        "XDG_STATE_HOME": str(home / ".local" / "state"),
        "XDG_CONFIG_HOME": str(home / ".config"),
        "MCP_ABRIDGE_LISTEN": f"127.0.0.1:{free_port()}",
        "MEMORY_FILE_PATH": str(folder / "memory.jsonl"),
    }


def _set_up(folder: Path) -> None:
    """Write what a reader has: programs, a client's configuration, transcripts, rules, answers."""
    sessions = folder / "home" / ".claude" / "projects" / "shop"
    for path in (folder / "bin", folder / "home" / ".cursor", sessions):
        path.mkdir(parents=True)
    for name in programs.PROGRAMS:
        words = shlex.join([sys.executable, "-P", "-m", programs.__name__, name, str(folder)])
        places = shlex.quote(f"{ROOT}:{ROOT / 'proxy'}")
        (folder / "bin" / name).write_text(f'#!/bin/sh\nPYTHONPATH={places} exec {words} "$@"\n')
        (folder / "bin" / name).chmod(0o755)
    for tree in ("examples", "rules"):
        shutil.copytree(ROOT / tree, folder / tree)
    shutil.copytree(ROOT / "rules" / "fixtures" / "github", folder / "calls")
    entry = {"command": "python", "args": ["server.py"]}
    servers = {"mcpServers": {"docs": entry, "memory": entry}}
    things = [{**_MEMORY, "name": f"thing {number}"} for number in range(200)]
    issues = [{"number": 7, "title": "Crash", "body": "long"}] * 200
    for path, text in {
        folder / "home" / ".cursor" / "mcp.json": json.dumps(servers),
        sessions / "s.jsonl": claude(use("1", "mcp__crm__list"), result("1", ROWS)),
        folder / "server.py": _SERVER,
        folder / "rules.yaml": _RULES,
        folder / "mine.yaml": _RULES,
        folder / "answer.json": json.dumps(issues),
        folder / "memory.jsonl": "\n".join(map(json.dumps, things)),
    }.items():
        path.write_text(text)
