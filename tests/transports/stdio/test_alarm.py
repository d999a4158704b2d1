"""Waits that bytes, signals or time end."""

import os
import signal
import threading
import time

from mcp_abridge.transports.stdio.shutdown import Alarm

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
        signal.signal(signal.SIGUSR1, lambda number, _: alarm.ring(number))
        threading.Timer(0.2, os.kill, (os.getpid(), signal.SIGUSR1)).start()
        assert alarm.wait(SECONDS) == signal.SIGUSR1
    finally:
        signal.signal(signal.SIGUSR1, before)
