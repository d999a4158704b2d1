"""Requests that wait for their answers: found by exchange and id, forgotten once, bounded."""

import pytest

from proxy import inflight
from proxy.inflight import InFlight, Pending
from tests.given import rule


def plain(id: bytes, exchange: bytes = b"") -> Pending:
    return Pending(exchange, id, "ping")


def ruled(id: bytes, exchange: bytes = b"") -> Pending:
    return Pending(exchange, id, "tools/call", "get", rule("max_bytes: 1000"))


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
