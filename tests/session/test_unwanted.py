"""Which answers of the server the client must not see."""

from proxy.session.deadlines import Deadlines
from proxy.session.inflight import StrayResponses
from proxy.session.probe import Ids


def test_nothing_is_unwanted_at_first() -> None:
    made = StrayResponses(Ids(), None)
    assert not made.possible
    assert not made.holds(b"", b"1")


def test_the_answer_to_a_question_of_our_own_is() -> None:
    ids = Ids()
    made, id = StrayResponses(ids, None), ids.new()
    assert made.possible
    held = [made.holds(b"", id), made.holds(b"e:", id), made.holds(b"", b"1")]
    assert held == [True, True, False]


def test_the_answer_to_a_call_that_was_late_is() -> None:
    timing = Deadlines(1.0, lambda: 0.0)
    made = StrayResponses(Ids(), timing)
    timing.give_up(b"e:1")
    assert made.possible
    assert (made.holds(b"e:", b"1"), made.holds(b"", b"1")) == (True, False)


def test_the_answer_to_a_request_that_was_answered_in_doubt_is_until_its_id_is_used_again() -> None:
    made = StrayResponses(Ids(), None)
    made.guess(b"e:1")
    made.guess(b"e:2")
    made.forget(b"e:1")
    made.forget(b"e:3")
    assert made.possible
    assert (made.holds(b"e:", b"1"), made.holds(b"e:", b"2")) == (False, True)


def test_a_bounded_number_of_these_is_known() -> None:
    made = StrayResponses(Ids(), None)
    for number in range(2000):
        made.guess(b"%d" % number)
    known = [made.holds(b"", b"%d" % number) for number in (0, 999, 1000, 1999)]
    assert known == [False, False, True, True]
    assert len(made.guessed) == 1000
