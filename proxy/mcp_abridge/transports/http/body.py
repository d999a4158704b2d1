"""Bodies with a bound, decompressed piece by piece (RFC 9110, section 8.4).

Invariant: memory never holds more than the bound and one piece, however large a body would become.
"""

import asyncio
import zlib
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Protocol

from mcp_abridge.errors import AbridgeError

PIECE = 64 << 10
"""The maximum size of a decompressed piece, in bytes."""

# No document is that repetitive: a large body that grows more is an attack.
_MOST_GROWTH = 200  # times
_SUSPECT = 32 << 20  # bytes

_SLICE = 16 << 10  # compressed bytes per step, since zlib copies those that it has not consumed
_TURN = 1 << 20  # decompressed bytes after which other tasks run

_GZIP = 16 + zlib.MAX_WBITS


class BodySource(Protocol):
    """The source of a body: an aiohttp.StreamReader."""

    async def readany(self) -> bytes:
        """Wait for bytes and return those that have arrived; empty at the end."""


class TooLarge(AbridgeError):
    """A body over the limit; the rest was not read."""


class Unreadable(AbridgeError):
    """A body that cannot be decompressed, with the reason."""


async def whole(content: BodySource, encoding: str | None, limit: int) -> bytes:
    """Return a body, decompressed by its Content-Encoding, of at most `limit` bytes.

    Raises TooLarge, Unreadable, and the exception of `content` if the connection breaks.
    """
    pieces: list[bytes] = []
    size = 0
    try:
        async with aclosing(chunks(content, encoding)) as decoded:
            async for piece in decoded:
                size += len(piece)
                if size > limit:
                    raise TooLarge(f"more than {limit} bytes")
                pieces.append(piece)
        return b"".join(pieces)
    except BaseException:
        # The source keeps the exception that it raised, and thus every frame in its traceback.
        pieces.clear()
        raise


async def chunks(content: BodySource, encoding: str | None) -> AsyncGenerator[bytes]:
    """Yield a body as it arrives, decompressed, in pieces of at most PIECE; raises Unreadable."""
    name = (encoding or "").strip().lower()
    if name in ("", "identity"):
        while piece := await content.readany():
            yield piece
        return
    if name not in ("gzip", "x-gzip"):
        raise Unreadable("it has a Content-Encoding other than gzip and identity")
    decoder = zlib.decompressobj(_GZIP)
    before = after = turn = 0
    while raw := await content.readany():
        for at in range(0, len(raw), _SLICE):
            rest, more = raw[at : at + _SLICE], False
            before += len(rest)
            while rest or more:
                if decoder.eof:
                    decoder = zlib.decompressobj(_GZIP)  # of the next member
                try:
                    piece = decoder.decompress(rest, PIECE)
                except zlib.error as error:
                    why = str(error).rpartition(": ")[2]
                    raise Unreadable(f"its gzip data is damaged: {why}") from None
                rest = decoder.unused_data if decoder.eof else decoder.unconsumed_tail
                more = len(piece) == PIECE and not decoder.eof
                after += len(piece)
                if after > max(_SUSPECT, before * _MOST_GROWTH):
                    raise Unreadable(f"it is over {_MOST_GROWTH} times larger when decompressed")
                if piece:
                    yield piece
                if after - turn >= _TURN:
                    turn = after
                    await asyncio.sleep(0)
    if before and not decoder.eof:
        raise Unreadable(f"its gzip data ends early, after {before} bytes")
