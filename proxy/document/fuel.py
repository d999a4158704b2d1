"""Bounds what a rule or a view may cost: work burns fuel, and there is only so much of it.

One unit is about a microsecond of work. What is counted is the work itself where that is possible
(steps of an expression, elements and characters that it makes), so that the same rule over the same
document always comes to the same end.
"""

from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import astuple

from proxy.errors import OutOfFuel

MOST = 10_000_000
"""What one response may cost: about ten seconds."""

LITTLE = 20_000
"""What may be spent where others wait meanwhile: about 20 milliseconds."""

ARRAY = 4
"""Units for a new array, before its elements."""

OBJECT = 8
"""Units for a new object, before its members."""

COMPARED = 4096
"""Characters of two texts that are compared for a unit."""


class Fuel:
    """So many units to burn.

    >>> fuel = Fuel(3)
    >>> fuel.burn(2)
    >>> fuel.left
    1
    >>> fuel.burn(2)
    Traceback (most recent call last):
    ...
    proxy.errors.Spent: it takes more than 3 units of work
    """

    __slots__ = ("_most", "left")

    def __init__(self, units: int = MOST) -> None:
        self._most = units
        self.left = units

    def burn(self, units: int) -> None:
        """Burn some of it; raises Spent where there is less."""
        self.left -= units
        if self.left < 0:
            raise OutOfFuel(f"it takes more than {self._most} units of work")


def characters(text: str) -> int:
    """Return the units for a text that is made: one for about 16 bytes in memory.

    >>> characters("a" * 64), characters("é" * 64)
    (4, 16)
    """
    return len(text) // (16 if text.isascii() else 4)


def pay(value: Any, fuel: Fuel, *, written: bool = False) -> None:
    """Burn what it takes to go through all of a value, plain or not, before that is done.

    What stands in several places counts in each of them, however deep: raises Spent for what has
    no end. `written`: its texts are written in ASCII too, where a character takes up to 12 bytes.
    """
    left = fuel.left
    waiting = [value]
    while waiting and left >= 0:
        item = waiting.pop()
        if isinstance(item, str):
            left -= characters(item) * 4 if written else characters(item)
        elif isinstance(item, list):
            left -= 1 + len(item)
            waiting += item
        elif isinstance(item, dict):
            left -= 1 + 2 * len(item)
            waiting += item
            waiting += item.values()
        elif isinstance(item, int):
            left -= item.bit_length() >> (5 if written else 7)
        elif type(item) is Raw:
            left -= len(memoryview(item)) >> 6
        elif isinstance(item, Struct):
            waiting += astuple(item)
    fuel.burn(fuel.left - left)
