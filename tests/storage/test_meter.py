"""The meters: every call in exactly one row, in bounded memory, from any thread."""

import sys
from collections.abc import Iterator
from threading import Event, Thread, current_thread

import pytest
from mcp_abridge.storage.meter import Meters, Row, Warnings

SIZES = (1_000, 100), (900, 90)


@pytest.fixture
def eager_threads() -> Iterator[None]:
    """Let threads change as often as they can, so that a race shows."""
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    yield
    sys.setswitchinterval(interval)


@pytest.mark.fault(46, "inside")
def test_meters_that_are_never_drained_keep_counting_in_bounded_memory() -> None:
    meters = Meters()
    for client in range(50):
        meter = meters.of("github", f"client {client}")
        for number in range(1_000):
            meter.count(f"tool {number}", "rule", "shaped", *SIZES)
            meter.warned("rule", f"kind {number}")

    rows, warnings = meters.drain(Row), meters.drain(Warnings)

    assert len(rows) + len(warnings) <= 20_100
    assert sum(row.calls for row in rows) == 50_000
    assert sum(row.wire_after for row in rows) == 50_000 * 100
    assert sum(each.count for each in warnings) == 50_000
    meters.of("github", "client 49").count_untouched("tool 999", 1)
    assert [row.tool for row in meters.drain(Row)] == ["tool 999"]


def test_of_each_kind_of_call_the_cuts_are_summed_and_the_largest_response_is_known() -> None:
    meters = Meters()
    meter = meters.of(None, "codex")
    for size, after, cut, cut_after in ((900, 90, 700, 0), (950, 300, 700, 50), (80, 80, 0, 0)):
        for outcome in ("shaped", "shadow"):  # of the latter, the client gets the original
            sizes = (1_000, 400), (size, after), (cut, cut_after)
            meter.count("get", "rule", outcome, *sizes)

    assert [(row.cuts_before, row.cuts_after, row.largest) for row in meters.drain(Row)] == [
        (2, 1, 300),
        (2, 2, 950),
    ]


@pytest.mark.usefixtures("eager_threads")
def test_threads_that_count_while_another_drains_lose_no_call() -> None:
    meters = Meters()
    finished = Event()
    rows: list[Row] = []

    def count() -> None:
        meter = meters.of("github", current_thread().name)
        for _ in range(20_000):
            meter.count_untouched("get_me", 3)
            meter.count("list_issues", "issues", "shaped", *SIZES)

    def drain() -> None:
        last = False
        while not last:
            last = finished.is_set()
            rows.extend(meters.drain(Row))

    writer = Thread(target=drain)
    counters = [Thread(target=count, name=f"client {number % 2}") for number in range(4)]
    for thread in (writer, *counters):
        thread.start()
    for thread in counters:
        thread.join()
    finished.set()
    writer.join()

    for outcome, wire in (("untouched", 3), ("shaped", 1_000)):
        counted = [row for row in rows if row.outcome == outcome]
        assert sum(row.calls for row in counted) == 80_000
        assert sum(row.wire_before for row in counted) == 80_000 * wire
