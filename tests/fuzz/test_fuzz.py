"""The fuzzers themselves: what they say of a proxy that is right, and of ones that are broken."""

import json
from collections.abc import Callable
from typing import Any

import pytest
from mcp_abridge.session.active_rules import ActiveRules, ToolRules
from mcp_abridge.session.inflight import InFlight
from mcp_abridge.session.outputs import Outputs
from mcp_abridge.session.session import Session
from mcp_abridge.shaping import pipeline
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from msgspec.structs import replace

from tests.fuzz.__main__ import FUZZERS
from tests.fuzz.fuzzer import run
from tests.fuzz.pairs import Pair, check

# Few: CI runs each of them for five seconds.
INPUTS = {"pairs": 40, "traces": 30, "looks": 1}


@pytest.mark.parametrize("name", FUZZERS)
def test_fuzzing_has_no_findings_and_reaches_many_states(name: str) -> None:
    report = run(FUZZERS[name][0], 11, range(INPUTS[name]))

    assert report.findings == []
    assert report.inputs == INPUTS[name]
    assert len(report.states) > INPUTS[name] // 4


def test_numbers_of_json_in_a_member_of_an_object_are_those_that_came() -> None:
    content = {"data": '{"items":[' + ",".join(['{"n":1.0,"title":"some words"}'] * 20) + "]}"}
    line = {"jsonrpc": "2.0", "id": 1, "result": {"structuredContent": content}}
    rule = b"version: 1\nrules: [{tools: '*', max_bytes: 300}]"
    states = [*check(Pair(rule, json.dumps(line).encode(), b"1"))]
    assert "shaped" in str(states[0])


def shaped(change: Callable[[bytes], bytes]) -> Callable[..., ShapeResult]:
    plain = pipeline.shape

    def shape(job: ShapeJob, *more: Any) -> ShapeResult:
        result = plain(job, *more)
        return replace(result, raw=change(result.raw))

    return shape


def renumbered(raw: bytes) -> bytes:
    return raw.replace(b'"id":5.0', b'"id":5')


def twice(session: Session, raw: bytes, exchange: bytes = b"") -> Outputs:
    outputs = FROM_SERVER(session, raw, exchange)
    return outputs + outputs[-1:]


FROM_SERVER, NO_RULES = Session.from_server, ToolRules((), None, None, False)
# The fuzzer that finds it, what is broken and by what, and the rule that it is found by.
PLANTED: list[tuple[str, Any, str, Any, str]] = [
    (
        *("pairs", pipeline, "shape", shaped(lambda raw: raw.replace(b"1E5", b"1e5"))),
        "a value that is kept is spelled as it came",
    ),
    ("pairs", pipeline, "shape", shaped(renumbered), "the id keeps its spelling"),
    (
        *("pairs", pipeline, "shape", shaped(lambda raw: raw.replace(b'"text":"', b'"text":"x'))),
        "what the model sees is counted",
    ),
    ("pairs", pipeline, "shape", shaped(lambda raw: raw[:-1] + b",}"), "what is sent is JSON"),
    ("traces", Session, "fail_pending", lambda *_: (), "each request is answered"),
    ("traces", Session, "from_server", twice, "what no rule is for goes to the client as it came"),
    ("traces", InFlight, "is_stray", lambda *_: False, "no client sees a question of the proxy's"),
    ("traces", Session, "streamed", lambda *_: None, "no request is answered twice"),
    ("traces", ActiveRules, "covering", lambda *_: NO_RULES, "a hidden tool is never called"),
]


@pytest.mark.parametrize(
    ("name", "owner", "attribute", "broken", "rule"), PLANTED, ids=[each[-1] for each in PLANTED]
)
def test_a_planted_fault_is_found(
    name: str,
    owner: Any,
    attribute: str,
    broken: Any,
    rule: str,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(owner, attribute, broken)
    check = FUZZERS[name][0]
    findings = (run(check, 11, [index]).findings for index in range(1500))
    assert any(failure.startswith(rule) for each in findings for _, failure in each)
