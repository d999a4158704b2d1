"""Bodies that are there to do harm: what a few bytes become when they are decompressed."""

import zlib
from functools import cache

GB = 1 << 30
_BLOCK = 1 << 20


@cache
def bomb(start: bytes = b"", end: bytes = b"", size: int = GB) -> bytes:
    """Return `start`, so many times `x` and `end`, compressed about a thousandfold."""
    packing = zlib.compressobj(9, wbits=16 + zlib.MAX_WBITS)
    first = packing.compress(start) + packing.flush(zlib.Z_FULL_FLUSH)
    block = b"x" * _BLOCK
    # After a full flush the same bytes come out again.
    again = packing.compress(block) + packing.flush(zlib.Z_FULL_FLUSH)
    last = packing.compress(end) + packing.flush(zlib.Z_FINISH)
    count = size // _BLOCK
    sum = zlib.crc32(start)
    for _ in range(count):
        sum = zlib.crc32(block, sum)
    sum = zlib.crc32(end, sum)
    length = (len(start) + count * _BLOCK + len(end)) & 0xFFFFFFFF
    trailer = sum.to_bytes(4, "little") + length.to_bytes(4, "little")
    return first + again * count + last[:-8] + trailer
