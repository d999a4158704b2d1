"""The order of drafted rules: first the tool whose answers in short were too little for a model."""

import json
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge.cli.suggest import looks
from mcp_abridge.replay.recordings import sessions
from mcp_abridge.storage.ledger import default_path
from mcp_abridge.storage.meter import Looks

from tests.cli.conftest import Run
from tests.cli.suggest.recorded import write
from tests.ledgers import filled
from tests.python_client import connected
from tests.wrapped import ROOT, wrapped

COUNTING = [sys.executable, str(ROOT / "tests/fixtures/counting_server.py")]
ROWS = {"rows": [{"id": n, "title": f"row {n}"} for n in range(400)]}
MORE = {"rows": [{"id": n, "title": f"row {n}"} for n in range(900)]}


@pytest.fixture
def recording(tmp_path: Path) -> str:
    """Record a small and a large answer of a server with the name `shop`."""
    (tmp_path / "calls").mkdir()
    (tmp_path / "calls" / "session.json").write_text('{"server": "shop", "client": "codex"}')
    return write(tmp_path / "calls", ("small", {}, ROWS), ("large", {}, MORE))


def order(run: Run, path: str, **variables: str) -> list[str]:
    """Return the tools of the rules that a recording suggests."""
    rows = json.loads(run("suggest", "--json", path, **variables).out)
    return [tool for row in rows for tool in row["tools"]]


def test_the_ledger_says_which_tool_of_the_server_needs_a_rule_first(
    recording: str, run: Run
) -> None:
    assert order(run, recording) == ["large", "small"]
    others = Looks("large", None, "another server", None, 50, 50)
    old = Looks("large", "budget", "shop", None, 50, 50)
    filled(default_path(), others)
    filled(default_path(), old, at=1_700_000_000)
    assert order(run, recording) == ["large", "small"]

    filled(default_path(), Looks("small", "budget", "shop", None, 40, 9, 3, 2))
    assert order(run, recording) == ["small", "large"]
    printed = run("suggest", recording)
    line = (
        "the model asked for all, or for 3 parts and more, after 12 and made the same call again"
        " after 2 of 40 shortened answers of the last 7 days"
    )
    assert f"mcp-abridge suggest: small: {line}\n" in printed.err
    assert line in " ".join(printed.out.replace("#", "").split())
    assert order(run, recording, MCP_ABRIDGE_LEDGER="off") == ["large", "small"]


def test_a_ledger_that_cannot_be_read_is_named_and_the_rules_come_all_the_same(
    recording: str, run: Run
) -> None:
    path = Path(default_path())
    path.parent.mkdir(parents=True)
    path.write_text("a shopping list\n" * 100)
    printed = run("suggest", recording)
    assert "- tools: [large, small]" in printed.out
    line = f"{path}: file is not a database; so rules are in the order of the bytes of answers\n"
    assert printed.err.startswith(f"mcp-abridge suggest: {line}")


def test_a_transcript_has_the_views_that_tell(tmp_path: Path, run: Run) -> None:
    calls: list[tuple[str, dict[str, Any], Any]] = [
        ("large", {}, MORE),
        ("large", {"view": "rows[3]"}, {"view": 3}),
        ("small", {"page": 1}, ROWS),
        ("small", {"view": "all", "page": 1}, ROWS),
        ("small", {"page": 2}, ROWS),
    ]
    lines = []
    for number, (tool, arguments, value) in enumerate(calls):
        use = {"type": "tool_use", "id": f"{number}", "name": f"mcp__shop__{tool}"}
        result = {"type": "tool_result", "tool_use_id": f"{number}", "content": json.dumps(value)}
        for who, block in ("assistant", use | {"input": arguments}), ("user", result):
            lines.append({"type": who, "message": {"role": who, "content": [block]}})
    path = tmp_path / "s.jsonl"
    path.write_text("".join(json.dumps(line) + "\n" for line in lines))
    assert order(run, str(path)) == ["small", "large"]
    err = run("suggest", str(path)).err
    line = "small: the model asked for all, or for 3 parts and more, after 1 of 2 answers\n"
    assert f"mcp-abridge suggest: {line}" in err
    assert "large: the model" not in err


def test_a_recording_of_the_wrapper_has_repeated_calls_but_no_view_that_it_answered(
    tmp_path: Path,
) -> None:
    folder = tmp_path / "calls"
    options = "--record", str(folder), "--budget", "4kB", "--ledger", "off"
    server = [*COUNTING, str(tmp_path / "log")]
    with connected(wrapped(server, *options), mode="legacy") as client:
        client.tools()
        for arguments in ({}, {"view": "all"}, {"query": "a"}, {}):
            client.call("plain", arguments)
    assert looks.of_sessions(sessions([str(folder)])) == {
        "plain": Looks("plain", None, None, None, 3, 0, 0, 1)
    }


def test_a_view_of_the_tools_own_is_another_call(tmp_path: Path) -> None:
    tool = {"name": "get", "inputSchema": {"properties": {"view": {"type": "string"}}}}
    listing = {"request": {}, "response": {"result": {"tools": [tool]}}}
    (tmp_path / "0000-tools.json").write_text(json.dumps(listing))
    views = [{"view": "all"}, {"view": "some"}, {"view": "some", "abridged_view": "all"}]
    write(tmp_path, *(("get", each, ROWS) for each in views))
    assert looks.of_sessions(sessions([str(tmp_path)])) == {
        "get": Looks("get", None, None, None, 2, 1)
    }
