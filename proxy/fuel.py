"""Bounds what a rule or a view may cost: work burns fuel, and there is only so much of it.

One unit is about a microsecond of work. What is counted is the work itself where that is possible
(steps of an expression, elements and characters that it makes), so that the same rule over the same
document always comes to the same end.
"""

from proxy.errors import Spent

MOST = 10_000_000
"""What one response may cost: about ten seconds."""

LITTLE = 20_000
"""What may be spent where others wait meanwhile: about 20 milliseconds."""


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
            raise Spent(f"it takes more than {self._most} units of work")
