"""The ledger counts what `hook` and `view` show, for `report`."""

import json
import os
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

from tests.cli.conftest import Run
from tests.cli.test_hook import GEMINI, WHOLE, Event
from tests.wrapped import START


def event(text: str) -> Event:
    return GEMINI | {"tool_response": {"llmContent": [{"text": text}]}}


def test_report_knows_what_a_hook_cut_and_what_the_model_then_asked_for(tmp_path: Path) -> None:
    env = {**os.environ, "HOME": str(tmp_path), "XDG_STATE_HOME": str(tmp_path)}

    def types(*words: str, stdin: Event | None = None) -> Any:
        command, raw = [sys.executable, "-c", START, *words], json.dumps(stdin).encode()
        run = subprocess.run(command, env=env, input=raw, capture_output=True, check=True)
        assert run.stderr == b""
        return json.loads(run.stdout)

    def cut(whole: str) -> str:
        text: str = types("hook", stdin=event(whole))["reason"].partition("\n")[2]
        return text

    text = cut(WHOLE)
    command = json.loads(text)["_abridged"]["more"].removeprefix("run ").partition("; ")[0]
    words = shlex.split(command)[1:-1]
    parts = [json.dumps(types(*words, f"items[{part}]")) for part in ("0", "1", "2:4")]
    others = [cut(WHOLE.replace("Row", "Line")), cut(WHOLE)]

    for by, name in ("server", "crm"), ("client", "gemini-cli"), ("tool", "list"):
        report = types("report", "--json", "--by", by)
        [row] = report["rows"]
        assert (row["name"], row["calls"], row["shaped"]) == (name, 6, 6)
        assert (row["looks"], row["asked_parts"], row["called_again"]) == (3, 1, 1)
        assert row["visible_before"] == 3 * len(WHOLE) + 900
        assert row["largest"] == max(map(len, [text, *parts, *others]))


def test_an_answer_is_counted_though_it_stays_as_it_is(run: Run, tmp_path: Path) -> None:
    where = {"XDG_STATE_HOME": str(tmp_path)}
    assert run("hook", stdin=json.dumps(event("x" * 5000)).encode(), **where).out == ""
    total = json.loads(run("report", "--json").out)["total"]
    assert (total["calls"], total["shaped"], total["looks"]) == (1, 0, 0)


def test_a_ledger_that_is_none_or_is_off_costs_no_answer(run: Run, tmp_path: Path) -> None:
    ledger = tmp_path / "ledger"
    ledger.write_text("a shopping list\n" * 100)
    raw, where = json.dumps(event(WHOLE)).encode(), {"XDG_STATE_HOME": str(tmp_path)}
    out, error = run("hook", stdin=raw, **where, MCP_ABRIDGE_LEDGER=str(ledger))
    assert json.loads(out)["reason"]
    words = f"mcp-abridge hook: ledger {ledger}: not recorded: file is not a database\n"
    assert error == words
    assert run("hook", stdin=raw, MCP_ABRIDGE_LEDGER="off") == (out, "")
    assert not (tmp_path / "mcp-abridge" / "ledger.sqlite3").exists()
