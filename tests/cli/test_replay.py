"""`replay`: a recorded session of a real server through rules, for a person and for a CI job."""

import json
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge.storage.redaction import Redaction

from tests.builders import answer, call, line, texts, tool_result
from tests.cli.conftest import Run
from tests.plain_server import IMPORT
from tests.python_client import connected
from tests.wire import Wire
from tests.wrapped import wrapped

SERVER = """
from mcp.server.mcpserver import MCPServer

mcp = MCPServer(name="shelf", log_level="ERROR")

@mcp.tool(structured_output=False)
def list_books(shelf: str) -> dict:
    books = [{"id": f"bk_{n}", "title": f"Book {n}", "text": "x" * 500} for n in range(90)]
    return {"books": books}

@mcp.tool(structured_output=False)
def get_book(id: str) -> dict:
    return {"id": id, "pages": 3}

mcp.run()
"""
RULES = """
version: 1
rules:
  - tools: list_books
    name: books
    response: [{keep: [%s]}]
    tests:
      - {arguments: {shelf: a}, given: {books: [{id: a, title: b}]}, expect_keys: {"": 1}}
"""


@pytest.fixture(scope="module")
def recordings(tmp_path_factory: pytest.TempPathFactory) -> str:
    """Return the folder in which the session of a real client with a real server is recorded."""
    path = tmp_path_factory.mktemp("server") / "server.py"
    path.write_text(SERVER)
    folder = str(tmp_path_factory.mktemp("recorded") / "all")
    server = [sys.executable, str(path)]
    with connected(wrapped(server, "--rules", "none", "--record", folder)) as client:
        client.call("list_books", {"shelf": "fiction"})
        client.call("get_book", {"id": "bk_7"})
    return folder


def rules(folder: Path, *paths: str) -> list[str]:
    file = folder / "rules.yaml"
    file.write_text(RULES % ", ".join(paths))
    return ["--rules", str(file)]


def account(run: Run, *words: str, code: int = 0) -> Any:
    return json.loads(run("replay", "--json", *words, code=code).out)


def test_the_budget_alone_loses_nothing(recordings: str, run: Run) -> None:
    out, error = run("replay", recordings, "--rules", "github")
    line = "no rule applied: the rule files are for other servers or other tools"
    assert error == f"mcp-abridge replay: {line}\n"
    assert "later calls used: 1; still shown: 1, a view or page away: 0, lost: 0" in out

    both = account(run, recordings)
    [books, book] = both["tools"]
    assert (books["tool"], books["rule"], books["calls"]) == ("list_books", "budget", 1)
    assert 45_000 < books["before"] < 60_000
    assert books["largest"] == books["after"] < 10_000
    assert books["tokens_after"] < books["tokens_before"] / 4
    assert (book["before"], book["after"]) == (book["after"], book["before"])


WIDGETS = """
chart = {"name": "chart", "inputSchema": {"type": "object"},
         "_meta": {"ui": {"resourceUri": "ui://chart"}}}
text = json.dumps([{"id": n, "y": n * 0.5} for n in range(2000)])
serve("charts", "1", [chart], lambda name, arguments: {"content": [{"type": "text", "text": text}]})
"""


@pytest.mark.parametrize("extensions", [{}, {"io.modelcontextprotocol/ui": {}}])
def test_a_widget_gets_in_a_replay_what_it_got_in_the_session(
    tmp_path: Path, extensions: dict[str, Any], run: Run
) -> None:
    folder = str(tmp_path / "recorded")
    command = wrapped([sys.executable, "-c", IMPORT + WIDGETS], "--record", folder)
    capabilities = {"extensions": extensions}
    params = {"clientInfo": {"name": "claude-ai"}, "capabilities": capabilities}
    hello = line(id=1, method="initialize", params=params)
    with Wire(command) as wire:
        for each in (hello, line(id=2, method="tools/list")):
            wire.write(each + b"\n")
            wire.line()
        wire.write(call("chart", id=3) + b"\n")
        [text] = texts(wire.line())
        wire.close()

    [chart] = account(run, folder)["tools"]

    assert (chart["after"], chart["rule"]) == (len(text), None if extensions else "budget")
    assert (len(text) > 40_000) is bool(extensions)


