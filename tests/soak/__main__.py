"""`python -m tests.soak`: makes 100,000 calls in each of the four ways, and says what grows.

Prints what the proxy's process holds over time. Ends with 1 if anything grows, and with an error
if any call has not the answer that it must have. Linux only.
"""

import argparse
import os
import platform
import sys
import time

from tests.soak.run import Plan, Ran, run, table_of
from tests.soak.ways import WAYS

CALLS = 100_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    add = parser.add_argument
    add("--calls", type=int, default=CALLS, help=f"in each way (default: {CALLS:,})")
    add("--seconds", type=float, default=3600.0, help="of each way at most (default: 3600)")
    add("--way", choices=list(WAYS), action="append", help="one way only; may be given again")
    options = parser.parse_args()
    grows = False
    for way in options.way or list(WAYS):
        start = time.monotonic()
        ran = run(way, Plan(options.calls, options.seconds), progress)
        progress("")
        print(
            f"{WAYS[way]}\n\n{table_of(ran)}\n\n{verdict(ran)}; {time.monotonic() - start:.0f} s\n"
        )
        grows |= bool(ran.findings)
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    print(f"{machine}, Python {platform.python_version()}")
    return 1 if grows else 0


def verdict(ran: Ran) -> str:
    """Return the outcome of a run in a line."""
    calls = f"{ran.rows[-1].calls:,} calls"
    if ran.findings:
        return f"{calls}: {'; '.join(ran.findings)}"
    return f"{calls}: memory and descriptors flat"


def progress(text: str) -> None:
    """Show the last row on a terminal."""
    if sys.stderr.isatty():
        print(f"\r\033[K{text}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
