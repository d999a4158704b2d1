"""Spans and metrics of calls, sent by OTLP over HTTP: the one module that imports OpenTelemetry.

Names are those of its conventions for MCP (github.com/open-telemetry/semantic-conventions-genai,
docs/gen-ai/mcp.md); ours begin with `mcp_abridge.`. A call has two spans: SERVER for the client's
request, and CLIENT for what went to the server. No argument and no answer is in them.
"""

import logging
import re
from collections.abc import Callable, Collection, Iterable, Sequence
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple

from msgspec import Raw
from opentelemetry import propagate, trace
from opentelemetry.context import Context
from opentelemetry.exporter.otlp.proto.http.metric_exporter import OTLPMetricExporter
from opentelemetry.exporter.otlp.proto.http.trace_exporter import OTLPSpanExporter
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import MetricReader, PeriodicExportingMetricReader
from opentelemetry.sdk.resources import OTELResourceDetector, Resource
from opentelemetry.sdk.trace import SpanProcessor, TracerProvider
from opentelemetry.sdk.trace.export import BatchSpanProcessor
from opentelemetry.trace import Link, SpanKind, Status, StatusCode
from yarl import URL

from mcp_abridge.document import message
from mcp_abridge.document.message import PROTOCOL_VERSION, READ, members, string_at, value_at
from mcp_abridge.document.tree import ABSENT
from mcp_abridge.errors import DocumentError
from mcp_abridge.session.tracing import BUCKETS, Arrival
from mcp_abridge.storage.meter import OTHER, STAGES, Limiter, Row, label

_NAME = "mcp-abridge"
_TOOL = "gen_ai.tool.name"
_PROMPT = "gen_ai.prompt.name"
_TARGETS = {"tools/call": _TOOL, "prompts/get": _PROMPT, READ: "mcp.resource.uri"}
_TRANSPORT = "network.transport"
_FEW = ("mcp.method.name", "gen_ai.operation.name", _TRANSPORT)  # they have few values
_MAX_TOOLS = 200  # in metrics; each has a series for every outcome and error

Attributes = dict[str, str | int | bool]

_HTTP: Attributes = {_TRANSPORT: "tcp", "network.protocol.name": "http"}


def otlp_exports(version: str, warn: Callable[[str], None], signals: Collection[str]) -> "Exports":
    """Return exports of these signals ("TRACES", "METRICS") by OTLP, as the variables say.

    `warn` is told once of what fails.
    """
    # Libraries are not to write to stderr themselves.
    logging.getLogger().addHandler(logging.NullHandler())
    logger = logging.getLogger("opentelemetry")
    logger.handlers, logger.propagate = [_Once(warn)], False
    processors = [BatchSpanProcessor(OTLPSpanExporter())] if "TRACES" in signals else []
    readers = [PeriodicExportingMetricReader(OTLPMetricExporter())] if "METRICS" in signals else []
    return Exports(version, processors, readers)


