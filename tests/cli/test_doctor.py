"""`doctor`: what it looks at and finds, before real servers, through the real wrapper."""

import os
import re
import socket
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from mcp_abridge.cli import server as listing

from tests.cli.conftest import Run
from tests.forward_proxy import ForwardProxy, at, tools
from tests.plain_server import IMPORT
from tests.raw_http import RawServer

SERVER = """
def tool(name, argument):
    schema = {"properties": {argument: {"title": argument.title(), "type": "string"}},
              "required": [argument], "title": name + "Arguments", "type": "object"}
    return {"name": name, "description": "x", "inputSchema": schema}

if "noise" in sys.argv:
    print("listening")
title = "title" * (4000 if "wide" in sys.argv else 1)
serve("shelf", "2.1", [tool("list_books", "shelf"), tool("add_book", title)], None)
"""
# Of an earlier revision: it ignores what it does not know, such as server/discover.
EARLY = """
import json, sys
for line in sys.stdin:
    sent = json.loads(line)
    result = {"protocolVersion": "2025-06-18", "capabilities": {}, "tools": [],
              "serverInfo": {"name": "early", "version": "1"}}
    if sent["method"] in ("initialize", "tools/list"):
        print(json.dumps({"jsonrpc": "2.0", "id": sent["id"], "result": result}), flush=True)
"""
HEAD = "ok: server 'shelf' 2.1, revision 2025-11-25: 2 tools in N bytes after N s"

Doctor = Callable[..., list[str]]


