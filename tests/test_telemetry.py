"""A call in one trace across client, proxy and server, which each send their own spans."""

import json
import os
import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from threading import Event
from time import monotonic
from typing import Any

import pytest
from mcp_abridge.transports import telemetry
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.telemetry import END
from msgspec import Raw

from tests.builders import call, line
from tests.collector import Collector, Span, collecting
from tests.faults.processes import until
from tests.faults.scale import scaled
from tests.faults.sidecar import Sidecar, get
from tests.raw_http import RawServer, session
from tests.serving import ask, upstream
from tests.wire import Wire
from tests.wrapped import ROOT, START, wrapped

TRACED = [sys.executable, str(ROOT / "tests" / "fixtures" / "traced.py")]
SERVER = ["env", "OTEL_SERVICE_NAME=server", *TRACED, "server"]
CALLS: list[tuple[str, dict[str, Any]]] = [
    ("rows", {}),
    ("rows", {"view": "result[3].name"}),
    ("fail", {}),
]
PLAIN = [
    sys.executable,
    "-c",
    f"import sys; sys.path.insert(0, {str(ROOT)!r})\n"
    "from tests.plain_server import serve\n"
    "answer = {'content': [{'type': 'text', 'text': 'short'}]}\n"
    "serve('plain', '1', [{'name': 'get', 'inputSchema': {'type': 'object'}}],\n"
    "      lambda name, arguments: answer)",
]
TRACE, CALLER, OUTER = "a1" * 16, "b2" * 8, "c3" * 8


@pytest.fixture
def collector(monkeypatch: pytest.MonkeyPatch) -> Iterator[Collector]:
    """Start a collector; every program that is started sends to it."""
    with collecting() as collector:
        for name, value in collector.environment().items():
            monkeypatch.setenv(name, value)
        yield collector


@contextmanager
def front(way: str, folder: Path) -> Iterator[list[str]]:
    """Put the proxy before the server in this way; yield how the client reaches it."""
    with ExitStack() as stack:
        if way == "stdio":
            yield wrapped(SERVER)
        elif way == "stdio to a URL":
            origin = stack.enter_context(upstream(SERVER, folder / "log"))
            yield [sys.executable, "-c", START, f"{origin}/mcp"]
        elif way == "http to a command":
            yield [stack.enter_context(Sidecar("--", *SERVER)).url()]
        else:
            origin = stack.enter_context(upstream(SERVER, folder / "log"))
            yield [stack.enter_context(Sidecar(f"{origin}/mcp")).url()]


@pytest.mark.slow
@pytest.mark.parametrize(
    ("way", "era"),
    [
        ("http to a command", "2026-07-28"),
        ("http to a command", "legacy"),
        ("stdio", "2026-07-28"),
        ("stdio to a URL", "legacy"),
        ("http", "legacy"),
        ("http", "2026-07-28"),
    ][: scaled(1, 6)],
)
def test_client_proxy_and_server_are_in_one_trace(
    way: str, era: str, tmp_path: Path, collector: Collector
) -> None:
    with front(way, tmp_path) as target:
        subprocess.run(
            [*TRACED, "client", era, json.dumps(CALLS), *target], check=True, timeout=120
        )
        until(lambda: len(collector.of("mcp-abridge")) == len(CALLS))

    requests, ours = collector.of("client", "CLIENT"), collector.of("mcp-abridge")
    onward, served = collector.of("mcp-abridge", "CLIENT"), collector.of("server")
    assert [span.name for span in requests] == [f"MCP send tools/call {tool}" for tool, _ in CALLS]
    assert [span.name for span in ours] == [f"tools/call {tool}" for tool, _ in CALLS]
    assert [span.name for span in onward] == ["tools/call rows", "tools/call fail"]
    assert links(requests, ours) == [0, 1, 2]
    assert links(ours, onward) == [0, 2]
    assert links(onward, served) == [0, 1]

    outcomes = [span.attributes["mcp_abridge.outcome"] for span in ours]
    assert outcomes == ["shaped", "view", "untouched"]
    assert [span.attributes["mcp_abridge.view"] for span in ours] == [False, True, False]
    assert [span.failed for span in ours] == [False, False, True]
    assert ours[2].attributes["error.type"] == served[1].attributes["error.type"] == "tool_error"
    inner, outer = ("tcp" if "http" in way else "pipe"), ("pipe" if "command" in way else "tcp")
    assert {span.attributes["network.transport"] for span in ours} == {inner}
    assert {span.attributes["network.transport"] for span in onward} == {
        "pipe" if way == "stdio" else outer
    }
    has_session = "http" in way and era == "legacy"
    assert all(("mcp.session.id" in span.attributes) == has_session for span in ours)


