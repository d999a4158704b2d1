"""What the suite found: the checks that passed, and what separates two runs of it.

The suite calls a run good in which checks are missing, as those of a feature that a server does not
seem to have. So it is never asked for its verdict: sets of passed checks are compared.
"""

import re
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Any, NamedTuple

import msgspec

FOLDER = re.compile(r"server-(?P<scenario>.+)-\d{4}-\d\d-\d\dT[-\d]+Z")


class Check(NamedTuple):
    """One check of one scenario; ids repeat within a scenario, names make them distinct."""

    scenario: str
    id: str
    name: str

    def __str__(self) -> str:
        return f"{self.scenario} / {self.id} ({self.name})"


class Found(msgspec.Struct, frozen=True, rename="camel"):
    """One entry of a `checks.json`, as far as it is read."""

    id: str
    name: str
    status: str
    error_message: str = ""
    details: dict[str, Any] | None = None


class Run(NamedTuple):
    """One run of the suite.

    `other` says of each check that did not pass its status and what the suite says of it, `answers`
    holds the tool results that the suite has written down, in order.
    """

    scenarios: frozenset[str]
    passed: Counter[Check]
    other: dict[Check, str]
    answers: dict[Check, list[Any]]
    seconds: float = 0


class Gap(msgspec.Struct, frozen=True, forbid_unknown_fields=True):
    """A check that a leg cannot pass, and why not."""

    leg: str
    revision: str
    scenario: str
    id: str
    reason: str
    name: str | None = None

    def is_of(self, check: Check) -> bool:
        return (self.scenario, self.id) == check[:2] and self.name in (None, check.name)


class Difference(NamedTuple):
    """What a run through the proxy has less, more, or in another form than the direct one.

    `missing` and `extra` count each check as often as it is; `explained` is the part of `missing`
    that a gap explains, `closed` are the gaps that explain nothing. `altered` are the checks in
    which a tool gave another result.
    """

    missing: Counter[Check]
    explained: dict[Check, Gap]
    extra: Counter[Check]
    closed: list[Gap]
    altered: list[Check]

    @property
    def unexplained(self) -> Counter[Check]:
        return Counter(
            {check: n for check, n in self.missing.items() if check not in self.explained}
        )


def read(folder: Path, seconds: float = 0) -> Run:
    """Read what one run of the suite has written, a folder with a `checks.json` per scenario.

    Raises LookupError where there is none.
    """
    passed: Counter[Check] = Counter()
    other: dict[Check, str] = {}
    answers: dict[Check, list[Any]] = {}
    scenarios = set()
    for file in sorted(folder.glob("*/checks.json")):
        matched = FOLDER.fullmatch(file.parent.name)
        if matched is None:
            raise LookupError(f"no scenario's folder: {file.parent.name!r}")
        scenario = matched["scenario"]
        scenarios.add(scenario)
        for found in msgspec.json.decode(file.read_bytes(), type=list[Found]):
            check = Check(scenario, found.id, found.name)
            if found.status == "SUCCESS":
                passed[check] += 1
            else:
                other[check] = ": ".join(filter(None, (found.status, found.error_message)))
            result = (found.details or {}).get("result")
            if isinstance(result, dict) and "content" in result:
                answers.setdefault(check, []).append(result)
    if not scenarios:
        raise LookupError(f"the suite has written no checks into {folder}")
    return Run(frozenset(scenarios), passed, other, answers, seconds)


def compare(direct: Run, here: Run, gaps: Iterable[Gap] = ()) -> Difference:
    """Say what a run has less and more than the direct one; `gaps` are those of its leg."""
    missing = direct.passed - here.passed
    explained: dict[Check, Gap] = {}
    closed = []
    for gap in gaps:
        filled = [check for check in missing if gap.is_of(check)]
        explained |= dict.fromkeys(filled, gap)
        if not filled:
            closed.append(gap)
    return Difference(
        missing=missing,
        explained=explained,
        extra=here.passed - direct.passed,
        closed=closed,
        altered=[
            check
            for check, results in direct.answers.items()
            if check in here.answers and here.answers[check] != results
        ],
    )
