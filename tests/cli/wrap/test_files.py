"""Files of users: nothing of them is lost or left behind, and what they hold is shown escaped."""

import json
import os
import subprocess
import sys
import time
from contextlib import suppress
from pathlib import Path

import pytest
import tomlkit

from tests.cli.conftest import Run
from tests.cli.wrap.conftest import state_folder, write
from tests.faults.scale import scaled
from tests.platforms import on_posix
from tests.raw_http import RawServer, always, whole
from tests.wrapped import ROOT

ONE = '{"mcpServers": {"a": {"command": "x"}}}'
TWO = '{"mcpServers": {"a": {"command": "x"}, "b": {"command": "x", "env": {"KEY": "s3cr3t"}}}}'
KEYS = [
    b'{"unfinished": 5}',
    b'{"unfinished": ["x"]}',
    b'{"unfinished": ["[]"]}',
    b'{"x": ["", ""]}',
]


def backups() -> list[str]:
    folder = state_folder() / "backups"
    return sorted(file.read_text() for file in folder.iterdir()) if folder.exists() else []


@on_posix("no control characters in names of files")
def test_words_for_a_terminal_in_a_project_s_file_are_shown_escaped(home: Path, run: Run) -> None:
    odd = "\x1b]0;x\x07\x9b31m\u202e"
    entries = {
        f"a{odd}": {"command": f"x{odd}", "args": [odd]},
        "b": {"url": f"https://a.invalid/{odd}"},
        "c": {"command": odd, f"k{odd}": odd},
    }
    write(home, "project/.mcp.json", json.dumps({"mcpServers": entries}, ensure_ascii=False))
    write(home, ".claude.json", json.dumps({"projects": {f"/{odd}": {"mcpServers": entries}}}))
    write(home, f"project/{odd}/.mcp.json", "{broken")
    printed = [
        run("wrap"),
        run("wrap", "nobody", code=2),
        run("wrap", "--print", f"a{odd}"),
        run("wrap", "--all", "--dry-run", code=1),
        run("wrap", "--all", code=1),
        run("unwrap", "--all"),
    ]
    os.chdir(odd)
    printed.append(run("wrap", "--all", code=1))
    text = "".join(part for each in printed for part in each)
    assert [line for line in text.splitlines() if set("\x1b\x07\x9b\u202e") & set(line)] == []
    assert r"a\x1b]0;x\x07\x9b31m\u202e (claude-code, project): would be wrapped" in text


def test_a_dry_run_sends_nothing_and_says_what_would_be_asked(home: Path, run: Run) -> None:
    with RawServer(always(whole(b"", "401 Unauthorized"))) as server:
        write(home, ".cursor/mcp.json", json.dumps({"mcpServers": {"a": {"url": server.url}}}))
        words = run("wrap", "a", "--dry-run").err
        assert server.requests == []
        assert "; its URL is asked then if it wants a login, for which mcp-remote comes" in words
        assert not state_folder().exists()
        run("wrap", "a")
        assert len(server.requests) == 1


def test_a_file_that_is_too_deep_is_named_in_one_line_and_the_others_go_on(
    home: Path, run: Run
) -> None:
    deep = '{"mcpServers": {"a": {"command": "x"}}, "deep": ' + "[" * 100_000 + "]" * 100_000 + "}"
    files = [
        write(home, ".cursor/mcp.json", deep),
        write(home, ".codex/config.toml", "deep = " + "[" * 3000 + "]" * 3000),
        write(home, ".config/goose/config.yaml", "deep: " + "[" * 500 + "]" * 500),
    ]
    other = write(home, ".qwen/settings.json", ONE)
    for words in (
        ("wrap",),
        ("wrap", "--all", "--dry-run"),
        ("wrap", "--all"),
        ("unwrap", "--all"),
    ):
        lines = run(*words, code=1).err.splitlines()
        problems = [line for line in lines if line.endswith("left as it is")]
        assert all(any(f": {file}:" in line for line in problems) for file in files)
        assert len(problems) == len(files)
        assert ("mcp-abridge" in other.read_text()) == (words == ("wrap", "--all"))
    assert files[0].read_text() == deep


