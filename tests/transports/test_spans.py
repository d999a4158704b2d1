"""The spans and metrics of a call, however it ends: each call has one span, and each ends once."""

import gc
import json
import re
from collections.abc import Callable
from functools import partial
from typing import Any

import pytest
from mcp_abridge.ruleset.guard import Allow
from mcp_abridge.ruleset.rule_set import RuleFile, RuleSet
from mcp_abridge.session.tracing import Arrival
from mcp_abridge.storage.meter import STAGES, Meters, Row
from mcp_abridge.transports.spans import Exports
from msgspec.structs import replace
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode, format_span_id, format_trace_id

from tests.builders import EMPTY, answer, call, document, line, rule, rules, tool_result
from tests.session.test_deadlines import DeadlineTalk
from tests.talk import Talk
from tests.transports.guarded import ScriptedGuard, querying
from tests.wrapped import ROOT

TRACE, CALLER, OUTER = "a1" * 16, "b2" * 8, "c3" * 8
PARENT = f"00-{TRACE}-{CALLER}-01"
LONG = document({"items": [{"id": number, "name": f"row {number}"} for number in range(2000)]})
BOUND = "- {name: rows, tools: get, response: [{paginate: {at: items, limit: 5}}]}"


class Traced:
    """A tracer for a talk, and what it has recorded; it traces calls of a server at `url`."""

    def __init__(self, url: str | None = None) -> None:
        self.memory, self.reader = InMemorySpanExporter(), InMemoryMetricReader()
        self.exports = Exports("1.2", [SimpleSpanProcessor(self.memory)], [self.reader])
        self.url = url

    def before(self, talk: Talk) -> Talk:
        """Trace the calls of a talk."""
        talk.session.state.tracer = partial(self.exports.begin, self.url)
        return talk

    def ended(self, kind: SpanKind = SpanKind.SERVER) -> list[ReadableSpan]:
        return [span for span in self.memory.get_finished_spans() if span.kind is kind]

    def only(self, kind: SpanKind = SpanKind.SERVER) -> dict[str, Any]:
        """Return the attributes of the only span of this kind."""
        [span] = self.ended(kind)
        return dict(span.attributes or {})

    def points(self) -> dict[tuple[Any, ...], float]:
        """Return the values of all metrics by name and values of attributes, sorted by name."""
        figures = self.reader.get_metrics_data()
        assert figures is not None
        return {
            (metric.name, *(value for _, value in sorted((point.attributes or {}).items()))): (
                getattr(point, "count", 0) + getattr(point, "value", 0)
            )
            for resource in figures.resource_metrics
            for scope in resource.scope_metrics
            for metric in scope.metrics
            for point in metric.data.data_points
        }


@pytest.fixture
def traced() -> Traced:
    return Traced()


def meta(raw: bytes) -> Any:
    return json.loads(raw)["params"].get("_meta")


def test_a_call_has_a_span_on_each_side_and_the_server_gets_the_inner_one(traced: Traced) -> None:
    talk = traced.before(Talk(rules(BOUND)))
    more = {"traceparent": PARENT, "tracestate": "x=1", "progressToken": 7}
    talk.exchange(call("get", {"a": 1}, id="one", _meta=more), answer(LONG, "one"))

    [server], [client] = traced.ended(), traced.ended(SpanKind.CLIENT)
    assert server.context is not None
    assert client.context is not None
    assert (server.name, client.name) == ("tools/call get", "tools/call get")
    assert server.parent is not None
    assert format_span_id(server.parent.span_id) == CALLER
    assert client.parent is not None
    assert client.parent.span_id == server.context.span_id
    assert format_trace_id(client.context.trace_id) == TRACE
    inner = f"00-{TRACE}-{format_span_id(client.context.span_id)}-01"
    assert meta(talk.to_server[0]) == {**more, "traceparent": inner}

    common = {
        "mcp.method.name": "tools/call",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "get",
        "jsonrpc.request.id": "one",
        "network.transport": "pipe",
    }
    assert client.attributes == common
    attributes = traced.only()
    sizes = {name: attributes.pop(f"mcp_abridge.bytes.{name}") for name in ("before", "after")}
    assert sizes == {"before": len(answer(LONG, "one")), "after": len(talk.to_client[0])}
    assert attributes.pop("mcp_abridge.bytes.visible_before") > 40_000
    assert attributes.pop("mcp_abridge.bytes.visible_after") < 1_000
    own = {"mcp_abridge.outcome": "shaped", "mcp_abridge.rule": "rows", "mcp_abridge.view": False}
    assert attributes == {**common, **own}


def test_a_view_asks_no_server(traced: Traced) -> None:
    talk = traced.before(Talk(rules("- {name: short, tools: get, max_bytes: 1000}")))
    talk.exchange(call("get", {}), answer(LONG))
    traced.memory.clear()
    talk.replied(call("get", {"view": "items[3]"}, id=2))

    assert traced.ended(SpanKind.CLIENT) == []
    attributes = traced.only()
    assert attributes["mcp_abridge.view"] is True
    assert attributes["mcp_abridge.outcome"] == "view"
    assert attributes["mcp_abridge.bytes.before"] == 0


