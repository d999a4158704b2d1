"""Has something done in a thread that may never begin.

Where memory runs out a new thread may end before its first instruction, and `Thread.start` then
waits for it for ever (seen in CPython 3.11).
"""

from _thread import allocate_lock, start_new_thread
from collections.abc import Callable


def within(seconds: float, do: Callable[[], object]) -> None:
    """Have something done, and wait for so long; what takes longer goes on.

    It is done once. Where no thread is to be had, or none has begun in time, it is done here.
    """
    claim, done = allocate_lock(), allocate_lock()
    done.acquire()

    def run() -> None:
        if claim.acquire(blocking=False):
            try:
                do()
            finally:
                done.release()

    try:
        start_new_thread(run, ())
    except (RuntimeError, MemoryError):
        pass
    else:
        if done.acquire(timeout=seconds):
            return
    run()
