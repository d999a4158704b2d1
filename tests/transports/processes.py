"""Processes that are alive or end, and pipes that are full."""

import os
from contextlib import suppress

from tests.faults.processes import processes, until


def alive(pid: int) -> bool:
    """Return True for a process that is no zombie."""
    return pid in {each for each, _, _ in processes()}


def wait_gone(pid: int) -> None:
    """Wait until a process has ended."""
    until(lambda: not alive(pid))


def fill(descriptor: int) -> int:
    """Write until a pipe takes no more; return how much that was."""
    os.set_blocking(descriptor, False)
    filled = 0
    with suppress(BlockingIOError):
        while True:
            filled += os.write(descriptor, b"." * 1024)
    os.set_blocking(descriptor, True)
    return filled
