"""Run long shaping jobs in worker processes, so that no other session waits for them.

A job that is certainly short runs at once; one that is only likely to be short is tried at once,
with little fuel. Each worker has pipes of its own. It sees their end when this process has ended
for any reason. A worker that breaks affects only the response it was shaping: the original is sent
instead.
"""

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from subprocess import PIPE, Popen
from threading import Lock, Timer
from time import monotonic

from msgspec.structs import replace

from proxy.document.fuel import LITTLE
from proxy.ruleset.rule import Rule
from proxy.shaping import pipeline
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.transports.stdio.pipes import widen
from proxy.transports.workers.process import WorkerMessage
from proxy.transports.workers.thread import ThreadRunner, run_in_slot

# A worker imports from the same places as this process.
_START = """
import sys
sys.path[:] = sys.argv[1:]
from proxy.transports.workers.process import serve
serve()
"""
_COSTLY = 4  # the same for steps whose cost the size of the document does not predict
_MAX_SPENDERS = 100


class Broken(Exception):
    """A worker that cannot be used (any more), with the reason."""


class Workers:
    """At most so many `processes`.

    A process is started when it is first needed and then kept; without any, long jobs run in a
    thread. Documents of up to `max_here` bytes are shaped at once if a rule has one step; the bound
    is lower if it has many steps. A job that takes longer than `seconds` is abandoned. One process
    is always left for jobs that are sure to end soon.
    """

    def __init__(
        self, processes: int = 4, max_here: int = 256 << 10, seconds: float = 60.0
    ) -> None:
        self._max_here = max_here
        self._seconds = seconds
        self._thread = ThreadRunner()
        self._threads = ThreadPoolExecutor(processes, "worker") if processes else None
        self._costly_slots = asyncio.Semaphore(max(1, processes - 1))
        self._spenders: dict[int, Rule] = {}  # rules for which the little fuel was once not enough
        self._lock = Lock()
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._closed = False

    async def shape(self, job: ShapeJob) -> ShapeResult:
        """Return the result of `job`; that of a failed rule if its worker breaks.

        A rule with Python of its own is never sent to another process. Raises RuntimeError if no
        thread can be started.
        """
        if self._closed or (job.bypass and not job.rule.structures):
            return pipeline.shape(job)
        if job.rule.foreign:
            return await self._thread.shape(job)
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
        return await self._send(job, costly=costly)

    def _short(self, job: ShapeJob, *, costly: bool) -> bool:
        """Return True if `job` is run at once, or at least tried."""
        source = job.raw if job.snapshot is None else job.snapshot.document
        if source is None:
            return True
        rule = job.rule
        passes = max(1, len(rule.pipeline), len(rule.errors))
        if costly:
            passes *= _COSTLY
        return len(source) * passes <= self._max_here and id(rule) not in self._spenders

    async def _send(self, job: ShapeJob, *, costly: bool) -> ShapeResult:
        """Run `job` in a worker process, or in a thread if there are no processes."""
        if self._threads is None:
            return await self._thread.shape(job)
        loop, threads = asyncio.get_running_loop(), self._threads
        if not costly:
            return await loop.run_in_executor(threads, self._ask, job)
        return await run_in_slot(
            self._costly_slots, lambda: loop.run_in_executor(threads, self._ask, job)
        )

    def close(self) -> None:
        """End all processes and abandon their jobs."""
        with self._lock:
            self._closed = True
            workers = list(self._all)
        for worker in workers:
            worker.kill()
        if self._threads is not None:
            self._threads.shutdown()
        for worker in workers:
            worker.end()

    def _ask(self, job: ShapeJob) -> ShapeResult:
        """Send `job` to a worker and wait for its result, in a thread."""
        try:
            message = WorkerMessage.of(job)
        except Exception as error:  # a rule may hold any object, and fail in any way
            reason = f"{type(error).__name__}: {error}"
            return pipeline.failure(job, f"the way to a worker process: {reason}")
        try:
            worker = self._idle_or_new()
        except (OSError, Broken) as error:
            failure = pipeline.failure(job, f"the start of a worker process: {error}")
            return replace(failure, blameless=True)
        try:
            outcome = worker.ask(message, job, self._seconds)
        except Broken as error:
            with self._lock:
                self._all.discard(worker)
            return pipeline.failure(job, f"the worker process: {error}")
        with self._lock:
            self._idle.append(worker)
        if isinstance(outcome, str):
            return pipeline.failure(job, f"the worker process: {outcome}")
        return outcome

    def _idle_or_new(self) -> "Worker":
        with self._lock:
            while self._idle:
                worker = self._idle.pop()
                if worker.alive():
                    return worker
                self._all.discard(worker)
                worker.end()
        worker = Worker()
        with self._lock:
            if not self._closed:
                self._all.add(worker)
                return worker
        worker.end()
        raise Broken("the proxy is ending")


class Worker:
    """One process, used by one thread at a time."""

    def __init__(self) -> None:
        """Start the process; raises OSError."""
        # A session of its own: signals of a terminal to the proxy's group are not for the worker.
        folders = [folder or os.getcwd() for folder in sys.path]
        command = [sys.executable, "-c", _START, *folders]
        self._process = Popen(command, stdin=PIPE, stdout=PIPE, start_new_session=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._requests, self._responses = self._process.stdin, self._process.stdout
        widen(self._requests.fileno())
        widen(self._responses.fileno())

    def alive(self) -> bool:
        """Return True if the process has not ended."""
        return self._process.poll() is None

    def ask(self, message: WorkerMessage, job: ShapeJob, seconds: float) -> ShapeResult | str:
        """Return the result of `job`; raises Broken if the process ends first, or must."""
        started = monotonic()
        timer = Timer(seconds, self.kill)
        try:
            timer.start()
            message.write(self._requests)
            outcome: ShapeResult | str = WorkerMessage.read(self._responses).value(job.raw)
            return outcome
        except (OSError, EOFError):
            self.end()
            if monotonic() - started >= seconds:
                raise Broken(f"it took more than {seconds:g} seconds") from None
            code = self._process.returncode
            how = f"by signal {-code}" if code < 0 else f"with exit code {code}"
            raise Broken(f"it ended {how}") from None
        except Exception as error:  # no thread, no memory for the answer: a part may be unread
            self.end()
            raise Broken(f"{type(error).__name__}: {error}") from error
        finally:
            timer.cancel()

    def kill(self) -> None:
        """End the process at once; a thread that waits for its answer sees the end."""
        self._process.kill()

    def end(self) -> None:
        """End the process and release its pipes."""
        self._process.kill()
        self._process.wait()
        with suppress(OSError):  # from bytes that were not written yet
            self._requests.close()
        self._responses.close()
