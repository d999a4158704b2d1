"""Moves lines between the client on our stdin and stdout and a server in a child process.

One thread reads the client, one the server, one the server's stderr; the main thread waits for the
end of either side and sees to the other. Invariants: the session is entered by one thread at a
time; shaping happens outside it; the thread that reads the server never waits for the server.
"""

import os
import re
import select
import signal
from collections.abc import Callable, Iterable, Iterator
from math import inf
from threading import Lock, Thread
from time import monotonic, sleep

from proxy import message, pipeline
from proxy.errors import RuleErrors
from proxy.session import Forget, Forward, Keep, Load, Noise, Output, Reply, Session, Shape
from proxy.snapshots import Store
from proxy.transports.child import KILL, TERMINATE, Child, hold_signals
from proxy.transports.lines import Cut, Discarded, Event, Lines, Over, Passed, Piece
from proxy.transports.log import Log
from proxy.transports.pipes import Inlet, Outlet

# What begins the end, and what the server's group is then given: seconds until SIGTERM, and from
# there until SIGKILL. Its stdin is closed at once.
_GRACE: dict[str, tuple[float, float]] = {
    "client ended": (5.0, 2.0),  # late answers are still wanted
    "client gone": (1.0, 2.0),
    "server deaf": (1.0, 2.0),
    "output over": (1.0, 2.0),
    "child ended": (0.5, 0.5),  # others of its group may still hold its stdout
    "refused": (0.5, 1.0),
    "signal": (0.5, 1.0),
}
# What threads tell the main thread, a byte each; a signal's is its number.
_TOLD = ("heard", "client ended", "client gone", "server deaf", "output over", "refused")
_BYTES = {event: bytes([128 + at]) for at, event in enumerate(_TOLD)}
_LAST = 0.5  # seconds from SIGKILL until nothing more is expected
_PATIENCE = 1.0  # seconds for a first request, a last word, a group that is left over

_SIGNALS = tuple(
    number
    for name in ("SIGINT", "SIGTERM", "SIGHUP")
    if (number := getattr(signal, name, None)) is not None
)

# Where the id of a request stands that is too long to be decoded.
_ID = rb'"id"\s*:\s*("[^"\\]{0,256}"|-?\d{1,64})\s*'
_ID_FIRST = re.compile(rb'\s*\{\s*(?:"jsonrpc"\s*:\s*"2\.0"\s*,\s*)?' + _ID + rb",")
_ID_LAST = re.compile(rb",\s*" + _ID + rb"\}\s*\Z")

Send = Callable[[bytes], None]


