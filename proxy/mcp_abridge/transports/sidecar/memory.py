"""The memory of a long-lived process: without this, what large answers took stays with it."""

import asyncio
from contextlib import suppress

from mcp_abridge.system import allocator

_EVERY = 5.0  # seconds


async def trim_after_use(use: asyncio.Event) -> None:
    """Return free memory to the system some seconds after each use."""
    while True:
        await use.wait()
        await asyncio.sleep(_EVERY)
        use.clear()
        with suppress(RuntimeError, MemoryError):  # no thread: try again after the next use
            await asyncio.to_thread(allocator.trim)
