"""Shape one response after the other in a thread, so that the event loop is not blocked.

For rules with Python of their own, which may need state that only this process has. A thread cannot
be ended: one that takes too long is abandoned, up to a bound.
"""

import asyncio
from collections.abc import Callable
from contextlib import suppress
from threading import Thread
from typing import TypeVar

from msgspec.structs import replace

from proxy.shaping import pipeline
from proxy.shaping.job import ShapeJob, ShapeResult

Result = TypeVar("Result")


async def run_in_slot(
    slots: asyncio.Semaphore, start: Callable[[], asyncio.Future[Result]]
) -> Result:
    """Return the result of the job that `start` starts once there is a free slot.

    A job that has begun keeps its slot to its end, even if its caller is cancelled.
    """
    await slots.acquire()
    try:
        job = start()
    except BaseException:
        slots.release()
        raise
    job.add_done_callback(lambda _: slots.release())
    return await asyncio.shield(job)


class ThreadRunner:
    """At most one job runs at a time, besides those that took longer than `seconds`.

    If `limit` of these still run, no other job is started until one of them ends.
    """

    def __init__(self, seconds: float = 30.0, limit: int = 4) -> None:
        self._seconds = seconds
        self._limit = limit
        self._slot = asyncio.Semaphore(1)
        self._abandoned: set[asyncio.Future[ShapeResult]] = set()

    async def shape(self, job: ShapeJob) -> ShapeResult:
        """Return the result of `job`; that of a failed rule if the job is abandoned.

        Raises RuntimeError if no thread can be started.
        """
        return await run_in_slot(self._slot, lambda: asyncio.ensure_future(self._shape(job)))

    async def _shape(self, job: ShapeJob) -> ShapeResult:
        if len(self._abandoned) >= self._limit:
            reason = f"{len(self._abandoned)} threads are taken up by rules that do not end"
            failure = pipeline.failure(job, f"the worker thread: {reason}")
            return replace(failure, blameless=True)
        loop = asyncio.get_running_loop()
        result: asyncio.Future[ShapeResult] = loop.create_future()
        # A daemon, so that a job without end does not keep the process from ending.
        Thread(target=_run, args=(job, loop, result), name="shaping", daemon=True).start()
        await asyncio.wait((result,), timeout=self._seconds)
        if result.done():
            return result.result()
        self._abandoned.add(result)
        result.add_done_callback(self._abandoned.discard)
        reason = f"it took more than {self._seconds:g} seconds; its thread was left alone"
        return pipeline.failure(job, f"the worker thread: {reason}")


def _run(
    job: ShapeJob, loop: asyncio.AbstractEventLoop, result: asyncio.Future[ShapeResult]
) -> None:
    try:
        outcome = pipeline.shape(job)
    except BaseException as error:  # in a thread it ends nothing else
        outcome = pipeline.failure(job, error)
    with suppress(RuntimeError):  # the loop is closed
        loop.call_soon_threadsafe(result.set_result, outcome)
