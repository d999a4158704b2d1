"""`python -m tests.soak`: makes 100,000 calls in each of the four ways, and says what grows.

Prints the footprint of the proxy's process whenever nothing goes on. Ends with 1 if anything grows,
and with an error if any call has not the answer that it must have. Linux only.
"""

import argparse
import os
import platform
import sys

from tests.soak.run import Plan, run
from tests.soak.ways import WAYS


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.soak", description=__doc__)
    add = parser.add_argument
    add("--calls", type=int, default=100_000, help="in each way (default: 100,000)")
    add("--seconds", type=float, default=3600.0, help="of each way at most (default: 3600)")
    add("--way", choices=list(WAYS), action="append", help="one way only; may be given again")
    options = parser.parse_args()
    grows = False
    for way in options.way or list(WAYS):
        print(WAYS[way])
        _, findings = run(way, Plan(options.calls, options.seconds), print)
        print("; ".join(findings) or "memory and descriptors flat", end="\n\n")
        grows |= bool(findings)
    machine = f"{platform.system()} {platform.machine()}, {os.cpu_count()} cores"
    print(f"{machine}, Python {platform.python_version()}")
    return 1 if grows else 0


if __name__ == "__main__":
    sys.exit(main())
