"""`hook` cuts an answer as a client hands it over, and `view` reads the rest of it."""

import json
import os
import re
import shlex
import sys
import time
import tomllib
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
Event = dict[str, Any]
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


def assert_cut_and_read(text: str, run: Run) -> None:
    """Check that an answer is WHOLE, cut, and that the commands of its notice read the rest."""
    assert len(text) <= 10_000
    document = json.loads(text)
    first = document["items"]["rows"]
    assert first[0][:3] == [0, "Row 0", "closed"]
    following, *ways = document["_abridged"]["more"].split("; ")
    *words, view = shlex.split(following.removeprefix("run "))
    assert (Path(words[0]).stem, words[1]) == ("mcp-abridge", "view")

    rest = json.loads(run(*words[1:], view).out)["view"]
    assert next(iter(rest[0].values())) == len(first)
    [counts] = [shlex.split(way)[0] for way in ways if way.endswith(" counts")]
    assert json.loads(run(*words[1:], counts).out)["view"] == {"open": 600, "closed": 300}


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
    assert output["updatedToolOutput"] == [block]
    assert_cut_and_read(block["text"], run)


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
    [answer] = (tmp_path / "mcp-abridge" / "answers").glob("*.json")
    assert "Row" not in text + answer.read_text()


def test_words_of_a_saved_answer_without_end_hang_nothing(run_hook: RunHook) -> None:
    before = time.monotonic()
    output, _ = run_hook("<persisted-output>" + "Full output saved to " * 20_000)
    assert output is not None
    assert time.monotonic() - before < 20


def test_on_a_terminal_the_hook_says_who_calls_it(
    monkeypatch: pytest.MonkeyPatch, run: Run
) -> None:
    monkeypatch.setattr("sys.stdin.isatty", lambda: True)
    assert "a client's event is expected on stdin" in run("hook", code=2).err


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


def test_an_answer_within_the_budget_and_other_blocks_are_unchanged(
    run_hook: RunHook, tmp_path: Path, run: Run
) -> None:
    assert run_hook(blocks("x" * 5000)) == (None, "")
    image = {"type": "image", "source": {"type": "base64", "media_type": "image/png", "data": "AA"}}
    output, _ = run_hook([image, *blocks(WHOLE)])
    assert output["updatedMCPToolOutput"][0] == image
    [file] = (tmp_path / "mcp-abridge" / "answers").glob("*.json")
    words = "view: there is no blob(0): the answer has none that a view can show\n"
    assert run("view", file, "blob(0)", code=1) == (words, "")
    file.write_text(json.dumps({"content": [PICTURE, *blocks(WHOLE)]}))
    words = "mcp-abridge view: blob(0): no text; the answer has it as it came\n"
    assert run("view", file, "blob(0)", code=2) == ("", words)


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
    [first] = folder.glob("*.json")
    if sys.platform != "win32":
        assert (folder.stat().st_mode & 0o777, first.stat().st_mode & 0o777) == (0o700, 0o600)
    os.utime(first, (time.time() - 3700,) * 2)
    run_hook(blocks(WHOLE.replace("Row", "Line")))
    assert first not in folder.iterdir()
    error = f"mcp-abridge view: {first}: no such file; `hook` keeps an answer for an hour\n"
    assert run("view", first, "items[0]", code=2) == ("", error)


def test_of_answers_that_take_256_mb_the_oldest_go(run_hook: RunHook, tmp_path: Path) -> None:
    folder = tmp_path / "mcp-abridge" / "answers"
    run_hook(blocks(WHOLE))
    [old] = folder.glob("*.json")
    os.truncate(old, 256_000_000)
    os.utime(old, (time.time() - 60,) * 2)
    (folder / "a folder.json").mkdir()
    run_hook(blocks(WHOLE.replace("Row", "Line")))
    [young] = {each for each in folder.glob("*.json") if each.is_file()}
    assert young != old
    run_hook(blocks(WHOLE.replace("Row", "Word")))
    assert young in folder.iterdir()


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
    names = ["github", "own.yaml"]
    arguments = Namespace(rules=names, allow_python=False, budget=None, client="claude-code")
    words = shlex.split(view.command(arguments, "answer.json"))
    assert words[-3:] == ["--rules=github", f"--rules={tmp_path / 'own.yaml'}", "answer.json"]


