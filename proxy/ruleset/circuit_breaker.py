"""The circuit breaker that disables a rule after repeated failures."""

MAX_FAILURES = 5
"""The number of consecutive failures that disables a rule."""


class CircuitBreaker:
    """Counts consecutive failures of a rule; `open` for good after MAX_FAILURES of them.

    >>> breaker = CircuitBreaker()
    >>> [breaker.record_failure() for _ in range(MAX_FAILURES + 1)], breaker.open
    ([False, False, False, False, True, False], True)
    """

    __slots__ = ("_failures",)

    def __init__(self) -> None:
        self._failures = 0

    @property
    def open(self) -> bool:
        """True if the rule is disabled."""
        return self._failures >= MAX_FAILURES

    def record_failure(self) -> bool:
        """Record a failure; return True if this failure disables the rule."""
        self._failures += 1
        return self._failures == MAX_FAILURES

    def record_success(self) -> None:
        """Record a success, which resets the count unless the breaker is open."""
        if not self.open:
            self._failures = 0
