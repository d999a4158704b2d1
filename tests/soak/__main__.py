"""`python -m tests.soak`: makes 100,000 calls in each of the four ways, and says what grows.

Prints what the proxy's process holds over time. Ends with 1 where anything grows, and with an error
where any call has not the answer that it must have. Linux only.
"""

import argparse
import os
import platform
import sys
import time

from tests.soak.run import Plan, Ran, run, shown
from tests.soak.ways import WAYS

CALLS = 100_000


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    add = parser.add_argument
    add("--calls", type=int, default=CALLS, help=f"in each way (default: {CALLS:,})")
    add("--seconds", type=float, default=3600.0, help="of each way at most (default: 3600)")
    add("--way", choices=list(WAYS), action="append", help="one way only; may be given again")
    chosen = parser.parse_args()
    grows = False
    for way in chosen.way or list(WAYS):
        began = time.monotonic()
        ran = run(way, Plan(chosen.calls, chosen.seconds), progress)
        progress("")
        print(f"{WAYS[way]}\n\n{shown(ran)}\n\n{verdict(ran)}; {time.monotonic() - began:.0f} s\n")
        grows |= bool(ran.findings)
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    print(f"{machine}, Python {platform.python_version()}")
    return 1 if grows else 0


def verdict(ran: Ran) -> str:
    """Say in a line what came of a run."""
    calls = f"{ran.rows[-1].calls:,} calls"
    if ran.findings:
        return f"{calls}: {'; '.join(ran.findings)}"
    return f"{calls}: memory and descriptors flat"


def progress(said: str) -> None:
    """Show what was seen last, where a person is looking."""
    if sys.stderr.isatty():
        print(f"\r\033[K{said}", end="", file=sys.stderr, flush=True)


if __name__ == "__main__":
    sys.exit(main())