@pytest.mark.long
@pytest.mark.parametrize("way", ["http", "stdio"])
def test_reads_of_resources_and_prompts_have_spans_too(
    way: str, tmp_path: Path, collector: Collector
) -> None:
    calls = json.dumps([("rows://all", {}), ("ask", {}), ("rows://none?key=secret", {})])
    with front(way, tmp_path) as target:
        subprocess.run([*TRACED, "client", "legacy", calls, *target], check=True, timeout=120)
        until(lambda: len(collector.of("mcp-abridge")) == 3)

    ours, onward = collector.of("mcp-abridge"), collector.of("mcp-abridge", "CLIENT")
    names = ["resources/read", "prompts/get ask", "resources/read"]
    assert [span.name for span in ours] == [span.name for span in onward] == names
    assert links(collector.of("client", "CLIENT"), ours) == links(ours, onward) == [0, 1, 2]
    assert links(onward, collector.of("server")) == [0, 1, 2]
    uris = [span.attributes.get("mcp.resource.uri") for span in ours]
    assert uris == ["rows://all", None, "rows://none"]
    assert ours[1].attributes["gen_ai.prompt.name"] == "ask"
    assert [span.failed for span in ours] == [False, False, True]
    assert [span.attributes["mcp_abridge.outcome"] for span in ours] == ["untouched"] * 3
    assert all("gen_ai.tool.name" not in span.attributes for span in ours)


def links(outer: list[Span], inner: list[Span]) -> list[int]:
    """Return the index of the parent of each span, in whose trace it must be."""
    ids = [(span.trace, span.id) for span in outer]
    return [ids.index((span.trace, span.parent)) for span in inner]


def test_the_end_of_a_session_sends_what_is_left_and_its_metrics(collector: Collector) -> None:
    with Wire(wrapped(PLAIN)) as wire:
        wire.write(call("get", {}) + b"\n")
        answer = json.loads(wire.line())
        ended = wire.close()

    assert answer["result"]["content"][0]["text"] == "short"
    assert (ended.code, ended.rest, ended.stderr) == (0, b"", b"")
    [span] = collector.of("mcp-abridge")
    assert span.parent == ""
    points = {(point.name, point.attributes.get("mcp_abridge.stage")) for point in collector.points}
    assert points == {
        ("mcp.server.operation.duration", None),
        ("mcp.client.operation.duration", None),
        ("mcp_abridge.calls", None),
        *(("mcp_abridge.response.bytes", stage) for stage in STAGES),
    }
    sizes = {
        point.attributes["mcp_abridge.stage"]: point.value
        for point in collector.points
        if point.name == "mcp_abridge.response.bytes"
    }
    assert sizes == {stage: span.attributes[f"mcp_abridge.bytes.{stage}"] for stage in STAGES}


STAGES = ("before", "after", "visible_before", "visible_after")


PASSING = """
version: 1
upstream: {0}/mcp
routes:
  - {{path: /mcp}}
  - {{path: /else, upstream: "{0}", passes: true}}
"""


def test_a_sidecar_names_the_trace_in_its_log_and_in_headers_to_the_server(
    tmp_path: Path, collector: Collector
) -> None:
    own, other = f"00-{TRACE}-{CALLER}-01", f"00-{TRACE}-{OUTER}-01"
    config = tmp_path / "serve.yaml"
    with RawServer(session()) as server:
        config.write_text(PASSING.format(server.url))
        with Sidecar("--config", str(config)) as sidecar:
            raw = call("get", {}, _meta={"traceparent": own})
            ask(sidecar.url("/else"), raw, {**JSON, "traceparent": other})
    [unchanged] = server.of("POST")
    assert (unchanged.body, unchanged.headers["traceparent"]) == (raw, other)
    assert collector.spans == []

    with RawServer(session()) as server, Sidecar(f"{server.url}/mcp") as sidecar:
        for number, meta, header in (
            (1, {}, {}),
            (2, {}, {"traceparent": other}),
            (3, {"_meta": {"traceparent": own}}, {"traceparent": other}),
        ):
            raw = call("get", {}, id=number, **meta)
            assert ask(sidecar.url(), raw, {**JSON, **header}).status == 200
        lines = sidecar.events("call", 3)
        calls = server.of("POST")
        figures = sidecar.ask(get("/metrics")).body.decode()

    ours, onward = collector.of("mcp-abridge"), collector.of("mcp-abridge", "CLIENT")
    assert [span.parent for span in ours] == ["", OUTER, CALLER]
    assert [span.links for span in ours] == [(), (), (OUTER,)]
    assert [(each["request_id"], each["trace_id"]) for each in lines] == [
        (str(number), span.trace) for number, span in enumerate(ours, 1)
    ]
    inner = [each.message["params"]["_meta"]["traceparent"] for each in calls]
    assert [each[:-3] for each in inner] == [f"00-{span.trace}-{span.id}" for span in onward]
    assert [each.headers["traceparent"] for each in calls] == inner
    assert {span.attributes["server.port"] for span in onward} == {server.port}
    assert 'mcp_abridge_calls_total{outcome="untouched",route="/mcp",tool="get"} 3.0' in figures


JSON = {"Content-Type": "application/json", "Accept": "application/json, text/event-stream"}