@pytest.fixture
def doctor(run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Doctor:
    """Return a function that runs the verb, and returns its lines without what differs."""
    monkeypatch.chdir(tmp_path)

    def doctor(*words: str, code: int = 1, deadline: str = "60") -> list[str]:
        variables = {"HOME": str(tmp_path), "MCP_ABRIDGE_DEADLINE": deadline}
        out, error = run("doctor", *words, code=code, **variables)
        assert error == ""
        text = re.sub(r"after [0-9.]+ s", "after N s", out)
        return re.sub(r"[0-9,]+ bytes", "N bytes", text).splitlines()

    return doctor


def server(*words: str) -> list[str]:
    return ["--", sys.executable, "-c", IMPORT + SERVER, *words]


def bad(lines: list[str]) -> list[str]:
    return [line for line in lines if not line.startswith("ok: ")]


def test_a_set_up_that_is_as_it_should_be(
    doctor: Doctor, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rules = "version: 1\nrules: [{tools: list_books, response: [{keep: title}]}]\n"
    (tmp_path / "rules.yaml").write_text(rules)
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text('[mcp_servers.fs]\ncommand = "fs"\n')
    assert doctor("--rules", "rules.yaml", *server(), code=0) == [
        f"ok: ledger {os.environ['XDG_STATE_HOME']}/mcp-abridge/ledger.sqlite3",
        HEAD,
        "ok: with the rules: 2 tools in N bytes",
        "ok: rules.yaml applies",
        "ok: tools with a rule: 1; with the budget alone: 1",
        "ok: codex: 1 server, budget N bytes, since its limit is 48,000;"
        " not wrapped: fs, see mcp-abridge wrap",
    ]
    (tmp_path / ".claude.json").write_text('{"mcpServers": {"gh": {"command": "gh"}}}')
    monkeypatch.setenv("CLAUDE_CODE_EXPERIMENTAL_CODE_MODE", "1")
    lines = doctor("--budget", "off", "--rules", "rules.yaml", *server(), code=0)
    assert lines[-4:-1] == [
        "ok: tools with a rule: 1; with the budget alone: 0",
        "ok: tools whose answers pass whatever their length: 1 (add_book);"
        " --budget auto bounds them",
        "ok: claude-code: 1 server, budget none, since its models' scripts read the answers;"
        " not wrapped: gh, see mcp-abridge wrap",
    ]


def test_rules_for_nothing_that_is_there_are_named(doctor: Doctor, tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(
        "version: 1\nrules: [{tools: [list_boks, 'add_*'], response: [{keep: title}]}]\n"
    )
    (tmp_path / "other.yaml").write_text(
        "version: 1\nserver: {name: lamp}\nrules: [{tools: '*', response: [{keep: id}]}]\n"
    )
    assert bad(doctor("--rules", "rules.yaml", "--rules", "other.yaml", *server())) == [
        "warning: other.yaml: it is for another server; none of its rules apply",
        "warning: rules.yaml:2: no tool of this server is called 'list_boks';"
        " did you mean 'list_books'?",
    ]
    (tmp_path / "other.yaml").write_text("version: 1\nserver: {name: lamp, required: true}\n")
    assert bad(doctor("--rules", "other.yaml", *server())) == [
        "error: other.yaml: it is for another server, so no tool runs",
    ]


def test_mistakes_in_rules_are_named_and_the_server_is_looked_at(
    doctor: Doctor, tmp_path: Path
) -> None:
    (tmp_path / "rules.yaml").write_text("version: 1\nrules: [{tools: a, respons: []}]\n")
    [_, error, *server_lines] = doctor("--rules", "rules.yaml", *server())
    assert error.startswith("error: rules.yaml:2:20: unknown key 'respons' of a rule")
    assert server_lines == [HEAD]


@pytest.mark.fault(50, "stdio")
def test_an_input_schema_that_a_client_would_not_take_is_named(
    doctor: Doctor, tmp_path: Path
) -> None:
    # `order` is the rule's own argument, which the server never sees.
    order = f"{{order: {{upstream: false, description: {'x' * 17_000}}}}}"
    rules = f"version: 1\nrules: [{{tools: list_books, arguments: {order}}}]\n"
    (tmp_path / "rules.yaml").write_text(rules)
    assert bad(doctor("--rules", "rules.yaml", *server())) == [
        "warning: list_books: its inputSchema is N bytes, 125 of them the server's own;"
        " claude.ai drops tools above 16384: give the rule fewer arguments, or `view: false`",
    ]
    assert bad(doctor("--budget", "off", *server("wide"))) == [
        "warning: add_book: the server's own inputSchema is N bytes; claude.ai drops tools above"
        " 16384",
    ]


def test_the_last_lines_of_a_server_that_fails_are_shown(doctor: Doctor) -> None:
    script = "import sys; print(*range(20), sep='\\n', file=sys.stderr); sys.exit('no key\\x1b[2J')"
    lines = doctor("--ledger", "off", "--", sys.executable, "-c", script)
    start = lines.index("error: what the server wrote beside its messages:")
    assert "the server ended with exit code 1" in lines[start - 1]
    last = "    no key\\x1b[2J"
    assert lines[start + 1 :] == [*(f"    {number}" for number in range(11, 20)), last]


def test_doctor_reports_a_server_that_cannot_be_reached_or_started(doctor: Doctor) -> None:
    with socket.create_server(("127.0.0.1", 0)) as listener:
        address = "{}:{}".format(*listener.getsockname())
    for words, error in (
        (["--", "no-such-command"], "'no-such-command' cannot be started: no such file or"),
        ([f"http://{address}/mcp"], f"the server at http://{address}/mcp gave no answer: "),
    ):
        assert "\n".join(doctor("--ledger", "off", *words)).count(f"error: {error}") == 1


def test_noise_on_stdout_and_a_ledger_that_cannot_be_written_are_named(
    doctor: Doctor, tmp_path: Path
) -> None:
    lines = doctor("--ledger", str(tmp_path), *server("noise"))
    assert lines[0] == (
        f"warning: the ledger {tmp_path} cannot be written, nothing is recorded:"
        " not a regular file; --ledger takes the path of one"
    )
    assert "warning: the server writes lines that are no messages to its stdout" in lines


def test_a_mute_server_is_given_up_soon_and_its_stderr_is_shown(doctor: Doctor) -> None:
    script = "import sys, time; print('log in first', file=sys.stderr); time.sleep(600)"
    *_, error, title, line = doctor("--", sys.executable, "-c", script, deadline="2")
    assert error.startswith(
        "error: the server gave no answer within 2 s;"
        " is it an MCP server, and does it speak stdio if it is a command? --deadline 120 gives"
    )
    assert title == "error: what the server wrote beside its messages:"
    assert line == "    log in first"


def test_a_server_that_ignores_server_discover_is_met_within_that_time(
    doctor: Doctor, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(listing, "_DISCOVER", 0.5)
    lines = doctor("--ledger", "off", "--", sys.executable, "-c", EARLY, code=0)
    assert "server 'early' 1, revision 2025-06-18: 0 tools" in lines[1]


def test_doctor_says_which_way_the_requests_go(run: Run) -> None:
    words = ("doctor", "--deadline", "20")
    with RawServer(tools) as server, ForwardProxy() as proxy:
        through = f"ok: requests go through the proxy {proxy.url('***@')} (HTTP_PROXY)\n"
        variables = {"HTTP_PROXY": proxy.url("u:hunter2@")}
        assert through in run(*words, at(server), **variables).out
        assert proxy.requests != []
        variables["NO_PROXY"] = "127.0.0.1"
        out = run(*words, server.url, **variables).out
        assert "ok: requests go directly to the server\n" in out
    failure = run(*words, at(server), code=1, NO_PROXY="").out
    assert f"no connection to 127.0.0.1:{proxy.port}: connection refused" in failure
    assert "requests go" not in run("doctor", sys.executable, "-c", "", code=1).out
