"""Move lines between the client on the proxy's stdin and stdout and a server in a child process.

One thread reads the client, one the server, one its stderr, one waits for signals, one watches the
time of calls, each view has one; the main thread waits for the end. Invariants: the session is
entered by one thread at a time; shaping happens outside it; the thread that reads the server never
waits for the server; and no message of the client about a suspended call is sent ahead of the call.
"""

import os
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from threading import Lock, Thread
from time import monotonic, sleep
from typing import ParamSpec, TypeVar

from mcp_abridge.session.outputs import Noise, Output, Outputs, Probe, Shape, ToClient, ToServer
from mcp_abridge.session.session import Session
from mcp_abridge.session.state import failure_reason
from mcp_abridge.shaping import pipeline
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from mcp_abridge.system import platform
from mcp_abridge.transports.correlation import error_for_long_line, refusal_of_long_line
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.stdio.pipes import (
    Chunk,
    Event,
    Lines,
    LineTruncated,
    LongLine,
    PipeReader,
    PipeWriter,
)
from mcp_abridge.transports.stdio.shutdown import Alarm, Shutdown


def run_with_timeout(seconds: float, do: Callable[[], object]) -> None:
    """Call `do` once, in a thread if one begins in time, and wait for at most `seconds`."""
    claim, finished = allocate_lock(), allocate_lock()
    finished.acquire()

    def run() -> None:
        if claim.acquire(blocking=False):
            try:
                do()
            finally:
                finished.release()

    with suppress(RuntimeError, MemoryError):
        start_new_thread(run, ())
        if finished.acquire(timeout=seconds):
            return
    run()


_FAILED = 70  # EX_SOFTWARE of sysexits.h
_PATIENCE = 1.0  # seconds for the last messages
_SUSPENDED = 5.0  # seconds for suspended calls to continue once the client sends nothing more

P = ParamSpec("P")
T = TypeVar("T")


