"""Says whether there is memory for a large document, before a decoder is given it.

The one in use ends the whole process, by a signal, where memory runs out in the middle of a text.
"""

_LARGE = 256 << 10  # bytes
_TIMES = 8  # bytes of memory at most, nearly always, for each byte of a document


def have_room(size: int) -> None:
    """Raise MemoryError where so large a document is likely to be too much; `size` is in bytes.

    >>> have_room(1000)
    """
    if size < _LARGE:
        return
    try:
        import mmap

        private = {"flags": mmap.MAP_PRIVATE | mmap.MAP_ANON} if hasattr(mmap, "MAP_ANON") else {}
        # Address space alone: nothing is ever written to it.
        mmap.mmap(-1, _TIMES * size, **private).close()
    except (ImportError, OSError, OverflowError, ValueError):
        raise MemoryError(f"for a document of {size} bytes") from None
