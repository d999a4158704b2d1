"""Shows that each real server starts and lists its tools, and that each TypeScript client works."""

import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Literal

import orjson
import pytest

from tests import servers
from tests.servers import Call, typescript
from tests.wire import Wire

pytestmark = pytest.mark.usefixtures("servers")

COMMANDS: dict[str, tuple[Callable[[Path], list[str]], str]] = {
    "filesystem": (servers.filesystem, "read_text_file"),
    "everything": (lambda _: servers.everything(), "echo"),
    "memory": (lambda folder: servers.memory(folder / "memory.jsonl"), "read_graph"),
    "github": (lambda _: servers.github(), "search_repositories"),
    "git": (servers.git, "git_log"),
    "sqlite": (lambda folder: servers.sqlite(folder / "some.db"), "read_query"),
}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Make a folder that is a git repository with one commit and one file."""
    (tmp_path / "note.txt").write_text("a note\n")
    who = ["-c", "user.name=Someone", "-c", "user.email=someone@example.org"]
    for arguments in (["init", "-q"], ["add", "."], [*who, "commit", "-q", "-m", "Begin"]):
        subprocess.run(["git", "-C", str(tmp_path), *arguments], check=True)
    return tmp_path


@pytest.mark.parametrize("name", COMMANDS)
def test_a_server_answers_initialize_and_lists_its_tools(name: str, folder: Path) -> None:
    command, tool = COMMANDS[name]
    with Wire(command(folder)) as wire:
        client = {"name": "wire", "version": "1.0.0"}
        wire.send("initialize", 1, protocolVersion="2025-06-18", capabilities={}, clientInfo=client)
        wire.send("notifications/initialized")
        answer = orjson.loads(wire.send("tools/list", 2)[-1])
        assert tool in [tool["name"] for tool in answer["result"]["tools"]]


@pytest.mark.parametrize("sdk", ["v1", "v2"])
def test_a_typescript_client_lists_calls_and_reports_errors(
    sdk: Literal["v1", "v2"], folder: Path
) -> None:
    note, missing = ({"path": str(folder / name)} for name in ("note.txt", "missing.txt"))
    command = servers.filesystem(folder)
    seen = typescript(sdk, command, Call("read_text_file", note), Call("read_text_file", missing))
    assert "read_text_file" in [tool["name"] for tool in seen.tools or []]
    read, refused = seen.results
    assert read["result"]["structuredContent"] == {"content": "a note\n"}
    assert refused["result"]["isError"] is True


@pytest.mark.parametrize(
    ("sdk", "mode", "version"),
    [
        ("v1", "auto", "2025-11-25"),
        ("v2", "legacy", "2025-11-25"),
        ("v2", "auto", "2026-07-28"),
        ("v2", "2026-07-28", "2026-07-28"),
    ],
)
def test_a_typescript_client_speaks_the_era_it_is_told(
    sdk: Literal["v1", "v2"],
    mode: Literal["auto", "legacy", "2026-07-28"],
    version: str,
    folder: Path,
) -> None:
    call = Call("git_log", {"repo_path": str(folder)})
    seen = typescript(sdk, servers.git(folder), call, mode=mode)
    assert seen.protocol_version == version
    assert "Begin" in seen.results[0]["result"]["content"][0]["text"]


# Advertises a tool whose structuredContent is a number where its schema wants a text.
MISMATCH = """
import json, sys
for line in sys.stdin:
    message = json.loads(line)
    schema = {"type": "object", "properties": {"x": {"type": "string"}}, "required": ["x"]}
    answers = {
        "initialize": lambda: {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                               "serverInfo": {"name": "s", "version": "1"}},
        "tools/list": lambda: {"tools": [
            {"name": "t", "inputSchema": {"type": "object"}, "outputSchema": schema}]},
        "tools/call": lambda: {"content": [], "structuredContent": {"x": 1}},
    }
    if "id" in message:
        result = answers[message["method"]]()
        print(json.dumps({"jsonrpc": "2.0", "id": message["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("sdk", ["v1", "v2"])
def test_a_typescript_client_refuses_what_breaks_the_output_schema(
    sdk: Literal["v1", "v2"], tmp_path: Path
) -> None:
    script = tmp_path / "server.py"
    script.write_text(MISMATCH)
    command = [sys.executable, str(script)]
    refused = typescript(sdk, command, Call("t")).results[0]
    assert refused["ok"] is False
    assert refused["error"]["code"] == -32602
    assert typescript(sdk, command, Call("t"), list_tools=False).tools is None


@pytest.mark.parametrize("sdk", ["v1", "v2"])
def test_a_typescript_client_that_cannot_connect_says_why(sdk: Literal["v1", "v2"]) -> None:
    with pytest.raises(RuntimeError, match="ENOENT"):
        typescript(sdk, ["no-such-server"])
