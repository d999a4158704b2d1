"""The meter: every call in exactly one row, in bounded memory, from any thread."""

import sys
from collections.abc import Iterator
from threading import Event, Thread, current_thread

import pytest

from proxy.storage.meter import OTHER, Meter, Meters, OutcomeKind, Row, Sizes, Warnings

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
def test_calls_that_a_rule_worked_on_are_kept_one_row_each(outcome: OutcomeKind) -> None:
    meter = Meter()
    meter.count("list_issues", "issues", SIZES, outcome)
    meter.count("list_issues", "issues", SIZES, outcome)

    assert meter.drain() == [Row("list_issues", "issues", outcome, 1, 1_000, 100, 900, 90)] * 2


@pytest.mark.parametrize("outcome", ["untouched", "refused", "answered", "hidden", "error"])
def test_calls_whose_sizes_tell_nothing_of_a_rule_are_summed(outcome: OutcomeKind) -> None:
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


@pytest.mark.fault(46, "inside")
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


@pytest.mark.fault(46, "inside")
def test_a_meter_that_nobody_drains_keeps_counting_in_bounded_memory() -> None:
    meter = Meter()
    for _ in range(50_000):
        meter.count("list_issues", "issues", SIZES, "shaped")

    rows = meter.drain()

    assert len(rows) <= 5_000
    assert sum(row.calls for row in rows) == 50_000
    assert sum(row.visible_before for row in rows) == 50_000 * 900
    assert sum(row.wire_after for row in rows) == 50_000 * 100


def test_warnings_of_one_kind_are_summed_by_tool_and_rule_and_forgotten_when_handed_over() -> None:
    meter = Meter()
    for tool, rule, kind in (
        ("get_job", "jobs", "recast: no case fits"),
        ("get_job", "jobs", "contract: status enum"),
        ("get_job", "jobs", "recast: no case fits"),
        ("get_job", "others", "recast: no case fits"),
        ("list_jobs", "jobs", "recast: no case fits"),
    ):
        meter.warned(tool, rule, kind)

    assert meter.drain() == []
    assert meter.drain_warnings() == [
        Warnings("get_job", "jobs", "recast: no case fits", 2),
        Warnings("get_job", "jobs", "contract: status enum", 1),
        Warnings("get_job", "others", "recast: no case fits", 1),
        Warnings("list_jobs", "jobs", "recast: no case fits", 1),
    ]
    assert meter.drain_warnings() == []


@pytest.mark.fault(46, "inside")
def test_after_a_thousand_kinds_of_warnings_the_rest_are_counted_together() -> None:
    meter = Meter()
    for number in range(50_000):
        meter.warned("get_job", "jobs", f"kind {number}")
    meter.warned("get_job", "jobs", "x" * 1_000_000)
    meter.warned("get_job", "jobs", "kind 7")

    counts = {each.kind: each.count for each in meter.drain_warnings()}

    assert len(counts) == 1_001
    assert counts["kind 7"] == 2
    assert counts[OTHER] == 49_001


def test_a_long_kind_of_warning_is_kept_in_part() -> None:
    meter = Meter()
    for last in ("a", "b"):
        meter.warned("get_job", "jobs", "x" * 1_000_000 + last)

    assert [(each.kind, each.count) for each in meter.drain_warnings()] == [("x" * 200, 2)]


def test_warnings_that_nobody_drains_share_the_room_of_the_sums() -> None:
    meters = Meters()
    for client in range(30):
        meter = meters.of("github", f"client {client}")
        for number in range(1_000):
            meter.warned(f"tool {number}", "rule", f"kind {number}")

    drained = meters.drain_warnings()

    assert len(drained) <= 20_100
    assert sum(each.count for _, _, each in drained) == 30_000
    meters.of("github", "client 29").warned("tool 999", "rule", "kind 999")
    assert meters.drain_warnings() == [
        ("github", "client 29", Warnings("tool 999", "rule", "kind 999", 1))
    ]


def test_the_same_names_have_the_same_meter() -> None:
    meters = Meters()

    assert meters.of("github", "codex") is meters.of("github", "codex")
    assert meters.of("github", None) is not meters.of("github", "codex")
    assert meters.of(None, "codex") is not meters.of("codex", None)


