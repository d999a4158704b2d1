"""Bodies are decompressed whole or refused, and cost no more memory than they are allowed."""

import asyncio
import gzip
import zlib
from collections.abc import AsyncIterator
from functools import partial

import pytest
from mcp_abridge.transports.http.body import PIECE, TooLarge, Unreadable, chunks, whole

TEXT = b'{"jsonrpc":"2.0","id":1,"result":{}}' * 40
MANY = bytes(range(256)) * 4096  # a megabyte, in several pieces

# No time stands in it: it would be in the names of tests, which all workers must agree on.
zipped = partial(gzip.compress, mtime=0)


class Body:
    """A body that comes in these pieces, and then ends or breaks off."""

    def __init__(self, *pieces: bytes, breaks: Exception | None = None) -> None:
        self.pieces = [piece for piece in pieces if piece]
        self.breaks = breaks

    async def readany(self) -> bytes:
        await asyncio.sleep(0)
        if not self.pieces and self.breaks:
            raise self.breaks
        return self.pieces.pop(0) if self.pieces else b""


async def concatenate(pieces: AsyncIterator[bytes]) -> bytes:
    return b"".join([piece async for piece in pieces])


CODED = [
    (None, TEXT),
    ("", TEXT),
    ("identity", TEXT),
    ("gzip", zipped(TEXT)),
    ("GZip ", zipped(TEXT)),
    ("x-gzip", zipped(TEXT)),
    ("gzip", zipped(TEXT[:7]) + zipped(b"") + zipped(TEXT[7:])),
]


@pytest.mark.parametrize(("encoding", "raw"), CODED, ids=range(len(CODED)))
async def test_a_body_is_the_same_or_too_large_whatever_its_coding(
    encoding: str | None, raw: bytes
) -> None:
    assert await whole(Body(raw), encoding, len(TEXT)) == TEXT
    assert await concatenate(chunks(Body(raw), encoding)) == TEXT
    assert await concatenate(chunks(Body(*(bytes([byte]) for byte in raw)), encoding)) == TEXT
    assert await whole(Body(), encoding, 0) == b""
    with pytest.raises(TooLarge, match=rf"^more than {len(TEXT) - 1} bytes$"):
        await whole(Body(raw), encoding, len(TEXT) - 1)


async def test_a_body_is_decompressed_in_bounded_pieces() -> None:
    pieces = [piece async for piece in chunks(Body(zipped(MANY)), "gzip")]

    assert b"".join(pieces) == MANY
    assert max(map(len, pieces)) <= PIECE


async def test_bytes_that_a_server_flushes_are_read_before_the_next_arrive() -> None:
    packer = zlib.compressobj(wbits=16 + zlib.MAX_WBITS)
    body = Body()
    pieces = chunks(body, "gzip")
    for event in (b"data: 1\n\n", b"data: 2\n\n"):
        body.pieces.append(packer.compress(event) + packer.flush(zlib.Z_SYNC_FLUSH))
        assert await anext(pieces) == event
    await pieces.aclose()


async def test_a_body_without_end_is_read_no_further_than_the_limit() -> None:
    body = Body(*[b"x" * 300] * 9)
    with pytest.raises(TooLarge):
        await whole(body, None, 1000)
    assert len(body.pieces) == 5


@pytest.mark.parametrize(
    ("encoding", "raw", "why"),
    [
        ("gzip", zipped(TEXT)[:30], "its gzip data ends early, after 30 bytes"),
        ("gzip", zipped(TEXT) + zipped(TEXT)[:9], "its gzip data ends early, after "),
        ("gzip", TEXT, "its gzip data is damaged: incorrect header check"),
        ("gzip", zipped(TEXT)[:-8] + bytes(8), "its gzip data is damaged: incorrect data check"),
        ("br", TEXT, "it has a Content-Encoding other than gzip and identity"),
        ("gzip, gzip", TEXT, "it has a Content-Encoding other than gzip and identity"),
    ],
)
async def test_a_body_that_cannot_be_decompressed_is_refused_with_the_reason(
    encoding: str, raw: bytes, why: str
) -> None:
    with pytest.raises(Unreadable) as caught:
        await whole(Body(raw), encoding, 1 << 20)
    assert str(caught.value).startswith(why)
    with pytest.raises(Unreadable, match=why):
        await concatenate(chunks(Body(raw), encoding))


async def test_a_lost_connection_is_not_the_end_of_a_body() -> None:
    for encoding in ("gzip", None):
        body = Body(zipped(TEXT)[:20], breaks=ConnectionResetError("gone"))
        with pytest.raises(ConnectionResetError, match="gone"):
            await whole(body, encoding, 1 << 20)
