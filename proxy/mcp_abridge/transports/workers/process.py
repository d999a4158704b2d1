"""The main loop of a worker process: it shapes one job after the other until its parent is gone.

Without asynchronous I/O, which is not imported here, it starts in half the time.
"""

import os
import pickle
import signal
from queue import SimpleQueue
from threading import Thread
from typing import IO, NoReturn

from msgspec.structs import replace

from mcp_abridge.shaping import pipeline
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from mcp_abridge.system import platform


def serve() -> NoReturn:
    """Run the jobs that arrive on stdin and answer on stdout, until stdin ends."""
    # It ends with its parent, which may still be draining when its whole group gets a signal.
    for number in platform.END_SIGNALS:
        signal.signal(number, signal.SIG_IGN)
    requests, responses = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output that a transform prints is no answer
    platform.widen(requests.fileno())
    platform.widen(responses.fileno())
    waiting: SimpleQueue[ShapeJob] = SimpleQueue()
    Thread(target=_receive, args=(requests, waiting), daemon=True).start()
    while True:
        outcome = _outcome(waiting.get())
        try:
            pickle.dump(outcome, responses)
            responses.flush()
        except OSError:
            os._exit(0)


def _receive(requests: IO[bytes], waiting: "SimpleQueue[ShapeJob]") -> None:
    # In a thread of its own, so that the end of the parent also ends a long job.
    try:
        while True:
            waiting.put(pickle.load(requests))
    except (EOFError, OSError):
        os._exit(0)
    except Exception:  # no memory for the request: the parent must not wait for an answer
        os._exit(1)


def _outcome(job: ShapeJob) -> ShapeResult | str:
    """Return the result, with an empty response if it is unchanged, or why there is none."""
    try:
        outcome = pipeline.shape(job)
        return replace(outcome, raw=b"") if outcome.raw is job.raw else outcome
    except Exception as error:  # too little memory, ...
        return f"{type(error).__name__}: {error}"
