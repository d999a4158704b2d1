"""The circuit breaker that disables a rule after repeated failures."""

MOST = 5
"""The number of consecutive failures that disables a rule."""


class CircuitBreaker:
    """Counts consecutive failures of a rule; `open` for good after MOST of them.

    >>> circuit = CircuitBreaker()
    >>> [circuit.failed() for _ in range(MOST + 1)], circuit.open
    ([False, False, False, False, True, False], True)
    """

    __slots__ = ("_failures",)

    def __init__(self) -> None:
        self._failures = 0

    @property
    def open(self) -> bool:
        """True if the rule is disabled."""
        return self._failures >= MOST

    def failed(self) -> bool:
        """Record a failure; return True if this failure disables the rule."""
        self._failures += 1
        return self._failures == MOST

    def worked(self) -> None:
        """Record a success, which resets the count unless the breaker is open."""
        if not self.open:
            self._failures = 0