@pytest.mark.parametrize("listens", [False, True][: scaled(1, 2)])
def test_a_collector_that_is_down_costs_one_line_and_no_call_its_time(
    listens: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """One that takes connections and never answers is as good as none."""
    with socket.create_server(("127.0.0.1", 0)) as silent:
        port = silent.getsockname()[1]
        if not listens:
            silent.close()
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_ENDPOINT", f"http://127.0.0.1:{port}")
        endpoint = f"http://127.0.0.1:{port}/v1/traces?api_key=secret"
        monkeypatch.setenv("OTEL_EXPORTER_OTLP_TRACES_ENDPOINT", endpoint)
        monkeypatch.setenv("OTEL_BSP_SCHEDULE_DELAY", "50")
        monkeypatch.setenv("OTEL_METRIC_EXPORT_INTERVAL", "50")
        with Wire(wrapped(PLAIN)) as wire:
            wire.write(call("get", {}, id=0) + b"\n")
            wire.line()
            start = monotonic()
            for number in range(1, 300):
                wire.write(call("get", {}, id=number) + b"\n")
                assert json.loads(wire.line())["id"] == number
            seconds = (monotonic() - start) / 300
            leaving = monotonic()
            ended = wire.close()
    assert seconds < 0.05
    assert monotonic() - leaving < END + 3
    assert (ended.code, ended.rest) == (0, b"")
    lines = ended.stderr.decode().splitlines()
    assert len(lines) <= 1
    assert all(each.startswith("mcp-abridge: warning: OpenTelemetry: ") for each in lines)
    assert listens or lines
    assert b"secret" not in ended.stderr


def variables(name: str, value: str) -> dict[str, str]:
    return {"OTEL_EXPORTER_OTLP_ENDPOINT": "http://127.0.0.1:9", name: value}


@pytest.mark.parametrize(
    ("environment", "lines"),
    [
        (
            variables("OTEL_EXPORTER_OTLP_PROTOCOL", "grpc"),
            [
                "OTEL_EXPORTER_OTLP_PROTOCOL: 'grpc' is not known here, 'http/protobuf' would be; "
                f"no {signal} are sent"
                for signal in ("traces", "metrics")
            ],
        ),
        (
            {**variables("OTEL_TRACES_EXPORTER", "console"), "OTEL_METRICS_EXPORTER": "none"},
            [
                "OTEL_TRACES_EXPORTER: 'console' is not known here, 'otlp' would be; "
                "no traces are sent"
            ],
        ),
        (variables("OTEL_SDK_DISABLED", "true"), []),
        ({"OTEL_SERVICE_NAME": "of the server"}, []),
    ],
)
def test_what_is_not_sent_is_said_only_if_it_was_wanted(
    environment: dict[str, str], lines: list[str]
) -> None:
    with Wire(wrapped(PLAIN), {**os.environ, **environment}) as wire:
        wire.write(call("get", {}) + b"\n")
        wire.line()
        ended = wire.close()
    assert (ended.code, ended.rest) == (0, b"")
    assert ended.stderr.decode().splitlines() == [f"mcp-abridge: warning: {each}" for each in lines]


ABSENT = START.replace("import sys\n", "import sys\nsys.modules['opentelemetry.sdk'] = None\n", 1)


@pytest.mark.parametrize("options", [[], ["--verbose"]])
def test_without_the_extra_only_a_verbose_log_says_what_is_missing(
    options: list[str], collector: Collector
) -> None:
    command = [sys.executable, "-c", ABSENT, *options, "--", *PLAIN]
    with Wire(command) as wire:
        wire.write(call("get", {}, _meta={"traceparent": "x"}) + b"\n")
        assert json.loads(wire.line())["id"] == 1
        ended = wire.close()
    assert (ended.code, ended.rest, collector.spans) == (0, b"", [])
    assert (b"pip install 'mcp-abridge[otel]'" in ended.stderr) == bool(options)
    assert options or not ended.stderr


def test_without_the_variables_nothing_of_it_is_loaded() -> None:
    with Wire([sys.executable, "-X", "importtime", *wrapped(PLAIN)[1:]]) as wire:
        for request in (line(id=0, method="tools/list"), call("get", {})):
            wire.write(request + b"\n")
            wire.line()
        stderr = wire.close().stderr
    assert b"mcp_abridge.session.requests" in stderr
    assert b"opentelemetry" not in stderr
    assert b"mcp_abridge.transports.telemetry" not in stderr


def test_an_import_that_hangs_delays_the_first_call_alone(monkeypatch: pytest.MonkeyPatch) -> None:
    over = Event()
    monkeypatch.setattr(telemetry, "_LOADING", 0.3)
    monkeypatch.setattr(telemetry, "configured", lambda _: not over.wait(60))
    begin = telemetry.Telemetry(Log(), lambda: "1").tracer("http://a")
    waits: list[float] = []
    for _ in range(2):
        start = monotonic()
        assert begin("tools/call", "get", b"1", Raw(b"{}"), None) is None
        waits.append(monotonic() - start)
    over.set()
    assert 0.2 < waits[0] < 30
    assert waits[1] < 0.2
