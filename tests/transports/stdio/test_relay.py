"""Calls with a timeout; the relay is shown in tests/faults, through whole processes."""

import threading
import time

from mcp_abridge.transports.stdio.relay import run_with_timeout

from tests.threadless import threadless

SECONDS = 60.0


def test_a_call_with_a_timeout_is_waited_for_only_so_long() -> None:
    started, go, ended = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        started.set()
        go.wait(SECONDS)
        ended.set()

    start = time.monotonic()
    run_with_timeout(0.5, slow)
    assert time.monotonic() - start < SECONDS / 2
    assert started.is_set()
    assert not ended.is_set()
    go.set()
    assert ended.wait(SECONDS)
    run_with_timeout(SECONDS, go.clear)
    assert not go.is_set()


def test_a_call_with_a_timeout_is_made_once_without_a_thread() -> None:
    calls: list[int] = []
    with threadless():
        run_with_timeout(SECONDS, lambda: calls.append(threading.get_ident()))
    assert calls == [threading.get_ident()]
