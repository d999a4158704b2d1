"""The order of drafted rules: first the tool whose answers in short were too little for a model."""

import json
from pathlib import Path

import pytest
from mcp_abridge.storage.ledger import default_path
from mcp_abridge.storage.meter import Looks

from tests.cli.conftest import Run
from tests.cli.suggest.recorded import write
from tests.ledgers import filled

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
