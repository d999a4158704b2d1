"""Shapes one response after the other in a thread of its own, so that the loop goes on meanwhile.

For rules with Python of their own, which may need what only this process has. Nobody can end a
thread: one that takes too long is left alone, another takes its place, and there are only so many.
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

_LEAST = 0.01  # seconds between two looks whether a job takes too long


class Turn(Struct, eq=False):
    """A job that waits, or is being done since `began`."""

    job: ShapeJob
    done: "asyncio.Future[ShapeResult]"
    began: float = 0.0


class ThreadRunner:
    """At most one job is being done, but for those that took longer than `seconds`.

    Once `most` of these go on at the same time, no other job is done until one of them ends.
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
        """Do `job`. Where it is given up, the outcome is that of a failed rule.

        Raises RuntimeError where no thread is to be had.
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
                    # Not where nobody may ever take it out: jobs would pile up.
                    self._turns.put(turn)
                    queued = True
                if self._thread is None:
                    self._start(loop)
                await asyncio.wait((turn.done,), timeout=self._left())
                self._look()
            return turn.done.result()
        finally:
            turn.done.cancel()  # nobody waits for it any more

    def close(self) -> None:
        """Let the thread end; one that does not ends with the process."""
        self._turns.put(None)

    def _start(self, loop: asyncio.AbstractEventLoop) -> None:
        thread = Thread(target=self._run, args=(loop,), name="apart", daemon=True)
        thread.start()
        self._thread = thread

    def _left(self) -> float:
        """Return in how many seconds the job that is being done takes too long."""
        turn = self._at
        return max(_LEAST, self._seconds - (0.0 if turn is None else monotonic() - turn.began))

    def _look(self) -> None:
        """Give up a job that takes too long."""
        with self._lock:
            turn = self._at
            if turn is None or monotonic() - turn.began < self._seconds:
                return
            self._at = self._thread = None
        self._stuck += 1
        said = f"it took more than {self._seconds:g} seconds; its thread was left alone"
        _settle(turn, pipeline.failure(turn.job, f"the worker thread: {said}"))

    def _run(self, loop: asyncio.AbstractEventLoop) -> None:
        """Do what comes, in the thread, until that was left alone."""
        # One by one in a frame of its own, so that no job is held while the next is waited for.
        while self._goes_on(loop):
            pass

    def _goes_on(self, loop: asyncio.AbstractEventLoop) -> bool:
        """Do the next job; return False where the thread is to end."""
        turn = self._turns.get()
        if turn is None or turn.done.done():
            return turn is not None
        turn.began = monotonic()
        self._at = turn
        try:
            outcome = pipeline.shape(turn.job)
        except BaseException as error:  # of a thread, which ends nothing else
            outcome = pipeline.failure(turn.job, error)
        with self._lock:
            ours = self._at is turn
            self._at = None if ours else self._at
        with suppress(RuntimeError):  # the loop is closed
            loop.call_soon_threadsafe(self._over, turn, outcome, ours)
        return ours

    def _over(self, turn: Turn, outcome: ShapeResult, ours: bool) -> None:
        """Take what came of a job, `ours` unless it was given up before."""
        self._stuck -= not ours
        _settle(turn, outcome)


def _settle(turn: Turn, outcome: ShapeResult) -> None:
    if not turn.done.done():
        turn.done.set_result(outcome)
