"""Lets others of a loop have their turn before and after what takes a few milliseconds.

A message of 20 MB is looked through in such steps; together they would hold everybody up.
"""

import asyncio

LARGE = 256 << 10
"""Bytes from which a message is long enough for others to be let in."""


async def others(size: int) -> None:
    """Let others have their turn where `size` bytes are about to be looked through, or were."""
    if size > LARGE:
        await asyncio.sleep(0)