def test_what_meters_counted_comes_with_the_names_it_is_of() -> None:
    meters = Meters()
    meters.of("github", "codex").passed("get_me", 120)
    meters.of("github", None).passed("get_me", 80)
    meters.of(None, None).count("list_issues", "issues", SIZES, "shaped")

    assert meters.drain() == [
        ("github", "codex", Row("get_me", None, "untouched", 1, 120, 120, 120, 120)),
        ("github", None, Row("get_me", None, "untouched", 1, 80, 80, 80, 80)),
        (None, None, Row("list_issues", "issues", "shaped", 1, 1_000, 100, 900, 90)),
    ]
    assert meters.drain() == []


@pytest.mark.fault(46, "inside")
def test_after_a_hundred_servers_or_clients_the_rest_are_counted_together() -> None:
    meters = Meters()
    for number in range(1_000):
        meters.of("github", f"client {number}").passed("get_me", 1)
        meters.of(f"server {number}", "client 7").passed("get_me", 1)
    meters.of(None, None).passed("get_me", 1)

    calls = {(server, client): row.calls for server, client, row in meters.drain()}

    assert len(calls) == 202
    assert calls["github", "client 99"] == 1
    assert calls["github", OTHER] == 900
    assert calls["server 98", "client 7"] == 1
    assert calls[OTHER, "client 7"] == 901
    assert calls[None, None] == 1


def test_long_names_of_servers_and_clients_are_kept_in_part() -> None:
    meters = Meters()
    for last in ("a", "b"):
        meters.of("s" * 1_000_000 + last, "c" * 1_000_000 + last).passed("get_me", 1)

    assert [(server, client, row.calls) for server, client, row in meters.drain()] == [
        ("s" * 200, "c" * 200, 2)
    ]


def test_meters_that_nobody_drains_keep_counting_in_memory_bounded_for_all_of_them() -> None:
    meters = Meters()
    for client in range(50):
        meter = meters.of("github", f"client {client}")
        for number in range(1_000):
            meter.passed(f"tool {number}", 1)
            meter.count(f"tool {number}", "rule", SIZES, "shaped")

    drained = meters.drain()

    assert len(drained) <= 25_000
    assert sum(row.calls for _, _, row in drained) == 100_000
    assert sum(row.wire_after for _, _, row in drained) == 50_000 * 101
    meters.of("github", "client 49").passed("tool 999", 1)
    assert [row.tool for _, _, row in meters.drain()] == ["tool 999"]


def test_who_observes_warnings_gets_each_as_it_is_counted() -> None:
    observed: list[Warnings] = []
    meters = Meters(observe_warning=observed.append)
    for _ in range(2):
        meters.of("github", None).warned("get_job", "jobs", "x" * 1_000)

    assert observed == [Warnings("get_job", "jobs", "x" * 200, 1)] * 2


def test_who_observes_gets_a_row_for_each_call_as_it_is_counted() -> None:
    observed: list[Row] = []
    meters = Meters(observed.append)
    for _ in range(2):
        meters.of("github", None).passed("x" * 1_000, 7)
        meters.of(None, "codex").count("get_me", None, SIZES, "error")

    assert (
        observed
        == [
            Row("x" * 200, None, "untouched", 1, 7, 7, 7, 7),
            Row("get_me", None, "error", 1, 1_000, 100, 900, 90),
        ]
        * 2
    )


@pytest.mark.usefixtures("eager_threads")
def test_threads_that_count_while_another_drains_lose_no_call() -> None:
    meters = Meters()
    done = Event()
    drained: list[Row] = []
    warnings: list[Warnings] = []

    def count() -> None:
        meter = meters.of("github", current_thread().name)
        for _ in range(20_000):
            meter.passed("get_me", 3)
            meter.count("get_me", None, SIZES, "error")
            meter.count("list_issues", "issues", SIZES, "shaped")
            meter.warned("list_issues", "issues", "recast: no case fits")

    def take() -> None:
        drained.extend(row for _, _, row in meters.drain())
        warnings.extend(each for _, _, each in meters.drain_warnings())

    def drain() -> None:
        while not done.is_set():
            take()
        take()

    writer = Thread(target=drain)
    counters = [Thread(target=count, name=f"client {number % 2}") for number in range(4)]
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
    assert sum(each.count for each in warnings) == 80_000
