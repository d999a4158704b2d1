"""The circuit breaker that disables a rule after repeated failures."""

MAX_FAILURES = 5
"""The number of consecutive failures that disables a rule."""


class CircuitBreaker:
    """Counts consecutive failures of a rule; `open` for good after MAX_FAILURES of them.

    >>> breaker = CircuitBreaker()
    >>> [breaker.record_failure() for _ in range(MAX_FAILURES + 1)], breaker.open
    ([False, False, False, False, True, False], True)
    """

    __slots__ = ("failures", "open")

    def __init__(self) -> None:
        self.failures = 0
        self.open = False
        """True if the rule is disabled."""

    def record_failure(self) -> bool:
        """Record a failure; return True if this failure disables the rule."""
        self.failures += 1
        self.open = self.open or self.failures == MAX_FAILURES
        return self.failures == MAX_FAILURES

    def record_success(self) -> None:
        """Record a success, which resets the count unless the breaker is open."""
        if not self.open:
            self.failures = 0
