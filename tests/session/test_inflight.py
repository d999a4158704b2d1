"""Requests that wait for answers: found by exchange and id, timed, forgotten once, bounded."""

import pytest

from proxy.session import inflight
from proxy.session.inflight import Deadlines, InFlight, PendingRequest, QueryIds, SuspendedCalls
from tests.given import rule


class Clock:
    now = 1000.0

    def __call__(self) -> float:
        return self.now


def plain(id: bytes, exchange: bytes = b"") -> PendingRequest:
    return PendingRequest(exchange, id, "ping")


def ruled(id: bytes, exchange: bytes = b"", size: int = 0) -> PendingRequest:
    shaping = rule("max_bytes: 1000")
    return PendingRequest(exchange, id, "tools/call", "get", shaping, size=size)


# Requests


def test_a_request_is_found_by_its_exchange_and_id_until_it_was_answered() -> None:
    requests = InFlight()
    one, other = ruled(b"1", b"a:"), plain(b"1", b"b:")
    requests.add(one)
    requests.add(other)
    assert [requests.find(slot) for slot in (b"a:1", b"b:1", b"1")] == [one, other, None]
    assert requests.answer(b"a:1") is one
    assert requests.answer(b"a:1") is None


def test_those_are_counted_whose_responses_must_be_inspected() -> None:
    requests = InFlight()
    for pending in (plain(b"1"), ruled(b"2"), ruled(b"2"), plain(b"2"), ruled(b"3")):
        requests.add(pending)
    assert requests.to_inspect == 1
    for slot in (b"1", b"3", b"3"):
        requests.retire(slot)
    assert requests.to_inspect == 0


def test_if_answers_come_again_a_request_under_a_rule_is_remembered() -> None:
    requests = InFlight(resumable=True)
    requests.add(ruled(b"1"))
    requests.add(plain(b"2"))
    answers = [requests.answer(b"1") for _ in range(3)]
    assert [each and each.is_repeat for each in answers] == [False, True, True]
    requests.answer(b"2")
    assert requests.answer(b"2") is None


def test_a_new_request_replaces_one_that_was_answered_with_its_id() -> None:
    requests = InFlight(resumable=True)
    requests.add(ruled(b"1"))
    requests.answer(b"1")
    new = plain(b"1")
    requests.add(new)
    assert requests.find(b"1") is new
    requests.retire(b"1")
    assert requests.find(b"1") is None


def test_a_held_call_is_not_at_the_server() -> None:
    requests = InFlight(resumable=True)
    sent, held = ruled(b"1"), ruled(b"2")
    held.query = b"ours"
    requests.add(sent)
    requests.add(held)
    assert [requests.at_server(slot) for slot in (b"1", b"2", b"3")] == [sent, None, None]
    requests.answer(b"1")
    assert requests.at_server(b"1") is None


def test_the_oldest_is_forgotten_if_there_are_too_many(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inflight, "_MOST_PENDING", 2)
    monkeypatch.setattr(inflight, "_MOST_ANSWERED", 1)
    requests = InFlight(resumable=True)
    for id in (b"1", b"2", b"3"):
        requests.add(ruled(id))
    assert [requests.find(id) is None for id in (b"1", b"2", b"3")] == [True, False, False]
    assert requests.to_inspect == 2
    requests.answer(b"2")
    requests.answer(b"3")
    assert [requests.find(id) is None for id in (b"2", b"3")] == [True, False]


