"""The metrics for Prometheus: every call and request counted, in a bounded number of series."""

import platform
from collections import defaultdict

import pytest
from mcp_abridge.storage.meter import OTHER, Meters, OutcomeKind, Row, Warnings
from mcp_abridge.transports.sidecar.metrics import Metrics
from mcp_abridge.transports.sidecar.route import AccessRecord
from prometheus_client.parser import text_string_to_metric_families

SECONDS = "mcp_server_operation_duration_seconds"
BYTES = "mcp_abridge_response_bytes_total"
CALLS = "mcp_abridge_calls_total"
REFUSALS = "mcp_abridge_refused_requests_total"
WARNINGS = "mcp_abridge_warnings_total"

Series = dict[tuple[str, ...], float]


def read(metrics: Metrics) -> dict[str, Series]:
    """Read the samples by name, and by the values of their labels in the order of these.

    A call that came by no route has no value for it.
    """
    raw, kind = metrics.exposition()
    assert kind.startswith("text/plain; version=")
    series: dict[str, Series] = defaultdict(dict)
    for family in text_string_to_metric_families(raw.decode()):
        for sample in family.samples:
            labels = sorted(sample.labels.items())
            values = tuple(value for name, value in labels if name != "route" or value)
            series[sample.name][values] = sample.value
    return series


def row(tool: str, outcome: OutcomeKind = "shaped") -> Row:
    return Row(tool, "rule", outcome, None, None, 1, 1_000, 100, 900, 90)


def test_calls_are_counted_by_tool_stage_and_outcome() -> None:
    metrics = Metrics()
    meters = Meters(metrics.observe)
    meters.of("github", "codex").count("list", "rule", "shaped", (1_000, 100), (900, 90))
    meters.of("github", None).count_untouched("list", 7)
    meters.of(None, None).count("reindex", "preflight", "answered", (0, 40), (0, 30))

    assert read(metrics)[CALLS] == {
        ("shaped", "list"): 1,
        ("answered", "reindex"): 1,
        ("untouched", "list"): 1,
    }
    stages = ("before", "after", "visible_before", "visible_after")
    sizes = {"list": (1_007, 107, 907, 97), "reindex": (0, 40, 0, 30)}
    assert read(metrics)[BYTES] == {
        (stage, tool): size
        for tool, figures in sizes.items()
        for stage, size in zip(stages, figures, strict=True)
    }


def test_what_came_by_one_route_is_counted_apart() -> None:
    metrics = Metrics()
    meters = Meters(metrics.observe, metrics.warned)
    for route, size in (("/a", 5), ("/a", 6), ("/b", 7)):
        meters.of("github", "codex", route).count_untouched("list", size)
    meters.of("jobs", None, "/b").warned("jobs", "late")
    metrics.count_request(AccessRecord(method="ping", answered_by="proxy"), 503, 0.1, "/a")

    series = read(metrics)
    assert series[CALLS] == {("untouched", "/a", "list"): 2, ("untouched", "/b", "list"): 1}
    assert series[BYTES]["/a", "before", "list"] == 11
    assert series[BYTES]["/b", "before", "list"] == 7
    assert series[WARNINGS] == {("late", "/b", "jobs"): 1}
    assert series[REFUSALS] == {("/a", "503"): 1}
    assert series[f"{SECONDS}_count"] == {("503", "", "ping", "/a"): 1}


def test_the_version_that_runs_is_named() -> None:
    assert read(Metrics("1.2.3"))["mcp_abridge_build_info"] == {
        (platform.python_version(), "1.2.3"): 1
    }


def test_warnings_are_counted_by_rule_and_kind() -> None:
    metrics = Metrics()
    meters = Meters(metrics.observe, metrics.warned)
    for _ in range(2):
        meters.of("jobs", None).warned("jobs", "recast: no case fits")
    meters.of(None, None).warned("\ud800", "x" * 1_000)

    assert read(metrics)[WARNINGS] == {
        ("recast: no case fits", "jobs"): 2,
        ("x" * 200, "?"): 1,
    }
    assert read(metrics)[CALLS] == {}


