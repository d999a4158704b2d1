"""`python -m tests.fuzz`: tries random inputs and prints what they reached and found.

A line for each fuzzer: its seed, how many inputs, per second, how many distinct states or features
they reached, what took longest, and how many findings. Ends with 1 if there is one; below the line
stands what it showed. The same seed gives the same inputs: `--first` tries a finding again.
"""

import argparse
import os
import sys
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context

from tests.fuzz import messages, pairs, traces
from tests.fuzz.fuzzer import Fuzzer, Report, run

# Each with how many inputs are tried by default.
FUZZERS: dict[str, tuple[Fuzzer, int]] = {
    "messages": (messages.check_one, 1_000_000),
    "pairs": (pairs.check_one, 100_000),
    "traces": (traces.check_one, 20_000),
}
_ENDLESS = 100_000_000  # inputs, if time is what ends them


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


def shared(
    name: str, seed: int, first: int, inputs: int, seconds: float | None, processes: int
) -> Report:
    """Try so many inputs, or for so many seconds, in so many processes at once."""
    whole = inputs if seconds is None else _ENDLESS
    shares = [
        range(first + whole * number // processes, first + whole * (number + 1) // processes)
        for number in range(processes)
    ]
    if processes == 1:
        return _share(name, seed, shares[0], seconds)
    report = Report()
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        for each in [pool.submit(_share, name, seed, share, seconds) for share in shares]:
            report.add(each.result())
    return report


def _share(name: str, seed: int, indexes: range, seconds: float | None) -> Report:
    return run(FUZZERS[name][0], seed, indexes, seconds)


if __name__ == "__main__":
    sys.exit(main())
