"""How much of what only differs in number is done: little by default, all with FAULTS=long."""

import os

LONG = os.environ.get("FAULTS") == "long"


def scaled(short: int, long: int) -> int:
    """Return how often to do something: `make faults` does it `long`, `make test` `short`."""
    return long if LONG else short
