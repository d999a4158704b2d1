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
from typing import IO, Any, NamedTuple, NoReturn

from msgspec.structs import replace

from proxy.shaping import pipeline
from proxy.shaping.job import ShapeJob, ShapeResult
from proxy.transports.stdio.pipes import widen

_LENGTHS = Struct("<QQQ")


class WorkerMessage(NamedTuple):
    """A message between the processes: a pickled head, a response and a document."""

    head: bytes
    raw: bytes = b""
    document: bytes = b""

    @classmethod
    def of(
        cls, value: ShapeJob | ShapeResult | str, original: bytes | None = None
    ) -> "WorkerMessage":
        """Return the message with a job, with its result, or with why there is none.

        The response in it is left out if it is the `original` one, which the other side has.
        Raises pickle's exceptions if a rule cannot be pickled.
        """
        if isinstance(value, str):
            return cls(pickle.dumps(value))
        raw = None if value.raw is original else value.raw
        snapshot = value.snapshot
        if snapshot is None:
            return cls(pickle.dumps((replace(value, raw=None), raw is None)), raw or b"")
        hollow = replace(value, raw=None, snapshot=replace(snapshot, document=b""))
        return cls(pickle.dumps((hollow, raw is None)), raw or b"", snapshot.document)

    def value(self, original: bytes | None = None) -> Any:
        """Return the job, result or reason in the message."""
        head = pickle.loads(self.head)
        if isinstance(head, str):
            return head
        hollow, same = head
        value = replace(hollow, raw=original if same else self.raw)
        if value.snapshot is None:
            return value
        return replace(value, snapshot=replace(value.snapshot, document=self.document))

    @classmethod
    def read(cls, stream: IO[bytes]) -> "WorkerMessage":
        """Wait for a message; raises EOFError if the other side is gone."""
        lengths = _LENGTHS.unpack(_exactly(stream, _LENGTHS.size))
        return cls(*[_exactly(stream, length) for length in lengths])

    def write(self, stream: IO[bytes]) -> None:
        """Send the message; raises OSError if the other side is gone."""
        stream.write(_LENGTHS.pack(*map(len, self)))
        for part in self:
            stream.write(part)
        stream.flush()


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
        job = message.value()
        return WorkerMessage.of(pipeline.shape(job), job.raw)
    except Exception as error:  # the rule's classes cannot be imported here, too little memory, ...
        return WorkerMessage.of(f"{type(error).__name__}: {error}")


def _exactly(stream: IO[bytes], size: int) -> bytes:
    chunk = stream.read(size)
    if len(chunk) < size:
        raise EOFError
    return chunk
