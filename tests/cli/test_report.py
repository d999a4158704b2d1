"""`report`: what the table leads with, the keys of the JSON, what is said of an empty ledger."""

import json
import re
import time
from collections.abc import Callable
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from mcp_abridge.storage.ledger import LedgerFile
from mcp_abridge.storage.meter import Definitions, Looks, Row, Warnings
from msgspec import structs

from tests import ledgers
from tests.cli.conftest import Run

NOBODY = None, None
SHAPED = Row("list_issues", "issues", "shaped", *NOBODY, 1, 700_000, 9_000, 630_000, 8_000,
             largest=8_000)  # fmt: skip
VIEWED = Row("list_issues", "issues", "view", *NOBODY, 1, 0, 2_400, 0, 2_000, largest=2_000)
UNTOUCHED = Row("get_me", None, "untouched", *NOBODY, 300, 150_000, 150_000, 150_000, 150_000,
             largest=500)  # fmt: skip
FAILED = Row("list_issues", "issues", "failed", *NOBODY, 2, 7_000, 7_000, 6_000, 6_000,
             largest=3_000)  # fmt: skip
SHADOWED = Row("git_log", "log", "shadow", *NOBODY, 1, 100_000, 5_000, 90_000, 4_000,
               largest=90_000)  # fmt: skip
LOOKS = Looks("list_issues", "issues", *NOBODY, 12, 3, 1, 2)


@pytest.fixture
def path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> str:
    """Make the default ledger that of a fresh state folder, and name it."""
    monkeypatch.setenv("HOME", str(tmp_path))
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path))
    monkeypatch.delenv("MCP_ABRIDGE_LEDGER", raising=False)
    monkeypatch.setenv("COLUMNS", "120")
    return str(tmp_path / "mcp-abridge" / "ledger.sqlite3")


Printed = Callable[..., Any]


@pytest.fixture
def printed(path: str, run: Run) -> Printed:
    """Return a function that runs the verb, and returns its text or, with `--json`, its value."""

    def printed(*arguments: str) -> Any:
        out = run("report", *arguments).out
        return json.loads(out) if "--json" in arguments else out

    return printed


def filled(path: str, *rows: Row, days_ago: int = 0) -> None:
    at = time.time() - days_ago * 86_400
    ledgers.filled(path, *(structs.replace(row, server="github") for row in rows), at=at)


def warned(path: str, *warnings: tuple[str, str, int]) -> None:
    with closing(LedgerFile(path)) as file:
        file.write([Warnings(rule, kind, count) for rule, kind, count in warnings])


def test_the_report_leads_with_the_tools_of_which_the_model_read_most(
    path: str, printed: Printed
) -> None:
    filled(path, SHAPED, VIEWED, UNTOUCHED)
    lines = printed().splitlines()
    assert lines[:2] == [
        "In the last 7 days the model read at most 160 kB (about 50,000 tokens) in 302 calls,"
        " 8.00 kB in the largest.",
        "The servers sent 780 kB, 4.9 times as much; on the wire, 850 kB became 161 kB.",
    ]
    assert [" ".join(line.split()) for line in lines[2:] if line.strip(" ─")] == [
        "model instead times on the instead",
        "tool calls reads largest of smaller shaped wire of",
        "get_me 300 150 kB 500 B 150 kB 1.0 0 150 kB 150 kB",
        "list_issues 2 10.0 kB 8.00 kB 630 kB 63.0 2 11.4 kB 700 kB",
        "total 302 160 kB 8.00 kB 780 kB 4.9 2 161 kB 850 kB",
    ]


def test_tools_that_a_client_still_cuts_come_first(path: str, printed: Printed) -> None:
    cut = {"client_cut": 500_000, "cuts_before": 4}
    filled(path, structs.replace(SHAPED, **cut, cuts_after=1), structs.replace(UNTOUCHED, **cut))
    lines = printed().splitlines()
    assert lines[0].endswith("in 301 calls, 8.00 kB in the largest; clients still cut 1 answer.")
    assert "in place of the rest of 8 answers, an error" in lines[2]
    names = "tool calls reads largest cut of smaller cut shaped wire of"
    assert names in [" ".join(line.split()) for line in lines]
    assert re.search(r"list_issues +1 +8\.00 kB +8\.00 kB +1 +630 kB +78\.8 +4 +1 ", printed())


