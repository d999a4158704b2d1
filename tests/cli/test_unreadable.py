"""Files that no verb can read: a line for each, no traceback, no wait, the others are read."""

import io
import json
import os
from collections.abc import Callable
from pathlib import Path
from threading import Thread

import pytest
from mcp_abridge.cli import main

from tests.builders import answer, call

# Python 3.11 reads 990 levels, 3.13 reads 9,998, and 3.14 as many as its stack holds.
DEEP = '{"a":' * 400_000 + "1" + "}" * 400_000
DEEP_WORD = '{"a":' + "[" * 130_000  # no more fits a command line
ROWS = json.dumps([{"id": n, "text": "b" * 99} for n in range(300)])
RECORDING = '{"request":%s,"response":%s}'
RULES = '{"version": 1, "rules": [{"tools": "t", "response": [{"keep": "a"}], "tests": []}]}'


def recorded(result: str) -> str:
    return RECORDING % (call("t").decode(), f'{{"jsonrpc":"2.0","id":1,"result":{result}}}')


def spoken(*blocks: str) -> str:
    return "".join(f'{{"message":{{"content":[{block}]}}}}\n' for block in blocks)


GOOD = RECORDING % (
    call("t").decode(),
    answer({"content": [{"type": "text", "text": ROWS}]}).decode(),
)
USE = '{"type": "tool_use", "id": "1", "name": "mcp__crm__t", "input": %s}'
RESULT = f'{{"type": "tool_result", "tool_use_id": "1", "content": {json.dumps(ROWS)}}}'
TALK = spoken(USE % "{}", RESULT)

Bad = Callable[[Path], object]


def text(content: str) -> Bad:
    return lambda path: path.write_text(content)


def dangling(path: Path) -> None:
    path.symlink_to("nowhere")


# The end of a file's name, what is in it, and what is said of it.
RECORDINGS: dict[str, tuple[Bad, str]] = {
    "pipe": (os.mkfifo, "is no regular file"),
    "link": (dangling, "No such file or directory"),
    "deep": (text(DEEP), "nested too deeply"),
    "deep result": (text(recorded(DEEP)), "nested too deeply"),
    "other result": (text(recorded("5")), "not as `record` writes it: not a JSON object"),
}
TRANSCRIPTS: dict[str, tuple[Bad, str]] = {
    "pipe": (os.mkfifo, "is no regular file"),
    "link": (dangling, "No such file or directory"),
    "deep": (text(spoken(USE % DEEP)), "1 line left out, of another form"),
    "other blocks": (
        text(spoken('"mcp__"', USE.replace('"id"', '"x"') % 1, RESULT.replace("tool_use_id", "x"))),
        "3 lines left out, of another form than a client's; the first is 1",
    ),
}
FILES: dict[str, tuple[Bad, str]] = {
    "pipe": (os.mkfifo, "is no regular file"),
    "link": (dangling, "no such file or directory"),
    "deep": (text(f"version: 1\nrules: {'[' * 3000}"), "nested more than 60 levels deep"),
}
ROWS_OF_TABLE = [
    *(("replay", 2, "0002.json", each, "0001.json", GOOD) for each in RECORDINGS.items()),
    *(("suggest", 0, "0002.json", each, "0001.json", GOOD) for each in RECORDINGS.items()),
    *(("weigh", 0, "0002.json", each, "0001.json", GOOD) for each in RECORDINGS.items()),
    *(("suggest", 0, "a.jsonl", each, "b.jsonl", TALK) for each in TRANSCRIPTS.items()),
    *(("weigh", 0, "a.jsonl", each, "b.jsonl", TALK) for each in TRANSCRIPTS.items()),
    *(("check", 2, "a.yaml", each, "b.yaml", RULES) for each in FILES.items()),
]


Outcome = Callable[..., tuple[int, str, list[str]]]


@pytest.fixture
def outcome(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Outcome:
    """Return a function that runs a verb: its exit code, its stdout, the lines of its stderr."""
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("sys.stdin", io.StringIO())

    def outcome(*words: str) -> tuple[int, str, list[str]]:
        try:
            code = main([*words])
        except SystemExit as error:
            code = int(error.code or 0)
        out, error_text = capfd.readouterr()
        return code, out, error_text.splitlines()

    return outcome


@pytest.mark.parametrize(
    ("verb", "code", "name", "bad", "other", "content"),
    ROWS_OF_TABLE,
    ids=[f"{row[0]} {row[2]} {row[3][0]}" for row in ROWS_OF_TABLE],
)
def test_one_bad_file_in_a_folder_has_its_line_and_the_others_are_read(
    verb: str,
    code: int,
    name: str,
    bad: tuple[str, tuple[Bad, str]],
    other: str,
    content: str,
    tmp_path: Path,
    outcome: Outcome,
) -> None:
    make, reason = bad[1]
    make(tmp_path / name)
    (tmp_path / other).write_text(content)
    if name.endswith(".json"):
        (tmp_path / "session.json").write_text('{"server": [1], "client": null}')
    ended, out, error = outcome(verb, str(tmp_path))
    assert ended == code
    [line] = [line for line in error if name in line]
    assert reason in line
    assert {"check": "ok:", "suggest": "tools: t"}.get(verb, "t ") in out


@pytest.mark.parametrize(
    "url", ["http://host/a b", "http://host/\x1b[31m", "http://host/\nx", "x://h"]
)
@pytest.mark.parametrize("verb", ["doctor", "call", "suggest"])
def test_a_url_that_is_none_is_refused_in_one_line(verb: str, url: str, outcome: Outcome) -> None:
    code, out, [line] = outcome(verb, url)
    wrong = {("call", "x://h"): "one server: give its URL", ("suggest", "x://h"): "x://h: No such"}
    assert (code, out) == (2, "")
    assert line.startswith(f"mcp-abridge {verb}: {wrong.get((verb, url), 'expected a URL')}")


@pytest.mark.parametrize(
    "words",
    [
        ("call", "t", DEEP_WORD, "http://127.0.0.1:9/"),
        ("explain", "deep.json", "--tool", "t", "--arguments", DEEP_WORD),
        ("replay", "deep.json"),
        ("suggest", "deep.json"),
    ],
    ids=lambda words: " ".join(words)[:40],
)
def test_json_that_is_nested_too_deeply_is_refused_in_one_line(
    words: tuple[str, ...], tmp_path: Path, outcome: Outcome
) -> None:
    (tmp_path / "deep.json").write_text(DEEP)
    code, _, lines = outcome(*words)
    assert code == 2
    assert lines[-1].endswith("nested too deeply")


@pytest.mark.parametrize(
    ("words", "content"),
    [
        (("explain", "pipe"), GOOD),
        (("view", "pipe", "help"), GOOD),
        (("replay", "pipe"), GOOD),
        (("weigh", "pipe.jsonl"), TALK),
    ],
)
def test_a_pipe_that_the_user_names_is_read(
    words: tuple[str, ...], content: str, tmp_path: Path, outcome: Outcome
) -> None:
    pipe = tmp_path / words[1]
    os.mkfifo(pipe)
    Thread(target=pipe.write_text, args=(content,), daemon=True).start()
    code, out, _ = outcome(*words)
    assert (code, bool(out)) == (0, True)