class Relay:
    """One client, one server, and the session; `cause` is why the server could not be started."""

    def __init__(
        self,
        child: platform.ChildProcess,
        session: Session,
        log: Log,
        limit: int,
        cause: str | None = None,
    ) -> None:
        self._child = child
        self._session = session
        self._log = log
        self._limit = limit
        self._entry = Lock()
        self._client = PipeWriter(1, lambda: self._shutdown.report("client gone"))
        self._server = PipeWriter(child.stdin, lambda: self._shutdown.report("server deaf"))
        self._output = PipeReader(child.stdout)
        self._shutdown = Shutdown(child, self._server, self._output, log, cause)
        self._view_turn = Lock()  # one view at a time: each may take a document's memory
        self._views: set[Thread] = set()
        self._alarm = Alarm()  # of the thread that watches the time

    def run(self) -> int:
        """Move lines until both sides have ended; return the exit code of the proxy."""
        # The thread that waits for them is to receive them.
        platform.hold_signals()
        sides = {
            "deadlines": self._watch_calls,
            "stderr": self._read_stderr,
            "server": self._read_server,
            "client": self._read_client,
        }
        # The client's last: all threads must exist before a request arrives, which takes memory.
        threads = {
            name: Thread(target=self._guarded, args=(side,), name=name, daemon=True)
            for name, side in sides.items()
        }
        self._shutdown.listen()
        for thread in threads.values():
            thread.start()
        self._shutdown.wait()
        threads["stderr"].join(_PATIENCE / 5)
        self._shutdown.wait_for_question()
        self._answer()
        self._shutdown.sweep()
        return self._shutdown.code

    def refuse(self, code: int, reason: str) -> None:
        """End the session, from another thread, with this exit code, for this reason."""
        self._shutdown.refuse(code, reason)

    def _answer(self) -> None:
        reason = self._shutdown.reason
        tail = self._log.tail.decode("utf-8", "replace").strip()
        if not self._entry.acquire(timeout=_PATIENCE):
            self._log.error("calls in flight were not answered: a message is still being looked at")
            return
        try:
            lines = self._session.fail_pending(
                f"{reason}; its stderr ends with:\n{tail}" if tail else reason
            )
        finally:
            self._entry.release()
        if lines:
            self._log.error(f"{reason}; requests answered with an error: {len(lines)}")
        elif self._shutdown.unexpected:
            self._log.error(reason)
        # The client may not be reading; the proxy ends anyway.
        run_with_timeout(_PATIENCE, partial(self._client.finish, lines))

    def _guarded(self, target: Callable[[], None]) -> None:
        try:
            target()
        except Exception as error:  # a side without its thread would wait forever
            reason = f"the proxy failed: {type(error).__name__}: {error}"
            self._log.error(reason)
            self.refuse(_FAILED, reason)

    def _read_client(self) -> None:
        received = False
        for event in _events(PipeReader(0), Lines(self._limit)):
            if type(event) is list:
                self._take(event, of_client=True)
            elif type(event) is LongLine:
                if refusal := refusal_of_long_line(event, self._limit, self._log):
                    self._client.send(refusal)
            elif type(event) is LineTruncated:
                # The server decides how to handle half a message.
                self._take([event.raw], of_client=True)
            if not received:
                received = True
                self._shutdown.report("client began")
        # Keep the server's input open a while for calls that are suspended.
        until = monotonic() + _SUSPENDED
        while self._locked(lambda: self._session.holds_calls) and monotonic() < until:
            sleep(0.01)
        self._end_views()
        # The server may have stopped reading.
        run_with_timeout(_PATIENCE, self._server.send)
        self._server.close()
        self._shutdown.report("client ended")

    def _read_server(self) -> None:
        lines = Lines(self._limit, lambda line: bool(self._locked(self._session.may_stream, line)))
        for event in _events(self._output, lines):
            batch: list[bytes] = []
            if type(event) is list:
                batch = event
            elif type(event) is Chunk:
                self._client.send_chunk(event.raw, event.last)
            elif type(event) is LongLine and event.state == "streamed":
                self._locked(self._session.streamed, event.start, event.size)
            elif type(event) is LongLine:
                batch = error_for_long_line(event, self._limit, self._log, self._awaits)
            elif type(event) is LineTruncated:
                self._log.warning(f"the server ended within a line, after {event.size} bytes of it")
                self._log.write_noise(event.raw)
            self._take(batch, of_client=False)
            if self._client.broken:
                break
        self._end_views()
        # If the client is gone, the server must see that its output is no longer read.
        os.close(self._child.stdout)
        self._shutdown.report("output over")

    def _awaits(self, id: bytes) -> bool:
        return bool(self._locked(self._session.awaits, (id,)))

    def _send_to_server(self, outputs: Outputs, *, wait: bool = False) -> Outputs:
        """Send the lines for the server among the outputs; return the rest.

        With `wait`, the caller's next `send` writes them, which waits for a server that is slow.

        Call it while no other thread can enter the session: else the client could cancel a call
        before it is sent.
        """
        lines = [output.raw for output in outputs if isinstance(output, ToServer)]
        if not lines:
            return outputs
        (self._server.put if wait else self._server.send_later)(lines)
        return tuple(output for output in outputs if not isinstance(output, ToServer))

    def _watch_calls(self) -> None:
        while True:
            self._enter(self._session.expire)
            with self._entry:
                seconds = self._session.time_left()
            # A call that begins meanwhile is due later than this, and a query wakes this thread.
            times = (seconds, self._session.state.inflight.deadline)
            self._alarm.wait(min((each for each in times if each is not None), default=None))

    def _read_stderr(self) -> None:
        stderr = PipeReader(self._child.stderr)
        while True:
            buffer, size = stderr.read()
            if not size:
                return
            self._log.pass_on(bytes(memoryview(buffer)[:size]))

    def _locked(self, enter: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        try:
            with self._entry:
                return enter(*args, **kwargs)
        except Exception as error:
            self._log.error(failure_reason(error))
            return None

    def _take(self, batch: list[bytes], *, of_client: bool) -> None:
        """Pass lines of one side through the session; consecutive lines onward are sent at once."""
        onward = ToServer if of_client else ToClient
        send = self._server.send if of_client else self._client.send
        ready: list[bytes] = []
        for raw in batch:
            with self._entry:
                if of_client:
                    outputs = self._session.from_client(raw)
                else:
                    outputs = self._send_to_server(self._session.from_server(raw))
            for output in outputs:
                if type(output) is onward:
                    ready.append(output.raw)
                else:
                    if ready:
                        send(ready)
                        ready = []
                    self._perform(output, of_client=of_client)
        if ready:
            send(ready)

    def _enter(self, enter: Callable[[], Outputs], *, of_client: bool = False) -> None:
        """Call a method of the session, and perform its outputs."""
        with self._entry:
            every = enter()
            outputs = self._send_to_server(every, wait=of_client)
        if of_client and len(outputs) < len(every):
            self._server.send()
        for output in outputs:
            self._perform(output, of_client=of_client)

    def _perform(self, output: Output, *, of_client: bool = False) -> None:
        """Do what the session returned; the result of shaping or of the store goes back to it.

        `of_client`: it is for a line of the client, which waits for a server that is slow.
        """
        if isinstance(output, ToClient):
            self._client.send([output.raw])
        elif isinstance(output, Probe):
            self._alarm.ring("query")
            (self._server.send if of_client else self._server.send_later)([output.raw])
        elif isinstance(output, Noise):
            self._log.noise(output.raw)
        elif isinstance(output, Shape):
            self._shape(output.job)
        elif not isinstance(output, ToServer):  # those are sent before
            self._enter(partial(output.then, output.do()), of_client=of_client)

    def _shape(self, job: ShapeJob) -> None:
        """Shape a response; a view, or images, in a thread: other calls go on meanwhile."""
        if job.view is not None:
            self._in_turn(lambda: self._finish(job, pipeline.shape(job)))
        elif (result := pipeline.shape(job)).drawings:
            self._in_turn(lambda: self._finish(job, result))
        else:
            self._finish(job, result)

    def _finish(self, job: ShapeJob, result: ShapeResult) -> None:
        if result.drawings:
            # Imported late: few answers have large images.
            from mcp_abridge.transports.workers.pictures import with_drawings

            result = with_drawings(job, result)
        self._enter(partial(self._session.shaped, job, result))

    def _in_turn(self, do: Callable[[], None]) -> None:
        def answer() -> None:
            with self._view_turn:
                do()
            self._views.discard(thread)

        thread = Thread(target=self._guarded, args=(answer,), name="view", daemon=True)
        self._views.add(thread)
        try:
            thread.start()
        except RuntimeError:  # no memory for a thread
            answer()

    def _end_views(self) -> None:
        for thread in tuple(self._views):
            thread.join(_SUSPENDED)


def _events(inlet: PipeReader, lines: Lines) -> Iterator[Event]:
    while True:
        buffer, size = inlet.read()
        if not size:
            yield from lines.end()
            return
        yield from lines.feed(buffer, size)
