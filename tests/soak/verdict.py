"""Says by what was seen during a run whether the process grows."""

import os
from collections.abc import Sequence
from statistics import median

from msgspec import Struct

from tests.soak.footprint import Footprint

KILOBYTES = 50.0
"""By how many kB the memory may grow with 1,000 calls: 50 bytes a call, less than most objects."""

SPARE = 4000.0
"""How many kB the second half may add whatever its length: what an allocator may hold on to."""

COUNTED = ("descriptors", "threads", "children")
POOLS = 16 + (os.cpu_count() or 1)
"""How many threads there may be whatever there were: pools begin theirs when they need them."""


class Row(Struct, frozen=True):
    """What was seen after so many calls; `rest` is true where nothing was going on."""

    calls: int
    seconds: float
    seen: Footprint
    rest: bool = False


def findings(first: Sequence[Row], second: Sequence[Row], spare: float = SPARE) -> list[str]:
    """Return what grows over the second half of a run, in words.

    Memory goes by a fit through the rows of that half; descriptors, threads and children by what
    there is at rest at its end, compared with the end of the first half.
    """
    busy = [row for row in second if not row.rest]
    calls = [row.calls / 1000 for row in busy]
    most = max(KILOBYTES, spare / (calls[-1] - calls[0]))
    found = []
    for name, sizes in (
        ("resident memory", [row.seen.resident for row in busy]),
        ("the memory of workers", [row.seen.workers for row in busy]),
    ):
        growth = 1000 * slope(calls, sizes)
        if growth > most:
            found.append(f"{name} grows by {growth:.0f} kB with 1,000 calls, {most:.0f} may be")
    return found + left(second[-1].seen, first[-1].seen)


def left(now: Footprint, then: Footprint) -> list[str]:
    """Return what there is more of than there was; threads of pools aside."""
    counts = {name: (getattr(now, name), getattr(then, name)) for name in COUNTED}
    return [
        f"{after} {name} are left, {before} there were"
        for name, (after, before) in counts.items()
        if after > max(before, POOLS if name == "threads" else 0)
    ]


def slope(x: Sequence[float], y: Sequence[float]) -> float:
    """Return the median of the slopes between any two points, which no single one can spoil.

    >>> slope([0, 1, 2, 3, 4], [5, 7, 9, 11, 100])
    2.0
    """
    pairs = [(b, a) for b in range(len(x)) for a in range(b) if x[b] > x[a]]
    return median((y[b] - y[a]) / (x[b] - x[a]) for b, a in pairs)
