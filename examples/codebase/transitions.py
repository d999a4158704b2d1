"""Watches the statuses of indexing jobs, and warns of a step that no job can have taken."""

from collections import OrderedDict
from collections.abc import Iterator, Mapping
from typing import ClassVar

from mcp_abridge.plugin import ROOT, Call, Parameter, Path, Slot, plain, select
from msgspec import Struct

# The nine steps that a job can take; None is where it is before there is one.
STEPS: Mapping[str | None, frozenset[str]] = {
    None: frozenset(("pending", "running")),
    "pending": frozenset(("running", "cancelled")),
    "running": frozenset(("completed", "failed", "cancelled", "blocked")),
    "blocked": frozenset(("running",)),
}
MOST_JOBS = 10_000


def reached(status: str | None) -> frozenset[str]:
    """Return every status that a job may be seen in after `status`, however many steps later.

    >>> sorted(reached("blocked")), sorted(reached("completed"))
    (['blocked', 'cancelled', 'completed', 'failed', 'running'], [])
    """
    found: set[str] = set()
    ahead = set(STEPS.get(status, ()))
    while ahead:
        found |= ahead
        ahead = {further for each in ahead for further in STEPS.get(each, ())} - found
    return frozenset(found)


STATUSES = reached(None)
LATER = {status: reached(status) | {status} for status in STATUSES}


class Memory:
    """The last known status of each job, for as many jobs as were asked for last.

    It is one for all rules and sessions: a job that a list shows as completed must not be running
    again for whoever asks for its status.
    """

    def __init__(self, most: int = MOST_JOBS) -> None:
        self._most = most
        self._statuses: OrderedDict[str, str] = OrderedDict()

    def __len__(self) -> int:
        return len(self._statuses)

    def replaced(self, job: str, status: str) -> str | None:
        """Note the status of a job, and return the one before; None for a job that is new."""
        before = self._statuses.pop(job, None)
        self._statuses[job] = status
        if len(self._statuses) > self._most:
            self._statuses.popitem(last=False)
        return before


_MEMORY = Memory()


class Transitions(Struct, frozen=True):
    """Warn where a job at `at` has a status that nothing leads to from the one it had before.

    Polls skip statuses, so that any number of steps may lie between. Nothing is changed. What is
    no job, or has none of the six statuses, is left to the contract.
    """

    name: ClassVar[str] = "transitions"
    shorthand: ClassVar[str | None] = "at"
    window: ClassVar[bool] = False
    cuts: ClassVar[bool] = False
    parameters: ClassVar[Mapping[str, Parameter]] = {}

    at: Path = ROOT

    def __call__(self, root: Slot, call: Call) -> None:
        """Compare each job with what was known of it."""
        for job, status in self._jobs(root):
            before = _MEMORY.replaced(job, status)
            if before is not None and status not in LATER[before]:
                step = f"{before} -> {status}"
                call.warn(f"transition: {step}", f"job {job[:80]!r} went {step}")

    def _jobs(self, root: Slot) -> Iterator[tuple[str, str]]:
        for slot in select(root, self.at):
            found = plain(slot.get())
            for each in found if isinstance(found, list) else [found]:
                if isinstance(each, dict):
                    job, status = each.get("job_id"), each.get("status")
                    if isinstance(job, str) and isinstance(status, str) and status in STATUSES:
                        yield job, status
