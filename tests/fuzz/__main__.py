"""`python -m tests.fuzz`: tries random inputs and prints what they reached and found.

A line for each fuzzer: its seed, how many inputs, per second, how many distinct states or features
they reached, what took longest, and how many findings. Ends with 1 if there is one; below the line
stands what it showed. The same seed gives the same inputs: `--first` tries a finding again.
"""

import argparse
import os
import sys
from collections.abc import Sequence

from tests.fuzz.sharing import FUZZERS, shared


def main(arguments: Sequence[str] | None = None) -> int:
    """Run the fuzzers that are asked for, one after the other."""
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    add = parser.add_argument
    add("fuzzers", nargs="*", metavar="|".join(FUZZERS), help="those to run (default: all)")
    add("--seed", type=int, default=1)
    add("--first", type=int, default=0, help="the number of the first input")
    bounds = parser.add_mutually_exclusive_group()
    bounds.add_argument("--count", type=int, help="how many inputs of each")
    bounds.add_argument("--seconds", type=float, help="how long each runs")
    add("--processes", type=int, default=os.cpu_count() or 1)
    chosen = parser.parse_args(arguments)
    unknown = [name for name in chosen.fuzzers if name not in FUZZERS]
    if unknown:
        parser.error(f"unknown fuzzer {unknown[0]!r}; known: {', '.join(FUZZERS)}")
    findings = 0
    for name in chosen.fuzzers or FUZZERS:
        inputs = chosen.count if chosen.count is not None else FUZZERS[name][1]
        report = shared(name, chosen.seed, chosen.first, inputs, chosen.seconds, chosen.processes)
        print(f"{name}: seed {chosen.seed}, {report}", flush=True)
        for index, said in report.findings:
            print(f"\n#{index}: {said}\n", flush=True)
        findings += len(report.findings)
    return 1 if findings else 0


if __name__ == "__main__":
    sys.exit(main())
