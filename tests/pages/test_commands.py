"""Every command line of a page runs, or stands in NOT_RUN with the reason; all have right words."""

import re
import shlex
import shutil
from pathlib import Path

import pytest
from mcp_abridge.cli import VERBS, main

from tests.pages import ROOT, blocks, pages, prose
from tests.pages.commands import NOT_RUN, lines_of, ran

SHELL = [page for page in pages() if any(blocks(page, "sh"))]
# Their tests run the page, too, and look closer at what it printed and wrote.
OWN = {
    "rules/FIRST_RULE.md": "tests/test_first_rule.py",
    "examples/scripts.md": "tests/test_scripts_page.py",
}
# What these show with `$` and output is compared with what is printed.
CONSOLE = {
    "rules/PYTHON.md": "tests/test_python_page.py",
    "examples/in-process/README.md": "tests/test_in_process.py",
}
LEFT_OUT = [
    line
    for page in SHELL
    for block in blocks(page, "sh")
    for line, run in lines_of(block.text)
    if not run
]
# A call in the text of a page; what stands for something is replaced by such a thing.
CALL = re.compile(r"`(mcp-abridge [^\s`]+ [^`>]+)")
THINGS = {"[": "", "]": "", " SIZE": " 8kB", "--client C": "--client codex"}


# What a newcomer does first; each takes seconds. What others run, their own tests do, too.
FIRST = "README.md"
RUN = [
    pytest.param(page, marks=[] if str(page) == FIRST else pytest.mark.long)
    for page in SHELL
    if str(page) not in OWN
]


@pytest.mark.usefixtures("servers")
@pytest.mark.parametrize("page", RUN, ids=str)
def test_the_commands_of_a_page_work_as_written(page: Path, tmp_path: Path) -> None:
    for program in ("redis-server",):
        if f"\n{program} " in (ROOT / page).read_text() and shutil.which(program) is None:
            pytest.skip(f"{program} is not installed")
    completed = ran(page, tmp_path)
    assert completed.returncode == 0, completed.stdout[-2000:] + completed.stderr[-4000:]


def test_a_page_that_is_not_run_here_has_a_test_of_its_own() -> None:
    for page, test in {**OWN, **CONSOLE}.items():
        assert re.search(rf'ran\("{page}"|PAGE = ', (ROOT / test).read_text())
    consoles = {str(page) for page in pages() for _ in blocks(page, "console")}
    assert consoles == CONSOLE.keys()
    assert not [page for page in pages() for name in ("bash", "shell") if [*blocks(page, name)]]


def test_each_reason_not_to_run_a_line_is_needed() -> None:
    assert [word for word in NOT_RUN if not any(re.match(word, line) for line in LEFT_OUT)] == []


@pytest.mark.parametrize("line", sorted(set(LEFT_OUT)))
def test_a_line_that_is_not_run_names_files_targets_and_options_that_are_there(
    line: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    for file in re.findall(r"(?:examples|rules)/[\w./-]+", line):
        assert (ROOT / file).exists()
    for target in re.findall(r"^make (\w+)", line):
        assert f"\n{target}:" in (ROOT / "Makefile").read_text()
    for ours in re.findall(r"(?:^|-- |--from \. )(mcp-abridge .+)", line):
        assert not parsed(ours, monkeypatch)


@pytest.mark.parametrize("page", pages(), ids=str)
def test_every_call_in_the_text_of_a_page_has_words_of_this_version(
    page: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls = CALL.findall(" ".join(prose(page).split()))
    assert [call for call in calls if parsed(call, monkeypatch)] == []


def parsed(call: str, monkeypatch: pytest.MonkeyPatch) -> object:
    """Parse a command line of ours without running it; return its exit code."""
    for placeholder, thing in THINGS.items():
        call = call.replace(placeholder, thing)
    monkeypatch.setenv("TOKEN", "token")
    monkeypatch.setenv("API_KEY", "key")
    for verb in VERBS:
        monkeypatch.setattr(f"mcp_abridge.cli.{verb}.run", lambda *_, **__: 0)
    try:
        return main(shlex.split(call, comments=True)[1:])
    except SystemExit as error:
        return error.code
