"""What is done within a time is done once, also where no thread begins."""

import _thread
import threading
import time

import pytest

from proxy.transports.stdio import relay as module
from proxy.transports.stdio.relay import run_with_timeout
from tests.threadless import threadless

SECONDS = 60.0


def test_it_is_waited_for_what_is_done_in_time() -> None:
    done: list[int] = []
    run_with_timeout(SECONDS, lambda: done.append(threading.get_ident()))
    assert len(done) == 1
    assert done != [threading.get_ident()]


def test_it_is_not_waited_for_what_takes_longer() -> None:
    begun, go, done = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        go.wait(SECONDS)
        done.set()

    began = time.monotonic()
    run_with_timeout(0.5, slow)
    assert time.monotonic() - began < SECONDS / 2
    assert begun.is_set()
    assert not done.is_set()
    go.set()
    assert done.wait(SECONDS)


def test_where_no_thread_is_to_be_had_it_is_done_at_once() -> None:
    done: list[int] = []
    with threadless():
        run_with_timeout(SECONDS, lambda: done.append(threading.get_ident()))
    assert done == [threading.get_ident()]


def test_where_a_thread_ends_before_it_begins_it_is_done_all_the_same(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(module, "start_new_thread", lambda run, args: _thread.get_ident())
    done: list[int] = []
    run_with_timeout(0.1, lambda: done.append(threading.get_ident()))
    assert done == [threading.get_ident()]
