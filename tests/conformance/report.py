"""What is printed of the runs: a line of the table for each, and every check that is missing."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import msgspec
import yaml

from tests.conformance.checks import Difference, Gap, Run
from tests.conformance.legs import Leg

HEAD = ("leg", "revision", "scenarios", "direct", "here", "missing", "extra", "altered", "seconds")
WIDTHS = (6, 10, *map(len, HEAD[2:]))


class Direct(NamedTuple):
    """A run without the proxy, and how many scenarios and passed checks it is known to have."""

    revision: str
    run: Run
    known: tuple[int, int]

    def cells(self) -> tuple[object, ...]:
        scenarios, passed = len(self.run.scenarios), self.run.passed.total()
        return "direct", self.revision, scenarios, passed, "", "", "", "", f"{self.run.seconds:.1f}"

    def findings(self) -> list[str]:
        found = (len(self.run.scenarios), self.run.passed.total())
        if found == self.known:
            return []
        numbers = "{} scenarios with {} passed checks".format
        return [
            f"{numbers(*found)} where {numbers(*self.known)} are known; if the versions have"
            " changed, change the numbers, otherwise there was no time to pass them all",
            *(f"not passed: {check}: {said}" for check, said in failures(self.run)),
        ]


class Through(NamedTuple):
    """A run through a leg."""

    name: str
    leg: Leg
    revision: str
    direct: Run
    run: Run
    difference: Difference

    def cells(self) -> tuple[object, ...]:
        return (
            self.name,
            self.revision,
            len(self.run.scenarios),
            self.direct.passed.total(),
            self.run.passed.total(),
            self.difference.missing.total(),
            self.difference.extra.total(),
            len(self.difference.altered),
            f"{self.run.seconds:.1f}",
        )

    def findings(self) -> list[str]:
        found = [
            f"MISSING: {check}{times(n)}: {self.run.other.get(check, 'not there')}"
            for check, n in self.difference.unexplained.items()
        ]
        if self.leg.reshapes and not self.difference.altered:
            found.append("NOT RESHAPED: no answer differs, though rules are loaded that cut it")
        if not self.leg.reshapes:
            found += [f"ALTERED: the answer in {check}" for check in self.difference.altered]
        return found

    def remarks(self) -> list[str]:
        missing = self.difference.missing
        return [
            *(
                f"missing, as expected: {check}{times(missing[check])}: {gap.reason}"
                for check, gap in self.difference.explained.items()
            ),
            *(
                f"no longer missing: {gap.scenario} / {gap.id}; its entry in gaps.yaml can go"
                for gap in self.difference.closed
            ),
            *(f"extra: {check}{times(n)}" for check, n in self.difference.extra.items()),
        ]


class NotRun(NamedTuple):
    """A leg that could not be run."""

    name: str
    problem: str

    def cells(self) -> tuple[object, ...]:
        return self.name, "NOT RUN", *[""] * (len(HEAD) - 2)

    def findings(self) -> list[str]:
        return [self.problem]


Row = Direct | Through | NotRun


def printed(rows: Iterable[Row]) -> int:
    """Print each row as it comes, then what was found; return the exit code."""
    print(line(HEAD), line(["-" * width for width in WIDTHS]), sep="\n", flush=True)
    findings: list[str] = []
    remarks: list[str] = []
    for row in rows:
        print(line(row.cells()), flush=True)
        leg, revision, *_ = row.cells()
        findings += [f"{leg} {revision}: {text}" for text in row.findings()]
        if isinstance(row, Through):
            remarks += [f"{leg} {revision}: {text}" for text in row.remarks()]
    for text in [*remarks, *findings]:
        print(text)
    sys.stdout.flush()
    return 1 if findings else 0


def line(cells: Iterable[object]) -> str:
    """Lay cells out under the head, numbers to the right.

    >>> line(["serve", "2026-07-28", 40, 152, 152, 0, 0, 0, "3.1"])
    'serve   2026-07-28         40     152   152        0      0        0      3.1'
    """
    laid = [
        str(cell).ljust(width) if column < 2 else str(cell).rjust(width)
        for column, (cell, width) in enumerate(zip(cells, WIDTHS, strict=True))
    ]
    return "  ".join(laid).rstrip()


def gaps() -> list[Gap]:
    """Read the table of what legs cannot pass. Raises msgspec.ValidationError."""
    file = Path(__file__).resolve().parent / "gaps.yaml"
    return msgspec.convert(yaml.safe_load(file.read_text()), list[Gap])


def failures(run: Run) -> list[tuple[object, str]]:
    return [(check, said) for check, said in run.other.items() if not said.startswith("INFO")]


def times(number: int) -> str:
    return f" ×{number}" if number > 1 else ""
