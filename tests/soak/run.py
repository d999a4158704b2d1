"""One way under load: parts with a rest at the end of each, and what was seen meanwhile."""

import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from tests.benchmarks import table
from tests.soak import verdict
from tests.soak.clients import Work
from tests.soak.footprint import Footprint, footprint
from tests.soak.rules import change
from tests.soak.verdict import Row
from tests.soak.ways import SERVER, Standing, Way, standing

ROWS = 8  # of each part
GLANCE = 0.05
LONGEST_REST = 30.0  # seconds
HEAD = (
    *("calls", "calls/s", "RSS", "PSS", "workers", "descriptors", "threads", "children", "seconds"),
    "",
)


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


class Ran(Struct):
    """A run that is over: what was seen in it, what of it grows, what was called."""

    rows: list[Row]
    findings: list[str]
    tools: dict[str, int]


def run(
    way: Way,
    plan: Plan,
    tell: Callable[[str], None] = lambda text: None,
    proxy: Sequence[str] = (),
) -> Ran:
    """Make calls by the plan; `tell` gets each row. Raises the first failure of any of them."""
    work, start = Work(), time.monotonic()
    rows: list[Row] = []
    rests: list[Row] = []

    def add(footprint: Footprint, *, rest: bool = False) -> None:
        row = Row(work.count, time.monotonic() - start, footprint, rest)
        tell("  ".join(cells(row, rows[-1] if rows else None)))
        rows.append(row)

    with standing(way, proxy) as there:
        for number in range(1, plan.parts + 1):
            _load(plan, there, work, plan.calls * number // plan.parts, add)
            add(_rest(plan, there.pid, rests[-1].footprint if rests else None), rest=True)
            rests.append(rows[-1])
    return Ran(rows, verdict.findings(rests, plan.spare), dict(work.tools))


def _load(
    plan: Plan, there: Standing, work: Work, most: int, add: Callable[[Footprint], None]
) -> None:
    """Make calls until there are so many, and change the rules meanwhile."""
    ends = time.monotonic() + plan.seconds / plan.parts
    each = max((most - work.count) // ROWS, 1)
    due, changes = work.count + each, work.count // plan.changed
    doing = work.start_thread(lambda: there.work(work, most))
    while doing.is_alive():
        doing.join(GLANCE)
        if time.monotonic() > ends:
            work.stop.set()
        if work.count // plan.changed > changes:
            changes = work.count // plan.changed
            change(there.file, changes)
        if work.count >= due:
            due = work.count + each
            add(footprint(there.pid, SERVER))
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


def cells(row: Row, before: Row | None) -> tuple[str, ...]:
    """Return the cells of a row; the rate is that since the row before."""
    rate = ""
    if before is not None and not row.rest and row.calls > before.calls:
        rate = f"{(row.calls - before.calls) / (row.seconds - before.seconds):,.0f}"
    footprint = row.footprint
    return (
        f"{row.calls:,}",
        rate,
        *(
            f"{size:.1f} MB"
            for size in (footprint.resident, footprint.proportional, footprint.workers)
        ),
        *(str(number) for number in (footprint.descriptors, footprint.threads, footprint.children)),
        f"{row.seconds:.0f}",
        "at rest" if row.rest else "",
    )


def table_of(ran: Ran) -> str:
    pairs = zip([None, *ran.rows], ran.rows, strict=False)
    return table.text([cells(row, before) for before, row in pairs], HEAD, range(9))
