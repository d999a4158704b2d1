"""Results of the suite: the checks that passed, and the answers that it has written down.

The suite calls a run good in which checks are missing, as those of a feature that a server does not
seem to have. So it is never asked for its verdict: sets of passed checks are compared.
"""

import re
from collections import Counter
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


class CheckRecord(msgspec.Struct, frozen=True, rename="camel"):
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
    successes: Counter[Check]
    other: dict[Check, str]
    answers: dict[Check, list[Any]]
    seconds: float = 0


def read(folder: Path, seconds: float = 0) -> Run:
    """Read what one run of the suite has written, a folder with a `checks.json` per scenario.

    Raises LookupError if there is none.
    """
    successes: Counter[Check] = Counter()
    other: dict[Check, str] = {}
    answers: dict[Check, list[Any]] = {}
    scenarios = set()
    for file in sorted(folder.glob("*/checks.json")):
        matched = FOLDER.fullmatch(file.parent.name)
        if matched is None:
            raise LookupError(f"no scenario's folder: {file.parent.name!r}")
        scenario = matched["scenario"]
        scenarios.add(scenario)
        for record in msgspec.json.decode(file.read_bytes(), type=list[CheckRecord]):
            check = Check(scenario, record.id, record.name)
            if record.status == "SUCCESS":
                successes[check] += 1
            else:
                other[check] = ": ".join(filter(None, (record.status, record.error_message)))
            result = (record.details or {}).get("result")
            if isinstance(result, dict) and "content" in result:
                answers.setdefault(check, []).append(result)
    if not scenarios:
        raise LookupError(f"the suite has written no checks into {folder}")
    return Run(frozenset(scenarios), successes, other, answers, seconds)
