"""The table that is printed: medians and ratios."""

import os
import platform
from collections.abc import Sequence
from statistics import median

from tests.benchmarks.kinds import Leg
from tests.benchmarks.measure import Figures

HEAD = ("leg", "direct", "wrapped", "ratio (min to max)", "")


def row(leg: Leg, figures: Figures) -> tuple[str, ...]:
    ratios = figures.ratios
    spread = f"×{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else ""
    sides = (
        quantity(median(side), leg.unit) if side else ""
        for side in (figures.direct, figures.wrapped)
    )
    return (leg.name, *sides, spread, figures.note)


def text(
    rows: Sequence[tuple[str, ...]], head: tuple[str, ...] = HEAD, right: range = range(1, 3)
) -> str:
    """Lay rows out under the head, the columns `right` with their numbers to the right."""
    lines = [head, *rows]
    widths = [max(len(line[column]) for line in lines) for column in range(len(head))]
    aligned = [
        "  ".join(
            cell.rjust(width) if column in right else cell.ljust(width)
            for column, (cell, width) in enumerate(zip(line, widths, strict=True))
        ).rstrip()
        for line in lines
    ]
    return "\n".join([aligned[0], "-" * len(aligned[0]), *aligned[1:]])


def machine(load: float) -> str:
    cores = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    return f"{cores} (load at the start: {load:.1f}), Python {platform.python_version()}"


def quantity(number: float, unit: str) -> str:
    """Write a number with its unit, in three digits or so.

    >>> quantity(0.0412, "s"), quantity(0.000051, "s"), quantity(41234.5, "calls/s")
    ('41.2 ms', '51.0 µs', '41,234 calls/s')
    """
    if unit == "calls/s":
        return f"{number:,.0f} calls/s"
    if unit == "MB":
        return f"{number:.1f} MB"
    if number < 0.001:
        return f"{number * 1e6:.1f} µs"
    return f"{number * 1e3:.1f} ms" if number < 0.1 else f"{number * 1e3:.0f} ms"
