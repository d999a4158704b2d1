"""`run`: the command as a client starts it, and the way from a command line to a verb."""

import json
import os
import signal
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path

import pytest
from mcp_abridge.cli import VERBS
from mcp_abridge.storage.ledger_totals import rows

from tests.cli.conftest import Run
from tests.faults.processes import until
from tests.faults.scale import scaled
from tests.platforms import on_posix
from tests.raw_http import RawServer, whole
from tests.rulecases import PYTHON
from tests.wire import Wire

ROOT = Path(__file__).resolve().parents[2]
RUN = [sys.executable, "-m", "mcp_abridge"]
NAUGHTY = [sys.executable, str(ROOT / "tests" / "faults" / "naughty.py")]
CALL = b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"ok"}}\n'
ANSWER = b'{"jsonrpc":"2.0","id":%d,"result":{"content":[{"type":"text","text":"ok"}]}}\n'
LOSING = """
import os, signal, sys, weakref
module = sys.argv.pop(1)
def interrupt(event, arguments):
    if event == "import" and arguments[0] == module:
        gone = set()
        callback = weakref.ref(gone, lambda _: os.kill(os.getpid(), signal.SIGINT))
        del gone
from mcp_abridge.cli import main
sys.addaudithook(interrupt)
sys.exit(main())
"""
"""Starts the proxy; within the import of a module, a SIGINT comes while a callback runs."""


def run_program(
    words: Sequence[str], stdin: bytes = b"", code: int = 0, program: Sequence[str] = RUN
) -> "subprocess.CompletedProcess[bytes]":
    completed = subprocess.run(
        [*program, *words], cwd=ROOT, input=stdin, capture_output=True, timeout=60, check=False
    )
    assert completed.returncode == code, completed.stderr
    return completed


def rules(folder: Path, text: str) -> str:
    file = folder / "rules.yaml"
    file.write_text(text)
    return str(file)


@pytest.mark.parametrize(
    "before", [(), ("run",), ("--",), ("--rules", "none"), ("run", "--rules=none")]
)
def test_neither_the_verb_nor_hyphens_need_to_stand_before_a_command(
    before: tuple[str, ...],
) -> None:
    script = "import sys; print(sys.argv[1:], file=sys.stderr)"
    completed = run_program([*before, sys.executable, "-c", script, "--rules", "x", "--", "--help"])
    assert (completed.stdout, completed.stderr) == (b"", b"['--rules', 'x', '--', '--help']\n")


def test_a_mistyped_verb_is_an_error_that_names_the_right_one_on_both_sides() -> None:
    reason = "cannot be started: no such file or directory; nor is it a verb of mcp-abridge"
    completed = run_program(["chekc", "rules.yaml"], CALL % 1, code=127)
    line, *_ = completed.stderr.decode().splitlines()
    assert line == f"mcp-abridge: error: 'chekc' {reason}; did you mean 'check'?"
    text = json.loads(completed.stdout)["result"]["content"][0]["text"]
    assert text.endswith(f"'chekc' {reason}; did you mean 'check'?")


@pytest.mark.parametrize("word", ["help", "localhost:3000/mcp"])
def test_a_word_that_is_nothing_else_is_told_where_verbs_stand_and_how_a_url_begins(
    word: str,
) -> None:
    completed = run_program([word], CALL % 1, code=127)
    line, *_ = completed.stderr.decode().splitlines()
    assert line.startswith(f"mcp-abridge: error: {word!r} cannot be started: ")
    assert line.endswith("which --help lists, or a URL, which begins with http:// or https://")


def test_a_url_takes_the_place_of_a_command() -> None:
    with RawServer(lambda _: iter([whole((ANSWER % 1).rstrip())])) as server:
        completed = run_program(["--rules", "none", server.url], CALL % 1)
    assert (completed.stdout, completed.stderr) == (ANSWER % 1, b"")


def test_a_url_behind_hyphens_is_an_error_that_says_where_it_stands() -> None:
    completed = run_program(["--", "http://127.0.0.1:1/mcp"], CALL % 1, code=127)
    assert completed.stderr.splitlines()[0].endswith(b"; a URL stands without --")


