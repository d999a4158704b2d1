"""Measures two sides in turn, so that a machine that is busy for a while is busy for both.

Times are compared pair by pair, and medians are taken last: the ratio of two times a moment apart
says more than the ratio of two averages.
"""

from statistics import median
from time import perf_counter
from typing import Protocol

from msgspec import Struct

BATCH = 0.02  # seconds that one side is measured before it is the other's turn
MOST = 200  # calls in a batch
FEWEST_PAIRS = 2


class Side(Protocol):
    def times(self, calls: int) -> list[float]:
        """Do what is measured so many times; return the seconds of each."""


class Figures(Struct, frozen=True):
    """Measurements of both sides, pair by pair; `direct` is empty if it has no equal.

    `note` says what the numbers cannot.
    """

    wrapped: tuple[float, ...] = ()
    direct: tuple[float, ...] = ()
    note: str = ""

    @property
    def ratios(self) -> tuple[float, ...]:
        return tuple(w / d for d, w in zip(self.direct, self.wrapped, strict=False))

    def __add__(self, more: "Figures") -> "Figures":
        return Figures(self.wrapped + more.wrapped, self.direct + more.direct, self.note)


def interleaved(direct: Side, wrapped: Side, seconds: float) -> Figures:
    """Measure both in turn for about so many seconds: A B A B, a batch of calls each.

    What a batch took is the median of its calls. One call of each side is not counted.
    """
    ends = perf_counter() + seconds
    calls = max(1, min(MOST, int(BATCH / max(cost(direct), cost(wrapped)))))
    pairs: list[tuple[float, float]] = []
    while len(pairs) < FEWEST_PAIRS or perf_counter() < ends:
        pairs.append((median(direct.times(calls)), median(wrapped.times(calls))))
    return Figures(
        direct=tuple(first for first, _ in pairs), wrapped=tuple(second for _, second in pairs)
    )


def cost(side: Side) -> float:
    start = perf_counter()
    side.times(1)
    return perf_counter() - start
