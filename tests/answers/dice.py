"""Random content that is the same on each run, machine and version of Python."""

import re
from collections.abc import Sequence
from random import Random
from typing import TypeVar

T = TypeVar("T")

_WORDS: list[str] = re.findall(
    r"\w+",
    "agent alert batch branch cache cell client column commit cursor deploy epic filter "
    "folder header index issue label ledger limit log merge note offset owner page pager "
    "payload proxy query queue record replica request response retry review rollback row rule "
    "schema shard sprint story stream sync table tenant token trace vault view volume worker ",
)
_NAMES: list[str] = re.findall(
    r"\w+",
    "ann bob carla dieter elif farid greta hugo ines jonas kaia leon mara nils olga pavel "
    "quinn rosa sami tove ",
)


class Dice:
    """Draws from a seed. Of `random`, only random() promises the same numbers for ever."""

    def __init__(self, seed: str) -> None:
        self._random = Random(seed)

    def below(self, limit: int) -> int:
        return int(self._random.random() * limit)

    def pick(self, values: Sequence[T]) -> T:
        return values[self.below(len(values))]

    def word(self) -> str:
        return self.pick(_WORDS)

    def name(self) -> str:
        return self.pick(_NAMES)

    def words(self, count: int) -> str:
        return " ".join(self.word() for _ in range(count))

    def sentence(self) -> str:
        return self.words(6 + self.below(8)).capitalize() + "."

    def text(self, sentences: int) -> str:
        return " ".join(self.sentence() for _ in range(sentences))

    def digits(self, count: int, digits: str = "0123456789abcdef") -> str:
        return "".join(self.pick(digits) for _ in range(count))

    def time(self) -> str:
        day = f"2026-{1 + self.below(12):02}-{1 + self.below(28):02}"
        return f"{day}T{self.below(24):02}:{self.below(60):02}:{self.below(60):02}Z"


def clock(seconds: int) -> str:
    """Return the time so many seconds after the midnight of one day."""
    minutes, second = divmod(seconds, 60)
    return (
        f"2026-11-{1 + minutes // 1440:02}T{minutes // 60 % 24:02}:{minutes % 60:02}:{second:02}Z"
    )
