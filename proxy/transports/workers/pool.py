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
from proxy.transports.workers.thread import ThreadRunner

# A worker imports from the same places as this process.
_START = """
import sys
sys.path[:] = sys.argv[1:]
from proxy.transports.workers.process import serve
serve()
"""
_FEWEST, _MOST = 3, 4
_COSTLY = 4  # the same for steps whose cost the size of the document does not predict
_REMEMBERED = 100


class Broken(Exception):
    """A worker that cannot be used (any more), with the reason."""


class Workers:
    """At most `most` processes, by default as many as there are processors: three or four.

    A process is started when it is first needed and then kept; with `most` 0, long jobs run in a
    thread. Documents of up to `above` bytes are shaped at once if a rule has one step; the bound is
    lower if it has many steps. A job that takes longer than `seconds` is abandoned. One process is
    always left for jobs that are sure to end soon.
    """

    def __init__(
        self, most: int | None = None, above: int = 256 << 10, seconds: float = 60.0
    ) -> None:
        most = max(_FEWEST, min(os.cpu_count() or 1, _MOST)) if most is None else most
        self._above = above
        self._seconds = seconds
        self._apart = ThreadRunner()
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="worker") if most else None
        self._room = asyncio.Semaphore(max(1, most - 1))  # for jobs that may take very long
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
        if self._closed or (job.aside and not job.rule.structures):
            return pipeline.shape(job)
        if job.rule.foreign:
            return await self._apart.shape(job)
        costly = job.rule.costly or job.view is not None
        if self._short(job, costly=costly):
            if not costly:
                return pipeline.shape(job)
            outcome = pipeline.shape(replace(job, fuel=LITTLE))
            if not outcome.spent:
                return outcome
            self._remember(job.rule)
        return await self._sent(job, costly=costly)

    def _short(self, job: ShapeJob, *, costly: bool) -> bool:
        """Return True if `job` is run at once, or at least tried."""
        source = job.raw if job.snapshot is None else job.snapshot.document
        if source is None:
            return True
        rule = job.rule
        passes = max(1, len(rule.pipeline), len(rule.errors))
        if costly:
            passes *= _COSTLY
        return len(source) * passes <= self._above and id(rule) not in self._spenders

    def _remember(self, rule: Rule) -> None:
        """Send the next responses of a rule to a worker without trying them here first."""
        if len(self._spenders) >= _REMEMBERED:
            self._spenders.clear()
        self._spenders[id(rule)] = rule

    async def _sent(self, job: ShapeJob, *, costly: bool) -> ShapeResult:
        """Run `job` in a worker process, or in a thread if there are no processes."""
        if self._threads is None:
            return await self._apart.shape(job)
        if not costly:
            return await asyncio.wrap_future(self._threads.submit(self._ask, job))
        await self._room.acquire()
        loop = asyncio.get_running_loop()
        try:
            asked = self._threads.submit(self._ask, job)
        except BaseException:
            self._room.release()
            raise

        def leave(_: object) -> None:
            with suppress(RuntimeError):  # the loop is closed
                loop.call_soon_threadsafe(self._room.release)

        # When the job has ended, which may be after its caller was cancelled.
        asked.add_done_callback(leave)
        return await asyncio.wrap_future(asked)

    def close(self) -> None:
        """End all processes and abandon their jobs."""
        with self._lock:
            self._closed = True
            workers = list(self._all)
        for worker in workers:
            worker.kill()
        self._apart.close()
        if self._threads is not None:
            self._threads.shutdown()
        for worker in workers:
            worker.end()

    def _ask(self, job: ShapeJob) -> ShapeResult:
        """Send `job` to a worker and wait for its result, in a thread."""
        try:
            message = WorkerMessage.asking(job)
        except Exception as error:  # a rule may hold any object, and fail in any way
            said = f"the way to a worker process: {type(error).__name__}: {error}"
            return pipeline.failure(job, said)
        try:
            worker = self._taken()
        except (OSError, Broken) as cause:
            failed = pipeline.failure(job, f"the start of a worker process: {cause}")
            return replace(failed, blameless=True)
        try:
            outcome = worker.ask(message, job, self._seconds)
        except Broken as cause:
            with self._lock:
                self._all.discard(worker)
            return pipeline.failure(job, f"the worker process: {cause}")
        with self._lock:
            self._idle.append(worker)
        if isinstance(outcome, str):
            return pipeline.failure(job, f"the worker process: {outcome}")
        return outcome

    def _taken(self) -> "Worker":
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
        places = [place or os.getcwd() for place in sys.path]
        command = [sys.executable, "-c", _START, *places]
        self._process = Popen(command, stdin=PIPE, stdout=PIPE, start_new_session=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asked, self._answers = self._process.stdin, self._process.stdout
        widen(self._asked.fileno())
        widen(self._answers.fileno())

    def alive(self) -> bool:
        """Return True if the process has not ended."""
        return self._process.poll() is None

    def ask(self, message: WorkerMessage, job: ShapeJob, seconds: float) -> ShapeResult | str:
        """Return the result of `job`; raises Broken if the process ends first, or must."""
        started = monotonic()
        late = Timer(seconds, self.kill)
        try:
            late.start()
            message.write(self._asked)
            return WorkerMessage.read(self._answers).outcome(job)
        except (OSError, EOFError):
            self.end()
            if monotonic() - started >= seconds:
                raise Broken(f"it took more than {seconds:g} seconds") from None
            raise Broken(f"it ended {_how(self._process.returncode)}") from None
        except Exception as error:  # no thread, no memory for the answer: a part may be unread
            self.end()
            raise Broken(f"{type(error).__name__}: {error}") from error
        finally:
            late.cancel()

    def kill(self) -> None:
        """End the process at once; a thread that waits for its answer sees the end."""
        self._process.kill()

    def end(self) -> None:
        """End the process and release its pipes."""
        self._process.kill()
        self._process.wait()
        with suppress(OSError):  # from bytes that were not written yet
            self._asked.close()
        self._answers.close()


def _how(code: int) -> str:
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"
