"""The soak in short, by each way; and that it sees what grows."""

import sys

import pytest

from tests.faults.scale import scaled
from tests.soak import verdict
from tests.soak.footprint import Footprint
from tests.soak.run import Plan, run
from tests.soak.verdict import Row
from tests.soak.ways import WAYS, Way

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")

# So short a run says nothing of memory but that no call leaves much of it.
SHORT = Plan(calls=scaled(300, 3000), parts=2, changed=50, pause=0.0, spare=20_000)


# `make faults` and `make soak` go all ways: on pipes and over HTTP what is left would be the same.
SHORT_WAYS = list(WAYS)[: scaled(1, len(WAYS))]


@pytest.mark.parametrize("way", SHORT_WAYS)
def test_every_call_is_answered_as_it_must_be_and_nothing_is_left_of_it(way: Way) -> None:
    rests, findings = run(way, SHORT)
    assert findings == [], rests
    assert rests[-1].calls >= SHORT.calls


# The proxy, with something left open by every fourth message of the client.
LEAK = """
import itertools, os, subprocess, sys, threading
from mcp_abridge.cli import main
from mcp_abridge.session.session import Session
take, numbers, left = Session.from_client, itertools.count(1), []
def leaking(*arguments):
    if next(numbers) % 4 == 0:
        left.append({})
    return take(*arguments)
Session.from_client = leaking
sys.exit(main())
"""


@pytest.mark.parametrize(
    ("leak", "finding"),
    [
        ("os.urandom(800_000)", "resident memory grows"),
        ("os.open(os.devnull, os.O_RDONLY)", "descriptors are left"),
        ("threading.Thread(target=threading.Event().wait, daemon=True).start()", "threads are"),
        ("subprocess.Popen(['sleep', '60'], stdout=-3, stderr=-3)", "children are left"),
    ][: scaled(2, 4)],
)
def test_a_proxy_that_leaks_is_found_out(leak: str, finding: str) -> None:
    plan = Plan(calls=200, parts=2, calm=0.2, pause=0.0, spare=5000)
    code = LEAK.replace("{}", leak)
    rests, findings = run("stdio", plan, proxy=[sys.executable, "-c", code])
    assert any(finding in each for each in findings), rests


def rest(calls: int, resident: float = 40.0, **counts: int) -> Row:
    all_counts = {"descriptors": 9, "threads": 5, "children": 2, **counts}
    return Row(calls, calls / 1000, Footprint(resident, 0.0, **all_counts))


def test_a_verdict_names_growth_and_overlooks_passing_peaks_and_workers() -> None:
    rests = [rest(10_000 * n, 40.0 + 4.0 * n) for n in range(1, 5)]
    assert verdict.findings([*rests, rest(50_000, 60.0, descriptors=11)]) == [
        "resident memory grows by 400 kB with 1,000 calls, 200 may be",
        "11 descriptors are left, 9 there were",
    ]
    once = [rest(10_000 * n, 49.0 if n == 3 else 40.0) for n in range(1, 5)]
    workers = verdict.WORKERS - 2
    pipes = 9 + verdict.PIPES * workers
    last = rest(50_000, 42.0, children=2 + workers, descriptors=pipes)
    assert verdict.findings([*once, last]) == []
    last = rest(50_000, 42.0, children=3 + workers, descriptors=pipes + 1)
    assert len(verdict.findings([*once, last])) == 2
