"""Run long shaping jobs in worker processes, so that no other session waits for them.

A job that is certainly short runs at once; one that is only likely to be short is tried at once,
with little fuel. A worker that breaks affects only the response it was shaping.
"""

import asyncio
import os
import pickle
from collections.abc import Awaitable, Callable
from contextlib import suppress
from functools import partial
from subprocess import PIPE, Popen
from threading import Thread
from typing import Any, TypeVar
from weakref import WeakValueDictionary

from msgspec.structs import replace

from mcp_abridge.document.fuel import LITTLE
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.shaping import pipeline
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from mcp_abridge.system import platform
from mcp_abridge.transports.own_process import own_python
from mcp_abridge.transports.workers.pictures import with_drawings

# The C library of Linux gives freed parts of a document back, and does not leave holes in the heap.
_GIVES_BACK = {"MALLOC_MMAP_THRESHOLD_": str(1 << 20)}
_START = "from mcp_abridge.transports.workers.process import serve; serve()"
_COSTLY = 4  # passes that a step counts for if the size of the document predicts no cost
_MAX_SPENDERS = 100
_DRAWINGS = 2  # images that are drawn at once
_MOST_ABANDONED = 4  # threads of jobs that took too long

Result = TypeVar("Result")
Run = Callable[[ShapeJob], Awaitable[ShapeResult]]


