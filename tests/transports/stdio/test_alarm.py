"""Waits that bytes, signals or time end; log lines with `poll`, and without as in tests/faults."""

import os
import signal
import threading
import time

import pytest
from mcp_abridge.transports.stdio.alarm import Alarm
from mcp_abridge.transports.stdio.sink import PollSink, Sink, ThreadSink

from tests.transports.processes import fill

SECONDS = 60.0


def test_bytes_end_a_wait_in_order_and_time_ends_it_without() -> None:
    alarm = Alarm()
    for byte, seconds in ((1, 0.1), (200, 0.2)):
        threading.Timer(seconds, alarm.ring, (byte,)).start()
    assert [alarm.wait(SECONDS), alarm.wait(None)] == [1, 200]
    start = time.monotonic()
    assert alarm.wait(0.3) is None
    assert 0.25 < time.monotonic() - start < SECONDS
    assert alarm.wait(-1.0) is None


def test_a_signal_ends_a_wait() -> None:
    alarm, before = Alarm(), signal.getsignal(signal.SIGUSR1)
    try:
        alarm.heed([signal.SIGUSR1])
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        assert alarm.wait(SECONDS) == signal.SIGUSR1
    finally:
        signal.signal(signal.SIGUSR1, before)


@pytest.mark.parametrize("kind", [PollSink, ThreadSink])
def test_a_log_that_nobody_reads_takes_no_more_and_makes_nobody_wait(
    kind: type[PollSink | ThreadSink], pipe: tuple[int, int]
) -> None:
    reading, writing = pipe
    before = fill(writing)
    sink: Sink = kind(writing)
    line = b"x" * 1000
    accepted = 0
    while count := sink.write(line):
        accepted += count
        assert accepted < 1 << 20
    sink.wait(0.01)
    assert sink.write(line) == 0
    output = b""
    while len(output) < before + accepted:
        output += os.read(reading, 1 << 16)
    sink.flush(SECONDS)
    assert sink.write(b"more\n") == 5
    sink.flush(SECONDS)
    assert os.read(reading, 100) == b"more\n"
