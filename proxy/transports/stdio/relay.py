"""Move lines between the client on the proxy's stdin and stdout and a server in a child process.

One thread reads the client, one the server, one the server's stderr; the main thread waits for the
end. If the proxy has sent the server a probe, one more thread watches the time; if calls have a
deadline, another one does.
Invariants: the session is entered by one thread at a time; shaping happens outside it; the thread
that reads the server never waits for the server; and no message of the client about a suspended
call is sent ahead of the call.
"""

import os
from _thread import allocate_lock, start_new_thread
from collections.abc import Callable, Iterable, Iterator
from contextlib import suppress
from functools import partial
from select import select
from threading import Condition, Lock, Thread
from time import monotonic
from typing import ParamSpec, TypeVar

from proxy.document import message
from proxy.errors import RuleErrors, raised
from proxy.session.outputs import (
    DropSnapshots,
    Forward,
    LoadSnapshot,
    Noise,
    Notify,
    Output,
    Probe,
    Reply,
    RunInBackground,
    Shape,
    StoreSnapshot,
)
from proxy.session.session import Session, error_in_place_of
from proxy.session.state import failure_reason
from proxy.shaping import pipeline
from proxy.storage.snapshots import Store
from proxy.transports.log import Log
from proxy.transports.stdio.child import ChildProcess, hold_signals
from proxy.transports.stdio.lines import (
    Chunk,
    Event,
    LineDropped,
    Lines,
    LineStreamed,
    LineTooLong,
    LineTruncated,
)
from proxy.transports.stdio.pipes import PipeReader, PipeWriter
from proxy.transports.stdio.shutdown import Shutdown


