"""`call`: a server, seen through the real wrapper."""

import json
import os
import re
import sys
from pathlib import Path

import pytest
from mcp_abridge.cli.call import UnusableCall, values_of

from tests.cli.conftest import Run
from tests.plain_server import IMPORT

SERVER = """
print("the shelf is being dusted", file=sys.stderr)
calls = 0
LIST_BOOKS = {
    "name": "list_books",
    "description": "List the books of a shelf.",
    "inputSchema": {
        "type": "object",
        "properties": {
            "count": {"type": "integer"},
            "shelf": {"type": "string", "default": "a"},
            "tags": {"type": "array", "items": {"type": "string"}, "default": []},
        },
        "required": ["count"],
    },
    "annotations": {"readOnlyHint": True},
}
FAIL = {"name": "fail", "inputSchema": {"type": "object", "properties": {}}}

def list_books(count, shelf="a", tags=()):
    global calls
    calls += 1
    return {"books": [{"id": n, "title": f"Book {n} of {shelf}", "tags": tags, "text": "x" * 200,
                       "calls": calls} for n in range(count)]}

def call(name, arguments):
    if name == "list_books" and "count" not in arguments:
        raise LookupError("count is required")
    if arguments.get("shelf") == "far":
        sys.stdin.read()  # no answer before the client ends
    text = "no such shelf" if name == "fail" else json.dumps(list_books(**arguments), indent=2)
    return {"content": [{"type": "text", "text": text}], "isError": name == "fail"}

if sys.argv[1:] == ["--widget"]:
    LIST_BOOKS["_meta"] = {"ui/resourceUri": "ui://shelf/view.html"}
serve("shelf", "2.1", [LIST_BOOKS, FAIL], call)
"""
RULES = """
version: 1
rules:
  - {tools: list_books, name: brief books, response: [{keep: [books.id]}]}
  - {tools: fail, hide: true}
"""
BOUNDS = """
version: 1
rules:
  - {tools: list_books, arguments: {count: {maximum: 5}, shelf: {default: z}}}
  - {tools: fail, hide: true}
"""
PAGES = "version: 1\nrules: [{tools: list_books, response: [{paginate: {at: books, limit: 2}}]}]\n"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> list[str]:
    path = tmp_path_factory.mktemp("server") / "server.py"
    path.write_text(IMPORT + SERVER)
    return ["--", sys.executable, str(path)]


def rules(folder: Path) -> str:
    (folder / "rules.yaml").write_text(RULES)
    return str(folder / "rules.yaml")


def test_without_a_tool_all_are_listed_with_the_size_of_their_definitions(
    server: list[str], tmp_path: Path, run: Run
) -> None:
    out = run("call", "--json", "--rules", rules(tmp_path), *server).out
    first, second = json.loads(out)
    assert (first["tool"], first["hints"]) == ("list_books", ["readOnly"])
    assert first["rules"] == ["brief books"]
    assert 100 < first["bytes"] < first["as_sent"] + 1
    assert first["bytes"] / 6 < first["tokens"] < first["bytes"] / 2
    assert (second["tool"], second["as_sent"]) == ("fail", None)
    required = [each["required"] for each in first["arguments"]]
    assert required == [True, False, False]

    words = ["--json", "--rules", rules(tmp_path), "--definitions", "0"]
    shorter, _ = json.loads(run("call", *words, *server).out)
    assert shorter["as_sent"] < first["as_sent"]

    *rows, total, legend = run("call", *server).out.splitlines()
    assert any(row.startswith(" list_books (count) ") for row in rows)
    assert total.startswith("shelf 2.1: 2 tools in ")
    assert legend.startswith("As sent: ")


def test_call_prints_the_view_of_a_client_s_model_and_saves_the_whole(
    server: list[str], tmp_path: Path, run: Run
) -> None:
    saved = str(tmp_path / "answer.json")
    words = ["call", "list_books", "count=300", "shelf=https://a/7", 'tags=["new"]']
    out, error = run(*words, "--save", saved, "--client", "codex-mcp-client", *server)
    assert json.loads(out)["books"]["rows"][1][:2] == [1, "Book 1 of https://a/7"]
    assert len(out) < 8200
    assert "codex alone would show 48,000" in error

    # The tool has run once, and all that it said is there.
    whole = json.loads(Path(saved).read_text())
    assert os.name == "nt" or os.stat(saved).st_mode & 0o777 == 0o600
    arguments = {"count": 300, "shelf": "https://a/7", "tags": ["new"]}
    assert whole["request"]["params"]["arguments"] == arguments
    [block] = whole["response"]["result"]["content"]
    assert [book["calls"] for book in json.loads(block["text"])["books"]] == [1] * 300
    assert json.loads(run("view", saved, "count_by(books, &calls)").out) == {"view": {"1": 300}}


def test_calls_and_lists_say_who_gets_the_answers_for_a_widget_whole(
    server: list[str], run: Run
) -> None:
    words = ["call", "list_books", "count=300", *server]
    out, error = run(*words, "--widget")
    assert len(out) < 8200
    whole = "a client that shows its widget (MCP Apps) gets its answers whole"
    assert f"list_books: {whole}" in error
    assert "widget" not in run(*words).err

    last = run("call", *server, "--widget").out.splitlines()[-1]
    assert last == "A client that shows widgets (MCP Apps) has no budget for list_books."
    assert "widget" not in run("call", *server).out


