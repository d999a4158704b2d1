"""Fuel: a limit on the work of a rule or a view.

One unit is about a microsecond of work. If possible, fuel counts the work itself (steps of an
expression, elements and characters that it makes) and not time, so that the same rule over the same
document always has the same result.
"""

from collections.abc import Collection
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
_TURN = 1 << 15  # units between two looks at the time


class Fuel:
    """A number of units of work that can be used up, and perhaps milliseconds of a processor.

    Below `alarm` units it looks at the time, or ends: who takes from `remaining` burns 0 then.
    """

    __slots__ = ("_end_ns", "_most", "_thread_ns", "alarm", "remaining")

    def __init__(self, units: int = MOST, milliseconds: int | None = None) -> None:
        self._most = units
        self._thread_ns = thread_time_ns()
        self._end_ns = None if milliseconds is None else self._thread_ns + milliseconds * 1_000_000
        self.alarm = 0 if milliseconds is None else units
        self.remaining = units

    @property
    def room(self) -> int:
        """The units that are left, or the microseconds of this thread if those are fewer."""
        if self._end_ns is None:
            return self.remaining
        return min(self.remaining, (self._end_ns - thread_time_ns()) // 1000)

    def burn(self, units: int) -> None:
        """Use up some units. Raises OutOfFuel if fewer are left, or no time."""
        self.remaining -= units
        if self.remaining < self.alarm:
            self._end_or_go_on()

    def reserve(self, units: int) -> None:
        """Use up some units of work in one go. Raises OutOfFuel if there is no time for them."""
        if units > _TURN and self.room < units <= self.remaining:
            raise OutOfFuel(_LATE)
        self.burn(units)

    def _end_or_go_on(self) -> None:
        if self.remaining < 0:
            raise OutOfFuel(f"it takes more than {self._most} units of work")
        if self.room < 0:
            raise OutOfFuel(_LATE)
        self.alarm = max(self.remaining - _TURN, 0)

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


_MANY = 64  # values whose types are looked at together
_COSTLY = (str, Raw, list, dict, int, Struct)  # types of values that cost more than their place
_WIDE = 128  # bits of an integer that cost more than its place
_LATE = "it takes too much time of a processor"


def characters(text: str) -> int:
    """Return the units for making a text: one per about 16 bytes in memory."""
    return len(text) // (16 if text.isascii() else 4)


def charge(value: Any, fuel: Fuel, times: int = 1) -> None:
    """Burn the fuel for so many walks through all of a value, plain or not, before the walk.

    A part that occurs in several places counts in each. Raises OutOfFuel for a cycle, or if there
    is no time for the walks.
    """
    most = max(fuel.room, _TURN) // times
    fuel.reserve(cost(value, most) * times)


def cost(value: Any, most: int) -> int:
    """Return the units of a walk through all of a value; it ends soon after `most`."""
    remaining = most
    waiting: list[Collection[Any]] = [[value]]
    while waiting and remaining >= 0:
        items = waiting.pop()
        kinds = {*map(type, items)} if len(items) > _MANY else {str}
        if kinds == {Raw}:
            remaining -= sum(map(len, items)) >> 6
            continue
        if not any(issubclass(kind, _COSTLY) and kind is not bool for kind in kinds):
            continue
        if kinds == {int} and max(map(int.bit_length, items)) < _WIDE:
            continue
        for item in items:
            if type(item) is str:
                remaining -= len(item) // (16 if item.isascii() else 4)  # as `characters` has it
            elif type(item) is Raw:
                remaining -= len(item) >> 6
            elif isinstance(item, list):
                remaining -= 1 + len(item)
                waiting.append(item)
            elif isinstance(item, dict):
                remaining -= 1 + 2 * len(item) + (sum(map(len, item)) >> 4)
                waiting.append(item.values())
            elif isinstance(item, int):
                remaining -= item.bit_length() // _WIDE
            elif isinstance(item, Struct):
                waiting.append(astuple(item))
    return most - remaining
