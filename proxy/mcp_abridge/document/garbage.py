"""The collection of garbage: while much is read, it would scan what is just growing, and again."""

import gc
from collections.abc import Iterator
from contextlib import contextmanager
from time import monotonic

_PAUSE = 30.0  # seconds that it may be delayed
_collected = monotonic()


@contextmanager
def uncollected() -> Iterator[None]:
    """Delay the collection of garbage.

    If it did not run for long, it runs first: repeated delays must not stop it for good.
    """
    global _collected
    if not gc.isenabled():
        yield
        return
    if monotonic() > _collected + _PAUSE:
        gc.collect()
        _collected = monotonic()
    gc.disable()
    try:
        yield
    finally:
        # All objects now count as old: else the collector would scan them all at once.
        gc.freeze()
        gc.unfreeze()
        gc.enable()
