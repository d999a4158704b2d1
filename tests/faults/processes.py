"""The processes of this machine: who there is, what each holds, and waiting for what they do."""

import os
import re
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

if sys.platform == "win32":
    from tests.windows.system import hold, snapshot

SECONDS = 60.0
LIFE = 6.0  # seconds in which a group must have ended, whatever happened
STILL = 1.0  # seconds without a change after which there will be none


class Process:
    """A process of ours, and what it holds, which is seen on Linux alone."""

    def __init__(self, process: "subprocess.Popen[bytes]") -> None:
        self.process = process
        self.pid = process.pid

    @property
    def children(self) -> set[int]:
        below = set(children(self.pid))
        if sys.platform == "win32":
            hold(below)
        return below

    @property
    def descriptors(self) -> int:
        if sys.platform != "linux":
            return 0
        return len(os.listdir(f"/proc/{self.pid}/fd"))

    @property
    def threads(self) -> int:
        if sys.platform != "linux":
            return 0
        return len(os.listdir(f"/proc/{self.pid}/task"))

    @contextmanager
    def in_memory(self, most: int) -> Iterator[None]:
        """See to it that what happens costs at most so many bytes more than there were before."""
        if sys.platform != "linux":
            yield
            return
        Path(f"/proc/{self.pid}/clear_refs").write_text("5")
        before = memory(self.pid, "VmRSS")
        yield
        cost = memory(self.pid, "VmHWM") - before
        assert cost <= most, f"it cost {cost >> 20} MB of memory, {most >> 20} at most were allowed"


def memory(pid: int, what: str) -> int:
    """Return a figure of a process's memory, in bytes (Linux); `what` is its name in /proc."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(rf"{what}:\s+(\d+)", status)[0]) << 10


def written_by(pid: int) -> int:
    return int(re.findall(r"wchar: (\d+)", Path(f"/proc/{pid}/io").read_text())[0])


def processes() -> list[tuple[int, int, int]]:
    """Return the number, parent and group of every process that is no zombie.

    On Windows, each is a group of its own.
    """
    if sys.platform == "win32":
        return [(pid, parent, pid) for pid, parent in snapshot()]
    if not Path("/proc/self/stat").exists():
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat="], capture_output=True, check=True, text=True
        )
        rows = [line.split() for line in listed.stdout.splitlines()]
        return [(int(p), int(q), int(g)) for p, q, g, state in rows if state[0] != "Z"]
    table = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if state != "Z":
                table.append((int(entry.name), int(parent), int(group)))
    return table


def descendants(of: int) -> set[int]:
    """Return the children of a process, theirs, and so on."""
    parents = {pid: parent for pid, parent, _ in processes()}
    below: set[int] = set()
    while more := {pid for pid, parent in parents.items() if parent in {of, *below}} - below:
        below |= more
    if sys.platform == "win32":
        hold(below)
    return below


def children(of: int) -> list[int]:
    numbers = [pid for pid, parent, _ in processes() if parent == of]
    if sys.platform == "win32":
        hold({*numbers})
    return numbers


def command_line(pid: int) -> str:
    """Return the command of a process, its words apart; nothing of one that is no more."""
    if not Path("/proc/self/cmdline").exists():
        listed = ["ps", "-o", "command=", "-p", str(pid)]
        return subprocess.run(listed, capture_output=True, text=True, check=False).stdout
    try:
        raw = Path(f"/proc/{pid}/cmdline").read_bytes()
    except (FileNotFoundError, ProcessLookupError):
        return ""
    return raw.replace(b"\0", b" ").decode(errors="replace")


def marked(marker: str) -> set[int]:
    """Return the processes that have `marker` in their command line, sidecars left aside."""
    lines = {pid: command_line(pid) for pid, _, _ in processes()}
    return {pid for pid, line in lines.items() if marker in line and " serve " not in line}


def until(
    condition: Callable[[], bool], seconds: float = SECONDS, detail: Callable[[], str] = str
) -> None:
    end = time.monotonic() + seconds
    while not condition():
        assert time.monotonic() < end, f"not within {seconds:g} seconds: {detail()}"
        time.sleep(0.01)


def still(figure: Callable[[], int]) -> int:
    """Wait until a figure has not moved for a second, and return it."""
    last, since = figure(), time.monotonic()
    while time.monotonic() - since < STILL:
        now = figure()
        if now != last:
            last, since = now, time.monotonic()
        time.sleep(0.01)
    return last
