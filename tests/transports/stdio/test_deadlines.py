"""What is not answered in time is told of once, in the order in which its time is up."""

import queue
import threading
from time import monotonic

import pytest

from proxy.transports.stdio.relay import DeadlineThread
from tests.threadless import threadless

SECONDS = 60.0


def test_what_waits_longest_is_told_of_last() -> None:
    late: queue.Queue[bytes] = queue.Queue()
    deadlines = DeadlineThread(late.put)
    for token, seconds in ((b"a", 0.2), (b"b", 0.05), (b"c", 3600.0), (b"d", 0.1)):
        deadlines.add(token, seconds)
    assert [late.get(timeout=SECONDS) for _ in range(3)] == [b"b", b"d", b"a"]
    assert late.empty()


@pytest.mark.parametrize("seconds", [0.0, -1.0])
def test_no_time_at_all_is_over_at_once(seconds: float) -> None:
    late: queue.Queue[bytes] = queue.Queue()
    DeadlineThread(late.put).add(b"a", seconds)
    assert late.get(timeout=SECONDS) == b"a"


def test_time_without_end_holds_nobody_else_up() -> None:
    late: queue.Queue[bytes] = queue.Queue()
    deadlines = DeadlineThread(late.put)
    deadlines.add(b"a", float("inf"))
    deadlines.add(b"b", 0.01)
    assert late.get(timeout=SECONDS) == b"b"


def test_where_no_thread_was_to_be_had_the_next_question_has_one_for_both() -> None:
    late: queue.Queue[bytes] = queue.Queue()
    deadlines = DeadlineThread(late.put)
    with threadless():
        deadlines.add(b"a", 0.0)
    deadlines.add(b"b", 0.01)
    assert [late.get(timeout=SECONDS) for _ in range(2)] == [b"a", b"b"]


def test_what_was_answered_is_not_told_of() -> None:
    late: queue.Queue[bytes] = queue.Queue()
    deadlines = DeadlineThread(late.put)
    deadlines.add(b"a", 0.05)
    deadlines.add(b"b", 0.1)
    deadlines.settle(b"a")
    deadlines.settle(b"nobody's")
    assert late.get(timeout=SECONDS) == b"b"
    assert late.empty()


def test_one_thread_is_enough() -> None:
    late: queue.Queue[bytes] = queue.Queue()
    before = threading.active_count()
    deadlines = DeadlineThread(late.put)
    assert threading.active_count() == before
    for number in range(100):
        deadlines.add(b"%d" % number, 0.01)
    assert len({late.get(timeout=SECONDS) for _ in range(100)}) == 100
    assert threading.active_count() == before + 1


def test_whoever_waits_for_all_answers_waits_for_what_comes_of_late_ones() -> None:
    done: list[bytes] = []
    go = threading.Event()

    def late(token: bytes) -> None:
        assert go.wait(SECONDS)
        done.append(token)

    deadlines = DeadlineThread(late)
    deadlines.wait(SECONDS)
    deadlines.add(b"a", 0.0)
    threading.Timer(0.05, go.set).start()
    deadlines.wait(SECONDS)
    assert done == [b"a"]
    deadlines.add(b"b", SECONDS)
    threading.Timer(0.05, deadlines.settle, (b"b",)).start()
    began = monotonic()
    deadlines.wait(SECONDS)
    assert monotonic() - began < SECONDS / 2


def test_nobody_waits_for_ever() -> None:
    deadlines = DeadlineThread(lambda token: None)
    deadlines.add(b"a", SECONDS)
    deadlines.wait(0.01)


def test_calls_are_checked_at_the_start_and_after_the_time_that_the_check_names() -> None:
    late: queue.Queue[bytes] = queue.Queue()
    checks: queue.Queue[int] = queue.Queue()
    times = iter([0.01, 0.05])

    def check() -> float:
        checks.put(1)
        return next(times, SECONDS)

    deadlines = DeadlineThread(late.put, check)
    deadlines.start()
    deadlines.start()
    assert [checks.get(timeout=SECONDS) for _ in range(3)] == [1, 1, 1]
    # The thread now waits for a minute; a token is due before.
    deadlines.add(b"a", 0.01)
    assert late.get(timeout=SECONDS) == b"a"
