"""Lets others of a loop have their turn while there is something that takes a few milliseconds.

A message of 20 MB is looked through in steps; together they would hold everybody up.
"""

import asyncio
from collections.abc import Callable
from functools import partial
from typing import ParamSpec, TypeVar

from proxy.session.outputs import LARGE

P = ParamSpec("P")
T = TypeVar("T")


async def others(size: int) -> None:
    """Let others have their turn where `size` bytes are about to be looked through, or were."""
    if size > LARGE:
        await asyncio.sleep(0)


async def threaded(do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Return what `do` returns, which may take long, or raise what it raises: in a thread.

    Where no thread is to be had it is done here, and perhaps once more when there is one.
    """
    call = partial(do, *args, **kwargs)
    try:
        doing = asyncio.get_running_loop().run_in_executor(None, call)
    except RuntimeError:
        return call()
    return await doing