def test_tools_whose_short_answers_are_often_too_little_are_named(
    path: str, printed: Printed, run: Run
) -> None:
    filled(path, SHAPED, UNTOUCHED)
    assert "short" not in printed()
    ledgers.filled(path, LOOKS)
    rows = [" ".join(line.split()) for line in printed().splitlines()]
    assert "short more called on the instead" in rows[3]
    assert "tool calls reads largest of smaller answers asked again shaped wire of" in rows
    assert any("list_issues 1 8.00 kB 8.00 kB 630 kB 78.8 12 4 2 1 " in row for row in rows)
    assert any(row.startswith("total 301 ") and " 12 4 2 1 " in row for row in rows)
    sentence = (
        "After 4 of 12 shortened answers of list_issues the model asked for all of it, or for 3"
        " parts and more: a rule fits it better (mcp-abridge suggest -- COMMAND)."
    )
    assert sentence in printed()
    assert "the model asked" not in printed("--by", "rule")
    # Beside many that were enough, four are few; two of two are no pattern yet.
    ledgers.filled(path, structs.replace(LOOKS, looks=30, asked_all=0, asked_parts=0))
    ledgers.filled(path, Looks("get_me", None, *NOBODY, 2, 1, 1))
    assert "the model asked" not in printed()
    ledgers.filled(path, Looks("get_me", None, *NOBODY, 0, 2))
    assert "After 4 shortened answers of get_me the model asked" in printed()


def test_the_cuts_of_clients_alone_are_reported_separately(path: str, printed: Printed) -> None:
    filled(path, structs.replace(SHAPED, client_cut=628_500), UNTOUCHED)
    out = printed()
    assert (
        "\nOf that, the clients alone would have shown 152 kB; in place of the rest, an error, a "
        "file's name or a gap.\n"
    ) in out
    assert printed("--json")["total"]["client_cut"] == 628_500


def test_definitions_are_counted_beside_the_calls(path: str, printed: Printed) -> None:
    filled(path, SHAPED)
    assert "Definitions" not in printed()
    assert printed("--json")["definitions"] == []
    with closing(LedgerFile(path)) as file:
        for server, after in (("github", 41_000), ("github", 50_000), ("", 9)):
            file.write([Definitions(server, 2, 46_000, after)])
    line = "\nDefinitions of tools, once for each of 6 sessions: 91.0 kB instead of 138 kB.\n"
    assert line in printed()
    first, second = printed("--json")["definitions"]
    assert first == {"server": "github", "sessions": 4, "before": 92_000, "after": 91_000}
    assert second == {"server": None, "sessions": 2, "before": 46_000, "after": 9}


@pytest.mark.parametrize(("columns", "wire"), [("80", False), ("120", True)])
def test_a_terminal_gets_lines_that_fit_and_no_colour_under_no_color(
    path: str, columns: str, wire: bool, run: Run
) -> None:
    name = "a_tool_whose_name_is_sixty_characters_long_for_the_servers_sake"
    filled(path, Row(name, None, "untouched", *NOBODY, 1, 1, 1, 1, 1), SHAPED, FAILED)
    # With FORCE_COLOR, the library takes any stdout for a terminal.
    text = run("report", FORCE_COLOR="1", NO_COLOR="1", TERM="xterm", COLUMNS=columns).out
    assert not re.search(r"\x1b\[(?:\d+;)*(?:3|4|9|10)[0-7]", text)
    lines = re.sub(r"\x1b\[[\d;]*m", "", text).splitlines()
    assert max(map(len, lines)) <= int(columns)
    assert any("636 kB" in line for line in lines)
    assert any("on the  instead" in line for line in lines) == wire
    assert "…" not in text


def test_a_ledger_of_clients_that_pass_no_environment_on_is_named(
    path: str, tmp_path: Path, run: Run
) -> None:
    filled(path, UNTOUCHED)
    assert run("report").err == ""
    other = str(tmp_path / ".local" / "state" / "mcp-abridge" / "ledger.sqlite3")
    filled(other, SHAPED)
    assert run("report").err == (
        f"mcp-abridge report: this was {path}; clients that do not pass XDG_STATE_HOME on, such as "
        f"Codex, have another one: mcp-abridge report --ledger {other}\n"
    )
    assert run("report", "--ledger", other).err == ""


