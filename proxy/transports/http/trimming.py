"""Gives memory that is free back to the system, so that a busy hour is not paid for all day.

The C library keeps what is freed between blocks in use, and for each thread apart: with many
threads and answers of all sizes that becomes more and more of it. See malloc_trim(3) and
mallopt(3); where there are none (musl, macOS, Windows), nothing is done.
"""

import asyncio
import ctypes
from collections.abc import Callable
from contextlib import suppress

_EVERY = 5.0  # seconds
_ARENA_MAX = -8  # of glibc's <malloc.h>


def share() -> None:
    """Have all threads that are started from now on allocate where the others do."""
    # They wait for one another in Python anyway.
    with suppress(AttributeError, OSError, TypeError):
        ctypes.CDLL(None).mallopt(_ARENA_MAX, 1)


def trimmer() -> Callable[[], None] | None:
    """Return what gives free memory back, None where the C library has nothing of the kind.

    It takes a few milliseconds, in which other threads may go on.
    """
    try:
        trim = ctypes.CDLL(None).malloc_trim
    except (AttributeError, OSError, TypeError):
        return None
    trim.argtypes = (ctypes.c_size_t,)
    return lambda: trim(0)


class Trimming:
    """Trims every few seconds, as long as anything is going on."""

    def __init__(self, every: float = _EVERY) -> None:
        self.used = False
        """To be set where memory may have been in use."""
        self._every = every
        self._task: asyncio.Task[None] | None = None

    def begin(self) -> None:
        """Begin; a loop must be running."""
        trim = trimmer()
        if trim is not None:
            self._task = asyncio.create_task(self._go_on(trim))

    def end(self) -> None:
        """Trim no more."""
        if self._task is not None:
            self._task.cancel()

    async def _go_on(self, trim: Callable[[], None]) -> None:
        while True:
            await asyncio.sleep(self._every)
            if self.used:
                self.used = False
                with suppress(RuntimeError, MemoryError):  # no thread to be had: the next time
                    await asyncio.to_thread(trim)
