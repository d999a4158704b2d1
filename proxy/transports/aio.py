"""Yield to other tasks of the event loop around work that takes a few milliseconds.

A message of 20 MB is processed in steps; together they would block every other session.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from proxy.session.outputs import LARGE

P = ParamSpec("P")
T = TypeVar("T")


async def others(size: int) -> None:
    """Yield to other tasks if `size`, the bytes to process or just processed, is over LARGE."""
    if size > LARGE:
        await asyncio.sleep(0)


async def threaded(do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `do`, which may take long, in a thread; return its result or raise its exception.

    If no thread can be started, it is called here, and perhaps again once a thread is available.
    """
    call = partial(do, *args, **kwargs)
    try:
        doing = asyncio.get_running_loop().run_in_executor(None, call)
    except RuntimeError:
        return call()
    return await doing
