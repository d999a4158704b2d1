"""Works through rules/PYTHON.md: writes its files, runs its commands, compares what they say."""

import os
import re
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import get_args

from mcp_abridge.ruleset.guard import Decision
from mcp_abridge.ruleset.loading.plugins import KINDS

ROOT = Path(__file__).resolve().parents[1]
USERS = [*ROOT.glob("examples/*/*.py"), *ROOT.glob("tests/cases/python/*.py")]
PAGE = (ROOT / "rules" / "PYTHON.md").read_text()
# The last file that is named before a block is the one that it is.
BLOCK = re.compile(r"^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
FILE = re.compile(r"`(\w+\.(?:py|yaml))`")
COMMAND = re.compile(r"^\$ mcp-abridge (.+)\n((?:(?!\$ ).*\n)*)", re.MULTILINE)


def blocks() -> Iterator[tuple[str, str, str]]:
    """Yield the language of each block, the file that it is, and what it holds."""
    end = 0
    for block in BLOCK.finditer(PAGE):
        names = FILE.findall(PAGE[end : block.start()])
        yield block[1], names[-1] if names else "", block[2]
        end = block.end()


def output_of(words: str, folder: Path) -> str:
    """Run a command in a folder; return what it says, with no time in it."""
    completed = subprocess.run(
        [sys.executable, "-m", "mcp_abridge", *words.split()],
        cwd=folder,
        env={**os.environ, "PYTHONPATH": str(ROOT / "proxy"), "PYTHONDONTWRITEBYTECODE": "1"},
        capture_output=True,
        text=True,
        timeout=60,
    )
    return timeless(completed.stdout + completed.stderr)


def timeless(text: str) -> str:
    return re.sub(r" in \d+\.\d\d s$", "", text, flags=re.MULTILINE)


def test_the_page_does_what_it_says_from_the_first_block_to_the_last(tmp_path: Path) -> None:
    ran = 0
    for language, file, text in blocks():
        if language == "console":
            for words, output in COMMAND.findall(text):
                assert output_of(words, tmp_path) == timeless(output), words
                ran += 1
        else:
            assert file.endswith({"python": ".py", "yaml": ".yaml"}[language])
            (tmp_path / file).write_text(text)
    assert ran == 5
    assert PAGE.count("mcp-abridge test --allow-python") == 2


def test_the_page_has_every_member_and_every_decision() -> None:
    rows = re.findall(r"^\| `(\w+)", PAGE, re.MULTILINE)
    assert set(KINDS["transforms"]) <= set(rows)
    assert {kind.__name__ for kind in get_args(Decision)} <= set(rows)


def test_python_of_users_imports_from_the_plugin_module_alone() -> None:
    for file in [*USERS, ROOT / "rules" / "PYTHON.md"]:
        modules = set(re.findall(r"^from (proxy\S*) import", file.read_text(), re.MULTILINE))
        assert modules <= {"mcp_abridge.plugin"}, file