def test_a_shadow_rule_saves_no_bytes() -> None:
    metrics = Metrics()
    metrics.observe(row("list", "shadow"))

    sizes = read(metrics)[BYTES]
    assert sizes["after", "list"] == sizes["before", "list"] == 1_000
    assert sizes["visible_after", "list"] == sizes["visible_before", "list"] == 900


def test_a_request_is_timed_by_method_and_tool() -> None:
    metrics = Metrics()
    metrics.count_request(AccessRecord(method="tools/call", tool="list"), 200, 0.25)
    metrics.count_request(AccessRecord(method="tools/call", tool="list"), 200, 0.5)
    metrics.count_request(AccessRecord(method="initialize"), 200, 3)

    assert read(metrics)[f"{SECONDS}_count"] == {
        ("", "list", "tools/call"): 2,
        ("", "", "initialize"): 1,
    }
    assert read(metrics)[f"{SECONDS}_sum"] == {
        ("", "list", "tools/call"): 0.75,
        ("", "", "initialize"): 3,
    }
    buckets = read(metrics)[f"{SECONDS}_bucket"]
    assert buckets["", "list", "0.2", "tools/call"] == 0
    assert buckets["", "list", "0.5", "tools/call"] == 2


@pytest.mark.parametrize(
    ("status", "failure", "error"),
    [
        (200, "", ""),
        (202, "", ""),
        (502, "", "502"),
        (401, "no token", "401"),
        (200, "the event stream ended", "_OTHER"),
    ],
)
def test_a_failed_request_is_counted_by_its_error(status: int, failure: str, error: str) -> None:
    metrics = Metrics()
    metrics.count_request(AccessRecord(method="ping", failure=failure), status, 0.1)

    assert read(metrics)[f"{SECONDS}_count"] == {(error, "", "ping"): 1}


def test_requests_that_the_proxy_refused_are_counted_by_status() -> None:
    metrics = Metrics()
    for status in (403, 403, 413, 200):
        metrics.count_request(AccessRecord(answered_by="proxy"), status, 0.1)
    metrics.count_request(AccessRecord(answered_by="upstream"), 500, 0.1)

    assert read(metrics)[REFUSALS] == {("403",): 2, ("413",): 1}


@pytest.mark.fault(46, "inside")
def test_no_metric_has_more_than_a_thousand_sets_of_labels() -> None:
    metrics = Metrics()
    for number in range(3_000):
        metrics.observe(row(f"tool {number}"))
        metrics.warned(Warnings(f"rule {number % 100}", f"kind {number}", 1))
        record = AccessRecord(method="tools/list", failure="x", answered_by="proxy")
        metrics.count_request(record, 400 + number, 0.1)

    series = read(metrics)
    for name in (CALLS, f"{SECONDS}_count", REFUSALS, WARNINGS):
        assert 500 < len(series[name]) <= 1_000
        assert sum(series[name].values()) == 3_000
    assert series[CALLS]["shaped", "tool 0"] == 1
    assert series[CALLS]["shaped", OTHER] > 2_000
    assert series[WARNINGS][OTHER, "rule 7"] > 1
    sizes = series[BYTES]
    assert (len(sizes) <= 1_000, len(sizes) % 4) == (True, 0)
    assert sum(size for (stage, _), size in sizes.items() if stage == "before") == 3_000_000


def test_calls_that_the_ledger_loses_are_counted() -> None:
    metrics = Metrics()
    assert read(metrics)["mcp_abridge_unrecorded_calls_total"] == {(): 0}
    metrics.unrecorded(3)
    metrics.unrecorded(2)

    assert read(metrics)["mcp_abridge_unrecorded_calls_total"] == {(): 5}
