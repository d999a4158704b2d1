"""Servers that leave as many processes behind as they can, and who is left of a proxy (Linux).

How to use it: write a function that starts the proxy before the server `brood(cycle.how)`, in the
environment `environment(cycle.marker)`, and brings about the end that the cycle names, at its
moment; `go_round(cycles(seed, count), most, function)` does the rest. What is found to be left is
whatever has the marker in its environment: the proxy itself, its guardian and workers, servers and
their descendants, whatever they have done to their groups and parents. test_orphans.py shows it.
"""

import os
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Literal

import msgspec

from tests.faults.processes import LIFE

NAUGHTY = Path(__file__).with_name("naughty.py")
_NOISE = 2.0  # seconds that a machine may be busy with something else
_LOOK = 0.1  # seconds between two looks at all processes
_MARK = "ORPHANS_OF"
_MOMENTS = 0.4  # seconds from the start within which an end comes, where it comes early

End = Literal["EOF", "TERM", "INT", "HUP", "KILL", "crash"]
ENDS: tuple[End, ...] = ("EOF", "TERM", "INT", "HUP", "KILL", "crash")


class Cycle(msgspec.Struct, frozen=True):
    """A start and an end: what ends, when, and what the server does about it.

    `moment` is in seconds after the start, None for once a first call was answered.
    """

    marker: str
    end: End
    moment: float | None
    how: tuple[str, ...]

    @property
    def signal(self) -> signal.Signals | None:
        """The signal that the proxy is sent, where that is its end."""
        found = signal.Signals.__members__.get(f"SIG{self.end}")
        return found if self.end in ("TERM", "INT", "HUP", "KILL") else None


def cycles(seed: str, count: int, ends: Iterable[End] = ENDS) -> Iterator[Cycle]:
    """Yield cycles of every kind in turn, at moments that are random but the same each time."""
    random = Random(seed)
    kinds = tuple(ends)
    for number in range(count):
        end = kinds[number % len(kinds)]
        # What crashes must have begun.
        early = end != "crash" and random.random() < 0.5
        moment = random.random() * _MOMENTS if early else None
        how = random.choice(((), ("stays",), ("stays", "early")))
        yield Cycle(f"{seed}-{os.getpid()}-{number}", end, moment, how)


def brood(how: Iterable[str] = ()) -> list[str]:
    """Return the command of a server whose descendants ignore EOF, TERM, INT and HUP.

    They hold its stdin, stdout and stderr. It answers every call, and ends by SIGKILL at one of
    `end`; where it `stays`, it ignores as much itself. Where it is `early`, it has them before it
    reads anything, else at its first message.
    """
    return [sys.executable, "-IS", str(NAUGHTY), "broods", *how]


def environment(marker: str) -> dict[str, str]:
    """Return the environment of a process whose descendants are to be found by `marker`."""
    return {**os.environ, _MARK: marker}


def left(markers: Iterable[str]) -> dict[str, list[str]]:
    """Return who lives of each marker, by number and command; markers of nobody are left out."""
    wanted = {f"{_MARK}={marker}".encode(): marker for marker in markers}
    found: dict[str, list[str]] = {}
    for entry in Path("/proc").iterdir():
        if not entry.name.isdigit():
            continue
        try:
            # That of a process that is no more, but was not waited for yet, is empty.
            variables = (entry / "environ").read_bytes().split(b"\0")
            command = (entry / "cmdline").read_bytes().replace(b"\0", b" ").decode()
        except OSError:
            continue
        for variable in variables:
            if variable in wanted:
                found.setdefault(wanted[variable], []).append(f"{entry.name} {command}")
    return found


def heard(process: "subprocess.Popen[bytes]") -> float:
    """Wait until a process that may still be starting can know of its end; return when that was.

    It has several threads then, or is no more.
    """
    task = Path(f"/proc/{process.pid}/task")
    while process.poll() is None and len(os.listdir(task)) == 1:
        time.sleep(_LOOK / 10)
    return time.monotonic()


def go_round(turns: Iterable[Cycle], most: int, turn: Callable[[Cycle], float]) -> None:
    """Do `turn` for each cycle, at most so many at the same time.

    `turn` starts a proxy, brings its end about, waits until it has ended, and returns when it
    brought the end about, as time.monotonic() says it (see `heard`). Raises AssertionError, with
    who they are, if somebody is left for longer than LIFE then.
    """

    def whole(cycle: Cycle) -> None:
        try:
            ended = turn(cycle)
            while there := left([cycle.marker]):
                assert time.monotonic() < ended + LIFE + _NOISE, f"left: {there}"
                time.sleep(_LOOK)
            took = time.monotonic() - ended
            assert took < LIFE + _NOISE, f"gone only after {took:.1f} s, {LIFE:g} are promised"
        finally:
            _kill(left([cycle.marker]))

    with ThreadPoolExecutor(most) as pool:
        list(pool.map(whole, turns))


def _kill(those: Mapping[str, list[str]]) -> None:
    for each in those.values():
        for process in each:
            with suppress(ProcessLookupError):
                os.kill(int(process.partition(" ")[0]), signal.SIGKILL)
