"""How much is done: `make faults` sets FAULTS=long, and does the same in larger numbers."""

import os

LONG = os.environ.get("FAULTS") == "long"


def scaled(short: int, long: int) -> int:
    """Return how often to do something: `make faults` does it `long`, `make test` `short`."""
    return long if LONG else short
