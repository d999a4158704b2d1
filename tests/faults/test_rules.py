"""Rule files that are bombs, or no files at all, and such as become so while they are in use."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.asking import CHANGING, Client, Start, each_way, logged
from tests.faults.forks import PROGRAM
from tests.faults.sidecar import ROOT, call
from tests.platforms import on_posix
from tests.wire import Wire

OWN = [*PROGRAM, "--log-format", "json", "--ledger", "off"]
LIST = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
UNUSABLE = "the rules cannot be used; `mcp-abridge check` says why"
SECONDS = 60.0

# All others stand in tests/ruleset/loading/test_yaml.py and tests/ruleset/test_watch.py.
BAD: dict[str, tuple[Callable[[Path], object], str]] = {
    "bomb": (
        lambda file: file.write_bytes(b"- " * 30_000),
        ":1:121: nested more than 60 levels deep",
    ),
    "endless": (
        lambda file: file.symlink_to("/dev/zero"),
        ": is no regular file",
    ),
}
each_bad_file = pytest.mark.parametrize(
    "name", ["bomb", pytest.param("endless", marks=on_posix("no device that a link leads to"))]
)


def bad_file(folder: Path, name: str) -> tuple[Path, str]:
    """Return a file, and what is said of it."""
    file = folder / "rules.yaml"
    make, message = BAD[name]
    make(file)
    return file, f"{file}{message}"


def run_proxy(*words: str) -> "subprocess.CompletedProcess[str]":
    return subprocess.run(
        [*PROGRAM, *words],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        capture_output=True,
        text=True,
        timeout=SECONDS,
        check=False,
    )


@pytest.mark.fault(42, "stdio")
@each_bad_file
def test_check_prints_a_line_for_a_bad_file_and_exits_with_2(name: str, tmp_path: Path) -> None:
    file, message = bad_file(tmp_path, name)
    ended = run_proxy("check", str(file))
    assert (ended.returncode, ended.stdout, ended.stderr) == (2, "", f"{message}\n")


@pytest.mark.fault(37, "stdio")
def test_check_refuses_patterns_beyond_linear_time(tmp_path: Path) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(
        "version: 1\nrules:\n"
        "- {tools: a, response: [{replace: {pattern: '(a+)+(?=b)', with: c}}]}\n"
        "- {tools: b, arguments: {c: {pattern: '(a)\\1'}}}\n"
    )
    ended = run_proxy("check", str(file))
    assert ended.returncode == 1
    problem = "is not a regular expression RE2 takes"
    assert ended.stderr.splitlines() == [
        f"{file}:3:45: pattern: '(a+)+(?=b)' {problem}: invalid perl operator: (?=",
        f"{file}:4:39: pattern: '(a)\\\\1' {problem}: invalid escape sequence: \\1",
    ]


@pytest.mark.fault(42, "stdio")
@each_bad_file
def test_a_wrapper_with_a_bad_file_answers_with_an_error_and_exits_with_2(
    name: str, tmp_path: Path
) -> None:
    file, message = bad_file(tmp_path, name)
    with Wire([*OWN, "--rules", str(file), *CHANGING], cwd=ROOT) as wire:
        wire.write(LIST + b"\n")
        answers = [json.loads(line) for line in iter(wire.line, b"")]
        code = wire.process.wait(SECONDS)
        assert not wire.group_alive()
    assert [(each["id"], each["error"]["message"]) for each in answers] == [(2, UNUSABLE)]
    assert code == 2
    assert message in [json.loads(line)["message"] for line in wire.errors.splitlines()]


@pytest.mark.fault(42, "http")
@each_bad_file
def test_a_sidecar_with_a_bad_file_does_not_start_and_logs_the_reason(
    name: str, tmp_path: Path
) -> None:
    file, message = bad_file(tmp_path, name)
    port = ["--listen", "127.0.0.1:0", "--ledger", "off", "--log-format", "json"]
    ended = run_proxy("serve", *port, "--rules", str(file), *CHANGING)
    assert ended.returncode == 2
    assert [json.loads(line)["message"] for line in ended.stderr.splitlines()] == [message]


HIDE = "version: 1\nrules: [{tools: note, hide: true}]\n"
STAY = "the rules have changed, but the old ones stay: "


def hidden(client: Client) -> bool:
    answer = json.loads(client.ask(call(3, "note", arguments={"says": "here"})))
    if "error" not in answer:
        assert answer["result"]["content"] == [{"type": "text", "text": "here"}]
        return False
    assert answer["error"]["message"] == "Unknown tool: note"
    return True


@each_way(43)
@each_bad_file
def test_a_file_that_becomes_bad_leaves_the_old_rules_and_is_logged_once(
    start: Start, name: str, tmp_path: Path
) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(HIDE)
    with start("--rules", str(file)) as client:
        assert hidden(client)
        file.unlink()
        _, message = bad_file(tmp_path, name)
        assert all(hidden(client) for _ in range(60))
        assert logged(client, STAY) == 1
        assert logged(client, message) == 1
        # As an editor does it: written beside it, then put in its place.
        good = tmp_path / "good"
        good.write_text("version: 1\nrules: []\n")
        os.replace(good, file)
        assert not hidden(client)
        assert logged(client, "the rules have changed and apply from now on: ") == 1
