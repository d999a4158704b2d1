"""Fuel: a limit on the work of a rule or a view.

One unit is about a microsecond of work. If possible, fuel counts the work itself (steps of an
expression, elements and characters that it makes) and not time, so that the same rule over the same
document always has the same result.
"""

from time import perf_counter_ns, thread_time_ns
from typing import Any

from msgspec import Raw, Struct
from msgspec.structs import astuple

from mcp_abridge.errors import OutOfFuel

MOST = 10_000_000
"""The limit for one response: about ten seconds."""

LITTLE = 20_000
"""The limit for work that other calls wait for: about 20 milliseconds."""

_LONG_NS = 500_000  # the shortest turn of another process that is worth noticing


class Fuel:
    """A number of units of work that can be used up."""

    __slots__ = ("_most", "_thread_ns", "remaining")

    def __init__(self, units: int = MOST) -> None:
        self._most = units
        self._thread_ns = thread_time_ns()
        self.remaining = units

    def burn(self, units: int) -> None:
        """Use up some units. Raises OutOfFuel if fewer are left."""
        self.remaining -= units
        if self.remaining < 0:
            raise OutOfFuel(f"it takes more than {self._most} units of work")

    def burn_since(self, start_ns: int) -> None:
        """Use up one unit, and the microseconds of work since `start_ns`, a `perf_counter_ns()`.

        The time of other threads and processes does not count: a rule must not fail because the
        machine is busy. The time of the thread alone takes longer to read than most searches, so
        just a long time is compared with it.
        """
        worked_ns = perf_counter_ns() - start_ns
        if worked_ns > _LONG_NS:
            thread_ns = thread_time_ns()
            worked_ns = max(0, min(worked_ns, thread_ns - self._thread_ns))
            self._thread_ns = thread_ns
        self.burn(1 + worked_ns // 1000)


def characters(text: str) -> int:
    """Return the units for making a text: one per about 16 bytes in memory."""
    return len(text) // (16 if text.isascii() else 4)


def charge(value: Any, fuel: Fuel, times: int = 1) -> None:
    """Burn the fuel for so many walks through all of a value, plain or not, before the walk.

    A part that occurs in several places counts in each. Raises OutOfFuel for a cycle.
    """
    remaining = fuel.remaining
    waiting = [value]
    while waiting and remaining >= 0:
        item = waiting.pop()
        if isinstance(item, str):
            remaining -= characters(item)
        elif isinstance(item, list):
            remaining -= 1 + len(item)
            waiting += item
        elif isinstance(item, dict):
            remaining -= 1 + 2 * len(item)
            waiting += item
            waiting += item.values()
        elif isinstance(item, int):
            remaining -= item.bit_length() >> 7
        elif type(item) is Raw:
            remaining -= len(memoryview(item)) >> 6
        elif isinstance(item, Struct):
            waiting += astuple(item)
    fuel.burn((fuel.remaining - remaining) * times)
