"""A plugin of pytest that says of each fault whether it is held: `-p tests.faults.table`.

A row is held where every way that it requires has a test, and all of its tests pass; where a row
is not, the run fails. A test that is skipped shows nothing, nor does one that the short form
leaves out.
"""

from collections.abc import Iterable

import pytest

from tests.faults.rows import ROWS, WAYS, Row, Way
from tests.faults.scale import LONG

_MARK = "fault"
_SHORT = "faults, in the short form: smaller sizes, and not every test"
_MISSED = ("FAILED", "NO TEST")
_HEADS: dict[Way, str] = {"stdio": "stdio", "http": "HTTP", "inside": "inside"}
_TITLE = max(len(row.title) for row in ROWS.values())


class Verdicts:
    """What came of the tests of each row, by way."""

    def __init__(self, rows: dict[int, Row] = ROWS) -> None:
        self._rows = rows
        self._tests: dict[tuple[int, Way], set[str]] = {}
        self._bad: set[str] = set()

    def shows(self, test: str, row: int, way: Way) -> None:
        """Take note that a test shows a row by a way."""
        self._tests.setdefault((row, way), set()).add(test)

    def failed(self, test: str) -> None:
        """Take note that a test did not pass."""
        self._bad.add(test)

    def verdict(self, row: int, way: Way) -> str:
        """Return what is known of a row by one of its ways.

        >>> verdicts = Verdicts({1: Row("a", ("stdio", "http"))})
        >>> verdicts.shows("test_a", 1, "stdio")
        >>> [verdicts.verdict(1, way) for way in WAYS]
        ['held 1', 'NO TEST', '-']
        """
        tests = self._tests.get((row, way), set())
        if bad := len(tests & self._bad):
            return f"FAILED {bad}"
        if tests:
            return f"held {len(tests)}"
        return "NO TEST" if way in self._rows[row].ways else "-"

    def missed(self) -> list[int]:
        """Return the rows that are not held."""
        return [
            row
            for row in self._rows
            if any(self.verdict(row, way).startswith(_MISSED) for way in WAYS)
        ]

    def lines(self) -> Iterable[str]:
        """Return the table, and in its last line what it comes to."""
        yield _line("row", "fault", *(_HEADS[way] for way in WAYS))
        for number, row in self._rows.items():
            yield _line(str(number), row.title, *(self.verdict(number, way) for way in WAYS))
        missed = self.missed()
        held = f"held: {len(self._rows) - len(missed)} of {len(self._rows)} rows"
        yield f"{held}; not held: {', '.join(map(str, missed))}" if missed else held


def _line(number: str, title: str, *verdicts: str) -> str:
    cells = "".join(f"  {verdict:13}" for verdict in verdicts)
    return f"{number:>3}  {title:{_TITLE}}{cells}".rstrip()


class _Table:
    """Collects the reports of one run, whichever process they come from."""

    def __init__(self) -> None:
        self.verdicts = Verdicts()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == _MARK:
                shown: tuple[int, Way] = value  # type: ignore[assignment]
                self.verdicts.shows(report.nodeid, *shown)
        if not report.passed:
            self.verdicts.failed(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("faults" if LONG else _SHORT)
        for line in self.verdicts.lines():
            terminalreporter.write_line(line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self.verdicts.missed() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED


def pytest_configure(config: pytest.Config) -> None:
    """Collect the reports where they come together, which is not where xdist runs the tests."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(_Table())


def pytest_itemcollected(item: pytest.Item) -> None:
    """Have the reports of a test carry the rows that it shows."""
    for mark in item.iter_markers(_MARK):
        row, way = mark.args
        if row not in ROWS or way not in WAYS:
            raise pytest.UsageError(f"{item.nodeid}: no row and way of the table: {mark.args!r}")
        item.user_properties.append((_MARK, (row, way)))
