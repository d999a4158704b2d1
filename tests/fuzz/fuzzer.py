"""Runs one fuzzer over its inputs, one after the other, and counts what that reached."""

import signal
import time
import traceback
from collections.abc import Callable, Hashable, Iterable, Iterator
from types import FrameType
from typing import Any, TypeVar

from msgspec import Struct

T = TypeVar("T")

SECONDS = 30
"""What one input may take, on a machine that is busy with something else as well."""

MOST = 3  # findings after which it is not worth going on
_LONGEST = 6000  # characters of a finding

Fuzzer = Callable[[int, int], Iterable[Hashable]]
"""Makes an input of a seed and a number, and yields what states or features it reached.

Raises Wrong, or whatever was raised, with the input as a note.
"""


class Wrong(Exception):
    """An invariant that does not hold: its name, and what was found in its place."""

    def __init__(self, rule: str, found: str = "") -> None:
        super().__init__(f"{rule}: {found}" if found else rule)
        self.rule = rule


class Stuck(BaseException):
    """An input that takes too long; no code that catches every Exception can catch it."""


class Report(Struct):
    """What one fuzzer did: how many inputs, in how long, what they reached, and what they found.

    `findings` are numbers of inputs with what they showed.
    """

    inputs: int = 0
    seconds: float = 0.0
    reached: set[Any] = set()
    findings: list[tuple[int, str]] = []
    slowest: tuple[float, int] = (0.0, -1)

    def add(self, other: "Report") -> None:
        """Take in what another process did of the same fuzzer, at the same time."""
        self.inputs += other.inputs
        self.seconds = max(self.seconds, other.seconds)
        self.reached |= other.reached
        self.findings += other.findings
        self.slowest = max(self.slowest, other.slowest)

    def __str__(self) -> str:
        each = self.inputs / max(self.seconds, 1e-9)
        return (
            f"{self.inputs:,} inputs, {each:,.0f} per second, "
            f"{len(self.reached):,} distinct states, slowest {self.slowest[0]:.2f} s "
            f"(#{self.slowest[1]}), {len(self.findings)} findings"
        )


def noted(made: T, check: Callable[[T], Iterable[Hashable]]) -> Iterator[Hashable]:
    """Check an input; what is raised has it as a note."""
    try:
        yield from check(made)
    except Exception as error:
        error.add_note(repr(made))
        raise


def run(fuzzer: Fuzzer, seed: int, indexes: Iterable[int], seconds: float | None = None) -> Report:
    """Try inputs, all or as many as there is time for, and report on them."""
    report = Report()
    began = now = time.monotonic()
    for index in indexes:
        if seconds is not None and now - began >= seconds:
            break
        found = raised(lambda: report.reached.update(fuzzer(seed, index)))  # noqa: B023
        before, now = now, time.monotonic()
        report.inputs += 1
        report.slowest = max(report.slowest, (now - before, index))
        if found is not None:
            report.findings.append((index, found))
            if len(report.findings) >= MOST:
                break
    report.seconds = now - began
    return report


def raised(tried: Callable[[], object]) -> str | None:
    """Say what an input raised, None if it raised nothing."""
    stuck: list[str] = []

    def alarm(number: int, frame: FrameType | None) -> None:
        stuck.append("".join(traceback.format_stack(frame)[-6:]))
        raise Stuck

    before = signal.signal(signal.SIGALRM, alarm)
    signal.setitimer(signal.ITIMER_REAL, SECONDS)
    said = None
    try:
        tried()
    except KeyboardInterrupt:
        raise
    except BaseException as error:
        lines = [str(error)] if isinstance(error, Wrong) else traceback.format_exception(error)
        said = "\n".join([*lines, *getattr(error, "__notes__", ())])[:_LONGEST]
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)
    # What was tried may have caught that, too.
    return f"it takes more than {SECONDS} seconds; it was then at\n{stuck[0]}" if stuck else said
