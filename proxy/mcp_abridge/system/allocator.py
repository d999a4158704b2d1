"""The allocator of the C library (glibc): without this, what large answers took stays taken."""

from contextlib import suppress
from functools import cache

LARGE_BLOCK = 1 << 20
"""The bytes from which a block is given back at once, if `release_large_blocks` was called."""

_MMAP_THRESHOLD, _ARENA_MAX = -3, -8  # of <malloc.h>


def share_arena() -> None:
    """Make all threads that start from now on share one memory arena."""
    # Under Python's lock they cannot allocate at the same time anyway.
    _call_libc("mallopt", _ARENA_MAX, 1)


@cache
def release_large_blocks() -> None:
    """Have large blocks given back to the system as soon as they are free.

    By itself glibc takes them from its heap once a first one was free, and keeps them there: after
    a text of 16 MB was decoded, as much again stayed resident.
    """
    _call_libc("mallopt", _MMAP_THRESHOLD, LARGE_BLOCK)


def trim() -> None:
    """Return free memory to the system; takes a few milliseconds without Python's lock."""
    _call_libc("malloc_trim", 0)


def _call_libc(name: str, *numbers: int) -> None:
    with suppress(AttributeError, ImportError, OSError, TypeError):  # another C library
        # Imported late: the wrapper needs it for large answers alone.
        import ctypes

        # The one argument of malloc_trim is a size_t.
        kind = ctypes.c_size_t if len(numbers) == 1 else ctypes.c_int
        getattr(ctypes.CDLL(None), name)(*map(kind, numbers))