class Relay:
    """One client, one server, and the session between them.

    `limit` is the most bytes of one line. `cause` says why the child is a stillborn one.
    """

    def __init__(
        self,
        child: Child,
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
        self._cause = cause
        self._entry = Lock()
        # A pipe, since a signal that arrives just before one waits for anything else is not seen.
        self._hearing, self._telling = os.pipe()
        os.set_blocking(self._telling, False)
        self._ears = select.poll()
        self._ears.register(self._hearing, select.POLLIN)
        self._client = Outlet(1, lambda: self._tell("client gone"))
        self._server = Outlet(child.stdin, lambda: self._tell("server deaf"))
        self._output = Inlet(child.stdout)
        self._heard = False
        self._noise = 0
        self._over = False  # nothing more comes from the server
        self._silent = False  # nothing more comes from the client
        self._signal = 0
        self._code: int | None = None
        self._rung = 0
        self._pace = inf
        self._deadline: float | None = None

    def run(self) -> int:
        """Move lines until both sides have ended; return the exit code that is then ours."""
        stderr = self._start()
        while not (self._over and self._child.ended()):
            self._hear(self._next(self._deadline))
        stderr.join(_PATIENCE / 5)
        self._await_question()
        self._answer()
        self._sweep()
        self._child.release()
        return self._exit_code()

    def refuse(self, code: int) -> None:
        """Have everything ended, from another thread, with this exit code."""
        self._code = code
        self._tell("refused")

    # What the main thread does

    def _start(self) -> Thread:
        # Only the main thread acts on signals, so only it may receive them.
        hold_signals()
        threads = [
            Thread(target=target, name=target.__name__.strip("_"), daemon=True)
            for target in (self._read_client, self._read_server, self._read_stderr)
        ]
        for thread in threads:
            thread.start()
        signal.set_wakeup_fd(self._telling, warn_on_full_buffer=False)
        for number in _SIGNALS:
            # One that was ignored when we were started is meant to stay so (nohup).
            if signal.getsignal(number) is not signal.SIG_IGN:
                signal.signal(number, _noticed)
        signal.signal(signal.SIGCHLD, _noticed)
        signal.pthread_sigmask(signal.SIG_UNBLOCK, {*_SIGNALS, signal.SIGCHLD})
        return threads[-1]

    def _tell(self, event: str) -> None:
        os.write(self._telling, _BYTES[event])

    def _next(self, deadline: float | None) -> str:
        """Wait for what happens next, and take note of it."""
        wait = None if deadline is None else max(0.0, deadline - monotonic()) * 1000
        if not self._ears.poll(wait):
            return "late"
        [byte] = os.read(self._hearing, 1)
        if byte >= 128:
            return _TOLD[byte - 128]
        if byte != signal.SIGCHLD:
            again, self._signal = self._signal, byte
            return "late" if again else "signal"
        return "child ended" if self._child.ended() else "child"

    def _hear(self, event: str) -> None:
        if event == "late":
            self._press()
        elif event == "client ended":
            self._silent = True
        elif event == "output over":
            self._over = True
        if event in _GRACE:
            self._begin(*_GRACE[event])

    def _begin(self, first: float, then: float) -> None:
        """Begin the end of the server, or hasten it."""
        self._server.close()
        self._pace = min(self._pace, then)
        deadline = monotonic() + (self._pace if self._rung else first)
        if self._deadline is None or deadline < self._deadline:
            self._deadline = deadline

    def _press(self) -> None:
        """Take the next step: SIGTERM, SIGKILL, then wait no longer for what nobody will send."""
        self._rung += 1
        wait = _LAST
        if self._rung == 1:
            wait = self._pace
            self._send_signal(TERMINATE, "the server did not end by itself: sent it SIGTERM")
        elif self._rung == 2:
            self._send_signal(KILL, "the server did not end on SIGTERM: sent it SIGKILL")
        else:
            # A process out of reach may hold the server's stdout. A client that is slow to read is
            # waited for: without end as long as it may still ask, else for a while.
            slow = not self._silent or self._rung == 3
            if self._output.idle or self._signal or not slow:
                self._over = True
                self._child.give_up()
            wait = _GRACE["client ended"][0]
        self._deadline = monotonic() + wait

    def _send_signal(self, number: int, said: str) -> None:
        if not self._child.ended():
            self._log.warning(said)
        self._child.signal(number)

    def _await_question(self) -> None:
        """Wait a moment for a client that has not asked anything yet, so that it gets an answer."""
        deadline = monotonic() + _PATIENCE
        while not (self._heard or self._silent or self._signal or self._code):
            event = self._next(deadline)
            if event == "late":
                return
            self._hear(event)

    def _answer(self) -> None:
        """Answer what is in flight, and say why."""
        said = self._last_words()
        if not self._entry.acquire(timeout=_PATIENCE):
            self._log.error("calls in flight were not answered: a message is still being looked at")
            return
        try:
            outputs = self._session.ended(said)
        finally:
            self._entry.release()
        lines = b"".join(each.raw + b"\n" for each in outputs if isinstance(each, Forward))
        if self._noise > 1:
            self._log.warning(f"{self._noise} lines of the server's stdout were no messages")
        failed = self._child.code != 0 and not self._rung and not self._signal
        if outputs:
            self._log.error(f"{self._reason()}; requests answered with an error: {len(outputs)}")
        elif failed and self._cause is None:
            self._log.error(self._reason())
        # The client may not be reading; we are leaving anyway.
        last = Thread(target=self._client.finish, args=(lines,), name="last words", daemon=True)
        last.start()
        last.join(_PATIENCE)

    def _sweep(self) -> None:
        """End what the server has left behind in its group."""
        if self._child.signal(TERMINATE):
            deadline = monotonic() + _LAST
            while self._child.signal(0):
                if monotonic() > deadline:
                    self._child.signal(KILL)
                    break
                sleep(0.01)

    def _exit_code(self) -> int:
        if self._signal:
            return 128 + self._signal
        if self._code is not None:
            return self._code
        code = self._child.code or 0
        return code if code >= 0 else 128 - code

    def _reason(self) -> str:
        code = self._child.code or 0
        if self._cause is not None:
            return self._cause
        if self._signal:
            return f"the proxy was ended by {signal.Signals(self._signal).name}"
        if code >= 0:
            return f"the server ended with exit code {code}"
        try:
            return f"the server was ended by {signal.Signals(-code).name}"
        except ValueError:
            return f"the server was ended by signal {-code}"

    def _last_words(self) -> str:
        tail = self._log.tail.decode("utf-8", "replace").strip()
        return f"{self._reason()}; its stderr ends with:\n{tail}" if tail else self._reason()

    # What the threads do

    def _read_client(self) -> None:
        take, send, reply = self._session.from_client, self._server.send, self._client.send
        for event in _events(Inlet(0), Lines(self._limit)):
            if type(event) is list:
                self._take(event, take, send, reply)
            elif type(event) is Discarded:
                self._refuse_long(event)
            elif type(event) is Cut:
                # What a server makes of half a message is its own affair.
                self._take([event.raw], take, send, reply)
            if not self._heard:
                self._heard = True
                self._tell("heard")
        self._server.close()
        self._tell("client ended")

    def _refuse_long(self, event: Discarded) -> None:
        said = self._too_long(event.size)
        self._log.warning(f"from the client: {said}")
        found = _ID_FIRST.match(event.start) or _ID_LAST.search(event.end)
        if found is not None and message.response_key(event.start, event.end) is None:
            self._client.send(message.error(found[1], -1, said) + b"\n")

    def _too_long(self, size: int) -> str:
        return f"a message of {size} bytes is over the limit of {self._limit} bytes"

    def _read_server(self) -> None:
        take, piece = self._session.from_server, self._client.piece
        send, post = self._client.send, self._server.post
        unanswered = False
        for event in _events(self._output, Lines(self._limit, self._passes)):
            if type(event) is list:
                self._take(event, take, send, post)
            elif type(event) is Piece:
                piece(event.raw, event.last)
            elif type(event) is Passed:
                with self._entry:
                    self._session.streamed(event.start, event.end, event.size)
            elif type(event) is Over:
                with self._entry:
                    outputs = self._session.discarded(event.start, event.size, self._limit)
                self._all(outputs, send, post)
                unanswered = not outputs
            elif type(event) is Discarded and unanswered:
                # Some write the id last. An answer of the server's that says what happened.
                key = message.response_key(event.start, event.end)
                if key is not None:
                    said = self._too_long(event.size)
                    self._take([message.error(key, -1, said)], take, send, post)
            elif type(event) is Cut:
                self._log.warning(f"the server ended within a line, after {event.size} bytes of it")
                self._log.put_aside(event.raw)
            if self._client.broken:
                break
        # Where the client is gone, the server is to see that nobody reads any more.
        os.close(self._child.stdout)
        self._tell("output over")

    def _read_stderr(self) -> None:
        stderr = Inlet(self._child.stderr)
        while True:
            buffer, size = stderr.read()
            if not size:
                return
            self._log.pass_on(bytes(memoryview(buffer)[:size]))

    def _passes(self, start: bytes) -> bool:
        with self._entry:
            return self._session.head(start)

    def _take(
        self,
        batch: list[bytes],
        enter: Callable[[bytes], tuple[Output, ...]],
        ahead: Send,
        back: Send,
    ) -> None:
        """Pass each line of `batch` through the session; what goes on goes on together."""
        ready: list[bytes] = []
        for raw in batch:
            try:
                with self._entry:
                    outputs = enter(raw)
            except Exception as error:  # one message must never end all others
                outputs = self._fault(raw, error, enter == self._session.from_server)
            for output in outputs:
                if type(output) is Forward:
                    ready.append(output.raw)
                else:
                    if ready:
                        _send(ready, ahead)
                        ready = []
                    self._do(output, ahead, back)
        if ready:
            _send(ready, ahead)

    def _all(self, outputs: Iterable[Output], ahead: Send, back: Send) -> None:
        for output in outputs:
            self._do(output, ahead, back)

    def _do(self, output: Output, ahead: Send, back: Send) -> None:
        if isinstance(output, Forward):
            ahead(output.raw + b"\n")
        elif isinstance(output, Reply):
            back(output.raw + b"\n")
        elif isinstance(output, Shape):
            outcome = pipeline.shape(output.job)
            with self._entry:
                outputs = self._session.shaped(output.job, outcome)
            # Whoever asked for it, the answer goes to the client.
            self._all(outputs, self._client.send, self._server.post)
        elif isinstance(output, Load):
            with self._entry:
                found = self._store.get(output.key)
                outputs = self._session.loaded(output.token, found)
            self._all(outputs, ahead, back)
        elif isinstance(output, Keep):
            with self._entry:
                self._store.put(output.key, output.snapshot)
        elif isinstance(output, Forget):
            with self._entry:
                self._store.drop(output.keys)
        elif isinstance(output, Noise):
            self._put_aside(output.raw)

    def _fault(self, raw: bytes, error: Exception, answers: bool) -> tuple[Output, ...]:
        """Return what to do with a message that the session could not take."""
        if isinstance(error, RuleErrors):
            said = "the rules cannot be used"  # what is wrong with them is in the log already
        else:
            said = f"the proxy failed on a message: {type(error).__name__}: {error}"
            self._log.error(said)
            if answers:
                return (Forward(raw),)
        try:
            read = message.read(raw)
            assert isinstance(read, message.Message)
            line = message.error(read.id, -1, said)
        except Exception:
            return ()
        return (Forward(line),) if answers else (Reply(line),)

    def _put_aside(self, raw: bytes) -> None:
        self._noise += 1
        if self._noise == 1:
            self._log.warning("the server writes lines that are no messages to its stdout")
        self._log.put_aside(raw)


def _noticed(number: int, frame: object) -> None:
    """Do nothing: that there is a handler makes the signal's byte appear in the pipe."""


def _events(inlet: Inlet, lines: Lines) -> Iterator[Event]:
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


def _send(lines: list[bytes], to: Send) -> None:
    lines.append(b"")
    to(b"\n".join(lines))