def test_a_structured_content_of_null_takes_no_bytes(tmp_path: Path, run: Run) -> None:
    result = {**tool_result("x" * 40), "structuredContent": None}
    record = {"request": json.loads(call("t")), "response": json.loads(answer(result))}
    (tmp_path / "0001-t.json").write_text(json.dumps(record))
    [row] = account(run, str(tmp_path), "--client", "claude-code")["tools"]
    assert (row["before"], row["after"]) == (40, 40)


def test_a_lost_value_rotten_paths_and_new_members_are_findings(
    recordings: str, tmp_path: Path, run: Run
) -> None:
    lossy = rules(tmp_path, "books.title", "books.author")
    out, error = run("replay", recordings, *lossy, code=1)
    assert error == ""

    [path] = Path(recordings).glob("*/0001-list_books.json")
    place = f"{tmp_path / 'rules.yaml'}:4"
    assert out.splitlines()[-3:] == [
        f"lost: {path}: books[7].id: bk_7: get_book took it as id",
        f"rot: {place}: books: books.author matches nothing; answers: 1",
        f"new: {place}: books: books.text, as in {path}",
    ]
    findings = account(run, recordings, *lossy, code=1)
    assert [len(findings[kind]) for kind in ("loss", "rot", "drift", "over")] == [1, 1, 1, 0]
    assert findings["used"] == {"shown": 0, "view": 0, "lost": 1}


@pytest.mark.parametrize(
    ("paths", "words", "code"),
    [
        (["books.title"], ["--fail-on", "rot"], 0),
        (["books.id"], [], 0),
        (["books.id"], ["--fail-on", "loss,rot,drift"], 1),
        (["books.id", "books.x"], ["--fail-on", "loss"], 0),
        (["books.id", "books.x"], ["--fail-on=none"], 0),
        (["books.id", "books.x"], ["--fail-on=none", "--fail-over", "1kB"], 1),
        (["books.id", "books.x"], ["--fail-on=none", "--fail-over", "8kB"], 0),
    ],
)
def test_a_ci_job_chooses_what_fails(
    paths: Sequence[str], words: list[str], code: int, recordings: str, tmp_path: Path, run: Run
) -> None:
    run("replay", recordings, *rules(tmp_path, *paths), *words, code=code)


def test_a_rule_in_shadow_mode_is_replayed_as_if_it_were_active(
    recordings: str, tmp_path: Path, run: Run
) -> None:
    words = rules(tmp_path, "books.id")
    file = tmp_path / "rules.yaml"
    file.write_text(file.read_text().replace("name: books", "mode: shadow"))
    assert account(run, recordings, *words)["tools"][0]["after"] < 2000


def test_a_recording_without_its_secrets_is_replayed_from_page_to_page(
    tmp_path: Path, run: Run
) -> None:
    redaction = Redaction(["token"])
    text = json.dumps({"next_page_token": "pt-81", "accessToken": "hunter2"})
    arguments = {"page_token": "pt-81", "api_token": "hunter2"}
    for number, request in enumerate((call("list"), call("list", arguments)), 1):
        parts = redaction.request(request), redaction.response(answer(tool_result(text)))
        recording = b'{"request":%b,"response":%b}' % parts
        assert b"hunter2" not in recording
        (tmp_path / f"000{number}-list.json").write_bytes(recording)
    report = account(run, str(tmp_path))
    assert report["used"] == {"shown": 1, "view": 0, "lost": 0}


def test_recordings_are_weighed_as_transcripts_are(recordings: str, run: Run) -> None:
    books, book = json.loads(run("weigh", recordings, "--json").out)
    assert (books["tool"], book["tool"]) == ("shelf/list_books", "shelf/get_book")
    assert books["in_budget"] < 10_000 < 45_000 < books["read"] == books["whole"]


def test_a_file_that_cannot_be_replayed_is_refused(
    recordings: str, tmp_path: Path, run: Run
) -> None:
    empty = tmp_path / "empty"
    empty.mkdir()
    for verb in ("replay", "suggest"):
        error = run(verb, str(empty), code=2).err
        assert f"no recorded call in {empty}; `mcp-abridge --record DIR` makes recordings" in error
    (empty / "0001-t.json").write_text("{")
    error = run("replay", str(empty), code=2).err
    assert f"{empty / '0001-t.json'}: neither a recorded exchange nor JSON" in error
    error = run("replay", recordings, "--fail-on", "los", code=2).err
    assert "'los' is none of loss, rot, drift; or write none" in error
