"""Leaves the tests of the long form out of the short one; pytest says how many those are."""

import pytest

from tests.faults.scale import LONG, in_short_form


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what only FAULTS=long runs."""
    left_out = [item for item in items if not LONG and not in_short_form(item)]
    if left_out:
        items[:] = [item for item in items if in_short_form(item)]
        config.hook.pytest_deselected(items=left_out)
