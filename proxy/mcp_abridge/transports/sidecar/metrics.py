"""The metrics of a sidecar in the Prometheus format, with OpenTelemetry's names for MCP.

Invariant: no metric has more than a thousand sets of labels; the rest count as `other`.
"""

import platform
from collections import defaultdict
from typing import TypeVar

from prometheus_client import (
    CollectorRegistry,
    Counter,
    Gauge,
    Histogram,
    Info,
    ProcessCollector,
    disable_created_metrics,
)
from prometheus_client.exposition import CONTENT_TYPE_LATEST, generate_latest
from prometheus_client.metrics import MetricWrapperBase

from mcp_abridge.session.tracing import BUCKETS
from mcp_abridge.storage.meter import OTHER, STAGES, Limiter, Row, Warnings, label
from mcp_abridge.transports.sidecar.route import AccessRecord

_MAX_SERIES = 1000
_RESERVE = 100  # series for labels without names that clients choose

_UNNAMED_ERROR = "_OTHER"  # OpenTelemetry's name for an error without a type of its own

Labels = tuple[str, ...]
Metric = TypeVar("Metric", bound=MetricWrapperBase)


class Metrics:
    """The metrics of one sidecar; the owners of the numbers open now set the gauges."""

    def __init__(self, version: str = "") -> None:
        # Prometheus has no use for the creation time of a series, which doubles the number of
        # series.
        disable_created_metrics()  # type: ignore[no-untyped-call]
        self._registry = CollectorRegistry()
        ProcessCollector(registry=self._registry)
        build = Info("mcp_abridge_build", "What is running.", registry=self._registry)
        build.info({"version": version, "python": platform.python_version()})
        # The sets of labels of each metric that has any number of them.
        self._limiters = defaultdict[object, Limiter[Labels]](
            lambda: Limiter(_MAX_SERIES, _RESERVE)
        )
        self._seconds = Histogram(
            "mcp_server_operation_duration_seconds",
            "From a client's request to the end of its answer.",
            ("route", "mcp_method_name", "gen_ai_tool_name", "error_type"),
            buckets=BUCKETS,
            registry=self._registry,
        )
        says = "Responses of tools as the upstream sent them and as the client got them, on the "
        says += "wire and as far as the model reads them."
        self._sizes = self._counter("mcp_abridge_response_bytes", says, "route", "tool", "stage")
        says = "Calls of tools by what became of their responses."
        self._calls = self._counter("mcp_abridge_calls", says, "route", "tool", "outcome")
        says = "What rules warned of; the answers went out all the same."
        self._warnings = self._counter("mcp_abridge_warnings", says, "route", "rule", "kind")
        says = "HTTP requests that the proxy itself answered with an error."
        self._refusals = self._counter("mcp_abridge_refused_requests", says, "route", "status")
        says = "Calls that the ledger could not record; the log says why."
        self._unrecorded = self._counter("mcp_abridge_unrecorded_calls", says)
        # A tool has all of its stages, or none.
        self._tools = Limiter[Labels](_MAX_SERIES // len(STAGES) - 1, _RESERVE // len(STAGES))
        self.requests = self._gauge("mcp_abridge_open_requests", "HTTP requests that are open.")
        self.sessions = self._gauge(
            "mcp_abridge_sessions",
            "Sessions that are open; before a URL, the sessions and callers that are remembered.",
        )
        self.children = self._gauge("mcp_abridge_children", "Server processes that are running.")

    def observe(self, row: Row, route: str = "") -> None:
        """Count the calls of a meter's row; see `mcp_abridge.storage.meter.Meters`."""
        tool = label(row.tool)
        others = (route, OTHER, row.outcome), (OTHER, OTHER, row.outcome)
        self._of(self._calls, (route, tool, row.outcome), *others).inc(row.calls)
        labels = self._tools.admit((route, tool), (route, OTHER), (OTHER, OTHER))
        for stage, size in zip(STAGES, row.sent_sizes, strict=True):
            self._sizes.labels(*labels, stage).inc(size)

    def warned(self, warned: Warnings, route: str = "") -> None:
        """Count the warnings of a rule; see `mcp_abridge.storage.meter.Meters`."""
        rule = label(warned.rule)
        labels = (route, rule, label(warned.kind))
        series = self._of(self._warnings, labels, (route, rule, OTHER), (OTHER,) * 3)
        series.inc(warned.count)

    def unrecorded(self, calls: int) -> None:
        self._unrecorded.inc(calls)

    def count_request(
        self, record: AccessRecord, status: int, seconds: float, route: str = ""
    ) -> None:
        """Count an HTTP request; only those that carried a message have a duration."""
        failed = status >= 400
        if failed and record.answered_by == "proxy":
            labels = (route, str(status)), (route, OTHER), (OTHER, OTHER)
            self._of(self._refusals, *labels).inc()
        if not record.method:
            return
        method, tool = label(record.method), label(record.tool)
        error = str(status) if failed else _UNNAMED_ERROR if record.failure else ""
        others = (route, method, OTHER, error), (OTHER,) * 4
        self._of(self._seconds, (route, method, tool, error), *others).observe(seconds)

    def exposition(self) -> tuple[bytes, str]:
        """Return the metrics in the Prometheus text format, and its media type.

        >>> metrics = Metrics()
        >>> metrics.observe(Row("get_me", None, "untouched", None, None, 1, 120, 120, 120, 120))
        >>> b'mcp_abridge_calls_total{outcome="untouched",route="",tool="get_me"} 1.0' in (
        ...     metrics.exposition()[0].splitlines()
        ... )
        True
        """
        return generate_latest(self._registry), CONTENT_TYPE_LATEST

    def _counter(self, name: str, says: str, *labels: str) -> Counter:
        return Counter(name, says, labels, registry=self._registry)

    def _gauge(self, name: str, says: str) -> Gauge:
        return Gauge(name, says, registry=self._registry)

    def _of(self, metric: Metric, *candidates: Labels) -> Metric:
        return metric.labels(*self._limiters[metric].admit(*candidates))