class Exports:
    """The spans and metrics of a process, and who gets them."""

    def __init__(
        self, version: str, processors: Iterable[SpanProcessor], readers: Sequence[MetricReader]
    ) -> None:
        ours = Resource({"service.name": _NAME, "service.version": version})
        # The user's variables say more.
        resource = Resource.create(ours.merge(OTELResourceDetector().detect()).attributes)
        # This process ends by `close`, and mostly without the interpreter's own end.
        self._spans = TracerProvider(resource=resource, shutdown_on_exit=False)
        for processor in processors:
            self._spans.add_span_processor(processor)
        self._figures = MeterProvider(readers, resource, shutdown_on_exit=False)
        self.tracer = self._spans.get_tracer(_NAME, version)
        meter = self._figures.get_meter(_NAME, version)
        self.durations = {
            kind: meter.create_histogram(
                f"mcp.{kind.name.lower()}.operation.duration",
                "s",
                "The duration of calls of tools, and of reads of resources and prompts.",
                explicit_bucket_boundaries_advisory=BUCKETS,
            )
            for kind in (SpanKind.SERVER, SpanKind.CLIENT)
        }
        self._calls = meter.create_counter(
            "mcp_abridge.calls", "{call}", "Calls of tools by outcome."
        )
        says = "Responses before and after, on the wire and as far as the model reads them."
        self._sizes = meter.create_counter("mcp_abridge.response.bytes", "By", says)
        self._tools = Limiter[str](_MAX_TOOLS)

    def begin(self, url: str | None, *request: Any) -> "CallSpans":
        """Begin the trace of a request; see `mcp_abridge.session.tracing.Tracer`."""
        return CallSpans(self, url, *request)

    def count(self, row: Row, route: str) -> None:
        own = {"mcp_abridge.route": route} if route else {}
        attributes = {_TOOL: self.tool(row.tool), "mcp_abridge.outcome": row.outcome, **own}
        self._calls.add(row.calls, attributes)
        for stage, size in zip(STAGES, row.sent_sizes, strict=True):
            self._sizes.add(size, {**attributes, "mcp_abridge.stage": stage})

    def tool(self, name: str) -> str:
        """Return the name of a tool in metrics: clients choose any number of names."""
        return self._tools.admit(label(name), OTHER)

    def close(self) -> None:
        """Send what is left; may take long, and never raises."""
        for provider in (self._spans, self._figures):
            with suppress(Exception):
                provider.shutdown()


class CallSpans:
    """The spans of one call; see `mcp_abridge.session.tracing.CallTrace`."""

    def __init__(
        self,
        exports: Exports,
        url: str | None,
        method: str,
        target: str,
        id: bytes,
        meta: Raw,
        arrival: Arrival | None,
    ) -> None:
        self._exports, self._url = exports, url
        self._attributes: Attributes = {
            "mcp.method.name": method,
            # A query may have what nobody else is to see.
            _TARGETS[method]: label(target.partition("?")[0] if method == READ else target),
            "jsonrpc.request.id": label(id.decode("utf-8", "replace").strip('"')),
        }
        if method == "tools/call":
            self._attributes["gen_ai.operation.name"] = "execute_tool"
        protocol = string_at(meta, PROTOCOL_VERSION) or (arrival and arrival.protocol)
        if protocol:
            self._attributes["mcp.protocol.version"] = label(protocol)
        parent, links = _parent(meta, arrival)
        attributes = self._attributes | _of_client(arrival)
        self._server = _Timed(exports, SpanKind.SERVER, attributes, parent, links)
        self._client: _Timed | None = None
        context = self._server.span.get_span_context()
        if arrival is not None and context.is_valid:
            arrival.trace_id = trace.format_trace_id(context.trace_id)

    def forward(self, raw: bytes) -> bytes:
        if self._client is None:
            attributes = self._attributes | _of_server(self._url)
            self._client = _Timed(self._exports, SpanKind.CLIENT, attributes, self._server.context)
        carrier: dict[str, str] = {}
        propagate.inject(carrier, self._client.context)
        return _with_meta(raw, carrier) if carrier else raw

    def respond(self, raw: bytes) -> None:
        if self._client is not None:
            self._client.end(_failure(raw))

    def end(self, raw: bytes, row: Row | None = None, *, view: bool = False) -> None:
        failure = _failure(raw)
        if row is not None and not self._server.ended:
            answer: Attributes = {"mcp_abridge.outcome": row.outcome, "mcp_abridge.view": view}
            if row.rule is not None:
                answer["mcp_abridge.rule"] = row.rule
            for stage, size in zip(STAGES, row.sent_sizes, strict=True):
                answer[f"mcp_abridge.bytes.{stage}"] = size
            self._server.span.set_attributes(answer)
            if row.outcome == "late":
                failure = _Failure({"error.type": "timeout"})
        self._end(failure)

    def _end(self, failure: "_Failure | None") -> None:
        if self._client is not None:
            self._client.end(failure)
        self._server.end(failure)

    def __del__(self) -> None:
        # If it has not ended yet, it was cancelled, or its client is gone.
        self._end(_Failure({"error.type": "cancelled"}))


class _Failure(NamedTuple):
    attributes: Attributes
    text: str | None = None


