"""`doctor`: what it looks at and finds, before real servers, through the real wrapper."""

import os
import re
import socket
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Without the SDK, of which nothing is shown here, and which takes a second to start.
SERVER = """
import json, sys

def tool(name, argument):
    schema = {"properties": {argument: {"title": argument.title(), "type": "string"}},
              "required": [argument], "title": name + "Arguments", "type": "object"}
    return {"name": name, "description": "x", "inputSchema": schema}

info = {"io.modelcontextprotocol/serverInfo": {"name": "shelf", "version": "2.1"}}
results = {
    "server/discover": {"capabilities": {"tools": {}}, "supportedVersions": ["2026-07-28"]},
    "tools/list": {"tools": [tool("list_books", "shelf"), tool("add_book", "title")]},
}
if "noise" in sys.argv:
    print("listening")
for line in sys.stdin:
    sent = json.loads(line)
    if sent["method"] in results:
        result = {"resultType": "complete", "ttlMs": 0, "cacheScope": "private", "_meta": info}
        result |= results[sent["method"]]
        print(json.dumps({"jsonrpc": "2.0", "id": sent["id"], "result": result}), flush=True)
"""


@pytest.fixture
def server() -> list[str]:
    return [sys.executable, "-c", SERVER]


def started(*words: str, cwd: Path = ROOT, deadline: str = "60") -> "subprocess.Popen[str]":
    """Start the verb; the clients of its home folder `cwd` are looked at."""
    return subprocess.Popen(
        [sys.executable, "-m", "proxy", "doctor", *words],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        cwd=cwd,
        env={
            **os.environ,
            "HOME": str(cwd),
            "PYTHONPATH": str(ROOT),
            "MCP_ABRIDGE_DEADLINE": deadline,
        },
    )


def ended(process: "subprocess.Popen[str]") -> tuple[int, list[str], str]:
    """Return the exit code, the lines of stdout without what differs, and stderr."""
    with process:
        stdout, stderr = process.communicate(timeout=150)
    said = re.sub(r"after [0-9.]+ s", "after N s", stdout)
    return process.returncode, re.sub(r"[0-9,]+ bytes", "N bytes", said).splitlines(), stderr


def doctor(*words: str, cwd: Path = ROOT) -> tuple[int, list[str], str]:
    return ended(started(*words, cwd=cwd))


SLOW = {
    "mute": "import sys, time; print('log in first', file=sys.stderr); time.sleep(600)",
    # Of an earlier revision: it ignores server/discover.
    "early": """
import json, sys
for line in sys.stdin:
    sent = json.loads(line)
    result = {"protocolVersion": "2025-06-18", "capabilities": {}, "tools": [],
              "serverInfo": {"name": "early", "version": "1"}}
    if sent["method"] in ("initialize", "tools/list"):
        print(json.dumps({"jsonrpc": "2.0", "id": sent["id"], "result": result}), flush=True)
""",
}


@pytest.fixture(scope="module", autouse=True)
def slow() -> Iterator[dict[str, "subprocess.Popen[str]"]]:
    """Start it before slow servers, so that it waits for them during the other tests."""
    words = ("--ledger", "off", "--", sys.executable, "-c")
    processes = {name: started(*words, script, deadline="") for name, script in SLOW.items()}
    yield processes
    for process in processes.values():
        with process:
            process.kill()


