"""Leaves out what cannot run: tests of the long form in a short one, and of Linux elsewhere."""

import sys

import pytest

from tests.faults.scale import LONG, in_short_form

# Limits are set by prlimit; what a process holds, and whom it has left, is read from /proc.
LINUX = (
    "test_deadlines.py",
    "test_exhaustion.py",
    "test_http.py",
    "test_names.py",
    "test_orphans.py",
    "test_probes.py",
    "test_records.py",
    "test_scarcity.py",
    "test_served.py",
    "test_stalls.py",
)
collect_ignore = [] if sys.platform == "linux" else [*LINUX]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what only FAULTS=long runs."""
    left_out = [item for item in items if not LONG and not in_short_form(item)]
    if left_out:
        items[:] = [item for item in items if in_short_form(item)]
        config.hook.pytest_deselected(items=left_out)
