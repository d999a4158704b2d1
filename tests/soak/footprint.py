"""Memory, descriptors, threads and children of a process (Linux)."""

import os
from pathlib import Path

from msgspec import Struct

from tests.faults.processes import children, command_line


class Footprint(Struct, frozen=True):
    """`resident` is its memory in MB, `worker` is that of its largest worker."""

    resident: float
    worker: float
    descriptors: int
    threads: int
    children: int


def footprint(pid: int, servers: str | None = None) -> Footprint:
    """Look at a process; children with `servers` in their command line are no workers of it."""
    own = Path(f"/proc/{pid}")
    there = children(pid)
    at_work = [child for child in there if servers is None or servers not in command_line(child)]
    sizes = [_kilobytes(Path(f"/proc/{each}/status"), "VmRSS:") for each in at_work]
    return Footprint(
        resident=_kilobytes(own / "status", "VmRSS:") / 1000,
        worker=max(sizes, default=0) / 1000,
        descriptors=len(os.listdir(own / "fd")),
        threads=len(os.listdir(own / "task")),
        children=len(there),
    )


def _kilobytes(file: Path, word: str) -> int:
    """Return a figure of a file, in thousands of bytes; 0 if the process has just ended."""
    try:
        lines = file.read_text().splitlines()
    except (FileNotFoundError, ProcessLookupError, PermissionError):
        return 0
    return next((int(line.split()[1]) * 1024 // 1000 for line in lines if line.startswith(word)), 0)
