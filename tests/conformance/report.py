"""The printed report: a line for each run, and every check that is missing."""

from typing import NamedTuple

from tests.conformance.checks import Run
from tests.conformance.legs import Leg


class Row(NamedTuple):
    """One run, or one that there could not be, and what is wrong with it."""

    text: str
    findings: list[str]


def direct(revision: str, run: Run, expected: tuple[int, int]) -> Row:
    """Report a run without the proxy, known to have so many scenarios and passed checks."""
    counts = (len(run.scenarios), run.successes.total())
    text = f"direct {revision}: {counts[0]} scenarios, {counts[1]} checks, {run.seconds:.1f} s"
    if counts == expected:
        return Row(text, [])
    failures = [each for each in run.other.items() if not each[1].startswith("INFO")]
    return Row(
        text,
        [
            f"{expected[0]} scenarios with {expected[1]} passed checks are known; if the versions"
            " have changed, change the numbers, otherwise there was no time to pass them all",
            *(f"not passed: {check}: {reason}" for check, reason in failures),
        ],
    )


def through(name: str, leg: Leg, revision: str, direct: Run, here: Run) -> Row:
    """Report a run through a leg beside the direct one."""
    missing = direct.successes - here.successes
    altered = [
        check
        for check, results in direct.answers.items()
        if check in here.answers and here.answers[check] != results
    ]
    findings = [
        f"MISSING: {check}: {here.other.get(check, 'not there')}"
        for check in missing
        if (revision, check.scenario, check.id) not in leg.cannot
    ]
    if leg.reshapes and not altered:
        findings.append("NOT RESHAPED: no answer differs, though rules are loaded that cut it")
    if not leg.reshapes:
        findings += [f"ALTERED: the answer in {check}" for check in altered]
    text = (
        f"{name} {revision}: {len(here.scenarios)} scenarios, {here.successes.total()} checks, "
        f"{missing.total()} missing, {len(altered)} answers altered, {here.seconds:.1f} s"
    )
    return Row(text, findings)