def test_a_view_that_cannot_be_made_is_refused(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "answer"
    file.write_text(WHOLE)
    assert "items[" in run("view", file, "items[", code=1).out


def test_an_answer_with_half_a_character_is_cut(run_hook: RunHook) -> None:
    output, error = run_hook([*blocks(WHOLE), *blocks("\ud83d"), {"type": "image", "source": "?"}])
    assert (output["updatedToolOutput"][2:], error) == ([{"type": "image", "source": "?"}], "")


# Of each client that shows a text in place of an answer: the event, and where its answer is.
CODEX: Event = {
    "hook_event_name": "PostToolUse",
    "turn_id": "01a2",
    "tool_name": "mcp__crm__list",
    "tool_input": {"query": "x"},
    "tool_use_id": "call_2",
    "tool_response": {"content": blocks(WHOLE)},
}
COPILOT: Event = {
    "toolName": "my-crm-list",
    "toolArgs": {"query": "x"},
    "toolResult": {"resultType": "success", "textResultForLlm": WHOLE},
}
GEMINI: Event = {
    "hook_event_name": "AfterTool",
    "tool_name": "mcp_crm_list",
    "tool_input": {"query": "x"},
    "tool_response": {"llmContent": [{"text": WHOLE}], "returnDisplay": WHOLE},
    "mcp_context": {"server_name": "crm", "tool_name": "list"},
}
VIBE: Event = {
    "hook_event_name": "post_tool",
    "tool_name": "mcp_crm.list",
    "tool_input": {"query": "x"},
    "tool_status": "success",
    "tool_output": None,
    "tool_output_text": WHOLE,
}
OTHERS = {"codex": CODEX, "copilot-cli": COPILOT, "gemini-cli": GEMINI, "mistral-vibe": VIBE}
PICTURE = {"type": "image", "data": "AA", "mimeType": "image/png"}


def text_in(client: str, output: Any) -> str:
    """Return the text that a client shows its model; its output has nothing else."""
    if client == "copilot-cli":
        [(name, result)] = output.items()
        assert (name, result.pop("resultType")) == ("modifiedResult", "success")
        [(name, text)] = result.items()
        assert name == "textResultForLlm"
    else:
        text = output.pop("reason")
        assert output == {"decision": "block" if client == "codex" else "deny"}
    assert isinstance(text, str)
    return text


@pytest.fixture
def run_event(monkeypatch: pytest.MonkeyPatch, run: Run, tmp_path: Path) -> Callable[..., Any]:
    """Return a function that hands an event to `hook`, and returns its output, None if silent."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))

    def run_event(event: Any, *options: str) -> Any:
        out, error = run("hook", *options, stdin=json.dumps(event).encode())
        assert error == ""
        return json.loads(out) if out else None

    return run_event


@pytest.mark.parametrize("client", OTHERS)
def test_each_client_shows_its_model_the_cut_answer(
    client: str, run_event: Callable[..., Any], run: Run
) -> None:
    for options in ((), ("--client", client)):
        text = text_in(client, run_event(OTHERS[client], *options))
        if client == "gemini-cli":  # which calls it an error
            text = text.removeprefix("The tool has succeeded. Its answer:\n")
        assert_cut_and_read(text, run)


@pytest.mark.parametrize(
    ("client", "member", "value"),
    [
        ("codex", "tool_response", {"content": blocks("ok"), "structuredContent": {"items": ROWS}}),
        ("mistral-vibe", "tool_output", {"items": ROWS}),
    ],
)
def test_the_copy_that_a_clients_model_reads_is_cut(
    client: str, member: str, value: Any, run_event: Callable[..., Any], run: Run
) -> None:
    output = run_event({**OTHERS[client], "tool_output_text": "ok", member: value})
    assert_cut_and_read(text_in(client, output), run)


def test_an_answer_that_copilot_saved_or_shows_twice_is_cut_once(
    run_event: Callable[..., Any], run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    file = tmp_path / f"1795904267298-copilot-tool-output-{'3e' * 16}.txt"
    both = f"{json.dumps({'items': ROWS}, indent=2)}\n\n{WHOLE}"

    def answer(text: str) -> Any:
        return run_event(
            {**COPILOT, "toolResult": {**COPILOT["toolResult"], "textResultForLlm": text}}
        )

    notice = f"Output too large to read at once (183.3 KB). Saved to: {file}\nConsider using tools"
    assert answer(notice) is None
    file.write_text(both)
    for text in (notice, both):
        assert_cut_and_read(text_in("copilot-cli", answer(text)), run)

    (tmp_path / "history").write_text(WHOLE)
    (tmp_path / "other").mkdir()
    for path in (
        "history",
        "other/../history",
        f"other/{file.name}/x",
        "x-copilot-tool-output-1.txt",
    ):
        assert answer(notice.replace(file.name, path)) is None
    if sys.platform != "win32":
        file.unlink()
        file.symlink_to(tmp_path / "history")
        assert answer(notice) is None
        file.unlink()
        os.mkfifo(file)
        assert answer(notice) is None


@pytest.mark.parametrize(
    "event",
    [
        {**CODEX, "tool_use_id": "exec-8cf2"},  # a script computes with it
        {**CODEX, "tool_response": {"content": [*blocks(WHOLE), PICTURE]}},
        {**CODEX, "tool_response": {"content": blocks(WHOLE), "isError": True}},
        {**CODEX, "tool_name": "Bash", "tool_response": WHOLE},
        {**COPILOT, "toolName": "view"},
        {**COPILOT, "toolResult": {"resultType": "failure", "textResultForLlm": WHOLE}},
        {**GEMINI, "tool_response": {**GEMINI["tool_response"], "error": {"message": WHOLE}}},
        {**GEMINI, "tool_response": {"llmContent": [{"text": WHOLE}, {"inlineData": {}}]}},
        {**GEMINI, "mcp_context": None},
        {**VIBE, "tool_status": "failure"},
        {**VIBE, "tool_name": "read_file"},
        # Programs that run the hooks of Claude Code, and say other things to them.
        {"hookEventName": "PostToolUse", "toolName": "crm__list", "toolOutput": WHOLE},
        {"hook_event_name": "PostToolUse", "tool_name": "mcp__a__b", "tool_response": WHOLE},
        {**CODEX, "turn_id": None, "tool_response": {"text": WHOLE}},
        {**CODEX, "tool_response": [WHOLE]},
        [WHOLE],
        WHOLE,
    ],
)
def test_what_is_no_answer_of_a_server_to_cut_stays_as_it_is(
    event: Any, run_event: Callable[..., Any]
) -> None:
    assert run_event(event) is None


def test_one_client_is_served_if_it_is_named(run_event: Callable[..., Any]) -> None:
    assert run_event(CODEX, "--client", "claude-code") is None
    assert run_event(CODEX, "--client", "codex") is not None


def test_claude_codes_own_tools_are_cut_if_they_are_named(
    run_event: Callable[..., Any], tmp_path: Path
) -> None:
    own = tmp_path / "session" / "tool-results"
    own.mkdir(parents=True)
    (own / "b1.txt").write_text(WHOLE)
    (tmp_path / "history").write_text(WHOLE)
    fields = {"stdout": WHOLE[:30_000], "stderr": "", "interrupted": False, "isImage": False}
    event = {
        "hook_event_name": "PostToolUse",
        "transcript_path": str(tmp_path / "session.jsonl"),
        "tool_name": "Bash",
        "tool_input": {"command": "cat rows.json"},
        "tool_response": {**fields, "persistedOutputPath": str(own / "b1.txt")},
    }
    fetched = {"code": 200, "result": WHOLE}
    page = {**event, "tool_name": "WebFetch", "tool_input": {}, "tool_response": fetched}

    assert run_event(event) is None
    assert run_event(page, "--tools", "Bash") is None
    output = run_event(event, "--tools", "Bash")["hookSpecificOutput"]["updatedToolOutput"]
    assert json.loads(output.pop("stdout"))["_abridged"]["items"].startswith("165 of 900;")
    assert {**output, "stdout": fields["stdout"]} == fields
    output = run_event(page, "--tools", "WebFetch")["hookSpecificOutput"]["updatedToolOutput"]
    assert json.loads(output["result"])["_abridged"]["items"].startswith("165 of 900;")

    reading = {"command": "mcp-abridge view a.json 'items[9:500]'"}
    elsewhere = {**fields, "persistedOutputPath": str(tmp_path / "history")}
    for other in (
        {**event, "tool_input": reading},
        {**event, "tool_response": elsewhere},
        {**event, "tool_response": {**fields, "interrupted": True}},
        {**event, "tool_name": "Read"},
    ):
        assert run_event(other, "--tools", "Bash") is None


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
    run("wrap", "--hook", "--rules", "git")
    assert path.read_bytes().decode() == edited.replace("github", "git")
    assert run("unwrap", "--hook").err.endswith("\nrestart the clients\n")
    assert path.read_bytes() == settings.encode()


def test_wrap_makes_the_settings_for_the_hook_if_there_are_none(tmp_path: Path, run: Run) -> None:
    file = tmp_path / "none" / "settings.json"
    out = run("unwrap", "--hook", CLAUDE_CONFIG_DIR=str(file.parent)).out
    assert out == "the hook is not there\n"
    assert '+  "PostToolUse": [\n+    {' in run("wrap", "--hook", "--dry-run").out
    assert not file.parent.exists()
    words = run("wrap", "--hook").err
    assert words.endswith("restart the clients; `mcp-abridge unwrap --hook` restores\n")
    assert list(json.loads(file.read_text())) == ["hooks"]
    words = run("unwrap", "--hook").err
    assert words == f"{file} has nothing else, and is removed\nrestart the clients\n"
    assert not file.exists()

    file.write_text("{\n")
    assert f"{file}:2:1: " in run("wrap", "--hook", code=1).err
    for text in ("", "[]", '{"hooks": null}'):
        file.write_text(text)
        assert f"{file}: an unusual form; edit" in run("wrap", "--hook", code=1).err
        assert file.read_text() == text

    file.write_text('{"hooks": {"PostToolUse": [{"matcher": "x", "hooks": []}]}}')
    run("wrap", "--hook")
    text = file.read_text().replace("},{", "} /* of mine */ ,{")
    file.write_text(text)  # without the hook, the comma before the other one would be the first
    assert f"{file}: an unusual form; edit" in run("unwrap", "--hook", code=1).err
    assert file.read_text() == text


GROUP = '{"matcher": "X", "hooks": [{"type": "command", "command": "x"}]}'


@pytest.mark.parametrize(
    ("client", "file", "text"),
    [
        ("codex", ".codex/hooks.json", None),
        ("codex", ".codex/hooks.json", f'{{"hooks": {{"PostToolUse": [{GROUP}]}}}}'),
        ("copilot-cli", ".copilot/hooks/mcp-abridge.json", None),
        ("copilot-cli", ".copilot/hooks/mcp-abridge.json", '{"version": 1, "hooks": {}}\n'),
        ("gemini-cli", ".gemini/settings.json", None),
        ("gemini-cli", ".gemini/settings.json", '{\n  "mcpServers": {},\n  "hooks": {\n  }\n}\n'),
        ("mistral-vibe", ".vibe/hooks.toml", None),
        ("mistral-vibe", ".vibe/hooks.toml", ""),
        ("mistral-vibe", ".vibe/hooks.toml", '# mine\r\n[[hooks]]\r\nname = "a"  # b'),
    ],
)
def test_the_hook_of_each_client_comes_and_goes_to_the_byte(
    client: str, file: str, text: str | None, tmp_path: Path, run: Run, monkeypatch: Any
) -> None:
    for name in ("CODEX_HOME", "COPILOT_HOME", "GEMINI_CLI_HOME", "VIBE_HOME"):
        monkeypatch.delenv(name, raising=False)
    home = {"HOME": str(tmp_path), "USERPROFILE": str(tmp_path)}
    path = tmp_path / file
    if text is not None:
        path.parent.mkdir(parents=True)
        path.write_bytes(text.encode())
    words = ("wrap", "--hook", "--client", client)
    assert f'"{client}' not in run(*words, "--dry-run", **home).out
    assert path.exists() == (text is not None)
    run(*words)
    load = tomllib.loads if file.endswith("toml") else json.loads
    document = load(path.read_bytes().decode())
    if client == "copilot-cli":
        assert document["version"] == 1
    command = r"mcp-abridge(?:[.]exe.)? hook\b"
    assert re.search(command, json.dumps(document["hooks"]))
    assert run(*words).out == "the hook is there already\n"
    run(*words, "--rules", "git")
    assert "hook --rules git" in path.read_text()
    run("unwrap", "--hook")
    assert (path.read_bytes().decode() if path.exists() else None) == text
    assert run("unwrap", "--hook").out == "the hook is not there\n"


def test_the_hook_goes_from_a_file_that_its_client_has_written_anew(
    tmp_path: Path, run: Run
) -> None:
    path = tmp_path / ".gemini" / "settings.json"
    path.parent.mkdir()
    for settings in ({"a": {"b": [1]}}, {"hooks": {"AfterTool": [json.loads(GROUP)]}, "a": 1}):
        path.write_text(json.dumps(settings))
        run("wrap", "--hook", "--client", "gemini-cli", GEMINI_CLI_HOME=str(tmp_path))
        path.write_text(json.dumps(json.loads(path.read_text()), indent=2))
        run("unwrap", "--hook")
        assert json.loads(path.read_text()) == settings


def test_a_file_of_hooks_that_cannot_take_one_more_stays_as_it_is(tmp_path: Path, run: Run) -> None:
    path = tmp_path / "hooks.toml"
    for text in ("hooks = []\n", "[[hooks\n"):
        path.write_text(text)
        words = run("wrap", "--hook", "--client", "mistral-vibe", code=1, VIBE_HOME=str(tmp_path))
        assert words.err.endswith("; edit it by hand\n")
        assert path.read_text() == text


def test_the_hook_runs_for_the_tools_that_are_named(tmp_path: Path, run: Run) -> None:
    tools = ("--tools", "Bash", "--tools", "WebFetch")
    run("wrap", "--hook", *tools, CLAUDE_CONFIG_DIR=str(tmp_path))
    settings = json.loads((tmp_path / "settings.json").read_text())
    [group] = settings["hooks"]["PostToolUse"]
    assert group["matcher"] == "mcp__.*|Bash|WebFetch"
    assert group["hooks"][0]["command"].endswith(" hook --tools=Bash --tools=WebFetch")
    assert run("wrap", "--hook", "--client", "codex", *tools, code=2).err.endswith("claude-code\n")
    assert (
        "--hook is for claude-code, codex"
        in run("wrap", "--hook", "--client", "cursor", code=2).err
    )


@pytest.mark.parametrize("word", ["fs", "--all", "--json", "--login", "--print"])
def test_wrap_refuses_what_does_not_go_with_the_hook(word: str, run: Run) -> None:
    words = run("wrap", "--hook", word, code=2).err
    assert words.endswith("only --client, --dry-run, --rules and --tools may follow\n")