def test_of_too_many_a_call_whose_response_is_withheld_is_forgotten_last(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(inflight, "_MOST_PENDING", 3)
    requests = InFlight()
    secret = ruled(b"secret")
    secret.rule = rule("on_failure: refuse")
    requests.add(secret)
    for number in range(10):
        requests.add(ruled(b"%d" % number))
    found = [requests.find(id) is not None for id in (b"secret", b"7", b"8", b"9")]
    assert found == [True, False, True, True]


def test_released_are_all_or_an_exchange_or_some_of_it() -> None:
    requests = InFlight()
    pendings = [ruled(b"1", b"a:"), ruled(b"2", b"a:"), ruled(b"1", b"b:"), ruled(b"1", b"c:")]
    for pending in pendings:
        requests.add(pending)
    assert requests.only() is None
    assert requests.release(b"a:", [b"2", b"9"]) == [pendings[1]]
    assert requests.release(b"a:") == [pendings[0]]
    assert requests.release(b"b:") == [pendings[2]]
    assert requests.only() == b"c:1"
    assert requests.release() == [pendings[3]]
    assert requests.to_inspect == 0


def test_answered_requests_that_were_long_are_not_remembered_without_bound() -> None:
    requests = InFlight(resumable=True)

    def answered(id: bytes, size: int) -> None:
        requests.add(ruled(id, size=size))
        requests.answer(id)

    for number in range(10):
        answered(b"%d" % number, 400_000)
    assert [number for number in range(10) if requests.answer(b"%d" % number)] == [8, 9]
    answered(b"huge", 100_000_000)
    assert requests.answer(b"huge") is not None, "the last one is"
    assert requests.answer(b"9") is None
    for _ in range(100):
        answered(b"again", 400_000)
    answered(b"other", 0)
    assert requests.answer(b"again") is not None


# Deadlines


def test_the_first_that_is_due_is_whichever_was_active_longest_ago() -> None:
    clock = Clock()
    deadlines = Deadlines(10.0, clock)
    assert deadlines.time_left() is None
    deadlines.start(b"1")
    clock.now += 4
    deadlines.start(b"2", b"token")
    times = [deadlines.time_left(slots) for slots in (None, [b"2"], [b"3"])]
    assert times == [6.0, 10.0, None]
    clock.now += 5
    deadlines.renew(b"1")
    assert (deadlines.time_left(), deadlines.expired()) == (5.0, [])
    clock.now += 5
    assert (deadlines.time_left(), deadlines.expired()) == (0.0, [b"2"])
    clock.now += 50
    assert deadlines.expired() == [b"2", b"1"]
    assert deadlines.expired([b"1", b"1", b"3"]) == [b"1"]


def test_a_call_that_starts_anew_has_its_whole_time_and_its_new_token() -> None:
    clock = Clock()
    deadlines = Deadlines(10.0, clock)
    deadlines.start(b"1", b"old")
    clock.now += 9
    deadlines.start(b"1", b"new")
    clock.now += 9
    deadlines.progress(b"old")
    assert deadlines.time_left() == 1.0
    deadlines.progress(b"new")
    assert deadlines.time_left() == 10.0


def test_requests_that_are_over_are_no_longer_timed() -> None:
    deadlines = Deadlines(10.0, Clock())
    requests = InFlight(deadlines=deadlines)
    for number in range(100):
        requests.add(ruled(b"%d" % number))
        deadlines.start(b"%d" % number, b"same")
        requests.answer(b"%d" % number)
    deadlines.stop(b"nobody's")
    assert [*deadlines._due, *deadlines._tokens, *deadlines._slots] == []


# Stray responses


def test_responses_to_queries_and_to_requests_that_the_proxy_answered_are_stray() -> None:
    requests = InFlight()
    assert not requests.strays_possible
    assert not requests.is_stray(b"", b"1")
    requests.replace_response(b"e:1")
    id = requests.queries.new()
    assert requests.strays_possible
    keys = [(b"e:", b"1"), (b"", b"1"), (b"", id), (b"e:", id)]
    assert [requests.is_stray(*key) for key in keys] == [True, False, True, True]
    requests.add(plain(b"1", b"e:"))
    assert not requests.is_stray(b"e:", b"1"), "it answers the new request"
    requests.replace_response(b"e:2")
    requests.forget_response(b"e:2")
    assert not requests.is_stray(b"e:", b"2")


def test_no_two_sessions_have_queries_of_one_prefix() -> None:
    one, other = QueryIds(), QueryIds()
    own = one.new()
    assert not other
    other.new()
    assert (one.issued(own), other.issued(own), one.within(b"x" + own)) == (True, False, True)


def test_a_bounded_number_of_replaced_responses_is_known() -> None:
    requests = InFlight()
    for number in range(2000):
        requests.replace_response(b"%d" % number)
    stray = [requests.is_stray(b"", b"%d" % number) for number in (0, 999, 1000, 1999)]
    assert stray == [False, False, True, True]


def test_a_line_without_an_id_may_be_a_response_that_is_late() -> None:
    requests = InFlight()
    requests.add(ruled(b"1"))
    requests.replace_response(b"2", expected=False)
    assert requests.only() == b"1"
    requests.replace_response(b"2", expected=True)
    assert requests.only() is None


# Suspended calls


def test_a_suspended_call_is_found_by_its_token_which_is_never_used_again() -> None:
    calls, one, other = SuspendedCalls(), plain(b"1"), plain(b"2")
    tokens = [calls.add(one), calls.add(other)]
    assert [calls.pop(token) for token in tokens] == [one, other]
    assert calls.add(one) not in tokens


def test_calls_since_a_token_are_forgotten_and_no_others() -> None:
    calls, before = SuspendedCalls(), plain(b"1")
    first = calls.add(before)
    over = calls.add(plain(b"2"))
    calls.add(plain(b"3"))
    del calls[over]
    calls.forget_since(first)
    assert calls == {first: before}