def test_a_set_up_that_is_as_it_should_be(server: list[str], tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(
        "version: 1\nrules: [{tools: list_books, response: [{keep: title}]}]\n"
    )
    (tmp_path / ".codex").mkdir()
    (tmp_path / ".codex" / "config.toml").write_text('[mcp_servers.fs]\ncommand = "fs"\n')
    code, lines, errors = doctor("--rules", "rules.yaml", "--", *server, cwd=tmp_path)
    assert (code, errors) == (0, "")
    assert lines == [
        f"ok: ledger {os.environ['XDG_STATE_HOME']}/mcp-abridge/ledger.sqlite3",
        "ok: server 'shelf' 2.1, revision 2026-07-28: 2 tools in N bytes after N s",
        "ok: with the rules: 2 tools in N bytes",
        "ok: rules.yaml applies",
        "ok: tools with a rule: 1; with the budget alone: 1",
        "ok: codex: 1 servers, budget N bytes, since its limit is 48,000;"
        " not wrapped: fs, see mcp-abridge wrap",
    ]
    code, lines, _ = doctor("--budget", "off", "--rules", "rules.yaml", "--", *server, cwd=tmp_path)
    assert code == 0
    assert lines[-3:-1] == [
        "ok: tools with a rule: 1; with the budget alone: 0",
        "ok: tools whose answers pass whatever their length: 1 (add_book);"
        " --budget auto bounds them",
    ]


def test_rules_for_nothing_that_is_there_are_named(server: list[str], tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text(
        "version: 1\nrules: [{tools: [list_boks, 'add_*'], response: [{keep: title}]}]\n"
    )
    (tmp_path / "other.yaml").write_text(
        "version: 1\nserver: {name: lamp}\nrules: [{tools: '*', response: [{keep: id}]}]\n"
    )
    given = ("--rules", "rules.yaml", "--rules", "other.yaml")
    code, lines, _ = doctor(*given, "--", *server, cwd=tmp_path)
    assert code == 1
    assert [line for line in lines if not line.startswith("ok: ")] == [
        "warning: other.yaml: it is for another server; none of its rules apply",
        "warning: rules.yaml:2: no tool of this server is called 'list_boks';"
        " did you mean 'list_books'?",
    ]


def test_mistakes_in_rules_are_named_with_their_places(server: list[str], tmp_path: Path) -> None:
    (tmp_path / "rules.yaml").write_text("version: 1\nrules: [{tools: a, respons: []}]\n")
    code, lines, _ = doctor("--rules", "rules.yaml", "--", *server, cwd=tmp_path)
    assert code == 1
    assert lines[1:] == [
        "error: rules.yaml:2:20: unknown key 'respons' of a rule; did you mean 'response'?",
        "ok: server 'shelf' 2.1, revision 2026-07-28: 2 tools in N bytes after N s",
    ]


@pytest.mark.fault(50, "stdio")
def test_an_input_schema_that_a_client_would_not_take_is_named(
    server: list[str], tmp_path: Path
) -> None:
    # `order` is the rule's own argument, which the server never sees.
    (tmp_path / "rules.yaml").write_text(
        "version: 1\n"
        "rules:\n"
        "  - tools: list_books\n"
        f"    arguments: {{order: {{upstream: false, description: {'x' * 17_000}}}}}\n"
    )
    code, lines, _ = doctor("--rules", "rules.yaml", "--", *server, cwd=tmp_path)
    assert code == 1
    assert [line for line in lines if not line.startswith("ok: ")] == [
        # As the wrapper's log says it.
        "warning: list_books: its inputSchema is N bytes, 125 of them the server's own;"
        " claude.ai drops tools above 16384: give the rule fewer arguments, or `view: false`",
    ]


def test_noise_on_stdout_is_told(server: list[str]) -> None:
    code, lines, _ = doctor("--", *server, "noise")
    assert code == 1
    assert "warning: the server writes lines that are no messages to its stdout" in lines


def test_the_last_lines_of_a_server_that_fails_are_shown() -> None:
    script = "import sys; print(*range(20), sep='\\n', file=sys.stderr); sys.exit('no key\\x1b[2J')"
    code, lines, _ = doctor("--ledger", "off", "--", sys.executable, "-c", script)
    assert code == 1
    said = lines.index("error: what the server wrote beside its messages:")
    assert "the server ended with exit code 1" in lines[said - 1]
    last = "    no key\N{REPLACEMENT CHARACTER}[2J"
    assert lines[said + 1 :] == [*(f"    {number}" for number in range(11, 20)), last]


def test_a_command_that_cannot_be_started_is_told() -> None:
    code, lines, _ = doctor("--ledger", "off", "--", "no-such-command")
    assert code == 1
    assert lines[1] == "error: 'no-such-command' cannot be started: no such file or directory"


def test_a_server_that_is_out_of_reach_is_told() -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    code, lines, _ = doctor("--ledger", "off", f"http://127.0.0.1:{port}/mcp")
    assert code == 1
    assert (
        f"error: the server at http://127.0.0.1:{port}/mcp gave no answer:"
        f" no connection to 127.0.0.1:{port}: connection refused"
    ) in lines[-1]


def test_a_ledger_that_cannot_be_written_is_told(server: list[str], tmp_path: Path) -> None:
    code, lines, _ = doctor("--ledger", str(tmp_path), "--", *server)
    assert code == 1
    assert lines[0] == (
        f"warning: the ledger {tmp_path} cannot be written, nothing is recorded:"
        " not a regular file; --ledger takes the path of one"
    )


def test_no_server_is_a_mistake_of_usage() -> None:
    said = "one server: give its URL, or write its command after --"
    assert doctor("--rules", "github") == (2, [], f"mcp-abridge doctor: {said}\n")


def test_a_mute_server_is_given_up_soon_with_what_it_wrote_to_its_stderr(
    slow: dict[str, "subprocess.Popen[str]"],
) -> None:
    code, lines, _ = ended(slow["mute"])
    assert code == 1
    assert lines[-3].startswith(
        "error: the server does not list its tools: it gave no answer within 10 s;"
        " is it an MCP server, and does it speak stdio if it is a command? --deadline 120 gives"
    )
    assert lines[-2:] == [
        "error: what the server wrote beside its messages:",
        "    log in first",
    ]


def test_a_server_that_ignores_server_discover_is_met_within_that_time(
    slow: dict[str, "subprocess.Popen[str]"],
) -> None:
    code, lines, _ = ended(slow["early"])
    assert code == 0
    assert "server 'early' 1, revision 2025-06-18: 0 tools" in lines[1]