class _Timed:
    """A span and the duration of what it is of, in the metrics."""

    def __init__(
        self,
        exports: Exports,
        kind: SpanKind,
        attributes: Attributes,
        parent: Context,
        links: Sequence[Link] = (),
    ) -> None:
        names = {name: str(attributes[name]) for name in (_TOOL, _PROMPT) if name in attributes}
        title = " ".join([str(attributes["mcp.method.name"]), *names.values()])
        self.span = exports.tracer.start_span(title, parent, kind, attributes, links)
        self.context = trace.set_span_in_context(self.span, parent)
        """The context of what this span causes."""
        self._histogram = exports.durations[kind]
        self._series = {name: value for name, value in attributes.items() if name in _FEW}
        self._series |= {name: exports.tool(each) for name, each in names.items()}
        self._start = monotonic()
        self.ended = False

    def end(self, failure: _Failure | None) -> None:
        if self.ended:
            return
        self.ended = True
        if failure is not None:
            self._series |= failure.attributes
            self.span.set_attributes(failure.attributes)
            self.span.set_status(Status(StatusCode.ERROR, failure.text))
        self._histogram.record(monotonic() - self._start, self._series, self.context)
        self.span.end()


def _parent(meta: Raw, arrival: Arrival | None) -> tuple[Context, list[Link]]:
    """Return the context of a call, that in its `_meta` before that of its HTTP request.

    If both are given, the second one is a link, as the conventions want it.
    """
    names = propagate.get_global_textmap().fields
    inner = {name: value for name in names if (value := string_at(meta, name)) is not None}
    outer = {} if arrival is None else arrival.headers
    contexts = [propagate.extract(each, Context()) for each in (inner, outer)]
    spans = [trace.get_current_span(each).get_span_context() for each in contexts]
    if not spans[0].is_valid:
        return contexts[1], []
    return contexts[0], [Link(spans[1])] if spans[1].is_valid and spans[1] != spans[0] else []


def _of_client(arrival: Arrival | None) -> Attributes:
    if arrival is None:
        return {_TRANSPORT: "pipe"}
    attributes = {
        "network.protocol.version": arrival.http,
        "client.address": arrival.peer,
        "mcp.session.id": arrival.session,
        "mcp_abridge.route": arrival.route,
    }
    return _HTTP | {name: value for name, value in attributes.items() if value}


def _of_server(url: str | None) -> Attributes:
    if url is None:
        return {_TRANSPORT: "pipe"}
    to = URL(url)
    return _HTTP | {"server.address": to.host or "", "server.port": to.port or 0}


def _failure(raw: bytes) -> _Failure | None:
    """Return the error in a response, or the result that is one; None for all others."""
    if message.succeeds(raw[: message.ENDS]) and raw.rfind(b'"isError"') < 0:
        return None  # without reading a long one
    read = message.envelope(raw)
    if read.error is not ABSENT:
        code = label(bytes(value_at(read.error, "code")).decode() or "_OTHER")
        text = label(string_at(read.error, "message") or "") or None
        return _Failure({"error.type": code, "rpc.response.status_code": code}, text)
    failed = value_at(read.result, "isError") == Raw(b"true")
    return _Failure({"error.type": "tool_error"}) if failed else None


def _with_meta(raw: bytes, carrier: dict[str, str]) -> bytes:
    """Return a request with these members in its `_meta`; as it is if that is no object."""
    params = message.envelope(raw).params
    try:
        merged = {**members(members(params).get("_meta", Raw(b"{}"))), **carrier}
        return message.replaced(raw, params=Raw(message.replaced(bytes(params), _meta=merged)))
    except DocumentError:
        return raw


class _Once(logging.Handler):
    """Passes on the first trouble that the SDK logs: a collector that is down is down for long."""

    def __init__(self, warn: Callable[[str], None]) -> None:
        super().__init__(logging.WARNING)
        self._warn: Callable[[str], None] | None = warn

    def emit(self, record: logging.LogRecord) -> None:
        warn, self._warn = self._warn, None
        if warn is not None:
            # The query of a collector's URL may hold a key.
            text = re.sub(r"\?[^\s)]*", "?***", record.getMessage())
            warn(f"OpenTelemetry: {text}; further failures of it are not logged")
