"""Tasks in the background, and turns for other tasks around work that takes milliseconds."""

import asyncio
import errno
from collections.abc import Callable, Coroutine
from functools import partial
from typing import Any, ParamSpec, TypeVar

from mcp_abridge.session.outputs import LARGE
from mcp_abridge.system import platform

_AGAIN = 60.0  # seconds before the same trouble is told again

P = ParamSpec("P")
T = TypeVar("T")


class Tasks(set["asyncio.Task[None]"]):
    """Tasks in the background until they end: the event loop alone would not keep them."""

    def spawn(self, work: Coroutine[Any, Any, None]) -> "asyncio.Task[None]":
        task = asyncio.get_running_loop().create_task(work)
        self.add(task)
        task.add_done_callback(self.discard)
        return task

    def cancel(self) -> None:
        for task in self:
            task.cancel()


async def give_way(size: int) -> None:
    """Yield to other tasks if `size`, the bytes to process or just processed, is over LARGE."""
    if size > LARGE:
        await asyncio.sleep(0)


async def threaded(do: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T:
    """Call `do` in a thread, or here if none can be started; return its result, or raise."""
    call = partial(do, *args, **kwargs)
    try:
        doing = asyncio.get_running_loop().run_in_executor(None, call)
    except RuntimeError:
        return call()
    return await doing


def log_trouble(warn: Callable[[str], None]) -> None:
    """Have `warn` told of what fails in the running event loop outside of any request."""
    times: dict[str, float] = {}

    def on_exception(loop: asyncio.AbstractEventLoop, context: dict[str, Any]) -> None:
        error, now = context.get("exception"), loop.time()
        trouble = f"{context['message']}: {type(error).__name__}: {error}"
        if isinstance(error, OSError) and error.errno in (errno.EMFILE, errno.ENFILE):
            many = platform.error_text(error).lower()
            trouble = f"no connection can be taken: {many}; `ulimit -n` says how many there may be"
        if now - times.get(trouble, -_AGAIN) >= _AGAIN:
            times.clear()
            times[trouble] = now
            warn(trouble)

    asyncio.get_running_loop().set_exception_handler(on_exception)
