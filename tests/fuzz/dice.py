"""Chance that can be thrown again: one die for each input, made of the seed and its number."""

from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")


class Dice(Random):
    """A generator whose throws are those of one input, whatever came before it.

    >>> Dice.of(1, "pairs", 7).below(1000) == Dice.of(1, "pairs", 7).below(1000)
    True
    """

    @classmethod
    def of(cls, *what: int | str) -> "Dice":
        """Return the die of an input: of a seed, the name of a fuzzer and a number."""
        return cls(":".join(map(str, what)))

    def below(self, most: int) -> int:
        return int(self.random() * most)

    def within(self, least: int, most: int) -> int:
        return least + int(self.random() * (most - least + 1))

    def one_in(self, count: int) -> bool:
        return self.random() * count < 1

    def pick(self, among: Sequence[T]) -> T:
        return among[int(self.random() * len(among))]

    def some(self, among: Sequence[T], most: int) -> list[T]:
        """Return up to `most` of them, one at least, perhaps one several times."""
        return [self.pick(among) for _ in range(self.within(1, most))]

    def size(self, most: int) -> int:
        """Return how long something is: mostly little, seldom as much as `most`."""
        return int(most * self.random() ** 3)
