"""A collector of OpenTelemetry: what programs send to it by OTLP over HTTP, decoded."""

import gzip
import re
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from threading import Thread
from typing import Any

import msgspec
from opentelemetry.proto.collector.metrics.v1.metrics_service_pb2 import (
    ExportMetricsServiceRequest,
)
from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import KeyValue
from opentelemetry.proto.trace.v1 import trace_pb2

Attributes = dict[str, Any]

_OF_CALL = re.compile("tools/call|resources/read|prompts/get")


class Span(msgspec.Struct, frozen=True):
    """A span, and the name of the service that sent it."""

    service: str
    name: str
    kind: str
    trace: str
    id: str
    parent: str
    links: tuple[str, ...]
    seconds: float
    failed: bool
    attributes: Attributes


class Point(msgspec.Struct, frozen=True):
    """A value of a metric with its attributes; of a histogram, how many were recorded."""

    name: str
    value: float
    attributes: Attributes


class Collector:
    """The spans and points that were received so far."""

    def __init__(self, url: str) -> None:
        self.url = url
        self.spans: list[Span] = []
        self.points: list[Point] = []

    def environment(self, **more: str) -> dict[str, str]:
        """Return the variables by which a program sends to it, and soon."""
        return {
            "OTEL_EXPORTER_OTLP_ENDPOINT": self.url,
            "OTEL_BSP_SCHEDULE_DELAY": "100",
            **more,
        }

    def of(self, service: str, kind: str = "SERVER") -> list[Span]:
        """Return the spans of calls and reads that a service sent, in the order of their ends."""
        return [
            span
            for span in self.spans
            if (span.service, span.kind) == (service, kind) and _OF_CALL.search(span.name)
        ]

    def take(self, path: str, raw: bytes) -> None:
        if path == "/v1/traces":
            traces = ExportTraceServiceRequest.FromString(raw)
            for resource in traces.resource_spans:
                service = _attributes(resource.resource.attributes)["service.name"]
                for scope in resource.scope_spans:
                    self.spans += [_span(service, span) for span in scope.spans]
        elif path == "/v1/metrics":
            metrics = ExportMetricsServiceRequest.FromString(raw)
            for resource in metrics.resource_metrics:
                for scope in resource.scope_metrics:
                    for metric in scope.metrics:
                        self.points += _points(metric)


@contextmanager
def collecting() -> Iterator[Collector]:
    """Start a collector on a free port."""

    class Handler(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            raw = self.rfile.read(int(self.headers["Content-Length"]))
            if self.headers.get("Content-Encoding") == "gzip":
                raw = gzip.decompress(raw)
            collector.take(self.path, raw)
            self.send_response(200)
            self.send_header("Content-Length", "0")
            self.end_headers()

        def log_message(self, format: str, *args: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        collector = Collector(f"http://127.0.0.1:{server.server_port}")
        Thread(target=server.serve_forever, daemon=True).start()
        try:
            yield collector
        finally:
            server.shutdown()


def _span(service: str, span: trace_pb2.Span) -> Span:
    return Span(
        service,
        span.name,
        trace_pb2.Span.SpanKind.Name(span.kind).removeprefix("SPAN_KIND_"),
        span.trace_id.hex(),
        span.span_id.hex(),
        span.parent_span_id.hex(),
        tuple(link.span_id.hex() for link in span.links),
        (span.end_time_unix_nano - span.start_time_unix_nano) / 1e9,
        span.status.code == trace_pb2.Status.STATUS_CODE_ERROR,
        _attributes(span.attributes),
    )


def _points(metric: Any) -> Iterator[Point]:
    kind = metric.WhichOneof("data")
    for point in getattr(metric, kind).data_points:
        value = point.count if kind == "histogram" else point.as_int or point.as_double
        yield Point(metric.name, value, _attributes(point.attributes))


def _attributes(pairs: Any) -> Attributes:
    values: Mapping[str, KeyValue] = {pair.key: pair.value for pair in pairs}
    return {name: getattr(value, value.WhichOneof("value")) for name, value in values.items()}