@pytest.mark.parametrize("start", ["/* ", '"\\', '{"a": "\\"'])
def test_a_file_with_much_that_is_not_closed_is_named_at_once(
    start: str, home: Path, run: Run
) -> None:
    file = write(home, "project/.mcp.json", start * 200_000)
    before = time.monotonic()
    assert f": {file}:1:" in run("wrap", code=1).err
    assert time.monotonic() - before < 20


@pytest.mark.parametrize(
    "text",
    [
        '{"mcpServers": {"a": {"command": "x", "args": 5}}}',
        '{"mcpServers": {}, "other": {"command": "x", "args": true}}',
        '{"projects": 5}',
    ],
)
def test_members_of_another_type_stop_no_other_server(text: str, home: Path, run: Run) -> None:
    file = write(home, ".claude.json", text[:-1] + ', "mcpServers": {"b": {"command": "x"}}}')
    other = write(home, "project/.mcp.json", text)
    before = file.read_text()
    assert " b " in run("wrap").out
    for verb in ("wrap", "unwrap"):
        run(verb, "b", "--dry-run")
        assert "restart the clients" in run(verb, "b").err
    assert (file.read_text(), other.read_text()) == (before, text)


@pytest.mark.fault(52, "stdio")
def test_two_runs_at_once_lose_no_original(home: Path, run: Run) -> None:
    code = "import sys; sys.argv[0] = {!r}; from mcp_abridge.cli import main; sys.exit(main())"
    command = [sys.executable, "-c", code.format(sys.argv[0])]
    names = [f"s{number}" for number in range(4)]
    text = json.dumps({"mcpServers": {name: {"command": name} for name in names}}, indent=1)
    file = write(home, ".cursor/mcp.json", text)
    for _ in range(scaled(2, 100)):
        runs = [
            subprocess.Popen([*command, "wrap", name], cwd=home, stderr=subprocess.PIPE)
            for name in names
        ]
        words = [each.communicate(timeout=60)[1].decode() for each in runs]
        assert [each.returncode for each in runs] == [0] * len(runs), words
        wrapped = json.loads(file.read_text())["mcpServers"]
        assert [wrapped[name]["args"] for name in names] == [["--", name] for name in names]
        run("unwrap", "--all")
        assert file.read_text() == text


@pytest.mark.fault(52, "stdio")
@pytest.mark.parametrize("verb", ["unwrap", "wrap"][: scaled(1, 2)])
@on_posix("no copy of a running process")
def test_a_run_that_is_killed_at_a_file_operation_loses_and_leaves_nothing(
    verb: str, tmp_path: Path
) -> None:
    step = scaled(149, 1)
    (folder := tmp_path / "killed").mkdir()
    command = [sys.executable, "-m", "tests.cli.wrap.killing", verb, str(step), str(folder)]
    completed = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=1700)
    assert completed.returncode == 0, completed.stderr
    runs, *wrong = completed.stdout.splitlines()
    assert wrong == []
    assert int(runs) * step > 150


@pytest.mark.parametrize("raw", [b'{"[\\"/x\\"]": ["a', b"[]", b'{"k": 1}', b"\xff", b"", *KEYS])
def test_nothing_is_changed_while_the_records_are_damaged(raw: bytes, home: Path, run: Run) -> None:
    file = write(home, ".cursor/mcp.json", TWO)
    run("wrap", "a")
    text, records = file.read_text(), state_folder() / "originals.json"
    records.write_bytes(raw)
    for words in (("wrap", "b"), ("wrap", "b", "--dry-run"), ("unwrap", "--all")):
        error = run(*words, code=2).err
        assert f"{records} is damaged: it has the originals of what is wrapped, so nothing" in error
        assert f"{state_folder() / 'backups'} has the files as they were" in error
    assert "is damaged" in run("wrap").err
    assert f"warning: {records} is damaged" in run("doctor", "--", "true", code=1).out
    assert (file.read_text(), records.read_bytes()) == (text, raw)


def test_a_file_with_another_name_is_left_with_the_reason(home: Path, run: Run) -> None:
    file = write(home, ".cursor/mcp.json", ONE)
    os.link(file, home / "other")
    for words in (("wrap", "a"), ("wrap", "a", "--dry-run")):
        error = run(*words, code=1).err
        assert f"a (cursor, user): {file} has 2 names (hard links), of which only this" in error
        assert "restart" not in error
    assert os.stat(file).st_nlink == 2


