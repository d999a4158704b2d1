"""The meter: every call in exactly one row, in bounded memory, from any thread."""

import sys
from collections.abc import Iterator
from threading import Event, Thread

import pytest

from proxy.meter import OTHER, Meter, Outcome, Row, Sizes

SIZES = Sizes(wire_before=1_000, wire_after=100, visible_before=900, visible_after=90)


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Let threads change as often as they can, so that a race shows."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


def test_calls_that_no_rule_touched_are_summed_by_tool() -> None:
    meter = Meter()
    for wire in (120, 80):
        meter.passed("get_me", wire)
    meter.passed("list_issues", 7)

    assert meter.drain() == [
        Row("get_me", None, "untouched", 2, 200, 200, 200, 200),
        Row("list_issues", None, "untouched", 1, 7, 7, 7, 7),
    ]


@pytest.mark.parametrize("outcome", ["shaped", "page", "view", "failed", "shadow"])
def test_calls_that_a_rule_worked_on_are_kept_one_row_each(outcome: Outcome) -> None:
    meter = Meter()
    meter.count("list_issues", "issues", SIZES, outcome)
    meter.count("list_issues", "issues", SIZES, outcome)

    assert meter.drain() == [Row("list_issues", "issues", outcome, 1, 1_000, 100, 900, 90)] * 2


@pytest.mark.parametrize("outcome", ["untouched", "refused", "hidden", "error"])
def test_calls_whose_sizes_tell_nothing_of_a_rule_are_summed(outcome: Outcome) -> None:
    meter = Meter()
    meter.count("list_issues", "issues", SIZES, outcome)
    meter.count("list_issues", None, SIZES, outcome)
    meter.count("list_issues", "issues", SIZES, outcome)

    assert meter.drain() == [
        Row("list_issues", "issues", outcome, 2, 2_000, 200, 1_800, 180),
        Row("list_issues", None, outcome, 1, 1_000, 100, 900, 90),
    ]


def test_a_drain_forgets_what_it_hands_over() -> None:
    meter = Meter()
    meter.passed("get_me", 120)
    meter.count("list_issues", "issues", SIZES, "shaped")
    meter.count("list_issues", None, SIZES, "error")

    assert len(meter.drain()) == 3
    assert meter.drain() == []


def test_after_a_thousand_tools_the_rest_are_counted_together() -> None:
    meter = Meter()
    for number in range(100_000):
        meter.passed(f"tool {number}", 1)
    meter.count("one more", "rule", SIZES, "shaped")
    meter.count("tool 7", "rule", SIZES, "shaped")

    rows = meter.drain()
    calls = {row.tool: row.calls for row in rows if row.outcome == "untouched"}

    assert len(calls) == 1_001
    assert calls["tool 999"] == 1
    assert calls[OTHER] == 99_000
    assert [row.tool for row in rows if row.outcome == "shaped"] == [OTHER, "tool 7"]


def test_the_thousand_tools_are_those_of_the_process_and_not_of_one_drain() -> None:
    meter = Meter()
    for number in range(1_000):
        meter.passed(f"tool {number}", 1)
    meter.drain()
    meter.passed("one more", 1)

    assert [row.tool for row in meter.drain()] == [OTHER]


def test_a_long_name_is_kept_in_part() -> None:
    meter = Meter()
    for last in ("a", "b"):
        meter.passed("x" * 1_000_000 + last, 1)

    assert [(row.tool, row.calls) for row in meter.drain()] == [("x" * 200, 2)]


def test_a_meter_that_nobody_drains_keeps_counting_in_bounded_memory() -> None:
    meter = Meter()
    for _ in range(50_000):
        meter.count("list_issues", "issues", SIZES, "shaped")

    rows = meter.drain()

    assert len(rows) <= 5_000
    assert sum(row.calls for row in rows) == 50_000
    assert sum(row.visible_before for row in rows) == 50_000 * 900
    assert sum(row.wire_after for row in rows) == 50_000 * 100


@pytest.mark.usefixtures("eager_threads")
def test_threads_that_count_while_another_drains_lose_no_call() -> None:
    meter = Meter()
    done = Event()
    drained: list[Row] = []

    def count() -> None:
        for _ in range(20_000):
            meter.passed("get_me", 3)
            meter.count("get_me", None, SIZES, "error")
            meter.count("list_issues", "issues", SIZES, "shaped")

    def drain() -> None:
        while not done.is_set():
            drained.extend(meter.drain())
        drained.extend(meter.drain())

    writer = Thread(target=drain)
    counters = [Thread(target=count) for _ in range(4)]
    for thread in (writer, *counters):
        thread.start()
    for thread in counters:
        thread.join()
    done.set()
    writer.join()

    for outcome, wire in (("untouched", 3), ("error", 1_000), ("shaped", 1_000)):
        rows = [row for row in drained if row.outcome == outcome]
        assert sum(row.calls for row in rows) == 80_000
        assert sum(row.wire_before for row in rows) == 80_000 * wire
