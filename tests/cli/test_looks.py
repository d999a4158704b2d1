"""`report` on first answers in short and what came next, by each way to a real server."""

import json
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import Run
from tests.python_client import Mode, PythonClient
from tests.serving import FRONTS, over_stdio
from tests.wrapped import ROOT

SERVER = [sys.executable, str(ROOT / "tests/fixtures/counting_server.py")]


def ask(client: PythonClient) -> None:
    """Look at four tools, and ask for all of one answer, for parts of one, or call again."""
    client.tools()
    for number in range(4):
        client.call("plain", {"query": str(number)})
        client.call("plain", {"query": str(number), "view": "all"})
    client.call("typed", {})
    for number in range(3):
        client.call("typed", {"view": f"rows[{number}]"})
    client.call("reads", {})
    client.call("reads", {})
    client.call("reads", {"view": "rows[3]"})
    client.call("deletes", {})


@pytest.mark.parametrize(
    ("front", "mode"),
    [("stdio", "legacy"), ("http", "2026-07-28"), ("http to a command", "2026-07-28")],
)
def test_each_tool_has_its_looks_and_what_was_asked_for_next(
    front: str, mode: Mode, tmp_path: Path, run: Run
) -> None:
    ledger, server = tmp_path / "ledger", [*SERVER, str(tmp_path / "calls")]
    options = "--ledger", str(ledger), "--budget", "4kB"
    with FRONTS[front](server, [], tmp_path, *options) as entered, entered.connect(mode) as client:
        ask(client)

    document = json.loads(run("report", "--ledger", ledger, "--json").out)
    keys = "name", "looks", "asked_all", "asked_parts", "called_again"
    assert sorted([row[key] for key in keys] for row in document["rows"]) == [
        ["deletes", 1, 0, 0, 0],
        ["plain", 4, 4, 0, 0],
        ["reads", 2, 0, 0, 1],
        ["typed", 1, 0, 1, 0],
    ]
    assert [document["total"][key] for key in keys[1:]] == [8, 4, 1, 1]
    out = run("report", "--ledger", ledger).out
    assert "After 4 of 4 shortened answers of plain the model asked for all of it" in out
    assert "shortened answers of typed" not in out  # one alone says little


def test_sessions_that_share_a_store_are_judged_by_what_each_is_asked(
    tmp_path: Path, run: Run
) -> None:
    ledger, server = tmp_path / "ledger", [*SERVER, str(tmp_path / "calls")]
    options = "--ledger", str(ledger), "--budget", "4kB", "--store", str(tmp_path / "store")
    with over_stdio(server, [], tmp_path, *options) as front:
        for arguments in ({}, {"view": "rows[1]"}, {"view": "all"}):
            with front.connect("legacy") as client:
                client.tools()
                client.call("plain", arguments)
    [row] = json.loads(run("report", "--ledger", ledger, "--json").out)["rows"]
    assert [row[key] for key in ("calls", "looks", "asked_all", "asked_parts")] == [3, 1, 1, 0]
