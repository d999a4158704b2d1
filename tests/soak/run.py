"""One way under load: parts with a rest at the end of each, and what grows from rest to rest."""

import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from tests.soak import verdict
from tests.soak.clients import Work
from tests.soak.footprint import Footprint, footprint
from tests.soak.rules import change
from tests.soak.verdict import Row
from tests.soak.ways import PROXY, SERVER, Standing, Way, standing

GLANCE = 0.05
LONGEST_REST = 30.0  # seconds


class Plan(Struct, frozen=True):
    """How long a run is: it ends with so many calls, or after so many seconds.

    Each of its `parts` ends with a rest, the first is there to warm up. The rule file changes every
    `changed` calls. At rest, what is left goes for as long as it still does, with `calm` seconds in
    between; what is free has `pause` seconds to go back to the system. Whatever the length, all
    parts together may add `spare` kB.
    """

    calls: int
    seconds: float = 3600.0
    parts: int = 5
    changed: int = 1000
    calm: float = 10.0  # idle connections to a server may be closed after 8
    pause: float = 8.0
    spare: float = verdict.SPARE


def run(
    way: Way,
    plan: Plan,
    show: Callable[[Row], None] = lambda row: None,
    proxy: Sequence[str] = PROXY,
) -> tuple[list[Row], list[str]]:
    """Make calls by the plan; return the rests, which `show` gets, and what grows from one to one.

    Raises the first failure of a call.
    """
    work, start = Work(), time.monotonic()
    rests: list[Row] = []
    with standing(way, proxy) as there:
        for number in range(1, plan.parts + 1):
            _load(plan, there, work, plan.calls * number // plan.parts)
            size = _rest(plan, there.pid, rests[-1].footprint if rests else None)
            rests.append(Row(work.count, time.monotonic() - start, size))
            show(rests[-1])
    return rests, verdict.findings(rests, plan.spare)


def _load(plan: Plan, there: Standing, work: Work, most: int) -> None:
    """Make calls until there are so many, and change the rules meanwhile."""
    end = time.monotonic() + plan.seconds / plan.parts
    changes = work.count // plan.changed
    thread = work.start_thread(lambda: there.work(work, most))
    while thread.is_alive():
        thread.join(GLANCE)
        if time.monotonic() > end:
            work.stop.set()
        if work.count // plan.changed > changes:
            changes = work.count // plan.changed
            change(there.file, changes)
    if work.failures:
        raise work.failures[0]
    work.stop.clear()


def _rest(plan: Plan, pid: int, before: Footprint | None) -> Footprint:
    """Wait until nothing goes any more, or as much has gone as the last time."""
    start = last_change = time.monotonic()
    least = footprint(pid, SERVER)
    while time.monotonic() < min(last_change + plan.calm, start + LONGEST_REST):
        paused = time.monotonic() > start + plan.pause
        if paused and before is not None and not verdict.increases(least, before):
            break
        time.sleep(GLANCE)
        now = footprint(pid, SERVER)
        if verdict.increases(least, now):
            last_change = time.monotonic()
        least = now
    return least
