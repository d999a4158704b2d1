"""Shares the inputs of a fuzzer among processes, and puts together what they report."""

from collections.abc import Iterable
from concurrent.futures import ProcessPoolExecutor
from itertools import count
from multiprocessing import get_context

from tests.fuzz.framing import Framing
from tests.fuzz.fuzzer import Fuzzer, Report, run
from tests.fuzz.pairs import Pairs
from tests.fuzz.traces import Traces

# Each with how many inputs are tried where nobody says.
FUZZERS: dict[str, tuple[type[Fuzzer], int]] = {
    "framing": (Framing, 1_000_000),
    "pairs": (Pairs, 100_000),
    "traces": (Traces, 20_000),
}
_FAR = 10_000_000  # how far apart the inputs of two processes begin where time is what ends them


def shared(name: str, seed: int, inputs: int, seconds: float | None, processes: int) -> Report:
    """Try so many inputs, or for so many seconds, in so many processes at once."""
    report = Report(name, seed)
    if processes == 1:
        report.add(_share(name, seed, 0, 1, inputs, seconds))
        return report
    with ProcessPoolExecutor(processes, get_context("spawn")) as pool:
        shares = [
            pool.submit(_share, name, seed, number, processes, inputs, seconds)
            for number in range(processes)
        ]
        for share in shares:
            report.add(share.result())
    return report


def _share(
    name: str, seed: int, number: int, processes: int, inputs: int, seconds: float | None
) -> Report:
    """Try one process's share of the inputs."""
    indexes: Iterable[int] = count(number * _FAR)
    if seconds is None:
        indexes = range(inputs * number // processes, inputs * (number + 1) // processes)
    return run(FUZZERS[name][0](), seed, indexes, seconds)
