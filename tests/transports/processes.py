"""Processes that are alive or end."""

from tests.faults.processes import processes, until


def alive(pid: int) -> bool:
    """Return True for a process that is no zombie."""
    return pid in {each for each, _, _ in processes()}


def wait_gone(pid: int) -> None:
    """Wait until a process has ended."""
    until(lambda: not alive(pid))
