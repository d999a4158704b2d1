"""What is not answered in time is told of once, in the order in which its time is up."""

import queue
import threading
from time import monotonic

from proxy.transports.stdio.relay import DeadlineThread
from tests.threadless import threadless

SECONDS = 60.0


def test_one_thread_tells_of_what_is_late_and_not_of_what_was_answered() -> None:
    late: queue.Queue[bytes] = queue.Queue()
    before = threading.active_count()
    deadlines = DeadlineThread(late.put)
    assert threading.active_count() == before
    times = {b"a": 0.2, b"b": 0.05, b"c": 3600.0, b"d": 0.1, b"e": float("inf"), b"f": -1.0}
    for token, seconds in times.items():
        deadlines.add(token, seconds)
    deadlines.settle(b"d")
    deadlines.settle(b"nobody's")
    assert threading.active_count() == before + 1
    assert [late.get(timeout=SECONDS) for _ in range(3)] == [b"f", b"b", b"a"]
    assert late.empty()


def test_where_no_thread_was_to_be_had_the_next_question_has_one_for_both() -> None:
    late: queue.Queue[bytes] = queue.Queue()
    deadlines = DeadlineThread(late.put)
    with threadless():
        deadlines.add(b"a", 0.0)
    deadlines.add(b"b", 0.01)
    assert [late.get(timeout=SECONDS) for _ in range(2)] == [b"a", b"b"]


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
    deadlines.add(b"c", SECONDS)
    deadlines.wait(0.01)
    assert monotonic() - began < SECONDS / 2


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
