"""Shows that no lossy proxy can pass `make conformance`, and that ours passes its short form."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance import checks, install, legs, report
from tests.conformance.checks import Check, Run
from tests.servers import install as servers

ROOT = Path(__file__).resolve().parents[1]
RECORDED = Path(__file__).parent / "fixtures" / "conformance"

RESUME = Check("server-sse-polling", "server-sse-disconnect-resume", "ServerDisconnectResume")
PRIMING = Check("server-sse-polling", "server-sse-priming-event", "ServerSendsPrimingEvent")
RETRY = Check("server-sse-polling", "server-sse-retry-field", "ServerSendsRetryField")
TEXT = Check("tools-call-simple-text", "tools-call-simple-text", "ToolsCallSimpleText")


def passing(*checks_passed: Check) -> Run:
    return Run(frozenset(check.scenario for check in checks_passed), Counter(checks_passed), {}, {})


def findings(direct: Run, here: Run, leg: str = "serve") -> list[str]:
    return report.through(leg, legs.LEGS[leg], "2025-11-25", direct, here).findings


def test_checks_that_a_proxy_loses_are_missing_though_the_suite_counts_no_failure() -> None:
    direct, lossy = (checks.read(RECORDED / name) for name in ("direct", "without-ids"))
    assert not [outcome for outcome in lossy.other.values() if outcome.startswith("FAILURE")]

    assert findings(direct, lossy) == [
        f"MISSING: {PRIMING}: WARNING: Server did not send priming event with id and empty data on"
        " POST SSE stream. This is recommended for resumability.",
        f"MISSING: {RETRY}: WARNING: Server did not send retry field. This is recommended for"
        " controlling client reconnection timing.",
        f"MISSING: {RESUME}: INFO",
    ]


def test_only_the_check_that_a_leg_cannot_pass_may_be_missing() -> None:
    messages = findings(passing(RESUME, RETRY, TEXT), passing(TEXT), "child")
    assert messages == [f"MISSING: {RETRY}: not there"]


def test_an_answer_that_no_rule_covers_must_be_the_same() -> None:
    direct, shaped = (checks.read(RECORDED / name) for name in ("direct", "with-rules"))

    assert findings(direct, shaped) == [f"ALTERED: the answer in {TEXT}"]
    assert findings(direct, shaped, "rules") == []
    assert "NOT RESHAPED" in findings(direct, direct, "rules")[0]


def test_a_direct_run_that_passes_less_than_it_is_known_to_is_a_finding() -> None:
    lossy = checks.read(RECORDED / "without-ids")
    expected = (3, 13)
    whole = report.direct("2025-11-25", checks.read(RECORDED / "direct"), expected)

    assert whole.findings == []
    assert report.direct("2025-11-25", lossy, expected).findings == [
        "3 scenarios with 10 passed checks where 3 scenarios with 13 passed checks are known; if"
        " the versions have changed, change the numbers, otherwise there was no time to pass them"
        " all",
        f"not passed: {PRIMING}: {lossy.other[PRIMING]}",
        f"not passed: {RETRY}: {lossy.other[RETRY]}",
    ]


def test_a_leg_that_could_not_be_run_is_a_finding_and_the_others_are_still_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = checks.read(RECORDED / "direct")
    row = report.through("serve", legs.LEGS["serve"], "2025-11-25", run, run)

    assert report.printed([report.not_run("child", "no Node"), row]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == report.line(row.cells)
    assert lines[-1] == "child NOT RUN: no Node"


def test_the_same_checks_pass_through_the_proxy() -> None:
    # About 15 s, of which the direct runs take 5.
    install.require()
    completed = subprocess.run(
        [sys.executable, "-m", "tests.conformance", "--short"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=150,
        check=False,
    )
    assert completed.returncode == 0, completed.stdout


def test_a_missing_installation_is_named_and_not_downloaded_by_a_test(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    for installer in (servers, install):
        monkeypatch.setattr(installer, "CACHE", tmp_path / "nothing")
        with pytest.raises(servers.NotInstalled, match=r"nothing/.* does not hold .*make servers"):
            installer.require()
    assert not (tmp_path / "nothing").exists()
