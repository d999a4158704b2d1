"""Shares the inputs of a fuzzer among processes, and puts together what they report."""

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
