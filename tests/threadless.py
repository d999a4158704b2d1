"""A process in which no more threads can be started, for a while."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager

_TOO_LARGE = 1 << 46  # bytes of a stack, which no system has


@contextmanager
def threadless() -> Iterator[None]:
    """Have each start of a thread fail, as it does if there are too many."""
    before = threading.stack_size(_TOO_LARGE)
    try:
        yield
    finally:
        threading.stack_size(before)