def test_call_applies_the_rules_or_none_and_shows_an_error(
    server: list[str], tmp_path: Path, run: Run
) -> None:
    words = ["--rules", rules(tmp_path), '{"count": 2}', *server]
    assert "title" not in run("call", "list_books", *words).out
    assert "no such shelf" in run("call", "fail", *server, code=1).out

    # An error of the protocol is an answer, too.
    out, error = run("call", "list_books", *server, code=1)
    assert (out, len(error.splitlines())) == ("count is required\n", 1)

    # A rule that fails says so.
    (tmp_path / "wrong.yaml").write_text(RULES.replace("books.id", "books.it"))
    error = run("call", "list_books", "count=3", "--rules", tmp_path / "wrong.yaml", *server).err
    assert "call: brief books: list_books: left as it came: no books.it in the document\n" in error

    # Without rules there is no budget either, as in `run`.
    out = run("call", "list_books", "count=300", "--rules", "none", *server).out
    assert len(json.loads(out)["books"]) == 300


def test_a_call_without_an_answer_is_cancelled_after_the_deadline(
    server: list[str], run: Run
) -> None:
    words = ["call", "list_books", "count=1", "shelf=far", "--deadline", "4", *server]
    assert run(*words, code=1).out.startswith("no answer within 4 seconds and no progress; ")


def test_a_call_takes_the_arguments_that_rules_add_and_the_server_does_not_get_them(
    server: list[str], tmp_path: Path, run: Run
) -> None:
    call = ["call", "list_books", "count=300"]
    assert "view=" in run(*call, *server).out
    saved = str(tmp_path / "answer.json")
    out = run(*call, "view=books[298:].id", "--save", saved, *server).out
    assert json.loads(out) == {"view": [298, 299]}
    whole = json.loads(Path(saved).read_text())
    assert whole["request"]["params"]["arguments"] == {"count": 300}

    (tmp_path / "rules.yaml").write_text(PAGES)
    words = ["--rules", str(tmp_path / "rules.yaml"), *server]
    [fifth, sixth] = json.loads(run(*call, "shelf=b", "offset=4", *words).out)["books"]
    assert (fifth["title"], sixth["id"]) == ("Book 4 of b", 5)
    error = run(*call, "offset=many", *words, code=2).err
    assert "offset is of type integer, and 'many' is not" in error


def test_the_server_gets_what_the_rules_send_or_nothing(
    server: list[str], tmp_path: Path, run: Run
) -> None:
    (tmp_path / "bounds.yaml").write_text(BOUNDS)
    words = ["--rules", str(tmp_path / "bounds.yaml"), "--save", str(tmp_path / "saved"), *server]
    for call, answer in (
        (["list_books", "count=9"], "count: 9 is greater than the maximum of 5\n"),
        (["fail"], "Unknown tool: fail\n"),
    ):
        out, error = run("call", *call, *words, code=1)
        assert (out, "the rules answer, and the server is not asked" in error) == (answer, True)
        assert not (tmp_path / "saved").exists()
    [book] = json.loads(run("call", "list_books", "count=1", *words).out)["books"]
    assert book["title"] == "Book 0 of z"
    saved = json.loads((tmp_path / "saved").read_text())
    assert saved["request"]["params"]["arguments"] == {"count": 1, "shelf": "z"}


def test_a_call_that_cannot_be_made_or_saved_is_refused(server: list[str], run: Run) -> None:
    words = ("call", "list_books", "--save", "nowhere/a.json", "--", "no-such-command")
    assert run(*words, code=2).err.endswith("nowhere/a.json: there is no folder nowhere\n")
    complaint = "the server has no tool 'list_book'; did you mean 'list_books'?"
    assert run("call", "list_book", *server, code=2) == ("", f"mcp-abridge call: {complaint}\n")
    error = run("call", "x", *server, code=2).err
    assert error.endswith("the server has no tool 'x'; known: list_books, fail\n")
    assert run("call", code=2).err.endswith("write its command after --\n")
    complaint = "a header is written like 'Authorization: Bearer ${TOKEN}'"
    error = run("call", "--header", "secret", "http://127.0.0.1:1/mcp", code=2).err
    assert error == f"mcp-abridge call: {complaint}\n"
    error = run("call", "list_books", "count=1", "shelf-server", "--db-path", "x", code=2).err
    assert error.endswith("unexpected '--db-path'; what is the server's goes after --\n")


def test_arguments_that_do_not_fit_are_refused() -> None:
    tools = {"list": {"inputSchema": {"properties": {"count": {"type": "integer"}}}}}
    for word, complaint in (
        ("cuont=1", "list has no argument 'cuont'; did you mean 'count'?"),
        ("count=many", "count is of type integer, and 'many' is not"),
        ("{", "the arguments are not JSON: "),
    ):
        with pytest.raises(UnusableCall, match=re.escape(complaint)):
            values_of("list", [word], tools)
