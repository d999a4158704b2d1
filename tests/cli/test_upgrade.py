"""Files of an earlier version, here 21e20fe: nobody loses what it wrapped, recorded, counted."""

import json
import sqlite3
import sys
from pathlib import Path

import pytest
from mcp_abridge.storage.meter import Looks

from tests.cli.conftest import Run
from tests.ledgers import filled, row
from tests.plain_server import IMPORT

LEFT = Path(__file__).parents[1] / "fixtures" / "upgrade"


@pytest.mark.parametrize("killed", [False, True])
def test_what_an_earlier_version_wrapped_is_restored_to_the_byte(
    killed: bool, run: Run, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    home, state = tmp_path / "home", tmp_path / "state"
    originals = state / "mcp-abridge" / "wrap" / "originals.json"
    for path, name in (home / ".claude.json", "claude.json"), (originals, "originals.json"):
        path.parent.mkdir(parents=True)
        path.write_text((LEFT / name).read_text().replace("{HOME}", str(home)))
        path.chmod(0o600)
    if killed:  # before it said that it had finished
        records = json.loads(originals.read_text())
        originals.write_text(json.dumps({**records, "unfinished": [*records]}))
    monkeypatch.delenv("CLAUDE_CONFIG_DIR", raising=False)
    monkeypatch.chdir(home)
    printed = run("unwrap", "--all", HOME=str(home), XDG_STATE_HOME=str(state)).err
    assert "remote (claude-code, user): restored" in printed
    assert (home / ".claude.json").read_bytes() == (LEFT / "original.json").read_bytes()
    assert not originals.exists()


def test_what_an_earlier_version_recorded_is_played(run: Run) -> None:
    assert "list_issues" in run("replay", LEFT / "recorded").out


def test_what_an_earlier_version_counted_is_reported(run: Run, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger.db"
    with sqlite3.connect(ledger) as connection:
        connection.executescript((LEFT / "ledger.sql").read_text())
    assert "list_issues" in run("report", "--ledger", ledger, "--since", "all").out

    # This version adds to the file, and the earlier one finds its tables as it made them.
    schema = "SELECT name, sql FROM sqlite_master WHERE name <> 'looks'"
    before = connection.execute(schema).fetchall()
    filled(str(ledger), row("get_me"), Looks("list_issues", None, "tracker", None, 8, 3))
    assert connection.execute(schema).fetchall() == before
    assert connection.execute("PRAGMA user_version").fetchall() == [(5,)]
    connection.close()
    rows = json.loads(run("report", "--ledger", ledger, "--since", "all", "--json").out)["rows"]
    assert {each["name"]: each["asked_all"] for each in rows} == {"list_issues": 3, "get_me": 0}


def test_python_that_imports_from_the_earlier_package_is_told_the_line(
    run: Run, tmp_path: Path
) -> None:
    (tmp_path / "mine.py").write_text("from proxy.plugin import Transform\n")
    rules = tmp_path / "rules.yaml"
    rules.write_text("version: 1\ntransforms: {mine: 'mine:Mine'}\nrules: []\n")
    printed = run("check", rules, "--allow-python", code=1)
    assert "write 'from mcp_abridge.plugin import ...'" in printed.out + printed.err


SERVER = f"""{IMPORT}
tool = {{"name": "list", "inputSchema": {{"type": "object"}}}}
serve("shelf", "1", [{{**tool, "annotations": {{"readOnlyHint": True}}}}],
      lambda name, _: {{"content": [{{"type": "text", "text": "a line of many\\\\n" * 900}}]}})
"""


@pytest.mark.parametrize("dashes", [["--"], []])
def test_the_verbs_of_an_earlier_version_run_and_say_how_they_are_written_now(
    dashes: list[str], tmp_path: Path, run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    Path("server.py").write_text(SERVER)
    server = [*dashes, sys.executable, "server.py"]
    out, error = run("tools", "--budget", "off", *server)
    assert "list" in out
    assert error == "mcp-abridge: `tools` is now `call --`\n"

    error = run("init", "-o", "rules.yaml", *server).err
    assert error.startswith("mcp-abridge: `init` is now `suggest --`\n")
    assert run("test", "rules.yaml").out.startswith("1 passed")
