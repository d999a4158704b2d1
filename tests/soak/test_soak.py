"""The soak in short, by each way; and that it sees what grows."""

import sys

import pytest
from msgspec.structs import replace

from tests.faults.scale import scaled
from tests.soak import verdict
from tests.soak.footprint import Footprint
from tests.soak.leaking import LEAKS
from tests.soak.run import Plan, run, table_of
from tests.soak.verdict import Row
from tests.soak.ways import WAYS, Way

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="needs Linux's /proc")

# So short a run says nothing of memory but that no call leaves much of it.
SHORT = Plan(calls=scaled(300, 3000), parts=2, changed=50, pause=0.0, spare=20_000)


@pytest.mark.parametrize("way", list(WAYS))
def test_every_call_is_answered_as_it_must_be_and_nothing_is_left_of_it(way: Way) -> None:
    ran = run(way, SHORT)
    assert ran.findings == [], table_of(ran)
    assert ran.rows[-1].calls >= SHORT.calls
    assert len(ran.tools) > 10, "too few kinds of calls were made"


@pytest.mark.parametrize("what", list(LEAKS))
def test_a_proxy_that_leaks_is_found_out(what: str) -> None:
    plan = Plan(calls=200, parts=2, calm=0.2, pause=0.0, spare=5000)
    ran = run("stdio", plan, proxy=[sys.executable, "-m", "tests.soak.leaking", what])
    word = {"memory": "resident memory grows"}.get(what, f"{what} are left")
    assert any(word in finding for finding in ran.findings), table_of(ran)


def rest(calls: int, resident: float = 40.0, **counts: int) -> Row:
    all_counts = {"descriptors": 9, "threads": 5, "children": 2, **counts}
    return Row(calls, calls / 1000, Footprint(resident, resident, 0.0, **all_counts), rest=True)


def test_a_verdict_names_growth_and_overlooks_passing_peaks() -> None:
    rests = [rest(10_000 * n, 40.0 + 4.0 * n) for n in range(1, 5)]
    assert verdict.findings([*rests, rest(50_000, 60.0, descriptors=11)]) == [
        "resident memory grows by 400 kB with 1,000 calls, 200 may be",
        "11 descriptors are left, 9 there were",
    ]
    once = [rest(10_000 * n, 49.0 if n == 3 else 40.0) for n in range(1, 5)]
    assert verdict.findings([*once, rest(50_000, 42.0, children=1)]) == []


def test_a_verdict_overlooks_workers_that_a_pool_may_have_and_their_pipes() -> None:
    then = rest(10_000).footprint
    most = verdict.WORKERS
    more = rest(50_000, children=most, descriptors=9 + verdict.PIPES * (most - 2)).footprint
    assert verdict.increases(more, then) == []
    assert verdict.increases(replace(more, descriptors=more.descriptors + 1), then)
    assert verdict.increases(replace(more, children=most + 1), then)