def within(seconds: float, do: Callable[[], object]) -> None:
    """Call `do` in a thread and wait for at most `seconds`; a longer call continues there.

    It is called once. If no thread can be started, or none has begun in time, it is called here.
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


_LONGEST = 3600.0  # seconds of a single wait


class DeadlineThread:
    """The deadlines of pending responses, by token.

    `late` is called with each token whose time is up, in a thread that the first token starts.
    """

    def __init__(self, late: Callable[[bytes], None]) -> None:
        self._late = late
        self._due: dict[bytes, float] = {}
        self._next: float | None = None
        self._change = Condition()
        self._thread = Thread(target=self._run, name="deadlines", daemon=True)

    def add(self, token: bytes, seconds: float) -> None:
        """Wait for a response, for so many seconds."""
        due = monotonic() + seconds
        with self._change:
            self._due[token] = due
            if self._next is None or due < self._next:
                self._change.notify_all()
            if self._thread.ident is None:
                # If no thread can be started now, the next probe tries again.
                with suppress(RuntimeError):
                    self._thread.start()

    def settle(self, token: bytes) -> None:
        """Record a response; one without a deadline is ignored."""
        with self._change:
            if self._due.pop(token, None) is not None and not self._due:
                self._change.notify_all()

    def wait(self, seconds: float) -> None:
        """Return once no response is pending, or after so many seconds."""
        with self._change:
            self._change.wait_for(lambda: not self._due, seconds)

    def _run(self) -> None:
        while True:
            token = self._first()
            self._late(token)
            # Only now: a thread in `wait` also waits for the messages that `late` sends.
            self.settle(token)

    def _first(self) -> bytes:
        """Wait until the time of a token is up, and return the token."""
        with self._change:
            while True:
                token = min(self._due, key=self._due.__getitem__, default=None)
                left = _LONGEST if token is None else self._due[token] - monotonic()
                if token is not None and left <= 0:
                    return token
                self._next = None if token is None else self._due[token]
                self._change.wait(min(left, _LONGEST))


_FAILED = 70  # EX_SOFTWARE of sysexits.h
_PATIENCE = 1.0  # seconds for the last messages
_LONGEST_SLEEP = 3600.0  # seconds
_HELD = 5.0  # seconds for suspended calls to continue once the client sends nothing more


P = ParamSpec("P")
T = TypeVar("T")
Send = Callable[[list[bytes]], None]


class Relay:
    """One client, one server, and the session between them.

    `limit` is the maximum size of a line in bytes. `cause` is the reason why the server could not
    be started, if `child` is `stillborn()`.
    """

    def __init__(
        self,
        child: ChildProcess,
        session: Session,
        store: Store,
        log: Log,
        limit: int,
        cause: str | None = None,
    ) -> None:
        self._child = child
        self._session = session
        self._store = store
        self._log = log
        self._limit = limit
        self._entry = Lock()
        self._client = PipeWriter(1, lambda: self._ending.tell("client gone"))
        self._server = PipeWriter(child.stdin, lambda: self._ending.tell("server deaf"))
        self._output = PipeReader(child.stdout)
        self._ending = Shutdown(child, self._server, self._output, log, cause)
        self._deadlines: DeadlineThread | None = None  # of probes

    def run(self) -> int:
        """Move lines until both sides have ended; return the exit code of the proxy."""
        # Only the main thread acts on signals, so only it may receive them.
        hold_signals()
        sides = {
            "stderr": self._read_stderr,
            "server": self._read_server,
            "client": self._read_client,
        }
        if self._session.deadline is not None:
            sides = {"deadline": self._time_calls, **sides}
        # The client's last: all threads must exist before a request arrives, which takes memory.
        threads = {
            name: Thread(target=self._guarded, args=(side,), name=name, daemon=True)
            for name, side in sides.items()
        }
        for thread in threads.values():
            thread.start()
        self._ending.listen()
        self._ending.wait()
        threads["stderr"].join(_PATIENCE / 5)
        self._ending.wait_for_question()
        self._answer()
        self._ending.sweep()
        return self._ending.code

    def refuse(self, code: int, reason: str) -> None:
        """End the session, from another thread, with this exit code, for this reason."""
        self._ending.refuse(code, reason)

    def _answer(self) -> None:
        """Answer the requests in flight with an error, and log the reason."""
        reason = self._ending.reason
        tail = self._log.tail.decode("utf-8", "replace").strip()
        if not self._entry.acquire(timeout=_PATIENCE):
            self._log.error("calls in flight were not answered: a message is still being looked at")
            return
        try:
            outputs = self._session.ended(
                f"{reason}; its stderr ends with:\n{tail}" if tail else reason
            )
        finally:
            self._entry.release()
        lines = [output.raw for output in outputs if isinstance(output, Forward)]
        self._log.sum_up()
        if lines:
            self._log.error(f"{reason}; requests answered with an error: {len(lines)}")
        elif self._ending.unexpected:
            self._log.error(reason)
        # The client may not be reading; the proxy ends anyway.
        within(_PATIENCE, partial(self._client.finish, lines))

    def _guarded(self, target: Callable[[], None]) -> None:
        try:
            target()
        except Exception as error:  # a side without its thread would wait forever
            reason = f"the proxy failed: {type(error).__name__}: {error}"
            self._log.error(reason)
            self.refuse(_FAILED, reason)

    def _read_client(self) -> None:
        take, send, reply = self._session.from_client, self._server.send, self._client.send
        heard = False
        for event in _events(PipeReader(0), Lines(self._limit)):
            if type(event) is list:
                self._take(event, take, send, reply)
            elif type(event) is LineDropped:
                self._refuse_long(event)
            elif type(event) is LineTruncated:
                # The server decides how to handle half a message.
                self._take([event.raw], take, send, reply)
            if not heard:
                heard = True
                self._ending.tell("heard")
        if self._deadlines is not None:
            self._let_go_on(self._deadlines)
        self._server.close()
        self._ending.tell("client ended")

    def _let_go_on(self, deadlines: "DeadlineThread") -> None:
        """Keep the server's input open a while for calls of the client that are suspended."""
        deadlines.wait(_HELD)
        # The server may have stopped reading.
        within(_PATIENCE, self._server.flush)

    def _refuse_long(self, event: LineDropped) -> None:
        said = self._too_long(event.size)
        self._log.warning(f"from the client: {said}")
        id = message.request_id(event.start, event.end)
        if id is not None:
            self._client.send([message.error(id, -1, said)])

    def _too_long(self, size: int) -> str:
        return message.thrown_away(size, self._limit)

    def _read_server(self) -> None:
        take, piece = self._hear, self._client.piece
        send, post = self._client.send, self._server.post
        unanswered = False
        for event in _events(self._output, Lines(self._limit, self._passes)):
            if type(event) is list:
                self._take(event, take, send, post)
                if self._deadlines is not None:
                    for raw in event:
                        self._settle(self._deadlines, raw[: message.ENDS], raw[-message.ENDS :])
            elif type(event) is Chunk:
                piece(event.raw, event.last)
            elif type(event) is LineStreamed:
                self._entered(self._session.streamed, event.start, event.end, event.size)
            elif type(event) is LineTooLong:
                discarded, size = self._session.discarded, event.size
                outputs = self._entered(discarded, event.start, size, self._limit) or ()
                self._all(outputs, send, post)
                unanswered = not outputs
                if self._deadlines is not None:
                    self._settle(self._deadlines, event.start, b"")
            elif type(event) is LineDropped and unanswered:
                # Some servers write the id last. Send an error in place of the response.
                key = message.response_key(event.start, event.end)
                if key is not None:
                    said = self._too_long(event.size)
                    self._take([message.error(key, -1, said)], take, send, post)
            elif type(event) is LineTruncated:
                self._log.warning(f"the server ended within a line, after {event.size} bytes of it")
                self._log.put_aside(event.raw)
            if self._client.broken:
                break
        # If the client is gone, the server must see that its output is no longer read.
        os.close(self._child.stdout)
        self._ending.tell("output over")

    def _hear(self, raw: bytes) -> tuple[Output, ...]:
        """Pass a line of the server to the session, while no other thread can enter it."""
        outputs = self._session.from_server(raw)
        if len(outputs) == 1 and type(outputs[0]) is Forward:
            return outputs
        return self._posted(outputs, Reply)

    def _posted(
        self, outputs: tuple[Output, ...], kind: type[Forward] | type[Reply]
    ) -> tuple[Output, ...]:
        """Post the `outputs` for the server, which are those of `kind`; return the rest.

        Call it while no other thread can enter the session: else the client could cancel a call
        before it is sent.
        """
        lines = [output.raw for output in outputs if isinstance(output, kind)]
        if lines:
            self._server.post(lines)
        return tuple(output for output in outputs if not isinstance(output, kind))

    def _settle(self, deadlines: "DeadlineThread", start: bytes, end: bytes) -> None:
        key = message.response_key(start, end)
        if key is not None:
            deadlines.settle(key)

    def _given_up(self, deadlines: "DeadlineThread", raw: bytes) -> None:
        """Stop waiting for the responses to requests that a line for the server cancels."""
        from proxy.transports.correlation import address, elements

        for each in elements(raw) if b"notifications/cancelled" in raw else ():
            key = address(each).cancels
            if key is not None:
                deadlines.settle(key)

    def _late(self, token: bytes) -> None:
        """Continue a call without the response to its probe: the time for that is up."""
        with self._entry:
            outputs = self._posted(self._session.unanswered(token), Forward)
        self._all(outputs, self._server.post, self._client.send)

    def _time_calls(self) -> None:
        """Answer calls that the server has not answered in time; runs forever."""
        longest = min(self._session.deadline or 0.0, _LONGEST_SLEEP)
        while True:
            with self._entry:
                seconds = self._session.patience()
            # A call that begins meanwhile is due later than this.
            # As in proxy.storage.snapshots: time.sleep() fails if the clock is set back.
            select((), (), (), longest if seconds is None else min(seconds, longest))
            with self._entry:
                outputs = self._posted(self._session.overdue(), Forward)
            self._all(outputs, self._server.post, self._client.send)

    def _watch(self, probe: Probe) -> None:
        if self._deadlines is None:
            # Not created before it is needed: most sessions have no use for it.

            self._deadlines = DeadlineThread(lambda token: self._guarded(lambda: self._late(token)))
        self._deadlines.add(probe.token, probe.seconds)

    def _read_stderr(self) -> None:
        stderr = PipeReader(self._child.stderr)
        while True:
            buffer, size = stderr.read()
            if not size:
                return
            self._log.pass_on(bytes(memoryview(buffer)[:size]))

    def _passes(self, start: bytes) -> bool:
        return self._entered(self._session.may_stream, start) or False

    def _entered(self, enter: Callable[P, T], *args: P.args, **kwargs: P.kwargs) -> T | None:
        """Enter the session; log a failure and return None."""
        try:
            with self._entry:
                return enter(*args, **kwargs)
        except Exception as error:
            self._log.error(failure_reason(error))
            return None

    def _take(
        self,
        batch: list[bytes],
        enter: Callable[[bytes], tuple[Output, ...]],
        ahead: Send,
        back: Send,
    ) -> None:
        """Pass each line of `batch` through the session; send consecutive lines together."""
        ready: list[bytes] = []
        for raw in batch:
            try:
                with self._entry:
                    outputs = enter(raw)
            except Exception as error:  # one message must never end all others
                outputs = self._fault(raw, error, enter == self._hear)
            for output in outputs:
                if type(output) is Forward:
                    if output.raw is not raw and self._deadlines is not None:
                        self._given_up(self._deadlines, output.raw)
                    ready.append(output.raw)
                else:
                    if ready:
                        ahead(ready)
                        ready = []
                    self._do(output, ahead, back)
        if ready:
            ahead(ready)

    def _all(self, outputs: Iterable[Output], ahead: Send, back: Send) -> None:
        for output in outputs:
            self._do(output, ahead, back)

    def _do(self, output: Output, ahead: Send, back: Send) -> None:
        if isinstance(output, Forward):
            ahead([output.raw])
        elif isinstance(output, Reply):
            back([output.raw])
        elif isinstance(output, Notify):
            self._client.send([output.raw])
        elif isinstance(output, Probe):
            # Its time runs from now on: the server may not even read the probe.
            self._watch(output)
            (ahead if ahead == self._server.send else self._server.post)([output.raw])
        elif isinstance(output, Shape):
            outcome = pipeline.shape(output.job)
            with self._entry:
                outputs = self._session.shaped(output.job, outcome)
            # Always for the client, whichever side caused the output.
            self._all(outputs, self._client.send, self._server.post)
        elif isinstance(output, RunInBackground):
            found = output.do()
            with self._entry:
                outputs = output.then(found)
                if back == self._server.post:
                    outputs = self._posted(outputs, Reply)
            self._all(outputs, ahead, back)
        elif isinstance(output, LoadSnapshot):
            with self._entry:
                found, failure = None, None
                try:
                    found = self._store.get(output.key)
                except Exception as error:
                    failure = raised(error)
                outputs = self._session.loaded(output.token, found, failure)
            self._all(outputs, ahead, back)
        elif isinstance(output, StoreSnapshot | DropSnapshots):
            try:
                with self._entry:
                    self._stored(output)
            except Exception as error:  # the response is sent nevertheless
                self._log.error(f"the store failed: {raised(error)}")
        elif isinstance(output, Noise):
            self._log.noise(output.raw)

    def _stored(self, output: StoreSnapshot | DropSnapshots) -> None:
        if isinstance(output, StoreSnapshot):
            self._store.put(output.key, output.snapshot)
        else:
            self._store.drop(output.key)

    def _fault(self, raw: bytes, error: Exception, answers: bool) -> tuple[Output, ...]:
        """Return the outputs for a message that the session failed on."""
        if isinstance(error, RuleErrors):
            said = error.brief
        else:
            said = f"the proxy failed on a message: {type(error).__name__}: {error}"
            self._log.error(said)
        line = error_in_place_of(raw, said, answers=answers)
        if answers:
            return (Forward(raw if line is None else line),)
        return () if line is None else (Reply(line),)


def _events(inlet: PipeReader, lines: Lines) -> Iterator[Event]:
    while True:
        buffer, size = inlet.read()
        if not size:
            yield from lines.end()
            return
        whole = lines.whole(buffer, size)
        if whole is not None:
            yield whole
        else:
            yield from lines.feed(buffer, size)
