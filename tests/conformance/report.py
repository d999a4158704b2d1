"""The printed report: a line of the table for each run, and every check that is missing."""

from collections.abc import Iterable
from typing import NamedTuple

from tests.conformance.checks import Run
from tests.conformance.legs import Leg

HEAD = ("leg", "revision", "scenarios", "direct", "here", "missing", "extra", "altered", "seconds")
WIDTHS = (6, 10, *map(len, HEAD[2:]))


class Row(NamedTuple):
    """One run, or one that there could not be, and what is wrong with it."""

    cells: tuple[object, ...]
    findings: list[str]


def direct(revision: str, run: Run, expected: tuple[int, int]) -> Row:
    """Report a run without the proxy, known to have so many scenarios and passed checks."""
    counts = (len(run.scenarios), run.successes.total())
    cells = ("direct", revision, *counts, "", "", "", "", f"{run.seconds:.1f}")
    if counts == expected:
        return Row(cells, [])
    numbers = "{} scenarios with {} passed checks".format
    failures = [each for each in run.other.items() if not each[1].startswith("INFO")]
    return Row(
        cells,
        [
            f"{numbers(*counts)} where {numbers(*expected)} are known; if the versions have"
            " changed, change the numbers, otherwise there was no time to pass them all",
            *(f"not passed: {check}: {reason}" for check, reason in failures),
        ],
    )


def through(name: str, leg: Leg, revision: str, direct: Run, here: Run) -> Row:
    """Report a run through a leg beside the direct one."""
    missing, extra = direct.successes - here.successes, here.successes - direct.successes
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
    counts = (run.successes.total() for run in (direct, here))
    differences = (missing.total(), extra.total(), len(altered), f"{here.seconds:.1f}")
    return Row((name, revision, len(here.scenarios), *counts, *differences), findings)


def not_run(name: str, problem: str) -> Row:
    """Report a leg that could not be run."""
    return Row((name, "NOT RUN", *[""] * (len(HEAD) - 2)), [problem])


def printed(rows: Iterable[Row]) -> int:
    """Print each row as it comes, then what was found; return the exit code."""
    print(line(HEAD), line(["-" * width for width in WIDTHS]), sep="\n", flush=True)
    findings: list[str] = []
    for row in rows:
        print(line(row.cells), flush=True)
        findings += [f"{row.cells[0]} {row.cells[1]}: {text}" for text in row.findings]
    print(*findings, sep="\n", flush=True)
    return 1 if findings else 0


def line(cells: Iterable[object]) -> str:
    """Lay cells out under the head, numbers to the right.

    >>> line(["serve", "2026-07-28", 40, 152, 152, 0, 0, 0, "3.1"])
    'serve   2026-07-28         40     152   152        0      0        0      3.1'
    """
    aligned = [
        str(cell).ljust(width) if column < 2 else str(cell).rjust(width)
        for column, (cell, width) in enumerate(zip(cells, WIDTHS, strict=True))
    ]
    return "  ".join(aligned).rstrip()
