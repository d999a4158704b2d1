"""One way under load: parts with a rest at the end of each, and what was seen meanwhile."""

import time
from collections.abc import Callable, Sequence

from msgspec import Struct

from tests.benchmarks import table
from tests.soak import rules, verdict
from tests.soak.clients import Work
from tests.soak.footprint import Footprint, Watching, footprint
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
    tell: Callable[[str], None] = lambda said: None,
    proxy: Sequence[str] = (),
) -> Ran:
    """Make calls by the plan; `tell` gets each row. Raises what went wrong with any of them."""
    with standing(way, proxy) as there, Watching(there.pid, SERVER) as watching:
        course = _Course(plan, there, watching, tell)
        rows = [row for number in range(1, plan.parts + 1) for row in course.part(number)]
        rests = [row for row in rows if row.rest]
        return Ran(rows, verdict.findings(rests, plan.spare), dict(course.work.tools))


class _Course:
    """A run that is going on."""

    def __init__(
        self, plan: Plan, there: Standing, watching: Watching, tell: Callable[[str], None]
    ) -> None:
        self.plan = plan
        self.there = there
        self.watching = watching
        self.tell = tell
        self.work = Work()
        self.begun = time.monotonic()
        self.rested: Footprint | None = None

    def part(self, number: int) -> list[Row]:
        work, begun = self.work, time.monotonic()
        most, longest = (
            self.plan.calls * number // self.plan.parts,
            self.plan.seconds / self.plan.parts,
        )
        each, spell = max((most - work.done) // ROWS, 1), longest / ROWS
        due, changes = work.done + each, work.done // self.plan.changed
        rows: list[Row] = []
        self.watching.taken()
        doing = work.guarded(lambda: self.there.work(work, most))
        while doing.is_alive():
            doing.join(GLANCE)
            if time.monotonic() > begun + longest:
                work.stopped.set()
            if work.done // self.plan.changed > changes:
                changes = work.done // self.plan.changed
                rules.CHANGES[changes % len(rules.CHANGES)](self.there.file)
            if work.done >= due or time.monotonic() > begun + spell * (len(rows) + 1):
                due = work.done + each
                self._row(rows, self.watching.taken())
        if work.failures:
            raise work.failures[0]
        work.stopped.clear()
        self.rested = self._rest()
        self._row(rows, self.rested, rest=True)
        return rows

    def _row(self, rows: list[Row], seen: Footprint, *, rest: bool = False) -> None:
        row = Row(self.work.done, time.monotonic() - self.begun, seen, rest)
        self.tell("  ".join(cells(row, rows[-1] if rows else None)))
        rows.append(row)

    def _rest(self) -> Footprint:
        """Wait until nothing goes any more, or as much has gone as the last time."""
        began = moved = time.monotonic()
        least = footprint(self.there.pid, SERVER)
        while time.monotonic() < min(moved + self.plan.calm, began + LONGEST_REST):
            paused = time.monotonic() > began + self.plan.pause
            if paused and self.rested is not None and not verdict.left(least, self.rested):
                break
            time.sleep(GLANCE)
            now = footprint(self.there.pid, SERVER)
            if verdict.left(least, now):
                moved = time.monotonic()
            least = now
        return least


def cells(row: Row, before: Row | None) -> tuple[str, ...]:
    """Return the cells of a row; the rate is that since the row before."""
    rate = ""
    if before is not None and not row.rest and row.calls > before.calls:
        rate = f"{(row.calls - before.calls) / (row.seconds - before.seconds):,.0f}"
    seen = row.seen
    return (
        f"{row.calls:,}",
        rate,
        *(f"{size:.1f} MB" for size in (seen.resident, seen.proportional, seen.workers)),
        *(str(number) for number in (seen.descriptors, seen.threads, seen.children)),
        f"{row.seconds:.0f}",
        "at rest" if row.rest else "",
    )


def shown(ran: Ran) -> str:
    pairs = zip([None, *ran.rows], ran.rows, strict=False)
    return table.text([cells(row, before) for before, row in pairs], HEAD, range(9))
