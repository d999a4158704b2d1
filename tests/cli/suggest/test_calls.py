"""`suggest -- COMMAND`: from a server to rules whose tests pass, by calls that change nothing."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.plain_server import IMPORT

# Each call is noted in a file.
SERVER = """
print("the shelf is being dusted", file=sys.stderr)

def tool(name, *needed, optional=(), reads=True):
    schema = {"type": "object", "required": list(needed),
              "properties": {each: {"type": "string"} for each in (*needed, *optional)}}
    hint = {"annotations": {"readOnlyHint": True}} if reads else {}
    return {"name": name, "inputSchema": schema, **hint}

TOOLS = [tool("list_books"), tool("get_shelf", "name", optional=["floor"]),
         tool("count_books", reads=False)]

def called(tool, name=""):
    with open(sys.argv[1], "a") as calls:
        calls.write(f"{tool} {name}".strip() + "\\n")
    if name == "none":
        raise ValueError("no such shelf")
    return {
        "list_books": {"books": [{"id": n, "title": f"Book {n}", "text": "x" * 500}
                                 for n in range(100)]},
        "get_shelf": {"rows": [{"n": n, "place": f"{name} {n}", "width": n / 7}
                               for n in range(200)]},
        "count_books": {"count": 100},
        "digits": list(range(1000)),
    }[tool]

def call(name, arguments):
    try:
        value, error = called(name, **arguments), False
    except (OSError, ValueError) as problem:
        value, error = [problem], True
    texts = map(str, value) if isinstance(value, list) else [json.dumps(value)]
    return {"content": [{"type": "text", "text": text} for text in texts], "isError": error}

serve("the shelf", "2.1", TOOLS, call)
"""

DENSE = SERVER.replace("def called", 'TOOLS = [tool("digits")]\n\ndef called')


@pytest.fixture
def server(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.py").write_text(IMPORT + SERVER)
    return ["--", sys.executable, str(tmp_path / "server.py"), str(tmp_path / "calls")]


def calls(folder: Path) -> list[str]:
    return (folder / "calls").read_text().splitlines()


def test_tools_that_only_read_are_called_and_get_rules_that_pass(
    server: list[str], tmp_path: Path, run: Run
) -> None:
    out, error = run("suggest", *server)
    assert (calls(tmp_path), out) == (["list_books"], "")
    assert "not called, since they need arguments: get_shelf (name)\n" in error
    assert "not called, since they do not declare readOnlyHint: count_books\n" in error
    assert "suggest: --sample \"get_shelf name='...'\" calls such a tool" in error
    assert "bytes become" in error
    assert "next: read the-shelf.yaml; then: mcp-abridge wrap NAME --rules " in error
    run("test", "--require-tests", "the-shelf.yaml")
    assert "server: {name: the shelf}" in (tmp_path / "the-shelf.yaml").read_text()

    # What is there is not touched, and nothing is called for it.
    (tmp_path / "the-shelf.yaml").write_text("mine")
    error = run("suggest", *server, code=2).err
    assert "the-shelf.yaml is there already; --force replaces it" in error
    assert calls(tmp_path) == ["list_books"]
    assert (tmp_path / "the-shelf.yaml").read_text() == "mine"
    run("suggest", "--force", *server)
    assert "version: 1" in (tmp_path / "the-shelf.yaml").read_text()


def test_samples_call_other_tools_and_the_calls_may_be_kept(
    server: list[str], tmp_path: Path, run: Run
) -> None:
    samples = ["get_shelf name='top left'", 'get_shelf {"name": "none"}', "count_books"]
    words = [word for sample in samples for word in ("--sample", sample)]
    error = run("suggest", "-o", "r.yaml", "--record", "kept", *words, *server).err
    assert calls(tmp_path) == ["list_books", "get_shelf top left", "get_shelf none", "count_books"]
    assert run("check", "r.yaml").out == "ok: r.yaml: 2 rules, 2 tests\n"
    complaint = "an error: no such shelf\n"
    assert f'called get_shelf {{"name": "none"}}: {complaint}' in error
    assert "no rule for count_books: no answer above 4,000 bytes" in error
    assert len(list((tmp_path / "kept").glob("*/*-get_shelf.json"))) == 2
    assert len(json.loads(run("suggest", "kept", "--json").out)) == 2


def test_a_sample_that_cannot_be_called_is_refused_before_any_call(
    server: list[str], tmp_path: Path, run: Run
) -> None:
    error = run("suggest", "--sample", "get_shelv name=a", *server, code=2).err
    [line] = error.splitlines()  # and not what the server wrote
    assert "the server has no tool 'get_shelv'; did you mean 'get_shelf'?" in line
    assert not (tmp_path / "calls").exists()


def test_a_mistake_that_needs_no_server_is_refused_without_one(tmp_path: Path, run: Run) -> None:
    for words, complaint in (
        (["--sample", "get_shelf name='a"], '"name=\'a": No closing quotation'),
        (["--sample", "get_shelf name=top left"], "'left' is no argument; write NAME=VALUE"),
        (["-o", "nowhere/r.yaml"], "nowhere/r.yaml: there is no folder nowhere\n"),
    ):
        assert complaint in run("suggest", *words, "--", "touch", tmp_path / "started", code=2).err
    assert not (tmp_path / "started").exists()


def test_without_a_rule_no_file_is_written_and_the_reason_is_given(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    (tmp_path / "server.py").write_text(IMPORT + DENSE)
    server = ["--", sys.executable, "server.py"]
    error = run("suggest", "-o", "r.yaml", *server, "calls", code=1).err
    assert "no rule for digits: its answers are several text blocks; " in error
    assert not (tmp_path / "r.yaml").exists()

    error = run("suggest", "-o", "r.yaml", *server, "no/calls", code=1).err
    assert error.endswith("no rule for digits: its answers are errors\n")


def test_a_server_that_ends_at_its_first_call_is_reported(
    tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    broken = SERVER.replace("    try:\n", "    sys.exit('out of memory')\n    try:\n")
    (tmp_path / "server.py").write_text(IMPORT + broken)
    error = run("suggest", "--", sys.executable, "server.py", "calls", code=2).err
    assert "called list_books {}: an error: the server ended with exit code 1" in error
    assert error.endswith(": no call was answered, so that there is nothing to draft from\n")


def test_a_server_that_does_not_start_is_reported(tmp_path: Path, run: Run) -> None:
    command = [sys.executable, "-c", "raise SystemExit('no database')"]
    assert "no database" in run("suggest", "-o", tmp_path / "r.yaml", "--", *command, code=2).err
    assert not (tmp_path / "r.yaml").exists()
    words = "suggest: the server does not answer as an MCP server: "
    assert words in run("suggest", "--", "cat", code=2).err
