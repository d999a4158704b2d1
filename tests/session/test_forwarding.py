"""What is remembered, and what is dropped, where a call goes to the server."""

from proxy.ruleset.rule import EMPTY
from proxy.session.active_rules import ActiveRules
from proxy.session.deadlines import Deadlines
from proxy.session.forwarding import Sending
from proxy.session.inflight import InFlight, PendingRequest, StrayResponses
from proxy.session.outputs import Forward
from proxy.session.probe import Ids
from tests.given import answer, call, result, rules, said
from tests.samples import ITEMS, items
from tests.talk import Talk


def test_a_call_that_makes_pages_stale_drops_their_snapshot() -> None:
    talk = Talk(
        rules("- {tools: list, response: [{paginate: {at: items, limit: 2, drop_on: [delete]}}]}")
    )
    talk.exchange(call("list"), answer(ITEMS))
    talk.exchange(call("delete", id=2), answer(said("done"), 2))

    assert result(talk.replied(call("list", {"offset": 2}, id=3)))["isError"] is True


def test_other_calls_leave_the_snapshot_alone() -> None:
    talk = Talk(
        rules("- {tools: list, response: [{paginate: {at: items, limit: 2, drop_on: [delete]}}]}")
    )
    talk.exchange(call("list"), answer(ITEMS))
    talk.exchange(call("get", id=2), answer(said("done"), 2))

    assert items(talk.replied(call("list", {"offset": 2}, id=3))) == [3, 4]


def test_a_request_that_goes_is_found_by_its_answer_and_only_a_call_is_timed() -> None:
    timing = Deadlines(5.0, lambda: 0.0)
    inflight, unwanted = InFlight(resumable=False, timing=timing), StrayResponses(Ids(), timing)
    sending = Sending(ActiveRules(lambda *_: EMPTY, print), inflight, unwanted, timing)
    unwanted.guess(b"1")
    ping, get = PendingRequest(b"", b"1", "ping"), PendingRequest(b"", b"2", "tools/call", "get")

    assert sending.send(b"{}", ping) == (Forward(b"{}"),)
    assert timing.patience() is None
    assert sending.send_call(b"[1]", get) == (Forward(b"[1]"),)

    assert (inflight.find(b"1"), inflight.find(b"2")) == (ping, get)
    assert (ping.size, get.size) == (2, 3)
    assert not unwanted.holds(b"", b"1")
    assert timing.patience() == 5.0
