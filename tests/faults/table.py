"""A plugin of pytest that says of each fault whether it is held: `-p tests.faults.table`.

A row is held if every way that it requires has a test, and all of its tests pass; if a row is not,
the run fails. A test that is skipped shows nothing, nor does one that the short form leaves out.
"""

from collections.abc import Iterator

import pytest

from tests.faults.rows import ROWS, WAYS, Way
from tests.faults.scale import LONG

_MARK = "fault"
_SHORT = "faults, in the short form: smaller sizes, and not every test"
_HEADS: dict[Way, str] = {"stdio": "stdio", "http": "HTTP", "inside": "inside"}
_TITLE = max(len(row.title) for row in ROWS.values())


class Table:
    """Collects the reports of one run, whichever process they come from."""

    def __init__(self) -> None:
        self._tests: dict[tuple[int, Way], set[str]] = {}
        self._bad: set[str] = set()

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        for name, value in report.user_properties:
            if name == _MARK:
                key: tuple[int, Way] = value  # type: ignore[assignment]
                self._tests.setdefault(key, set()).add(report.nodeid)
        if not report.passed:
            self._bad.add(report.nodeid)

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        terminalreporter.section("faults" if LONG else _SHORT)
        for line in self._lines():
            terminalreporter.write_line(line)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        if self._failing() and session.exitstatus == pytest.ExitCode.OK:
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def _verdict(self, row: int, way: Way) -> str:
        tests = self._tests.get((row, way), set())
        if bad := len(tests & self._bad):
            return f"FAILED {bad}"
        if tests:
            return f"held {len(tests)}"
        return "NO TEST" if way in ROWS[row].ways else "-"

    def _failing(self) -> list[str]:
        return [
            str(row)
            for row in ROWS
            if any(self._verdict(row, way).startswith(("FAILED", "NO TEST")) for way in WAYS)
        ]

    def _lines(self) -> Iterator[str]:
        yield _line("row", "fault", *(_HEADS[way] for way in WAYS))
        for number, row in ROWS.items():
            yield _line(str(number), row.title, *(self._verdict(number, way) for way in WAYS))
        failing = self._failing()
        total = f"held: {len(ROWS) - len(failing)} of {len(ROWS)} rows"
        yield f"{total}; not held: {', '.join(failing)}" if failing else total


def _line(number: str, title: str, *verdicts: str) -> str:
    cells = "".join(f"  {verdict:13}" for verdict in verdicts)
    return f"{number:>3}  {title:{_TITLE}}{cells}".rstrip()


def pytest_configure(config: pytest.Config) -> None:
    """Collect the reports in the main process; xdist runs the tests in others."""
    if not hasattr(config, "workerinput"):
        config.pluginmanager.register(Table())


def pytest_itemcollected(item: pytest.Item) -> None:
    """Have the reports of a test carry the rows that it shows."""
    for mark in item.iter_markers(_MARK):
        row, way = mark.args
        if row not in ROWS or way not in WAYS:
            raise pytest.UsageError(f"{item.nodeid}: no row and way of the table: {mark.args!r}")
        item.user_properties.append((_MARK, (row, way)))
