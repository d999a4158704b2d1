"""Takes a rule out of service that fails on one response after the other."""

MOST = 5
"""How many failures in a row put a rule out of service."""


class CircuitBreaker:
    """Counts the failures of a rule, and is `open` for good once there were MOST in a row.

    >>> circuit = CircuitBreaker()
    >>> [circuit.failed() for _ in range(MOST + 1)], circuit.open
    ([False, False, False, False, True, False], True)
    """

    __slots__ = ("_failures",)

    def __init__(self) -> None:
        self._failures = 0

    @property
    def open(self) -> bool:
        """True where the rule is out of service."""
        return self._failures >= MOST

    def failed(self) -> bool:
        """Record a failure; return True for the one that puts the rule out of service."""
        self._failures += 1
        return self._failures == MOST

    def worked(self) -> None:
        """Record a response that the rule did not fail on."""
        if not self.open:
            self._failures = 0
