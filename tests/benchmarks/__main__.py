"""`python -m tests.benchmarks`: measures every leg, or some, and prints the table.

Ends with 1 if a leg could not be measured.
"""

import argparse
import os
import sys
import time

from tests.benchmarks import table
from tests.benchmarks.legs import LEGS

SECONDS = 5.0
QUICK_SECONDS = 0.8


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.benchmarks", description=__doc__)
    add = parser.add_argument
    add("-k", metavar="LEG", action="append", help="only legs with this in their name")
    add("--quick", action="store_true", help="a minute in all, and less certain")
    options = parser.parse_args()
    legs = [leg for leg in LEGS if not options.k or any(word in leg.name for word in options.k)]
    if not legs:
        parser.error(f"no leg has that in its name; there are: {', '.join(x.name for x in LEGS)}")
    seconds = QUICK_SECONDS if options.quick else SECONDS
    rows: list[tuple[str, ...]] = []
    failures = 0
    start, load = time.monotonic(), os.getloadavg()[0]
    for leg in legs:
        print(f"{leg.name} ...", file=sys.stderr, flush=True)
        try:
            rows.append(table.row(leg, leg.measure(leg, seconds)))
        except Exception as problem:
            failures += 1
            rows.append((leg.name, "", "", "", f"NOT MEASURED: {problem}"))
    print(table.text(rows))
    print(f"\n{table.machine(load)}; {time.monotonic() - start:.0f} s")
    return 1 if failures else 0


if __name__ == "__main__":
    sys.exit(main())
