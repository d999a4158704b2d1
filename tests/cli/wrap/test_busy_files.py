"""Large files, and those that their client writes meanwhile: `wrap` is quick, and loses nothing."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from tests.cli.conftest import Run
from tests.cli.wrap.conftest import write
from tests.faults.scale import scaled
from tests.platforms import on_posix

# A client that adds a mark every 50 ms, until its stdin has a line; then it says how many.
CLIENT = """
import os, select, sys
path, way = sys.argv[1:]
marks = 0
while not select.select([sys.stdin], [], [], 0.05)[0]:
    with open(path) as file:
        text = file.read()
    with open(path + ".new" if way == "renamed" else path, "w") as file:
        file.write(text.replace('"marks": [', f'"marks": [{marks}, ', 1))
    if way == "renamed":
        os.replace(path + ".new", path)
    marks += 1
    if marks == 1:
        print("busy", flush=True)
print(marks)
"""


def configuration(megabytes: float) -> str:
    """Return a .claude.json of this size with four servers in projects, and seven elsewhere."""
    servers = [{"type": "stdio", "command": "npx", "args": ["-y", f"p{at}"]} for at in range(11)]
    history = [{"display": 'https://a.invalid/ "fix" it: größer', "number": 1.0}] * 40
    text = len(json.dumps(history, indent=2, ensure_ascii=False))
    projects: dict[str, object] = {
        f"/src/{at}": {
            "history": history,
            "mcpServers": {f"p{at}": servers[at]} if at < 4 else {},
        }
        for at in range(int(megabytes * 1e6 / text))
    }
    own = {f"s{at}": servers[at] for at in range(4, 11)}
    document = {"marks": [-1], "projects": projects, "mcpServers": own, "end": True}
    return json.dumps(document, indent=2, ensure_ascii=False)


def commands(document: Any) -> list[str]:
    groups = [document, *document["projects"].values()]
    return [server["command"] for group in groups for server in group["mcpServers"].values()]


def test_a_large_file_with_many_servers_takes_a_moment(home: Path, run: Run) -> None:
    file = write(home, ".claude.json", text := configuration(5.7))
    for verb in ("wrap", "unwrap"):
        before = time.process_time()
        assert run(verb, "--all").out.count("\n@@ ") == 11
        assert time.process_time() - before < 4
    assert file.read_text() == text


def again(run: Run, verb: str) -> None:
    """Change all servers; on a machine with much to do it may end with the advice to try again."""
    for _ in range(5):
        with suppress(AssertionError):
            run(verb, "--all")
            return
    run(verb, "--all")


@pytest.mark.parametrize("way", ["renamed", "in place"])
@on_posix("no rename of a file that another has open")
def test_a_client_that_writes_its_file_all_the_time_loses_nothing_and_is_wrapped(
    way: str, home: Path, run: Run
) -> None:
    for _ in range(scaled(1, 20)):
        file = write(home, ".claude.json", configuration(1))
        words = [sys.executable, "-c", CLIENT, str(file), way]
        pipe = subprocess.PIPE
        with subprocess.Popen(words, stdin=pipe, stdout=pipe, text=True) as client:
            assert client.stdout is not None
            client.stdout.readline()
            for verb in ("wrap", "unwrap", "wrap"):
                again(run, verb)
            marks = int(client.communicate("\n")[0])
        document = json.loads(file.read_text())
        assert sorted(document["marks"]) == list(range(-1, marks))
        assert {os.path.basename(each) for each in commands(document)} == {"mcp-abridge"}
        run("unwrap", "--all")
        assert set(commands(json.loads(file.read_text()))) == {"npx"}
