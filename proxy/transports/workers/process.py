"""The main loop of a worker process: it shapes one job after the other until its parent is gone.

A message between the two is a pickled head, then the response and the document of a snapshot as
raw bytes. These may be very long; a copy into a pickle would block the parent. A response that
stays unchanged is not sent back. Asynchronous I/O is not imported here: without it, a worker starts
in half the time.
"""

import os
import pickle
import signal
from queue import SimpleQueue
from struct import Struct
from threading import Thread
from typing import IO, Any, NoReturn

from msgspec.structs import replace

from proxy.shaping import pipeline
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.storage.snapshots import Snapshot
from proxy.transports.stdio.pipes import widen

_LENGTHS = Struct("<QQQ")


class WorkerMessage:
    """A message between the processes: a pickled head, a response and a document."""

    __slots__ = ("_document", "_head", "_raw")

    def __init__(self, head: bytes, raw: bytes = b"", document: bytes = b"") -> None:
        self._head = head
        self._raw = raw
        self._document = document

    @classmethod
    def asking(cls, job: ShapeJob) -> "WorkerMessage":
        """Return the request for `job`. Raises pickle's exceptions if a rule cannot be pickled."""
        head = replace(job, raw=None, snapshot=_hollow(job.snapshot))
        return cls(_pickled(head), job.raw or b"", _document(job.snapshot))

    @classmethod
    def answering(cls, job: ShapeJob, outcome: ShapeResult) -> "WorkerMessage":
        """Return the answer with the result of `job`."""
        same = outcome.raw is job.raw
        head = replace(outcome, raw=b"", snapshot=_hollow(outcome.snapshot)), same
        return cls(_pickled(head), b"" if same else outcome.raw, _document(outcome.snapshot))

    @classmethod
    def failing(cls, reason: str) -> "WorkerMessage":
        """Return the answer that the job could not be tried, with the reason."""
        return cls(_pickled(reason))

    @classmethod
    def read(cls, stream: IO[bytes]) -> "WorkerMessage":
        """Wait for a message; raises EOFError if the other side is gone."""
        lengths = _LENGTHS.unpack(_exactly(stream, _LENGTHS.size))
        return cls(*[_exactly(stream, length) for length in lengths])

    def write(self, stream: IO[bytes]) -> None:
        """Send the message; raises OSError if the other side is gone."""
        lengths = _LENGTHS.pack(len(self._head), len(self._raw), len(self._document))
        stream.write(lengths + self._head)
        stream.write(self._raw)
        stream.write(self._document)
        stream.flush()

    def job(self) -> ShapeJob:
        """Return the requested job."""
        job: ShapeJob = pickle.loads(self._head)
        if job.snapshot is None:
            return replace(job, raw=self._raw)
        return replace(job, snapshot=self._filled(job.snapshot))

    def outcome(self, job: ShapeJob) -> ShapeResult | str:
        """Return the result of `job`, or the reason why there is none."""
        head = pickle.loads(self._head)
        if isinstance(head, str):
            return head
        outcome: ShapeResult
        outcome, same = head
        raw = job.raw if same else self._raw
        return replace(outcome, raw=raw, snapshot=self._filled(outcome.snapshot))

    def _filled(self, snapshot: Snapshot | None) -> Snapshot | None:
        return None if snapshot is None else Snapshot(snapshot.frame, self._document)


def serve() -> NoReturn:
    """Run the jobs that arrive on stdin and answer on stdout, until stdin ends."""
    # It ends with its parent, which may still be draining when its whole group gets a signal.
    for number in (signal.SIGINT, signal.SIGTERM, signal.SIGHUP):
        signal.signal(number, signal.SIG_IGN)
    requests, responses = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    os.dup2(2, 1)  # output that a transform prints is no answer
    widen(requests.fileno())
    widen(responses.fileno())
    waiting: SimpleQueue[WorkerMessage] = SimpleQueue()
    Thread(target=_receive, args=(requests, waiting), daemon=True).start()
    while True:
        try:
            _answer(waiting.get()).write(responses)
        except OSError:
            os._exit(0)


def _receive(requests: IO[bytes], waiting: "SimpleQueue[WorkerMessage]") -> None:
    # In a thread of its own, so that the end of the parent also ends a long job.
    try:
        while True:
            waiting.put(WorkerMessage.read(requests))
    except (EOFError, OSError):
        os._exit(0)
    except Exception:  # no memory for the request: the parent must not wait for an answer
        os._exit(1)


def _answer(message: WorkerMessage) -> WorkerMessage:
    try:
        job = message.job()
        return WorkerMessage.answering(job, pipeline.shape(job))
    except Exception as error:  # the rule's classes cannot be imported here, too little memory, ...
        return WorkerMessage.failing(f"{type(error).__name__}: {error}")


def _hollow(snapshot: Snapshot | None) -> Snapshot | None:
    return None if snapshot is None else Snapshot(snapshot.frame, b"")


def _document(snapshot: Snapshot | None) -> bytes:
    return b"" if snapshot is None else snapshot.document


def _pickled(head: Any) -> bytes:
    return pickle.dumps(head, pickle.HIGHEST_PROTOCOL)


def _exactly(stream: IO[bytes], size: int) -> bytes:
    chunk = stream.read(size)
    if len(chunk) < size:
        raise EOFError
    return chunk
