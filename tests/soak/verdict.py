"""Says by what was seen during a run whether the process grows."""

import os
from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from tests.soak.footprint import Footprint

KILOBYTES = 50.0
"""By how many kB the memory may grow with 1,000 calls: 50 bytes a call, less than most objects."""

SPARE = 8000.0
"""How many kB all parts may add whatever their length: only whole pages of what is free go back."""

COUNTED = ("descriptors", "threads", "children")
POOLS = 16 + (os.cpu_count() or 1)
"""How many threads there may be whatever there were: pools begin theirs when they need them."""

WORKERS = 6
"""How many children there may be whatever there were: workers, and a server for each client."""

PIPES = 3
"""How many descriptors a worker or a server of the pool takes."""


class Row(Struct, frozen=True):
    """The footprint after so many calls, when nothing was going on."""

    calls: int
    seconds: float
    footprint: Footprint

    def __str__(self) -> str:
        own = self.footprint
        memory = f"{own.resident:6.1f} MB and {own.worker:.1f} MB in a worker"
        counts = ", ".join(f"{getattr(own, name)} {name}" for name in COUNTED)
        return f"{self.calls:9,} calls, {self.seconds:5.0f} s: {memory}, {counts}"


def findings(rests: Sequence[Row], spare: float = SPARE) -> list[str]:
    """Return the growth over a run, in words, by the footprints whenever nothing was going on.

    Memory goes by a fit through the rests; descriptors, threads and children by the last, compared
    with the first.
    """
    calls = [row.calls / 1000 for row in rests]
    most = max(KILOBYTES, spare / (calls[-1] - calls[0]))
    problems = []
    for name, sizes in (
        ("resident memory", [row.footprint.resident for row in rests]),
        ("the memory of a worker", [row.footprint.worker for row in rests]),
    ):
        growth = 1000 * slope(calls, sizes)
        if growth > most:
            problems.append(f"{name} grows by {growth:.0f} kB with 1,000 calls, {most:.0f} may be")
    return problems + increases(rests[-1].footprint, rests[0].footprint)


def increases(now: Footprint, then: Footprint) -> list[str]:
    """Return the counts that are higher than before, in words, but for those of pools."""
    new_workers = max(0, min(now.children, WORKERS) - then.children)
    pools = {
        "threads": POOLS,
        "children": WORKERS,
        "descriptors": then.descriptors + PIPES * new_workers,
    }
    counts = {name: (getattr(now, name), getattr(then, name)) for name in COUNTED}
    return [
        f"{after} {name} are left, {before} there were"
        for name, (after, before) in counts.items()
        if after > max(before, pools[name])
    ]


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the median of the slopes between any two points, which no single one can spoil.

    >>> slope([0, 1, 2, 3, 4], [5, 7, 9, 11, 100])
    2.0
    """
    pairs = [(b, a) for b in range(len(x)) for a in range(b) if x[b] > x[a]]
    return median((y[b] - y[a]) / (x[b] - x[a]) for b, a in pairs)
