"""Shows that no lossy proxy can pass `make conformance`, and that ours passes its short form."""

import subprocess
import sys
from collections import Counter
from pathlib import Path

import pytest

from tests.conformance import checks, install, legs, report
from tests.conformance.checks import Check, Difference, Gap, Run, compare

ROOT = Path(__file__).resolve().parents[1]
RECORDED = Path(__file__).parent / "fixtures" / "conformance"

RESUME = Check("server-sse-polling", "server-sse-disconnect-resume", "ServerDisconnectResume")
PRIMING = Check("server-sse-polling", "server-sse-priming-event", "ServerSendsPrimingEvent")
RETRY = Check("server-sse-polling", "server-sse-retry-field", "ServerSendsRetryField")
TEXT = Check("tools-call-simple-text", "tools-call-simple-text", "ToolsCallSimpleText")


def passing(*passed: Check) -> Run:
    return Run(frozenset(check.scenario for check in passed), Counter(passed), {}, {})


def through(difference: Difference, run: Run, leg: str = "serve") -> report.Through:
    return report.Through(leg, legs.LEGS[leg], "2025-11-25", run, run, difference)


def test_what_a_proxy_loses_is_missing_though_the_suite_counts_no_failure() -> None:
    direct, lossy = (checks.read(RECORDED / name) for name in ("direct", "without-ids"))
    assert not [said for said in lossy.other.values() if said.startswith("FAILURE")]

    difference = compare(direct, lossy)

    assert difference.missing == Counter([PRIMING, RETRY, RESUME])
    row = through(difference, lossy)
    assert row.findings() == [
        f"MISSING: {PRIMING}: WARNING: Server did not send priming event with id and empty data on"
        " POST SSE stream. This is recommended for resumability.",
        f"MISSING: {RETRY}: WARNING: Server did not send retry field. This is recommended for"
        " controlling client reconnection timing.",
        f"MISSING: {RESUME}: INFO",
    ]
    assert report.printed([row]) == 1


def test_a_gap_explains_the_check_that_it_names_and_no_other() -> None:
    scenario, id, _ = RESUME
    gap = Gap("child", "2025-11-25", scenario, id, "stdio has no streams", None)
    difference = compare(passing(RESUME, RETRY, TEXT), passing(TEXT), [gap])
    row = through(difference, passing(TEXT), "child")

    assert row.remarks() == [f"missing, as expected: {RESUME}: stdio has no streams"]
    assert row.findings() == [f"MISSING: {RETRY}: not there"]


def test_an_answer_that_no_rule_covers_must_be_the_same() -> None:
    direct, shaped = (checks.read(RECORDED / name) for name in ("direct", "with-rules"))

    difference = compare(direct, shaped)

    assert (difference.missing, difference.altered) == (Counter(), [TEXT])
    assert through(difference, shaped).findings() == [f"ALTERED: the answer in {TEXT}"]
    assert through(difference, shaped, "rules").findings() == []


def test_a_leg_that_could_not_be_run_is_a_finding_and_the_others_are_still_printed(
    capsys: pytest.CaptureFixture[str],
) -> None:
    run = checks.read(RECORDED / "direct")
    row = through(compare(run, run), run)

    assert report.printed([report.NotRun("child", "no Node"), row]) == 1
    lines = capsys.readouterr().out.splitlines()
    assert lines[3] == report.line(row.cells())
    assert lines[-1] == "child NOT RUN: no Node"


def test_the_same_checks_pass_through_the_proxy() -> None:
    # About 30 s, of which the direct runs take 7.
    install.require()
    done = subprocess.run(
        [sys.executable, "-m", "tests.conformance", "--short"],
        cwd=ROOT,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=150,
        check=False,
    )
    assert done.returncode == 0, done.stdout