def test_what_shadow_rules_would_save_and_what_rules_warned_of_is_told_apart(
    path: str, printed: Printed
) -> None:
    filled(path, SHAPED, SHADOWED)
    out = printed("--by", "rule")
    assert "the model read at most 98.0 kB (about 31,000 tokens) in 2 calls" in out
    assert out.endswith("\nRules in shadow mode would have saved 86.0 kB more.\n")

    warned(path, ("[b]\x1b[2J", "a", 1_234), *(("jobs", f"{n}", n) for n in range(1, 23)))
    out = printed()
    rows = [re.split("  +", line.strip()) for line in out.partition("warned of")[2].splitlines()]
    assert rows[2:4] == [["[b]\\x1b[2J", "a", "1,234"], ["jobs", "22", "22"]]
    assert out.endswith("3 more kinds of warnings are in --json.\n")
    warnings = printed("--json")["warnings"]
    assert len(warnings) == 23
    assert warnings[1] == {"rule": "jobs", "kind": "22", "count": 22}


def test_the_json_has_stable_keys(path: str, printed: Printed) -> None:
    filled(path, SHAPED, UNTOUCHED)
    ledgers.filled(path, LOOKS)
    figures = {"calls": 301, "shaped": 1, "failed": 0}
    figures |= {"wire_before": 850_000, "wire_after": 159_000}
    figures |= {"visible_before": 780_000, "visible_after": 158_000, "shadow_saves": 0}
    figures |= {"client_cut": 0, "cuts_before": 0, "cuts_after": 0, "largest": 8_000}
    figures |= {"looks": 12, "asked_all": 3, "asked_parts": 1, "called_again": 2}
    document = printed("--json", "--since", "all", "--by", "rule")
    rows = document.pop("rows")
    assert [row["looks"] for row in rows] == [0, 12]
    head = {"ledger": path, "since": None, "by": "rule", "total": figures}
    assert document == {**head, "warnings": [], "definitions": []}
    assert [row["name"] for row in rows] == [None, "issues"]
    assert [list(row) for row in rows] == [["name", *figures]] * 2


def test_only_what_was_recorded_in_the_span_counts(path: str, printed: Printed, run: Run) -> None:
    filled(path, SHAPED, days_ago=3)
    advice = "mcp-abridge report: nothing was recorded in the last day; try --since all\n"
    assert run("report", "--since", "1d") == ("", advice)
    filled(path, UNTOUCHED)
    for span, calls in (("71h", 300), ("73h", 301), ("1w", 301), ("all", 301)):
        assert printed("--json", "--since", span)["total"]["calls"] == calls
    for span in ("", "7", "-1d", "1.5d", "٣d", "9999999d"):
        reason = f"{span!r} is not a span of time; write it like 30m, 12h, 7d or 2w, or all\n"
        assert run("report", f"--since={span}", code=2).err.endswith(reason)


def test_a_ledger_that_is_empty_absent_none_or_off_is_told(
    tmp_path: Path, path: str, printed: Printed, run: Run
) -> None:
    advice = (
        f"mcp-abridge report: nothing is recorded yet in {path}; wrap a server (`mcp-abridge "
        "wrap`), let a model call one of its tools and come back\n"
    )
    assert run("report") == ("", advice)
    LedgerFile(path).close()
    assert run("report") == ("", advice)

    (tmp_path / "list").write_text("milk, eggs\n" * 99)
    for name, reason in (("absent", "no such file"), ("list", "file is not a database")):
        error = f"mcp-abridge report: {tmp_path / name}: {reason}\n"
        assert run("report", "--ledger", tmp_path / name, code=2) == ("", error)

    reason = "mcp-abridge report: the ledger is off; say which one to read: --ledger PATH\n"
    assert run("report", MCP_ABRIDGE_LEDGER="off", code=2) == ("", reason)
    filled(path, SHAPED)
    assert printed("--json", "--ledger", path)["total"]["calls"] == 1
