"""Requests that wait for their answers: found by exchange and id, forgotten once, bounded."""

import pytest

from proxy.session import inflight
from proxy.session.inflight import InFlight, PendingRequest
from tests.given import rule


def plain(id: bytes, exchange: bytes = b"") -> PendingRequest:
    return PendingRequest(exchange, id, "ping")


def ruled(id: bytes, exchange: bytes = b"") -> PendingRequest:
    return PendingRequest(exchange, id, "tools/call", "get", rule("max_bytes: 1000"))


def test_a_request_is_found_by_its_exchange_and_id_until_it_was_answered() -> None:
    made = InFlight(resumable=False)
    one, other = ruled(b"1", b"a:"), plain(b"1", b"b:")
    made.add(one)
    made.add(other)
    assert (made.find(b"a:1"), made.find(b"b:1"), made.find(b"1")) == (one, other, None)
    assert made.answer(b"a:1") is one
    assert made.answer(b"a:1") is None


def test_those_are_counted_whose_responses_must_be_looked_into() -> None:
    made = InFlight(resumable=False)
    for pending in (plain(b"1"), ruled(b"2"), ruled(b"2"), plain(b"2"), ruled(b"3")):
        made.add(pending)
    assert made.watched == 1
    made.retire(b"1")
    made.retire(b"3")
    made.retire(b"3")
    assert made.watched == 0


def test_where_answers_come_again_a_request_of_interest_is_remembered() -> None:
    made = InFlight(resumable=True)
    made.add(ruled(b"1"))
    made.add(plain(b"2"))
    first = made.answer(b"1")
    assert first is not None
    assert not first.again
    for _ in range(2):
        once_more = made.answer(b"1")
        assert once_more is not None
        assert once_more.again
    made.answer(b"2")
    assert made.answer(b"2") is None


def test_a_new_request_goes_before_one_that_was_answered_with_its_id() -> None:
    made = InFlight(resumable=True)
    made.add(ruled(b"1"))
    made.answer(b"1")
    new = plain(b"1")
    made.add(new)
    assert made.find(b"1") is new
    made.retire(b"1")
    assert made.find(b"1") is None


def test_of_a_held_call_the_server_owes_no_answer() -> None:
    made = InFlight(resumable=True)
    sent, held = ruled(b"1"), ruled(b"2")
    held.probe = b"ours"
    made.add(sent)
    made.add(held)
    assert [made.awaited(id) for id in (b"1", b"2", b"3")] == [sent, None, None]
    made.answer(b"1")
    assert made.awaited(b"1") is None


def test_the_oldest_is_forgotten_where_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflight, "_MOST", 2)
    monkeypatch.setattr(inflight, "_ANSWERED", 1)
    made = InFlight(resumable=True)
    for id in (b"1", b"2", b"3"):
        made.add(ruled(id))
    assert [made.find(id) is None for id in (b"1", b"2", b"3")] == [True, False, False]
    assert made.watched == 2
    made.answer(b"2")
    made.answer(b"3")
    assert [made.find(id) is None for id in (b"2", b"3")] == [True, False]


def test_what_is_let_go_is_all_or_an_exchange_or_some_of_it() -> None:
    made = InFlight(resumable=False)
    pendings = [ruled(b"1", b"a:"), ruled(b"2", b"a:"), ruled(b"1", b"b:"), ruled(b"1", b"c:")]
    for pending in pendings:
        made.add(pending)
    assert made.only() is None
    assert made.let_go(b"a:", [b"2", b"9"]) == [pendings[1]]
    assert made.let_go(b"a:") == [pendings[0]]
    assert made.let_go(b"b:") == [pendings[2]]
    assert made.only() == b"c:1"
    assert made.let_go() == [pendings[3]]
    assert made.watched == 0


def test_answered_requests_that_were_long_are_not_remembered_without_bound() -> None:
    made = InFlight(resumable=True)
    for number in range(10):
        pending = ruled(b"%d" % number)
        pending.size = 400_000
        made.add(pending)
        made.answer(b"%d" % number)
    assert [number for number in range(10) if made.answer(b"%d" % number)] == [8, 9]
    huge = ruled(b"huge")
    huge.size = 100_000_000
    made.add(huge)
    made.answer(b"huge")
    assert made.answer(b"huge") is not None, "the last one is"
    assert made.answer(b"9") is None
    for _ in range(100):
        again = ruled(b"again")
        again.size = 400_000
        made.add(again)
        made.answer(b"again")
    other = ruled(b"other")
    made.add(other)
    made.answer(b"other")
    assert made.answer(b"again") is not None


def test_where_too_many_wait_what_a_rule_withholds_is_forgotten_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("proxy.session.inflight._MOST", 3)
    made = InFlight(resumable=False)
    secret = ruled(b"secret")
    secret.rule = rule("on_failure: refuse")
    made.add(secret)
    for number in range(10):
        made.add(ruled(b"%d" % number))
    assert [made.find(id) is not None for id in (b"secret", b"7", b"8", b"9")] == [
        True,
        False,
        True,
        True,
    ]