@on_posix("no owner and no mode of a file")
def test_a_file_keeps_its_owner_its_mode_and_its_attributes(home: Path, run: Run) -> None:
    file = write(home, ".cursor/mcp.json", ONE)
    file.chmod(0o640)
    if os.geteuid() == 0:
        os.chown(file, 12345, 23456)
    extended = {}
    if hasattr(os, "setxattr"):
        with suppress(OSError):  # not every file system has them
            os.setxattr(file, "user.note", b"x")
        extended = {name: os.getxattr(file, name) for name in os.listxattr(file)}
    before = os.stat(file)
    number = before.st_ino
    for verb in ("wrap", "unwrap"):
        run(verb, "a")
        after = os.stat(file)
        assert after.st_ino != number
        number = after.st_ino
        for name in ("st_mode", "st_uid", "st_gid"):
            assert getattr(after, name) == getattr(before, name)
        if extended:
            assert {name: os.getxattr(file, name) for name in os.listxattr(file)} == extended


def test_who_has_written_nothing_asks_nobody_to_restart(home: Path, run: Run) -> None:
    file = write(home, ".cursor/mcp.json", ONE)
    file.chmod(0o444)
    assert "restart" not in run("wrap", "a", code=1).err
    file.chmod(0o644)
    assert "restart the clients" in run("wrap", "a").err
    assert "restart" not in run("wrap", "a").err


def test_no_copy_is_left_once_all_of_a_file_is_restored(home: Path, run: Run) -> None:
    file = write(home, ".cursor/mcp.json", TWO)
    other = write(home, ".qwen/settings.json", ONE)
    start = f"{file} is written; its backup is {state_folder() / 'backups'}{os.sep}"
    assert start in run("wrap", "--all").err
    run("unwrap", "a", "--client", "cursor")
    assert TWO in backups()  # b is wrapped still
    words = run("unwrap", "b").err
    assert f"{file} is written\n" in words
    assert backups() == [ONE]
    assert "s3cr3t" not in (state_folder() / "originals.json").read_text()
    run("unwrap", "--all")
    assert (file.read_text(), other.read_text()) == (TWO, ONE)
    assert [each.name for each in state_folder().rglob("*") if each.is_file()] == ["lock"]

    run("wrap", "b")
    file.write_text(TWO)  # restored by hand
    assert run("unwrap", "b").err == "b (cursor, user): is not wrapped\n"
    assert [each.name for each in state_folder().rglob("*") if each.is_file()] == ["lock"]


def test_the_hook_leaves_no_copy_of_the_settings(home: Path, run: Run) -> None:
    text = '{"env": {"KEY": "s3cr3t"}}'
    settings = write(home, ".claude/settings.json", text)
    out, _ = run("wrap", "--hook")
    assert "s3cr3t" not in out
    assert '"command": "' in out
    assert backups() == [text]
    run("unwrap", "--hook")
    assert settings.read_text() == text
    assert backups() == []


def test_an_entry_comes_back_from_a_toml_file_that_its_client_has_written_anew(
    home: Path, run: Run
) -> None:
    (file := home / ".codex/config.toml").parent.mkdir(parents=True, exist_ok=True)
    original = 'model = "x"\n\n[mcp_servers.remote]\nurl = "http://127.0.0.1:9/mcp"\n'
    file.write_text(original)
    run("wrap", "--all")
    entry = tomlkit.parse(file.read_text()).unwrap()["mcp_servers"]["remote"]
    assert "env" in entry
    assert entry.pop("args") == []  # Codex leaves an empty list out
    other = {"model": "x", "mcp_servers": {"remote": entry, "other": {"command": "a"}}}
    file.write_text(tomlkit.dumps(other))
    run("unwrap", "--all")
    after = tomlkit.parse(file.read_text()).unwrap()
    assert after["mcp_servers"]["remote"] == {"url": "http://127.0.0.1:9/mcp"}
    assert (after["model"], after["mcp_servers"]["other"]) == ("x", {"command": "a"})
