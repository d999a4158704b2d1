"""The memory of a long-lived process: without this, what large answers took stays with it."""

import asyncio
import ctypes
from contextlib import suppress

_EVERY = 5.0  # seconds
_ARENA_MAX = -8  # of glibc's <malloc.h>


def share_arena() -> None:
    """Make all threads that start from now on share one memory arena."""
    # Under Python's lock they cannot allocate at the same time anyway.
    _call_libc("mallopt", ctypes.c_int(_ARENA_MAX), ctypes.c_int(1))


def trim() -> None:
    """Return free memory to the system; takes a few milliseconds without Python's lock."""
    _call_libc("malloc_trim", ctypes.c_size_t(0))


def _call_libc(name: str, *args: object) -> None:
    with suppress(AttributeError, OSError, TypeError):  # another C library
        getattr(ctypes.CDLL(None), name)(*args)


async def trim_after_use(use: asyncio.Event) -> None:
    """Return free memory to the system some seconds after each use."""
    while True:
        await use.wait()
        await asyncio.sleep(_EVERY)
        use.clear()
        with suppress(RuntimeError, MemoryError):  # no thread: try again after the next use
            await asyncio.to_thread(trim)
