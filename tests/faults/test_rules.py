"""Rule files that are bombs, or no files at all, and such as become so while they are in use."""

import json
import os
import subprocess
from collections.abc import Callable
from pathlib import Path

import pytest

from tests.faults.asking import CHANGING, STARTS, Client, logged
from tests.faults.rows import Way
from tests.faults.scale import further, some
from tests.faults.sidecar import PROGRAM, ROOT
from tests.wire import Wire

OWN = [*PROGRAM, "--log-format", "json", "--ledger", "off"]
LIST = b'{"jsonrpc":"2.0","id":2,"method":"tools/list"}'
UNUSABLE = "the rules cannot be used; `mcp-abridge check` says why"
SECONDS = 60.0
DEPTH = "nested more than 60 levels deep"
NO_FILE = "a pipe, a device or a directory, not a file"

# What a file holds, and what is said of it, after its name.
BOMBS: dict[str, tuple[bytes, str]] = {
    "dashes": (b"- " * 30_000, f":1:121: {DEPTH}"),
    "brackets": (b"[" * 100_000, f":1:61: {DEPTH}"),
    "braces": (b"{a: " * 40_000, f":1:238: {DEPTH}"),
    "aliases": (
        b"a0: &a0 [1, 2]\n"
        + b"".join(
            b"a%d: &a%d [%s]\n" % (n, n, b", ".join([b"*a%d" % (n - 1)] * 10)) for n in range(1, 20)
        ),
        ":6:5: over 100000 values, every alias counted",
    ),
    "aliases in aliases": (
        b"a0: &a0 {x: 1}\n"
        + b"".join(b"a%d: &a%d [*a%d]\n" % (n, n, n - 1) for n in range(1, 100)),
        f":60:6: {DEPTH}",
    ),
    "digits": (
        b"version: 1\nrules: []\nx-a: " + b"9" * 5000,
        ":3:6: a number of 5000 digits; quote it",
    ),
    "10 MB": (
        b"version: 1\nrules: []\n" + b"# more\n" * 1_500_000,
        ":1:1: more than 262144 bytes, the most a rule file may have",
    ),
    "NUL": (b"version: 1\nrules: []\x00\n", ":2:10: '\\x00' cannot stand in YAML"),
    "no UTF-8": (
        b"version: 1\n\xff: 2",
        ":2:1: byte 0xff is not UTF-8; save the file in that encoding",
    ),
    "open quote": (b"version: 'one\n", ":1:10: this quote is not closed"),
    "nothing": (b"", ":1:1: an empty file; a rule file begins with 'version: 1'"),
}
NO_FILES: dict[str, tuple[Callable[[Path], object], str]] = {
    "pipe": (os.mkfifo, f": {NO_FILE}"),
    "endless": (lambda file: file.symlink_to("/dev/zero"), f": {NO_FILE}"),
    "folder": (lambda file: file.mkdir(), ": a directory without *.yaml files"),
    "gone": (lambda file: None, ": no such file or directory"),
    "loop": (lambda file: file.symlink_to(file.name), ": too many levels of symbolic links"),
}
BAD = [*BOMBS, *NO_FILES]


def bad_file(folder: Path, name: str) -> tuple[Path, str]:
    file = folder / "rules.yaml"
    if name in BOMBS:
        file.write_bytes(BOMBS[name][0])
        return file, f"{file}{BOMBS[name][1]}"
    make, message = NO_FILES[name]
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
def test_check_prints_a_line_for_each_bad_file_and_exits_with_2(
    tmp_path: Path,
) -> None:
    bad = []
    for number, name in enumerate(BAD):
        (tmp_path / str(number)).mkdir()
        bad.append(bad_file(tmp_path / str(number), name))
    ended = run_proxy("check", *(str(file) for file, _ in bad))
    assert ended.returncode == 2
    assert ended.stderr.splitlines() == [message for _, message in bad]
    assert ended.stdout == ""


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
@pytest.mark.parametrize("name", some(BAD, "dashes", "endless"))
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
@pytest.mark.parametrize("name", some(BAD, "10 MB", "pipe"))
def test_a_sidecar_with_a_bad_file_does_not_start_and_logs_the_reason(
    name: str, tmp_path: Path
) -> None:
    file, message = bad_file(tmp_path, name)
    port = ["--listen", "127.0.0.1:0", "--ledger", "off", "--log-format", "json"]
    ended = run_proxy("serve", *port, "--rules", str(file), *CHANGING)
    assert ended.returncode == 2
    assert [json.loads(line)["message"] for line in ended.stderr.splitlines()] == [message]


HIDE = "version: 1\nrules: [{tools: note, hide: true}]\n"
# `check` is given all bad files at once; elsewhere each needs processes of its own.
SHORT: dict[Way, tuple[str, ...]] = {"stdio": ("NUL", "pipe", "gone"), "http": ("dashes",)}
STAY = "the rules have changed, but the old ones stay: "


def hidden(client: Client) -> bool:
    call = b'{"jsonrpc":"2.0","id":3,"method":"tools/call","params":'
    answer = json.loads(client.ask(call + b'{"name":"note","arguments":{"says":"here"}}}'))
    if "error" in answer:
        assert answer["error"]["message"] == "Unknown tool: note"
    else:
        assert answer["result"]["content"] == [{"type": "text", "text": "here"}]
    return "error" in answer


@pytest.mark.parametrize(
    ("way", "name"),
    [
        (pytest.param if name in SHORT[way] else further)(
            way, name, marks=[pytest.mark.fault(43, way)]
        )
        for way in SHORT
        for name in BAD
    ],
)
def test_a_file_that_becomes_bad_leaves_the_old_rules_and_is_logged_once(
    way: Way, name: str, tmp_path: Path
) -> None:
    file = tmp_path / "rules.yaml"
    file.write_text(HIDE)
    with STARTS[way]("--rules", str(file)) as client:
        assert hidden(client)
        file.unlink()
        _, message = bad_file(tmp_path, name)
        assert all(hidden(client) for _ in range(60))
        assert logged(client, STAY) == 1
        assert logged(client, message.partition("'")[0]) == 1
        # As an editor does it: written beside it, then put in its place.
        good = tmp_path / "good"
        good.write_text("version: 1\nrules: []\n")
        if file.is_dir():
            file.rmdir()
        os.replace(good, file)
        assert not hidden(client)
        assert logged(client, "the rules have changed and apply from now on: ") == 1
