"""`python -m tests.fuzz`: tries random inputs and prints what they reached and found.

A line for each fuzzer: its seed, how many inputs, per second, how many distinct states or features
they reached, and how many findings. Ends with 1 if there is one; its input stands below the line.
The same seed gives the same inputs: `--first` tries a finding again.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

from tests.fuzz import actions, looks, pairs
from tests.fuzz.fuzzer import Fuzzer, Report, run

# Each with the number of inputs that are tried by default.
FUZZERS: dict[str, tuple[Fuzzer, int]] = {
    "pairs": (pairs.check_one, 100_000),
    "traces": (actions.check_one, 20_000),
    "looks": (looks.check_one, 500),
}
_ENDLESS = 100_000_000  # inputs, if time is what ends them


def main(arguments: Sequence[str] | None = None) -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.fuzz", description=__doc__)
    add = parser.add_argument
    add("fuzzers", nargs="*", metavar="|".join(FUZZERS), help="those to run (default: all)")
    add("--seed", type=int, default=1)
    add("--first", type=int, default=0, help="the number of the first input")
    bounds = parser.add_mutually_exclusive_group()
    bounds.add_argument("--count", type=int, help="how many inputs of each")
    bounds.add_argument("--seconds", type=float, help="how long each runs")
    add("--processes", type=int, default=os.cpu_count() or 1)
    options = parser.parse_args(arguments)
    if unknown := set(options.fuzzers) - set(FUZZERS):
        parser.error(f"unknown fuzzer {min(unknown)!r}; known: {', '.join(FUZZERS)}")
    failed = False
    for name in options.fuzzers or FUZZERS:
        count = options.count if options.count is not None else FUZZERS[name][1]
        end = options.first + (count if options.seconds is None else _ENDLESS)
        shares = [
            range(options.first + number, end, options.processes)
            for number in range(options.processes)
        ]
        report = Report()
        share = partial(run, FUZZERS[name][0], options.seed, seconds=options.seconds)
        with ProcessPoolExecutor(options.processes, get_context("spawn")) as pool:
            for each in pool.map(share, shares):
                report.add(each)
        print(f"{name}: seed {options.seed}, {report}", flush=True)
        for index, failure in report.findings:
            print(f"\n#{index}: {failure}\n", flush=True)
        failed = failed or bool(report.findings)
    return int(failed)


if __name__ == "__main__":
    sys.exit(main())