def arrived(**headers: str) -> Arrival:
    return Arrival(headers, "10.0.0.9", "1.1", "/mcp", "abc", "2025-11-25")


def test_over_http_the_parent_is_that_of_the_message_and_the_requests_own_is_linked() -> None:
    traced = Traced("https://server.example/mcp")
    talk = traced.before(Talk())
    outer = f"00-{TRACE}-{OUTER}-01"
    for context, arrival in (
        ({}, arrived()),
        ({}, arrived(traceparent=outer)),
        ({"_meta": {"traceparent": PARENT}}, arrived(traceparent=outer)),
        ({"_meta": {"traceparent": "nonsense"}}, arrived(traceparent="nonsense")),
    ):
        talk.session.state.arrival = arrival
        talk.exchange(call("get", {}, **context), answer(tool_result("short")))
        [span] = traced.ended()[-1:]
        assert span.context is not None
        assert arrival.trace_id == format_trace_id(span.context.trace_id)

    spans = traced.ended()
    parents = [span.parent and format_span_id(span.parent.span_id) for span in spans]
    assert parents == [None, OUTER, CALLER, None]
    links = [[format_span_id(link.context.span_id) for link in span.links] for span in spans]
    assert links == [[], [], [OUTER], []]
    assert (
        dict(spans[0].attributes or {}).items()
        >= {
            "network.transport": "tcp",
            "network.protocol.name": "http",
            "network.protocol.version": "1.1",
            "client.address": "10.0.0.9",
            "mcp.session.id": "abc",
            "mcp.protocol.version": "2025-11-25",
            "mcp_abridge.route": "/mcp",
        }.items()
    )
    assert (
        dict(traced.ended(SpanKind.CLIENT)[0].attributes or {}).items()
        >= {
            "network.transport": "tcp",
            "network.protocol.name": "http",
            "server.address": "server.example",
            "server.port": 443,
        }.items()
    )


@pytest.mark.parametrize("own", [None, 5, "a", [PARENT]])
def test_a_meta_that_is_no_object_goes_on_as_it_came(own: object, traced: Traced) -> None:
    talk = traced.before(Talk())
    talk.exchange(call("get", {}, _meta=own), answer(tool_result("short")))
    assert meta(talk.to_server[0]) == own
    assert len(traced.ended()) == 1


def failing(talk: Talk) -> None:
    talk.exchange(call("get", {}), line(id=1, error={"code": -32602, "message": "no \ud800"}))


def in_error(talk: Talk) -> None:
    talk.exchange(call("get", {}), answer(tool_result("no", isError=True)))


def with_a_wrong_view(talk: Talk) -> None:
    talk.replied(call("get", {"view": 7}))


def hidden(talk: Talk) -> None:
    talk.replied(call("secret", {}))


def ended(talk: Talk) -> None:
    talk.client(call("get", {}))
    assert len(talk.session.fail_pending("the server ended")) == 1


def cancelled(talk: Talk) -> None:
    talk.client(call("get", {}))
    talk.client(line(method="notifications/cancelled", params={"requestId": 1}))


def abandoned(talk: Talk) -> None:
    talk.client(call("get", {}), b"a:")
    talk.session.forget_pending([b"a:1"])


def replaced(talk: Talk) -> None:
    talk.client(call("get", {}))
    talk.client(line(id=1, method="ping"))


def unreadable(talk: Talk) -> None:
    talk.client(call("get", {}))
    talk.server(b'{"jsonrpc":"2.0","id":1,"result":{"content":[}}')


RULES = """
- {name: short, tools: get, max_bytes: 1000}
- {name: hides, tools: secret, hide: true}
"""
ENDS: dict[Callable[[Talk], None], tuple[str, str | None]] = {
    failing: ("-32602", "untouched"),
    in_error: ("tool_error", "untouched"),
    with_a_wrong_view: ("tool_error", "refused"),
    hidden: ("-32602", "hidden"),
    ended: ("tool_error", None),
    cancelled: ("cancelled", None),
    abandoned: ("cancelled", None),
    replaced: ("cancelled", None),
    unreadable: ("", "untouched"),
}


@pytest.mark.parametrize("end", ENDS)
def test_a_call_ends_once_with_its_error(end: Callable[[Talk], None], traced: Traced) -> None:
    gc.disable()  # what is made from here on is young, and all is looked through at once
    try:
        end(traced.before(Talk(rules(RULES))))
        gc.collect(0)
    finally:
        gc.enable()

    [span] = traced.ended()
    attributes = dict(span.attributes or {})
    error, outcome = ENDS[end]
    assert attributes.get("error.type", "") == error
    assert attributes.get("mcp_abridge.outcome") == outcome
    assert (span.status.status_code is StatusCode.ERROR) == bool(error)
    assert ("rpc.response.status_code" in attributes) == error.startswith("-")
    if end is failing:
        assert span.status.description == "no \ufffd"
    clients = traced.ended(SpanKind.CLIENT)
    assert len(clients) == (end not in (with_a_wrong_view, hidden))
    assert all((each.attributes or {}).get("error.type", "") == error for each in clients)
    durations = [name for name, *_ in traced.points() if name.endswith("operation.duration")]
    assert len(durations) == len(clients) + 1