def test_a_terminal_on_stdin_gets_a_hint() -> None:
    terminal, stdin = os.openpty()
    command = [*RUN, "--rules", "none", "--ledger", "off", "--", "true"]
    completed = subprocess.run(command, cwd=ROOT, stdin=stdin, capture_output=True, timeout=60)
    os.close(terminal)
    os.close(stdin)
    assert b"an MCP client is expected on stdin, which is a terminal" in completed.stderr


@pytest.mark.parametrize("words", ["schema", "--help", "report --help"])
def test_a_verb_whose_reader_is_gone_ends_quietly(words: str) -> None:
    reading, writing = os.pipe()
    os.close(reading)
    try:
        completed = subprocess.run(
            [*RUN, *words.split()],
            cwd=ROOT,
            env={**os.environ, "PYTHONUNBUFFERED": ""},
            stdout=writing,
            stderr=subprocess.PIPE,
            timeout=60,
        )
    finally:
        os.close(writing)
    assert (completed.returncode, completed.stderr) == (141, b"")


def test_each_verb_has_its_help_and_the_program_its_version(run: Run) -> None:
    for verb in set(VERBS) - {"run"}:
        assert run(verb, "--help").out.startswith(f"usage: mcp-abridge {verb} ")
    assert run("--version").out.startswith("mcp-abridge ")


