"""The allocator of the C library (glibc): without this, what large answers took stays taken."""

from contextlib import suppress

_ARENA_MAX = -8  # of <malloc.h>


def share_arena() -> None:
    """Make all threads that start from now on share one memory arena."""
    # Under Python's lock they cannot allocate at the same time anyway.
    _call_libc("mallopt", _ARENA_MAX, 1)


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
