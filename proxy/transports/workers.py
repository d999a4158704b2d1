"""Shapes large documents in worker processes, so that no other session waits meanwhile.

Each worker is asked through pipes of its own. It sees their end when this process is gone, however
that came about, and one that breaks costs no answer but the one it was working on: there the
original goes out.
"""

import asyncio
import os
import sys
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from subprocess import PIPE, Popen
from threading import Lock, Timer
from time import monotonic

from proxy import pipeline
from proxy.pipeline import Job, Outcome
from proxy.transports.pipes import widen
from proxy.transports.shaping import Message

# It finds what this process finds, wherever that was found.
_START = """
import sys
sys.path[:] = sys.argv[1:]
from proxy.transports.shaping import serve
serve()
"""
_FEWEST, _MOST = 2, 4
_CHECKED = 16  # times as long as other steps take for a document, at least, takes `validate`


class Broken(Exception):
    """A worker that cannot be used (any more): why."""


class Workers:
    """At most `most` processes, by default as many as there are processors: two to four.

    A process is started when it is first needed and then kept. Documents of up to `above` bytes are
    shaped at once, far smaller ones where they are checked too. One that takes longer than
    `seconds` is given up.
    """

    def __init__(
        self, most: int | None = None, above: int = 1 << 20, seconds: float = 60.0
    ) -> None:
        most = most or max(_FEWEST, min(os.cpu_count() or 1, _MOST))
        self._above = above
        self._seconds = seconds
        self._threads = ThreadPoolExecutor(most, thread_name_prefix="worker")
        self._lock = Lock()
        self._idle: list[Worker] = []
        self._all: set[Worker] = set()
        self._closed = False

    async def shape(self, job: Job) -> Outcome:
        """Do `job`; never raises. Where its worker breaks, the outcome is that of a failed rule.

        A rule with Python of its own is never sent to another process.
        """
        source = job.raw if job.snapshot is None else job.snapshot.document
        at_once = self._closed or job.rule.foreign
        above = self._above if job.rule.validate is None else self._above // _CHECKED
        if at_once or source is None or len(source) <= above:
            return pipeline.shape(job)
        return await asyncio.get_running_loop().run_in_executor(self._threads, self._ask, job)

    def close(self) -> None:
        """End all processes; what they are working on is given up."""
        with self._lock:
            self._closed = True
            workers = list(self._all)
        for worker in workers:
            worker.kill()
        self._threads.shutdown()
        for worker in workers:
            worker.end()

    def _ask(self, job: Job) -> Outcome:
        """Have a worker do `job` and wait for it, in a thread."""
        try:
            message = Message.asking(job)
        except Exception as error:  # whatever a rule holds, and however that fails
            said = f"the way to a worker process: {type(error).__name__}: {error}"
            return pipeline.failure(job, said)
        try:
            worker = self._taken()
        except (OSError, Broken) as cause:
            return pipeline.failure(job, f"the start of a worker process: {cause}")
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
        """Start it; raises OSError."""
        # A session of its own: what a terminal sends to our group is not for the worker.
        places = [place or os.getcwd() for place in sys.path]
        command = [sys.executable, "-c", _START, *places]
        self._process = Popen(command, stdin=PIPE, stdout=PIPE, start_new_session=True)
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._asked, self._answers = self._process.stdin, self._process.stdout
        widen(self._asked.fileno())
        widen(self._answers.fileno())

    def alive(self) -> bool:
        """Say whether it can be asked."""
        return self._process.poll() is None

    def ask(self, message: Message, job: Job, seconds: float) -> Outcome | str:
        """Return what comes of `job`; raises Broken where the process ends first, or must."""
        started = monotonic()
        late = Timer(seconds, self.kill)
        late.start()
        try:
            message.write(self._asked)
            return Message.read(self._answers).outcome(job)
        except (OSError, EOFError):
            self.end()
            if monotonic() - started >= seconds:
                raise Broken(f"it took more than {seconds:g} seconds") from None
            raise Broken(f"it ended {_how(self._process.returncode)}") from None
        except Exception as error:  # too little memory for the answer, of which a part may be left
            self.end()
            raise Broken(f"{type(error).__name__}: {error}") from error
        finally:
            late.cancel()

    def kill(self) -> None:
        """End the process at once; whoever waits for an answer sees that there is none."""
        self._process.kill()

    def end(self) -> None:
        """End the process and let go of all that belongs to it."""
        self._process.kill()
        self._process.wait()
        with suppress(OSError):  # of what was not written yet
            self._asked.close()
        self._answers.close()


def _how(code: int) -> str:
    return f"by signal {-code}" if code < 0 else f"with exit code {code}"