class Workers:
    """At most so many `processes`, each started when it is first needed and then kept.

    Documents of up to `max_here` bytes are shaped at once if a rule has one step; the bound is
    lower if it has many steps. A job that takes longer than `seconds` is abandoned. One process is
    always left for jobs that are sure to end soon.

    Rules with Python of their own, which may need state that only this process has, run in a
    thread, as do all long jobs if there are no processes: one job at a time. A thread cannot be
    ended: one that takes longer than `thread_seconds` is left alone, up to a bound.

    Of views and costly rules, one caller has at most half of the processes.
    """

    def __init__(
        self,
        processes: int = 4,
        max_here: int = 256 << 10,
        seconds: float = 60.0,
        thread_seconds: float = 30.0,
    ) -> None:
        self._max_here = max_here
        self._seconds = seconds
        self._thread_seconds = thread_seconds
        self._slots = asyncio.Semaphore(processes) if processes else None
        self._costly_slots = asyncio.Semaphore(max(1, processes - 1))
        self._most_of_one = max(1, processes // 2)
        self._turns = WeakValueDictionary[str, asyncio.Semaphore]()  # of callers with costly jobs
        self._thread_slot = asyncio.Semaphore(1)
        self._drawing_slots = asyncio.Semaphore(_DRAWINGS)
        self._abandoned: set[asyncio.Future[ShapeResult]] = set()
        self._spenders: dict[int, Rule] = {}  # rules for which the little fuel was once not enough
        self._idle: list[Worker] = []
        self._busy: set[Worker] = set()
        self._closed = False

    async def shape(self, job: ShapeJob, caller: str = "") -> ShapeResult:
        """Return the result of `job`, with its images drawn, see `_shape`."""
        result = await self._shape(job, caller)
        if not result.drawings or self._closed:
            return result
        draw = partial(_start_thread, partial(with_drawings, result=result))
        in_turn = partial(self._in_slot, self._drawing_slots, draw)
        return await self._in_slot(self._turn(caller), in_turn, job)

    async def _shape(self, job: ShapeJob, caller: str) -> ShapeResult:
        """Return the result of `job`; that of a failed rule if its worker breaks.

        Views and costly rules of one `caller` wait for each other, not those of other callers.
        A rule with Python of its own is never sent to another process. Raises RuntimeError if no
        thread can be started.
        """
        if self._closed or (job.bypass and not job.rule.structures):
            return pipeline.shape(job)
        if job.rule.foreign:
            return await self._in_slot(self._thread_slot, self._in_thread, job)
        costly = job.rule.costly or job.view is not None
        if self._short(job, costly=costly):
            if not costly:
                return pipeline.shape(job)
            outcome = pipeline.shape(replace(job, fuel=LITTLE))
            if not outcome.out_of_fuel:
                return outcome
            # The next responses of the rule go to a worker without being tried here first.
            if len(self._spenders) >= _MAX_SPENDERS:
                self._spenders.clear()
            self._spenders[id(job.rule)] = job.rule
        if self._slots is None:
            return await self._in_slot(self._thread_slot, self._in_thread, job)
        in_process = partial(self._in_slot, self._slots, self._in_process)
        if costly:
            in_turn = partial(self._in_slot, self._costly_slots, in_process)
            return await self._in_slot(self._turn(caller), in_turn, job)
        return await in_process(job)

    def _turn(self, caller: str) -> asyncio.Semaphore:
        return self._turns.setdefault(caller, asyncio.Semaphore(self._most_of_one))

    def _short(self, job: ShapeJob, *, costly: bool) -> bool:
        source = job.raw if job.snapshot is None else job.snapshot.document
        if source is None:
            return True
        rule = job.rule
        passes = max(1, len(rule.pipeline), len(rule.errors))
        if costly:
            passes *= _COSTLY
        return len(source) * passes <= self._max_here and id(rule) not in self._spenders

    async def _in_slot(self, slots: asyncio.Semaphore, run: Run, job: ShapeJob) -> ShapeResult:
        """Run a job once there is a free slot, which it keeps even if its caller is cancelled."""
        await slots.acquire()
        running = asyncio.ensure_future(run(job))
        running.add_done_callback(lambda _: slots.release())
        return await asyncio.shield(running)

    async def _in_thread(self, job: ShapeJob) -> ShapeResult:
        if len(self._abandoned) >= _MOST_ABANDONED:
            reason = f"{len(self._abandoned)} threads are taken up by rules that do not end"
            failure = pipeline.failure(job, f"the worker thread: {reason}")
            return replace(failure, blameless=True)
        outcome = _start_thread(pipeline.shape, job)
        await asyncio.wait((outcome,), timeout=self._thread_seconds)
        if outcome.done():
            return outcome.result()
        self._abandoned.add(outcome)
        outcome.add_done_callback(self._abandoned.discard)
        reason = f"it took more than {self._thread_seconds:g} seconds; its thread was left alone"
        return pipeline.failure(job, f"the worker thread: {reason}")

    async def _in_process(self, job: ShapeJob) -> ShapeResult:
        try:
            if self._closed:
                raise OSError("the proxy is ending")
            worker = self._idle_or_new()
        except OSError as error:
            failure = pipeline.failure(job, f"the start of a worker process: {error}")
            return replace(failure, blameless=True)
        self._busy.add(worker)
        try:
            answer = _start_thread(worker.ask, job)
            await asyncio.wait((answer,), timeout=self._seconds)
            late = not answer.done()
            if late:
                worker.process.kill()
            outcome = await answer
        finally:
            self._busy.discard(worker)
            if worker.process.poll() is None:
                self._idle.append(worker)
        if isinstance(outcome, ShapeResult):
            return outcome
        reason = f"it took more than {self._seconds:g} seconds" if late else outcome
        return pipeline.failure(job, f"the worker process: {reason}")

    def _idle_or_new(self) -> "Worker":
        while self._idle:
            worker = self._idle.pop()
            if worker.process.poll() is None:
                return worker
            worker.end()
        return Worker()

    def close(self) -> None:
        self._closed = True
        for worker in self._busy:
            worker.process.kill()
        while self._idle:
            self._idle.pop().end()


def _start_thread(do: Callable[[ShapeJob], Result], job: ShapeJob) -> asyncio.Future[Result]:
    loop = asyncio.get_running_loop()
    result: asyncio.Future[Result] = loop.create_future()

    def run() -> None:
        outcome: Any
        try:
            outcome = do(job)
        except BaseException as error:  # in a thread it ends nothing else
            outcome = pipeline.failure(job, error)
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(result.set_result, outcome)

    # A daemon, so that a job without end does not keep the process from ending.
    Thread(target=run, name="shaping", daemon=True).start()
    return result


class Worker:
    """One process, used by one thread at a time."""

    def __init__(self) -> None:
        self.process = Popen(
            own_python(_START),
            stdin=PIPE,
            stdout=PIPE,
            env=os.environ | _GIVES_BACK,
            **platform.DETACHED,
        )
        assert self.process.stdin is not None
        assert self.process.stdout is not None
        self._requests, self._responses = self.process.stdin, self.process.stdout
        platform.widen(self._requests.fileno())
        platform.widen(self._responses.fileno())

    def ask(self, job: ShapeJob) -> ShapeResult | str:
        """Return the result of `job`, or the reason why there is none."""
        try:
            pickle.dump(job, self._requests)
            self._requests.flush()
            outcome: ShapeResult | str = pickle.load(self._responses)
        except (OSError, EOFError, pickle.UnpicklingError):
            self.end()
            code = self.process.returncode
            return f"it ended by signal {-code}" if code < 0 else f"it ended with exit code {code}"
        except Exception as error:  # no memory for the answer, ...: a part may be unread
            self.end()
            return f"{type(error).__name__}: {error}"
        if isinstance(outcome, ShapeResult) and not outcome.raw and job.raw is not None:
            return replace(outcome, raw=job.raw)
        return outcome

    def end(self) -> None:
        self.process.kill()
        self.process.wait()
        with suppress(OSError):  # from bytes that were not written yet
            self._requests.close()
        self._responses.close()
