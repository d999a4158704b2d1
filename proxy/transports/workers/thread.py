"""Shape one response after the other in a thread of its own, so that the event loop is not blocked.

For rules with Python of their own, which may need state that only this process has. A thread cannot
be ended: one that takes too long is abandoned and another replaces it, up to a bound.
"""

import asyncio
from contextlib import suppress
from queue import SimpleQueue
from threading import Lock, Thread
from time import monotonic

from msgspec import Struct
from msgspec.structs import replace

from proxy.shaping import pipeline
from proxy.shaping.job import ShapeJob, ShapeResult

_LEAST = 0.01  # seconds between two checks if a job takes too long


class Turn(Struct, eq=False):
    """A job that waits, or has been running since `began`."""

    job: ShapeJob
    done: "asyncio.Future[ShapeResult]"
    began: float = 0.0


class ThreadRunner:
    """At most one job runs at a time, besides those that took longer than `seconds`.

    If `most` of these still run, no other job is started until one of them ends.
    """

    def __init__(self, seconds: float = 30.0, most: int = 4) -> None:
        self._seconds = seconds
        self._most = most
        self._turns: SimpleQueue[Turn | None] = SimpleQueue()
        self._lock = Lock()
        self._at: Turn | None = None
        self._thread: Thread | None = None
        self._stuck = 0

    async def shape(self, job: ShapeJob) -> ShapeResult:
        """Return the result of `job`; that of a failed rule if the job is abandoned.

        Raises RuntimeError if no thread can be started.
        """
        loop = asyncio.get_running_loop()
        turn = Turn(job, loop.create_future())
        queued = False
        try:
            while not turn.done.done():
                if self._stuck >= self._most:
                    said = f"{self._stuck} threads are taken up by rules that do not end"
                    failed = pipeline.failure(job, f"the worker thread: {said}")
                    return replace(failed, blameless=True)
                if not queued:
                    # Not before the check above: if no thread takes jobs out, they would pile up.
                    self._turns.put(turn)
                    queued = True
                if self._thread is None:
                    self._start(loop)
                await asyncio.wait((turn.done,), timeout=self._left())
                self._look()
            return turn.done.result()
        finally:
            turn.done.cancel()  # its caller no longer waits for it

    def close(self) -> None:
        """End the thread; one that is stuck ends with the process."""
        self._turns.put(None)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        thread = Thread(target=self._run, args=(loop,), name="apart", daemon=True)
        thread.start()
        self._thread = thread

    def _left(self) -> float:
        """Return the seconds until the running job takes too long."""
        turn = self._at
        return max(_LEAST, self._seconds - (0.0 if turn is None else monotonic() - turn.began))

    def _look(self) -> None:
        """Abandon a job that takes too long."""
        with self._lock:
            turn = self._at
            if turn is None or monotonic() - turn.began < self._seconds:
                return
            self._at = self._thread = None
        self._stuck += 1
        said = f"it took more than {self._seconds:g} seconds; its thread was left alone"
        _settle(turn, pipeline.failure(turn.job, f"the worker thread: {said}"))

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Run jobs in the thread until the thread is abandoned."""
        # Each in a frame of its own, so that no job stays referenced while waiting for the next.
        while self._goes_on(loop):
            pass

    def _goes_on(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Run the next job; return False if the thread must end."""
        turn = self._turns.get()
        if turn is None or turn.done.done():
            return turn is not None
        turn.began = monotonic()
        self._at = turn
        try:
            outcome = pipeline.shape(turn.job)
        except BaseException as error:  # in a thread it ends nothing else
            outcome = pipeline.failure(turn.job, error)
        with self._lock:
            ours = self._at is turn
            self._at = None if ours else self._at
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._over, turn, outcome, ours)
        return ours

    def _over(self, turn: Turn, outcome: ShapeResult, ours: bool) -> None:
        """Take the result of a job, `ours` unless the job was abandoned before."""
        self._stuck -= not ours
        _settle(turn, outcome)


def _settle(turn: Turn, outcome: ShapeResult) -> None:
    if not turn.done.done():
        turn.done.set_result(outcome)
