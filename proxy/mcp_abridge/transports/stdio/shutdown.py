"""Wait, in the main thread, for the end of either side, then end the other.

The server's stdin is closed; then its group is sent SIGTERM, and SIGKILL.
"""

import signal
from _queue import Empty, SimpleQueue  # `queue` takes 1 ms
from math import inf
from time import monotonic, sleep
from typing import Literal

from msgspec import Struct, field

from mcp_abridge.system import platform
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.stdio.pipes import PipeReader, PipeWriter

# The events that begin the shutdown, and the time that the server's group then has: seconds until
# SIGTERM, and from there until SIGKILL.
_GRACE: dict[str, tuple[float, float]] = {
    "client ended": (5.0, 0.5),  # late responses are still wanted; less than 6 in total
    "client gone": (1.0, 2.0),
    "server deaf": (1.0, 2.0),
    "output over": (1.0, 2.0),
    "child ended": (0.5, 0.5),  # other processes of its group may still hold its stdout
    "refused": (0.5, 1.0),
    "signal": (0.5, 1.0),
}
Report = Literal[
    "client began", "client ended", "client gone", "server deaf", "output over", "refused"
]
"""The events that threads report."""

_LAST = 0.5  # seconds from SIGKILL until no more output is expected
_SLOW = 5.0  # seconds for a client that is slow to read the rest, and sends no more requests
_QUESTION = 1.0  # seconds for a client's first request


class Alarm:
    """A wait of one thread, ended by events of other threads, and by the numbers of signals.

    The proxy would miss a signal, or its end, in any other.
    """

    def __init__(self) -> None:
        self._events = SimpleQueue[str | int]()

    def ring(self, event: str | int) -> None:
        """End the wait, or the next one, from any thread or signal handler."""
        self._events.put(event)

    def wait(self, seconds: float | None) -> str | int | None:
        """Return the next event, or None after some seconds."""
        until = monotonic() + (inf if seconds is None else seconds)
        while True:
            rest = until - monotonic()
            try:
                return self._events.get(timeout=max(0.0, min(rest, platform.LONGEST_WAIT)))
            except Empty:
                if rest <= platform.LONGEST_WAIT:
                    return None


class Shutdown(Struct, eq=False):
    """The shutdown of one session; `_cause` is why the server could not be started."""

    _child: platform.ChildProcess
    _stdin: PipeWriter
    _stdout: PipeReader
    _log: Log
    _cause: str | None = None
    _alarm: Alarm = field(default_factory=Alarm)
    _has_input: bool = False  # the client has sent something
    _input_ended: bool = False  # the client will send nothing more
    _output_ended: bool = False  # the server will send nothing more
    _signal: int = 0
    _refusal: int | None = None
    _step: int = 0
    _kill_after: float = inf
    _deadline: float | None = None

    def report(self, event: Report) -> None:
        """Report an event, from any thread."""
        self._alarm.ring(event)

    def refuse(self, code: int, reason: str) -> None:
        """End the session, from any thread, with this exit code, for a reason of the proxy's."""
        self._refusal = code
        self._cause = reason
        self.report("refused")

    def listen(self) -> None:
        """Receive signals from now on, in this thread, which must be the main thread."""
        platform.listen(self._child, self._alarm.ring)

    def wait(self) -> None:
        """Return once the server has ended and all of its output was passed on."""
        while not (self._output_ended and self._child.ended()):
            self._handle(self._next(self._deadline))

    def wait_for_question(self) -> None:
        """Wait a moment if the client has sent no request yet, so that it gets a response."""
        deadline = monotonic() + _QUESTION
        while not (self._has_input or self._input_ended or self._signal):
            event = self._next(deadline)
            if event == "late":
                return
            self._handle(event)

    def sweep(self) -> None:
        """End the processes that the server has left in its group, then the guardian."""
        # Processes that were killed stay in the group until their parent waits for them.
        if self._step < 2 and self._child.signal(platform.TERMINATE):
            deadline = monotonic() + _LAST
            while self._child.signal(0):
                if monotonic() > deadline:
                    self._child.signal(platform.KILL)
                    break
                sleep(0.01)
        self._child.release()

    @property
    def code(self) -> int:
        if self._signal:
            return 128 + self._signal
        if self._refusal is not None:
            return self._refusal
        code = self._child.code or 0
        return code if code >= 0 else 128 - code

    @property
    def reason(self) -> str:
        code = self._child.code or 0
        if self._cause is not None:
            return self._cause
        if self._signal:
            return f"the proxy was ended by {_name(self._signal)}"
        return end_of_server(code)

    @property
    def unexpected(self) -> bool:
        """True if the server failed and the reason was not logged yet."""
        failed = self._child.code != 0 and self._cause is None
        return failed and not self._step and not self._signal

    def _next(self, deadline: float | None) -> str:
        event = self._alarm.wait(None if deadline is None else deadline - monotonic())
        if event is None:
            return "late"
        if isinstance(event, str):
            return event
        if event != platform.CHILD_ENDED:
            again, self._signal = self._signal, event
            return "late" if again else "signal"
        return "child ended" if self._child.ended() else "another child"

    def _handle(self, event: str) -> None:
        if event == "late":
            self._escalate()
        elif event == "client began":
            self._has_input = True
        elif event == "client ended":
            self._input_ended = True
        elif event == "output over":
            self._output_ended = True
        if event not in _GRACE:
            return
        # Begin the shutdown of the server, or hasten it.
        first, then = _GRACE[event]
        self._stdin.close()
        self._kill_after = min(self._kill_after, then)
        deadline = monotonic() + (self._kill_after if self._step else first)
        if self._deadline is None or deadline < self._deadline:
            self._deadline = deadline

    def _escalate(self) -> None:
        self._step += 1
        wait = _LAST
        if self._step == 1:
            self._send(platform.TERMINATE, f"the server {platform.TERMINATED}")
            wait = self._kill_after
        elif self._step == 2:
            self._send(platform.KILL, f"the server {platform.KILLED}")
        else:
            # A process that no signal reaches may hold the server's stdout. For a client that is
            # slow to read, wait: forever while it may still send requests, else for a while.
            slow = not self._input_ended or self._step == 3
            hurried = self._signal or self._refusal is not None
            if self._stdout.idle or hurried or not slow:
                self._output_ended = True
                self._child.give_up()
            wait = _SLOW
        self._deadline = monotonic() + wait

    def _send(self, number: int, text: str) -> None:
        if self._refusal is None and not self._child.ended():
            self._log.warning(text)
        self._child.signal(number)


def end_of_server(code: int) -> str:
    """Return how a server ended, by its exit code: the negative number of a signal if by one."""
    if code >= 0:
        return f"the server ended with exit code {code}"
    return f"the server was ended by {_name(-code)}"


def _name(number: int) -> str:
    try:
        return signal.Signals(number).name
    except ValueError:
        return f"signal {number}"
