"""What a process holds: memory, descriptors, threads, children (Linux)."""

import os
import threading
from pathlib import Path
from statistics import median
from typing import Self

from msgspec import Struct

from tests.faults.processes import children, command_line

GLANCE = 0.1  # seconds between two looks


class Footprint(Struct, frozen=True):
    """What it holds: memory in MB, its own and its workers' resident, its own proportional."""

    resident: float
    proportional: float
    workers: float
    descriptors: int
    threads: int
    children: int


def footprint(pid: int, servers: str | None = None) -> Footprint:
    """Look at a process; children with `servers` in their command line are no workers of it."""
    own = Path(f"/proc/{pid}")
    there = children(pid)
    at_work = [child for child in there if servers is None or servers not in command_line(child)]
    return Footprint(
        resident=_kilobytes(own / "status", "VmRSS:") / 1000,
        proportional=_kilobytes(own / "smaps_rollup", "Pss:") / 1000,
        workers=sum(_kilobytes(Path(f"/proc/{each}/status"), "VmRSS:") for each in at_work) / 1000,
        descriptors=len(os.listdir(own / "fd")),
        threads=len(os.listdir(own / "task")),
        children=len(there),
    )


def _kilobytes(file: Path, word: str) -> int:
    """Return a figure of a file, in thousands of bytes; 0 where the process has just ended."""
    try:
        lines = file.read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return next((int(line.split()[1]) * 1024 // 1000 for line in lines if line.startswith(word)), 0)


class Watching:
    """Looks at a process all the time, in a thread."""

    def __init__(self, pid: int, servers: str) -> None:
        self.pid = pid
        self.servers = servers
        self.over = threading.Event()
        self.lock = threading.Lock()
        self.seen: list[Footprint] = []
        self.thread = threading.Thread(target=self._look, daemon=True)

    def __enter__(self) -> Self:
        self.thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.over.set()
        self.thread.join()

    def _look(self) -> None:
        while not self.over.wait(GLANCE):
            try:
                found = footprint(self.pid, self.servers)
            except (FileNotFoundError, ProcessLookupError):
                return
            with self.lock:
                self.seen.append(found)

    def taken(self) -> Footprint:
        """Return the medians of what was seen since the last time."""
        with self.lock:
            seen, self.seen = self.seen, []
        seen = seen or [footprint(self.pid, self.servers)]
        medians = {
            name: median(getattr(each, name) for each in seen)
            for name in Footprint.__struct_fields__
        }
        for name in ("descriptors", "threads", "children"):
            medians[name] = round(medians[name])
        return Footprint(**medians)