def test_the_server_gets_our_folder_environment_and_words(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SOME_VARIABLE", "its value")
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    script = (
        "import os, sys, json; held = [os.getcwd(), sys.argv[1:], dict(os.environ)];"
        "print(json.dumps({'jsonrpc': '2.0', 'method': 'notifications/x', 'params': held}))"
    )
    server = [sys.executable, "-c", script, "-v", "--", "ü"]
    started = dict(os.environ)
    with Wire([*RUN, "--rules", "none", "--", *server], env=started, cwd=tmp_path) as wire:
        folder, words, environment = json.loads(wire.line())["params"]
    assert folder == str(tmp_path.resolve())
    assert words == ["-v", "--", "ü"]
    assert environment == started


def test_python_that_rules_name_is_run_only_with_the_flag(tmp_path: Path) -> None:
    own = (PYTHON / "own.py").read_text()
    (tmp_path / "own.py").write_text(f"print('loading')\n{own}")
    step = "transforms: {noise: 'own:Noise'}\nrules: [{tools: ok, response: [{noise: [a]}]}]\n"
    words = ["--rules", rules(tmp_path, f"version: 1\n{step}"), "--", *NAUGHTY, "plain"]
    refusal = b"'own:Noise' is Python code, which runs only with --allow-python\n"
    assert refusal in run_program(words, CALL % 1, code=2).stderr
    completed = run_program(["--allow-python", *words], CALL % 1)
    # What it prints stays away from the messages.
    [line] = completed.stdout.splitlines()
    assert json.loads(line)["result"]["content"][0]["text"] == '["a"]'
    assert completed.stderr.startswith(b"loading\n")


def test_bad_rules_are_logged_with_every_problem_and_end_the_server(tmp_path: Path) -> None:
    file = rules(tmp_path, "version: 1\nruels: []\nrules:\n  - tool: x\n")
    with Wire([*RUN, "--rules", file, "--", *NAUGHTY, "stays", "ignore"], cwd=ROOT) as wire:
        wire.write(CALL % 1)
        line = wire.line()
        code = wire.process.wait(20)
        assert not wire.group_alive()
    message = json.loads(line)["error"]["message"]
    assert message == "the rules cannot be used; `mcp-abridge check` says why"
    assert code == 2
    errors = wire.errors.decode()
    assert f"error: {file}:2:1: " in errors
    assert f"error: {file}:4:5: " in errors
    assert "SIG" not in errors


def test_an_unknown_name_of_rules_is_an_error_though_the_server_ends_at_once() -> None:
    words = ["--rules", "no-such-word", "--", sys.executable, "-c", ""]
    assert b"no-such-word" in run_program(words, code=2).stderr


def test_a_call_is_recorded_though_the_client_kills_the_wrapper_soon_after(tmp_path: Path) -> None:
    ledger = str(tmp_path / "ledger.sqlite3")
    run_program(["--rules", "none", "--ledger", "off", "--", *NAUGHTY, "plain"], CALL % 1)
    assert not os.path.exists(ledger)
    words = ["--rules", "none", "--ledger", ledger, "--", *NAUGHTY, "plain"]
    with Wire([*RUN, *words], cwd=ROOT) as wire:
        wire.write(CALL % 1)
        assert wire.line() == ANSWER % 1
        until(lambda: os.path.exists(ledger) and bool(rows(ledger)), 10)
        wire.process.kill()
        wire.process.wait(20)
    assert [(each.name, each.calls) for each in rows(ledger)] == [("ok", 1)]


# Starts the proxy anew, without some of its standard files.
EXEC = (
    "import os, sys; [os.close(n) for n in %s];"
    "os.execv(sys.executable, [sys.executable, '-m', 'mcp_abridge', *sys.argv[1:]])"
)


@pytest.mark.parametrize("closed", [(0,), (1,), (2,), (0, 1, 2)])
def test_it_ends_in_order_if_it_is_started_without_standard_files(
    closed: tuple[int, ...],
) -> None:
    program = [sys.executable, "-c", EXEC % str(closed)]
    completed = run_program(["--rules", "none", "--", *NAUGHTY, "plain"], CALL % 1, program=program)
    assert completed.stdout == (b"" if {0, 1} & set(closed) else ANSWER % 1)


def test_a_hangup_that_was_ignored_stays_so() -> None:
    script = "trap '' HUP; exec \"$@\""
    server = [*RUN, "--rules", "none", "--", *NAUGHTY, "plain"]
    with Wire(["sh", "-c", script, "sh", *server], cwd=ROOT) as wire:
        wire.write(CALL % 1)
        assert wire.line() == ANSWER % 1
        wire.process.send_signal(signal.SIGHUP)
        wire.write(CALL % 2)
        assert wire.line() == ANSWER % 2
        assert wire.close().code == 0


@on_posix("no signals")
@pytest.mark.parametrize(
    ("module", "code", "words"),
    [
        ("mcp_abridge.cli.run", -signal.SIGINT, ("--rules", "none")),
        ("mcp_abridge.session.session", 128 + signal.SIGINT, ("--rules", "none")),
        ("asyncio", -signal.SIGINT, ("serve", "--listen", "127.0.0.1:0")),
    ],
)
def test_an_interrupt_is_not_lost_in_a_callback_within_an_import(
    module: str, code: int, words: tuple[str, ...]
) -> None:
    command = [sys.executable, "-c", LOSING, module, *words, "--", *NAUGHTY, "plain"]
    with Wire(command, cwd=ROOT) as wire:
        assert wire.process.wait(30) == code


def test_nothing_slow_is_imported_before_the_server_is_started() -> None:
    code = (
        "import sys; own = set(sys.modules); import mcp_abridge.cli.run, mcp_abridge.cli.options; "
        "print(*sorted(set(sys.modules) - own))"
    )
    assert run_program([], program=[sys.executable, "-c", code]).stdout.decode().split() == [
        "mcp_abridge",
        "mcp_abridge.cli",
        "mcp_abridge.cli.options",
        "mcp_abridge.cli.run",
        "mcp_abridge.document",
        "mcp_abridge.document.sizes",
        "mcp_abridge.system",
        "mcp_abridge.system.guardian",
        "mcp_abridge.system.posix",
    ]


@pytest.mark.skipif(sys.platform != "linux", reason="elsewhere a stack may be as large as it likes")
@pytest.mark.parametrize("memory", [100_000, 300_000][: scaled(1, 2)])
@pytest.mark.parametrize("words", [("--", *NAUGHTY, "plain"), ("serve", "http://127.0.0.1:9/mcp")])
def test_an_error_says_that_no_thread_can_be_started(memory: int, words: tuple[str, ...]) -> None:
    """Each thread takes 100 MB of addresses here, so that few have room."""
    limits = f'ulimit -s 100000; ulimit -v {memory}; exec "$@"'
    completed = run_program([*RUN, *words], code=1, program=["/bin/sh", "-c", limits, "sh"])
    assert completed.stderr == (
        b"mcp-abridge: error: no thread can be started; "
        b"the limit of processes or of memory may be too low\n"
    )
