"""`hook` cuts an answer as Claude Code hands it over, and `view` reads the rest of it."""

import json
import os
import re
import shlex
import sys
import time
from argparse import Namespace
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge.cli import view

from tests.cli.conftest import Run

ROWS = [
    {"id": n, "title": f"Row {n}", "state": "open" if n % 3 else "closed", "body": "b" * 150}
    for n in range(900)
]
WHOLE = json.dumps({"items": ROWS})
# The text that Claude Code 2.1.197 shows in place of an answer of more than 25,000 tokens.
SAVED = (
    "Error: result (%d characters across 1 line) exceeds maximum allowed tokens. Output has been"
    " saved to %s.\nFormat: Plain text\nUse offset and limit parameters to read specific portions"
    " of the file, search within it for specific content, and jq to make structured queries.\n"
)
RunHook = Callable[..., tuple[Any, str]]


@pytest.fixture(autouse=True)
def program(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """See to it that the command is found, which `make windows` has not installed."""
    if sys.platform == "win32":
        file = tmp_path_factory.mktemp("bin") / "mcp-abridge.exe"
        file.touch()
        monkeypatch.setattr("sys.argv", [str(file)])


@pytest.fixture
def run_hook(monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> RunHook:
    """Return a function that hands an answer to `hook`, and returns its output and stderr."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def run_hook(
        response: Any, *options: str, tool: str = "mcp__crm__list", code: int = 0
    ) -> tuple[Any, str]:
        event = {
            "hook_event_name": "PostToolUse",
            "transcript_path": str(tmp_path / "project" / "session.jsonl"),
            "tool_name": tool,
            "tool_input": {"query": "x"},
            "tool_response": response,
        }
        out, error = run("hook", *options, code=code, stdin=json.dumps(event).encode())
        output = json.loads(out)["hookSpecificOutput"] if out else None
        return output, error

    return run_hook


def blocks(*texts: str) -> list[dict[str, str]]:
    return [{"type": "text", "text": text} for text in texts]


@pytest.mark.parametrize("form", ["blocks", "structuredContent", "file"])
def test_a_long_answer_is_cut_and_the_commands_in_its_notice_read_the_rest(
    form: str, run_hook: RunHook, tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "project" / "session" / "tool-results" / "to read (1) 李.txt"
    file.parent.mkdir(parents=True)
    file.write_text(WHOLE)
    saved = SAVED % (len(WHOLE), file)
    response = {"blocks": blocks(WHOLE), "structuredContent": WHOLE, "file": saved}[form]
    output, error = run_hook(response)

    assert (error, output["hookEventName"]) == ("", "PostToolUse")
    [block] = output["updatedMCPToolOutput"]
    assert len(block["text"]) <= 10_000
    document = json.loads(block["text"])
    first = document["items"]["rows"]
    assert first[0][:3] == [0, "Row 0", "closed"]
    following, *ways = document["_abridged"]["more"].split("; ")
    words = shlex.split(following.removeprefix("run "))
    assert (Path(words[0]).stem, words[1]) == ("mcp-abridge", "view")

    rest = json.loads(run(*words[1:]).out)["view"]
    assert next(iter(rest[0].values())) == len(first)
    [counts] = [shlex.split(way)[0] for way in ways if way.endswith(" counts")]
    assert json.loads(run(*words[1:3], counts).out)["view"] == {"open": 600, "closed": 300}


@pytest.mark.parametrize(
    "path",
    [
        "{home}/.history",
        "{home}/pipe",
        "{own}/pipe",
        "{own}/link",
        "{own}/../../../.history",
        "{own}/../../other/tool-results/answer.txt",
        "{project}/other/tool-results/answer.txt",
        "{project}/session/../other/tool-results/answer.txt",
        "{project}/other/../session/tool-results/..",
        "{home}/session/tool-results/answer.txt",
        "session/tool-results/answer.txt",
        "tool-results/answer.txt",
        "answer.txt",
        "{own}/\0",
        "{own}/" + os.path.splitdrive(os.getcwd())[0] + ".history",
    ],
)
def test_a_server_that_names_a_users_file_gets_nothing_of_it(
    path: str, run_hook: RunHook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    project = tmp_path / "project"
    own, other = (project / session / "tool-results" for session in ("session", "other"))
    elsewhere = tmp_path / "session" / "tool-results"
    for folder in (own, other, elsewhere):
        folder.mkdir(parents=True)
    for file in (tmp_path / ".history", other / "answer.txt", elsewhere / "answer.txt"):
        file.write_text(WHOLE)
    if sys.platform != "win32":
        (own / "link").symlink_to(tmp_path / ".history")
        for folder in (own, tmp_path):
            os.mkfifo(folder / "pipe")
    monkeypatch.chdir(tmp_path)
    words = SAVED % (9, path.format(home=tmp_path, project=project, own=own))

    assert run_hook(words) == (None, "")
    output, _ = run_hook(words + "x" * 20_000)
    text = "".join(block["text"] for block in output["updatedMCPToolOutput"])
    assert text.startswith(words[:100])
    assert len(text) <= 10_000
    [answer] = (tmp_path / "mcp-abridge" / "answers").iterdir()
    assert "Row" not in text + answer.read_text()


def test_words_of_a_saved_answer_without_end_hang_nothing(run_hook: RunHook) -> None:
    before = time.monotonic()
    output, _ = run_hook("<persisted-output>" + "Full output saved to " * 20_000)
    assert output is not None
    assert time.monotonic() - before < 20


def test_the_notice_of_a_view_names_the_command_too(run_hook: RunHook, run: Run) -> None:
    lines = "".join(f"line {n} of the log\n" for n in range(9000))
    output, _ = run_hook(blocks(lines))
    command = re.search(
        r"run (\S*mcp-abridge(?:[.]exe')? view \S+ '[^']+')",
        output["updatedMCPToolOutput"][1]["text"],
    )
    assert command is not None
    out = run(*shlex.split(command[1])[1:]).out
    assert "is next" in out
    assert "view='" not in out


def test_an_answer_within_the_budget_and_other_blocks_are_unchanged(run_hook: RunHook) -> None:
    assert run_hook(blocks("x" * 5000)) == (None, "")
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
    output, _ = run_hook([image, *blocks(WHOLE)])
    assert output["updatedMCPToolOutput"][0] == image


def test_the_rules_apply_to_the_tool_of_any_server(
    run_hook: RunHook, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    rules = tmp_path / "crm.yaml"
    rules.write_text(
        "version: 1\nrules: [{tools: list, response: [{keep: [items.id]}], max_bytes: 3000}]\n"
    )
    monkeypatch.chdir(tmp_path)
    output, _ = run_hook(blocks(WHOLE), "--rules", "crm.yaml", tool="mcp__plugin_x_crm__list")
    text = output["updatedMCPToolOutput"][0]["text"]
    assert "Row 1" not in text
    assert len(text) <= 3000
    words = shlex.split(json.loads(text)["_abridged"]["more"].partition("; ")[0])
    monkeypatch.chdir("/")
    assert "Row 1" not in run(*words[2:]).out


def test_answers_are_kept_for_an_hour_for_their_owner_alone(
    run_hook: RunHook, tmp_path: Path, run: Run
) -> None:
    folder = tmp_path / "mcp-abridge" / "answers"
    run_hook(blocks(WHOLE))
    [first] = folder.iterdir()
    if sys.platform != "win32":
        assert (folder.stat().st_mode & 0o777, first.stat().st_mode & 0o777) == (0o700, 0o600)
    os.utime(first, (time.time() - 3700,) * 2)
    run_hook(blocks(WHOLE.replace("Row", "Line")))
    assert first not in folder.iterdir()
    error = f"mcp-abridge view: {first}: no such file; `hook` keeps an answer for an hour\n"
    assert run("view", first, "items[0]", code=2) == ("", error)


def test_an_answer_within_the_budget_has_views_and_so_has_one_without_a_budget(
    tmp_path: Path, run: Run
) -> None:
    file = tmp_path / "answer"
    off = ("--budget", "off"), ("--rules", "none")
    for text, words in (('{"a": 1}', ()), *((WHOLE, words) for words in off)):
        file.write_text(text)
        [(name, value)] = json.loads(text).items()
        assert json.loads(run("view", file, name, *words).out) == {"view": value}


def test_the_command_of_a_view_means_the_same_rules_in_any_folder(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "github").mkdir()  # is no rule file: a name alone is a bundled one
    (tmp_path / "own.yaml").touch()
    monkeypatch.chdir(tmp_path)
    arguments = Namespace(rules=["github", "own.yaml"], allow_python=False, budget=None)
    words = shlex.split(view.command(arguments, "answer.json"))
    assert words[-3:] == ["--rules=github", f"--rules={tmp_path / 'own.yaml'}", "answer.json"]


def test_a_view_that_cannot_be_made_is_refused(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "answer"
    file.write_text(WHOLE)
    assert "items[" in run("view", file, "items[", code=1).out


@pytest.mark.parametrize(
    ("response", "tool", "reason"),
    [
        ({"stdout": WHOLE}, "Bash", "'Bash' is no tool of a server; set the hook's matcher to mcp"),
        ({"text": WHOLE}, "mcp__a__b", "its tool_response is neither a text nor a list of content"),
        ([WHOLE], "mcp__a__b", "its tool_response is neither a text nor a list of content"),
        (
            [{"type": "image", "source": WHOLE}],
            "mcp__a__b",
            "its event has another form than Claude Code's, AttributeError(",
        ),
        (blocks(WHOLE), None, "its event has another form than Claude Code's, TypeError("),
    ],
)
def test_an_event_that_cannot_be_used_leaves_the_answer_as_it_is(
    response: Any, tool: Any, reason: str, run_hook: RunHook
) -> None:
    output, error = run_hook(response, tool=tool, code=1)
    prefix = "mcp-abridge hook: the answer stays as it is: "
    assert (output, error.startswith(prefix + reason)) == (None, True), error


@pytest.mark.parametrize(
    "settings",
    [
        "{}\n",
        '{\n  // mine\n  "model": "opus",\n  "hooks": {\n    "Stop": []\n  }\n}\n',
        '{\r\n\t"hooks": {"PostToolUse": [{"matcher": "Edit", "hooks": []}], },\r\n}',
        '{"hooks": { }, "a": 1}',
    ],
)
def test_wrap_adds_the_hook_to_the_settings_and_unwrap_restores_them_to_the_byte(
    settings: str, tmp_path: Path, run: Run
) -> None:
    path = tmp_path / "settings.json"
    path.write_bytes(settings.encode())
    assert "+" in run("wrap", "--hook", "--dry-run", CLAUDE_CONFIG_DIR=str(tmp_path)).out
    assert path.read_bytes() == settings.encode()
    run("wrap", "--hook", "--rules", "github")
    edited = path.read_bytes().decode()
    [command] = re.findall(
        r'"command": "([^"]*mcp-abridge(?:[.]exe.)? hook --rules github)"', edited
    )
    assert len(edited) - len(settings) < len(command) + 120
    assert run("wrap", "--hook").out == "the hook is there already\n"
    run("wrap", "--hook", "--rules", "slack")
    assert path.read_bytes().decode() == edited.replace("github", "slack")
    assert run("unwrap", "--hook").err.endswith("\nrestart the clients\n")
    assert path.read_bytes() == settings.encode()


def test_wrap_makes_the_settings_for_the_hook_if_there_are_none(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "none" / "settings.json"
    out = run("unwrap", "--hook", CLAUDE_CONFIG_DIR=str(file.parent)).out
    assert out == "the hook is not there\n"
    assert '+  "PostToolUse": {' in run("wrap", "--hook", "--dry-run").out
    assert not file.parent.exists()
    words = run("wrap", "--hook").err
    assert words.endswith("restart the clients; `mcp-abridge unwrap --hook` restores\n")
    assert list(json.loads(file.read_text())) == ["hooks"]
    run("unwrap", "--hook")
    assert not file.exists()

    file.write_text("{\n")
    assert f"{file}:2:1: " in run("wrap", "--hook", code=1).err
    for text in ("", "[]", '{"hooks": null}'):
        file.write_text(text)
        assert f"{file}: an unusual form; edit" in run("wrap", "--hook", code=1).err
        assert file.read_text() == text


@pytest.mark.parametrize("word", ["fs", "--all", "--json", "--login", "--print", "--client=codex"])
def test_wrap_refuses_what_does_not_go_with_the_hook(word: str, run: Run) -> None:
    words = run("wrap", "--hook", word, code=2).err
    assert words.endswith("only --dry-run and --rules may follow\n")
