"""Runs one fuzzer over its inputs, one after the other, and counts what that reached."""

import signal
import time
import traceback
from collections.abc import Callable, Hashable, Iterable
from types import FrameType
from typing import Any

from msgspec import Struct

SECONDS = 30
"""Of a processor, that an input may take: beside other work it takes more by the clock."""

_WAIT = 20 * SECONDS  # by the clock, for one that waits for what does not come

MOST = 3  # findings after which it is not worth going on
_LONGEST = 6000  # characters of a finding

Fuzzer = Callable[[int, int], Iterable[Hashable]]
"""Makes an input from a seed and a number, and yields the states or features that it reached.

Raises Wrong or any other exception, with the input as a note.
"""


class Wrong(Exception):
    """An invariant that does not hold: its name, and the value that breaks it."""

    def __init__(self, rule: str, value: object = "") -> None:
        super().__init__(f"{rule}: {value}" if value else rule)


class Stuck(BaseException):
    """An input that takes too long; no code that catches every Exception can catch it."""


class Report(Struct):
    """The inputs tried, the seconds taken, the states reached, and findings by input number."""

    inputs: int = 0
    seconds: float = 0.0
    states: set[Any] = set()
    findings: list[tuple[int, str]] = []

    def add(self, other: "Report") -> None:
        self.inputs += other.inputs
        self.seconds = max(self.seconds, other.seconds)
        self.states |= other.states
        self.findings += other.findings

    def __str__(self) -> str:
        each = self.inputs / max(self.seconds, 1e-9)
        return (
            f"{self.inputs:,} inputs, {each:,.0f} per second, "
            f"{len(self.states):,} distinct states, {len(self.findings)} findings"
        )


def run(fuzzer: Fuzzer, seed: int, indexes: Iterable[int], seconds: float | None = None) -> Report:
    """Try inputs, all or as many as there is time for, and report on them."""
    report, start = Report(), time.monotonic()
    signal.signal(signal.SIGPROF, _alarm)
    signal.signal(signal.SIGALRM, _alarm)
    for index in indexes:
        if seconds is not None and time.monotonic() - start >= seconds:
            break
        report.inputs += 1
        # Again each second, in case that the code under test catches it.
        signal.setitimer(signal.ITIMER_PROF, SECONDS, 1)
        signal.setitimer(signal.ITIMER_REAL, _WAIT, 1)
        try:
            report.states.update(fuzzer(seed, index))
        except KeyboardInterrupt:
            raise
        except BaseException as error:
            report.findings.append((index, _failure(error)))
        finally:
            signal.setitimer(signal.ITIMER_PROF, 0)
            signal.setitimer(signal.ITIMER_REAL, 0)
        if len(report.findings) >= MOST:
            break
    report.seconds = time.monotonic() - start
    return report


def _alarm(number: int, frame: FrameType | None) -> None:
    stack = "".join(traceback.format_stack(frame)[-6:])
    raise Stuck(
        f"it takes more than {SECONDS} s of a processor, or {_WAIT} s; it was then at\n{stack}"
    )


def _failure(error: BaseException) -> str:
    in_words = isinstance(error, Wrong | Stuck)
    lines = [str(error)] if in_words else traceback.format_exception(error)
    return "\n".join([*lines, *getattr(error, "__notes__", ())])[:_LONGEST]
