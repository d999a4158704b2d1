"""Texts of servers, files and their names through every verb that prints: in a pipe, on a terminal.

A verb prints lines of its own, in which such a text can neither end the line nor speak to the
terminal; an answer goes into a pipe as it is, since programs read it there.
"""

import json
import os
import pty
import re
import subprocess
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path

import pytest
from mcp_abridge.cli import main

from tests.builders import answer, call
from tests.faults.scale import LONG, scaled
from tests.ledgers import filled, row
from tests.plain_server import IMPORT
from tests.wrapped import START

# Colours, the C1 form of an escape sequence, a text that runs backwards, the end of a comment in
# YAML, and two forged lines.
HOSTILE = "a\x1b[31m\x9b2J\u202eb\u2028\x7f\u2066\r\nok: FORGED\nmcp-abridge: error: FORGED"
INTERPRETED = re.compile("[\x00-\x08\x0b-\x1f\x7f-\x9f\u200e\u200f\u2028-\u202e\u2066-\u2069]")
FORGED = re.compile(r"^(ok|mcp-abridge: error): FORGED", re.MULTILINE)
ESCAPED = re.compile(r"\\(x|u00)1b\[31m")

SERVER = f"""
HOSTILE = {HOSTILE!r}
def tool(name, **more):
    schema = {{"type": "object", "properties": {{HOSTILE: {{"type": "string"}}}}, **more}}
    return {{"name": name, "inputSchema": schema, "annotations": {{"readOnlyHint": True}}}}

def call(name, arguments):
    return {{"content": [{{"type": "text", "text": HOSTILE}}], "isError": name != "ask"}}

print(HOSTILE, file=sys.stderr)
serve(HOSTILE, HOSTILE, [tool(HOSTILE), tool("ask"), tool("needs", required=[HOSTILE])], call)
"""
RULE = {
    "tools": "ask",
    "name": HOSTILE,
    "response": [{"keep": "a"}],
    "tests": [{"name": HOSTILE, "given": {"a": HOSTILE}, "expect": {"a": "b"}}],
}
RULES = {"version": 1, "rules": [RULE]}
MISTAKE = {**RULES, HOSTILE: 1}
OF_OTHERS = {**RULES, "server": {"name": HOSTILE}}


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Return a folder with files of hostile names and texts."""
    folder = tmp_path_factory.mktemp("folder")
    (folder / "server.py").write_text(IMPORT + SERVER)
    files = {HOSTILE: RULES, f"{HOSTILE}-mistake": MISTAKE, "mistake": MISTAKE, "other": OF_OTHERS}
    for name, rules in files.items():
        (folder / f"{name}.yaml").write_text(json.dumps(rules))
    rows = [{"id": n, HOSTILE: "b" * 900} for n in range(90)]
    text = json.dumps(rows, ensure_ascii=False)
    request = call(HOSTILE, {HOSTILE: HOSTILE}).decode()
    recordings = folder / "recordings" / HOSTILE
    recordings.mkdir(parents=True)
    about = {"server": HOSTILE, "client": HOSTILE}
    (recordings / "session.json").write_text(json.dumps(about))
    for name, value in ((HOSTILE, text), ("0002", HOSTILE)):
        response = answer({"content": [{"type": "text", "text": value}]}).decode()
        recording = f'{{"request":{request},"response":{response}}}'
        (recordings / f"{name}.json").write_text(recording)
    (recordings / "0002.json").rename(folder / "answer.json")
    (folder / f"{HOSTILE}.json").write_text("{")
    transcripts = folder / "transcripts"
    transcripts.mkdir()
    use = {"type": "tool_use", "id": "1", "name": f"mcp__crm__{HOSTILE}", "input": {}}
    result = {"type": "tool_result", "tool_use_id": "1", "content": text}
    messages = (json.dumps({"message": {"content": [each]}}) + "\n" for each in (use, result))
    (transcripts / "a.jsonl").write_text("".join(messages))
    filled(str(folder / "ledger"), row(HOSTILE, rule=HOSTILE, server=HOSTILE, client=HOSTILE))
    return folder


LISTED = ("--", sys.executable, "server.py")
LEDGER = ("--ledger", "ledger", "--by")
# What each prints are lines of its own.
LINES: tuple[Sequence[str], ...] = (
    ("call", *LISTED),
    ("call", "--json", *LISTED),
    ("call", "--", sys.executable, "-c", f"import sys; sys.exit({HOSTILE!r})"),
    ("call", "--rules", f"{HOSTILE}-mistake.yaml", *LISTED),
    ("doctor", "--rules", "other.yaml", "--rules", f"{HOSTILE}.yaml", *LISTED),
    ("doctor", "--rules", "mistake.yaml", "--", sys.executable, "-c", f"print({HOSTILE!r})"),
    ("call", "nothing", *LISTED),
    ("call", "ask", "x=1", *LISTED),
    ("call", "ask", HOSTILE, *LISTED),
    ("suggest", "-o", "none.yaml", *LISTED),
    ("suggest", "-o", f"{HOSTILE}.yaml", *LISTED),
    ("check", f"{HOSTILE}.yaml"),
    ("check", "mistake.yaml"),
    ("check", f"{HOSTILE}-absent.yaml"),
    ("test", f"{HOSTILE}.yaml"),
    ("test", "other.yaml"),
    ("explain", "answer.json"),
    ("explain", "answer.json", "--json"),
    ("explain", f"{HOSTILE}.yaml", "answer.json", "--tool", "ask"),
    ("replay", "recordings"),
    ("replay", "recordings", "--json"),
    ("replay", f"{HOSTILE}.json"),
    ("weigh", "transcripts", "recordings"),
    ("weigh", "transcripts", "--json"),
    ("suggest", "recordings", "-o", "drafted.yaml", "--force"),
    ("suggest", "recordings", "--server", HOSTILE),
    ("suggest", "recordings", "transcripts"),
    ("suggest", "recordings", "--json"),
    *(("report", *LEDGER, key) for key in ("tool", "server", "rule", "client")),
    ("report", "--ledger", "ledger", "--json"),
    ("report", "--ledger", HOSTILE),
    ("view", f"{HOSTILE}-absent.json", "help"),
    ("run", "--rules", f"{HOSTILE}-mistake.yaml", *LISTED[1:]),
    ("serve", "--rules", f"{HOSTILE}-mistake.yaml", *LISTED),
)
# These print in the same way as others do.
ALIKE = (
    ("check", f"{HOSTILE}.yaml"),
    ("test", "other.yaml"),
    ("replay", "recordings", "--json"),
    ("weigh", "transcripts", "--json"),
    ("suggest", "recordings", "transcripts"),
    ("suggest", "recordings", "--json"),
    *(("report", *LEDGER, key) for key in ("server", "rule", "client")),
)
# What each prints is an answer.
ANSWERS: tuple[Sequence[str], ...] = (
    ("call", "ask", *LISTED),
    ("explain", "answer.json", "--show"),
    ("view", "answer.json", r"grep('\x1b')"),
    ("call", "ask", "--direct", *LISTED),
)[: scaled(3, 4)]
PROXIES = ("run", "serve")
ENVIRONMENT = {**os.environ, "TERM": "dumb", "COLUMNS": "2000", "PYTHONIOENCODING": "utf-8"}


@pytest.mark.parametrize("encoding", ["ascii", "latin-1", "utf-8"])
def test_json_is_json_whatever_stdout_can_encode(encoding: str, tmp_path: Path) -> None:
    value = {"\u00e9": "\u20ac \U0001f600"}
    (tmp_path / "answer.json").write_text(json.dumps([value], ensure_ascii=False), "utf-8")
    command = [sys.executable, "-c", START, "view", "answer.json", "[0]"]
    environment = {**ENVIRONMENT, "PYTHONIOENCODING": encoding}
    printed = subprocess.check_output(command, cwd=tmp_path, env=environment, timeout=60)
    text = printed.decode(encoding)
    assert json.loads(text) == {"view": value}
    assert ("\u00e9" in text) == (encoding != "ascii")


def label(words: Sequence[str]) -> str:
    return " ".join(word.replace(HOSTILE, "HOSTILE") for word in words if "python" not in word)


Way = Callable[[Sequence[str]], str]


@pytest.fixture
def in_a_pipe(
    folder: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> Way:
    """Return a function that returns the texts of a verb on stdout and stderr."""
    monkeypatch.chdir(folder)
    monkeypatch.setenv("COLUMNS", ENVIRONMENT["COLUMNS"])

    def in_a_pipe(words: Sequence[str]) -> str:
        if words[0] in PROXIES:
            command = [sys.executable, "-c", START, *words]
            subprocess.run(command, stdin=subprocess.DEVNULL, timeout=60, check=False)
        else:
            with suppress(SystemExit):
                main([*words])
        return "".join(capfd.readouterr())

    return in_a_pipe


def on_a_terminal(folder: Path, words: Sequence[str]) -> str:
    """Return the texts of a verb whose streams are a terminal."""
    ours, theirs = pty.openpty()
    command = [sys.executable, "-c", START, *words]
    with subprocess.Popen(
        command, cwd=folder, env=ENVIRONMENT, stdin=subprocess.DEVNULL, stdout=theirs, stderr=theirs
    ) as process:
        os.close(theirs)
        raw = b""
        while chunk := read(ours):
            raw += chunk
        process.wait(60)
    os.close(ours)
    return re.sub("\r[0-9]+ sessions\r", "", raw.decode().replace("\r\n", "\n"))


def read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # nobody writes to it any more
        return b""


# Each line in one of the two ways, and with FAULTS=long in both. A verb that needs the SDK takes a
# process of its own a second.
WAYS = ("in a pipe", "on a terminal")
LINES_AND_WAYS = [
    pytest.param(words, way, id=f"{label(words)}-{way}")
    for number, words in enumerate(LINES)
    if LONG or words not in ALIKE
    for way in (WAYS * 2)[0 if "--" in words else number % 2 :][: scaled(1, 2)]
]


@pytest.mark.parametrize(("words", "way"), LINES_AND_WAYS)
def test_a_hostile_text_in_a_verbs_line_is_seen_and_does_nothing(
    folder: Path, in_a_pipe: Way, words: Sequence[str], way: str
) -> None:
    text = in_a_pipe(words) if way == "in a pipe" else on_a_terminal(folder, words)
    # The server's own stderr passes through `run` as it is.
    text = text.replace(HOSTILE, "") if words[0] == "run" else text
    assert not INTERPRETED.findall(text)
    assert not FORGED.findall(text)
    assert ESCAPED.search(text), text
    if "--json" in words:
        start = re.search(r"^[\[{]", text, re.MULTILINE)
        assert start
        value, _ = json.JSONDecoder().raw_decode(text, start.start())
        assert any(each.endswith(HOSTILE) for each in strings(value))


def strings(value: object) -> list[str]:
    match value:
        case dict():
            return [text for pair in value.items() for each in pair for text in strings(each)]
        case list():
            return [text for each in value for text in strings(each)]
    return [value] if isinstance(value, str) else []


@pytest.mark.parametrize("words", ANSWERS, ids=label)
def test_an_answer_is_unchanged_in_a_pipe_and_does_nothing_to_a_terminal(
    folder: Path, in_a_pipe: Way, words: Sequence[str]
) -> None:
    assert "\x9b2J\u202eb\u2028\x7f\u2066" in in_a_pipe(words)
    text = on_a_terminal(folder, words)
    assert not INTERPRETED.findall(text)
    assert ESCAPED.search(text), text
