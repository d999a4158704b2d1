"""The table that is printed: medians, ratios, and by how much a target is met or missed."""

import os
import platform
from collections.abc import Sequence
from statistics import median

from tests.benchmarks.kinds import Leg, Target
from tests.benchmarks.measure import Figures

HEAD = ("leg", "direct", "wrapped", "ratio (min to max)", "target", "")


def row(leg: Leg, figures: Figures) -> tuple[str, ...]:
    ratios = figures.ratios
    spread = f"×{median(ratios):.2f} ({min(ratios):.2f} to {max(ratios):.2f})" if ratios else ""
    return (
        leg.name,
        quantity(median(figures.direct), leg.unit) if figures.direct else "",
        quantity(median(figures.wrapped), leg.unit) if figures.wrapped else "",
        spread,
        aim(leg.target, leg.unit) if leg.target else "",
        "; ".join(filter(None, (verdict(leg, figures), figures.note))),
    )


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


def verdict(leg: Leg, figures: Figures) -> str:
    if leg.target is None or not figures.wrapped:
        return ""
    of, bound = leg.target.of, leg.target.bound
    measured = figures.added if of == "added" else median(figures.wrapped)
    measured = median(figures.ratios) if of == "ratio" else measured
    sign = "-" if measured < 0 else "+"
    added = f" ({sign}{quantity(abs(measured), leg.unit)})" if of == "added" else ""
    excess = 1 - measured / bound if leg.target.least else measured / bound - 1
    return f"met{added}" if excess < 0.005 else f"MISSED by {excess:.0%}{added}"


def aim(target: Target, unit: str) -> str:
    sign = ">=" if target.least else "<="
    if target.of == "ratio":
        return f"{sign} ×{target.bound:g}"
    return f"{sign} {'+' * (target.of == 'added')}{quantity(target.bound, unit)}"


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
