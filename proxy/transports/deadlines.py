"""Tells when what was asked has not been answered in time: one thread for all questions."""

from collections.abc import Callable
from contextlib import suppress
from threading import Condition, Thread
from time import monotonic

_LONGEST = 3600.0  # seconds that are waited at once


class Deadlines:
    """What waits for an answer, by tokens, and until when.

    `late` is called with each token whose time is up, by a thread that begins with the first one.
    """

    def __init__(self, late: Callable[[bytes], None]) -> None:
        self._late = late
        self._due: dict[bytes, float] = {}
        self._next: float | None = None
        self._change = Condition()
        self._thread = Thread(target=self._run, name="deadlines", daemon=True)

    def add(self, token: bytes, seconds: float) -> None:
        """Wait for an answer, for so many seconds."""
        due = monotonic() + seconds
        with self._change:
            self._due[token] = due
            if self._next is None or due < self._next:
                self._change.notify_all()
            if self._thread.ident is None:
                # Where there can be none now, the next question tries again.
                with suppress(RuntimeError):
                    self._thread.start()

    def settle(self, token: bytes) -> None:
        """Take note of an answer; one that nobody waits for is none of ours."""
        with self._change:
            if self._due.pop(token, None) is not None and not self._due:
                self._change.notify_all()

    def wait(self, seconds: float) -> None:
        """Return once nothing waits for an answer any more, or after so many seconds."""
        with self._change:
            self._change.wait_for(lambda: not self._due, seconds)

    def _run(self) -> None:
        while True:
            token = self._first()
            self._late(token)
            # Only now: whoever waits for all answers waits for what comes of this too.
            self.settle(token)

    def _first(self) -> bytes:
        """Return the next token whose time is up, as soon as it is."""
        with self._change:
            while True:
                token = min(self._due, key=self._due.__getitem__, default=None)
                left = _LONGEST if token is None else self._due[token] - monotonic()
                if token is not None and left <= 0:
                    return token
                self._next = None if token is None else self._due[token]
                self._change.wait(min(left, _LONGEST))
