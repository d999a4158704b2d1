"""What the proxy itself answers a call, and how that is counted."""

import json

from proxy.session.counts import SessionMeter
from proxy.session.forwarding import refusal, refuse, reply
from proxy.session.inflight import PendingRequest
from proxy.session.outputs import Reply
from proxy.storage.meter import Meters
from tests.given import call, result, rule, texts
from tests.samples import PAGES
from tests.talk import Talk

CODED = """
name: coded
errors: [{recast: {cases: [{match: busy, to: {code: BUSY, message: '{text}'}}]}}]
"""


def test_a_reply_goes_back_and_is_counted_with_its_rule() -> None:
    meter = Meters()
    pending = PendingRequest(b"", b"1", "tools/call", "get", rule("name: r\nhide: true"))

    outputs = reply(SessionMeter(lambda *_: meter.of(None, None), print), pending, "hidden", b"{}")

    assert outputs == (Reply(b"{}"),)
    [row] = meter.drain()
    assert (row.tool, row.rule, row.outcome, row.calls) == ("get", "r", "hidden", 1)
    assert (row.wire_before, row.wire_after) == (0, 2)


def test_a_refusal_is_an_error_result_and_counted_as_refused() -> None:
    meter = Meters()
    tally = SessionMeter(lambda *_: meter.of(None, None), print)

    [output] = refuse(tally, PendingRequest(b"", b"7", "tools/call", "get"), "no")

    assert isinstance(output, Reply)
    assert json.loads(output.raw)["id"] == 7
    assert (texts(output.raw), result(output.raw)["isError"]) == (["no"], True)
    assert [row.outcome for row in meter.drain()] == ["refused"]


def test_a_refusal_has_the_form_that_its_rule_gives_errors_unless_the_rule_is_in_shadow() -> None:
    tally = SessionMeter(lambda *_: Meters().of(None, None), print)
    active = PendingRequest(b"", b"1", "tools/call", "get", rule(CODED))
    shadow = PendingRequest(b"", b"1", "tools/call", "get", rule(f"mode: shadow\n{CODED}"))

    coded = json.loads(texts(refusal(tally, active, "busy"))[0])
    assert coded == {"code": "BUSY", "message": "busy"}
    assert texts(refusal(tally, shadow, "busy")) == ["busy"]


def test_a_refusal_of_a_modern_request_names_its_type() -> None:
    meta = {"io.modelcontextprotocol/protocolVersion": "2026-07-28"}

    got = Talk(PAGES).replied(call("list", {"limit": 0}, _meta=meta))

    assert result(got)["resultType"] == "complete"
