"""`python -m tests.benchmarks`: measures every leg, or some, and prints the table.

Ends with 1 where a leg could not be measured; a missed target is a finding, no failure.
"""

import argparse
import os
import sys
import time
from pathlib import Path

import msgspec

from tests.benchmarks import table
from tests.benchmarks.legs import LEGS
from tests.benchmarks.measure import Figures

SECONDS = 5.0
QUICK_SECONDS = 0.8


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    add = parser.add_argument
    add("-k", metavar="LEG", action="append", help="only legs with this in their name")
    add("--quick", action="store_true", help="a minute in all, and less certain")
    add("--json", type=Path, metavar="FILE", help="write every pair that was measured")
    chosen = parser.parse_args()
    wanted = [leg for leg in LEGS if not chosen.k or any(word in leg.name for word in chosen.k)]
    if not wanted:
        parser.error(f"no leg has that in its name; there are: {', '.join(x.name for x in LEGS)}")
    seconds = QUICK_SECONDS if chosen.quick else SECONDS
    rows: list[tuple[str, ...]] = []
    measured: dict[str, Figures] = {}
    failures = 0
    began, load = time.monotonic(), os.getloadavg()[0]
    for leg in wanted:
        progress(f"{leg.name} ...")
        try:
            figures = leg.measure(leg, seconds)
        except Exception as problem:
            failures += 1
            rows.append((leg.name, "", "", "", "", f"NOT MEASURED: {cause(problem)}"))
        else:
            measured[leg.name] = figures
            rows.append(table.row(leg, figures))
    progress("")
    print(table.text(rows))
    machine = table.machine(load)
    print(f"\n{machine}; {time.monotonic() - began:.0f} s")
    if chosen.json:
        chosen.json.write_bytes(msgspec.json.encode({"machine": machine, "legs": measured}))
    return 1 if failures else 0


def cause(problem: BaseException) -> str:
    """Return what went wrong, out of the groups that task groups make of it."""
    while isinstance(problem, BaseExceptionGroup):
        problem = problem.exceptions[0]
    # Of what a process has said, the end mostly says what it was.
    first, *more = str(problem).splitlines() or [""]
    return f"{type(problem).__name__}: {first}{' ... ' + more[-1].strip() if more else ''}"


def progress(said: str) -> None:
    """Show what is being measured, where a person is looking."""
    if sys.stderr.isatty():
        print(f"\r\033[K{said}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