def test_a_call_without_an_answer_in_time_ends_as_that(traced: Traced) -> None:
    talk = DeadlineTalk()
    traced.before(talk)
    talk.client(call("get", {}))
    talk.wait(31)

    assert traced.only()["error.type"] == traced.only(SpanKind.CLIENT)["error.type"] == "timeout"
    assert traced.only()["mcp_abridge.outcome"] == "late"


def test_a_call_that_becomes_a_task_ends_as_it_does(traced: Traced) -> None:
    talk = traced.before(Talk(rules(BOUND)))
    talk.exchange(call("get", {}), answer({"resultType": "task", "taskId": "t"}))
    assert "mcp_abridge.outcome" not in traced.only()
    asking = line(id=2, method="tasks/get", params={"taskId": "t"})
    state = {"taskId": "t", "status": "completed", "result": LONG}
    talk.exchange(asking, answer(state, 2))
    assert len(traced.ended()) == 1


def test_what_a_guard_asks_is_of_the_trace_of_its_call(traced: Traced) -> None:
    guard = ScriptedGuard(querying(lambda _: Allow()), {})
    guarded = replace(rule("name: guarded\ntools: reindex"), guard=guard)
    talk = traced.before(Talk(RuleSet((RuleFile(name="rules.yaml", rules=(guarded,)),))))
    talk.client(call("reindex", {}, _meta={"traceparent": PARENT}))
    query = json.loads(talk.to_server[0])
    talk.server(line(id=query["id"], result=document({})))
    talk.server(answer(tool_result("done")))

    [client] = traced.ended(SpanKind.CLIENT)
    assert client.context is not None
    inner = f"00-{TRACE}-{format_span_id(client.context.span_id)}-01"
    assert [meta(raw)["traceparent"] for raw in talk.to_server] == [inner, inner]


def test_calls_and_bytes_are_counted_as_the_meter_counts_them(traced: Traced) -> None:
    meters = Meters(traced.exports.count)
    for _ in range(2):
        meters.of("github", "codex", "/a").count("list", "r", "shaped", (1_000, 100), (900, 90))
    meters.of("github", None).count("list", "r", "shadow", (1_000, 100), (900, 90))

    assert meters.drain(Row)
    assert traced.points() == {
        ("mcp_abridge.calls", "list", "shaped", "/a"): 2,
        ("mcp_abridge.calls", "list", "shadow"): 1,
        **{
            ("mcp_abridge.response.bytes", "list", *labels, stage): size
            for labels, sizes in (
                (("shaped", "/a"), (2_000, 200, 1_800, 180)),
                (("shadow",), (1_000, 1_000, 900, 900)),
            )
            for stage, size in zip(STAGES, sizes, strict=True)
        },
    }


def test_the_page_names_each_attribute_and_metric() -> None:
    traced = Traced("http://server/mcp")
    talk = traced.before(Talk(rules(RULES)))
    meters = Meters(traced.exports.count)
    talk.session.state.arrival = arrived()
    talk.exchange(call("get", {}), answer(LONG))
    failing(talk)
    for method, name in ("resources/read", "uri"), ("prompts/get", "name"):
        talk.exchange(line(id=1, method=method, params={name: "a"}), answer({}))
    meters.of(None, None, "/mcp").count_untouched("get", 7)

    page = (ROOT / "examples" / "opentelemetry.md").read_text()
    spans = traced.memory.get_finished_spans()
    names = {name for span in spans for name in span.attributes or {}}
    assert first_cells(page, "attribute") == names
    assert first_cells(page, "metric") == {name for name, *_ in traced.points()}


def first_cells(page: str, head: str) -> set[str]:
    """Return the names in the first cells of the table with this head."""
    text = page.partition(f"\n| {head} |")[2].partition("\n\n")[0]
    cells = re.findall(r"^\| (`.*?) \|", text, re.MULTILINE)
    return {name for cell in cells for name in re.findall(r"`(.+?)`", cell)}


@pytest.mark.fault(46, "inside")
def test_a_client_that_makes_up_tools_makes_a_bounded_number_of_series(traced: Traced) -> None:
    talk = traced.before(Talk(EMPTY))
    for number in range(300):
        talk.exchange(call(f"tool {number}\ud800", {}), answer(tool_result("no", isError=True)))

    series = [point for point in traced.points() if point[0] == "mcp.server.operation.duration"]
    assert 100 < len(series) <= 201
    assert traced.ended()[-1].name == "tools/call tool 299\ufffd"
