"""Targets of the faults, and the tests that cannot run: of the long form, or of Linux elsewhere."""

import sys
from collections.abc import Iterator

import pytest

from tests.faults.routes import Bridge, Local, Naughty, Remote
from tests.faults.scale import LONG, in_short_form
from tests.faults.sidecar import serving
from tests.faults.wrapper import naughty

# Limits are set by prlimit; what a process holds, and whom it has left, is read from /proc.
LINUX = (
    "test_deadlines.py",
    "test_exhaustion.py",
    "test_callers.py",
    "test_messages.py",
    "test_names.py",
    "test_orphans.py",
    "test_probes.py",
    "test_records.py",
    "test_scarcity.py",
    "test_served.py",
    "test_sessions.py",
    "test_stalls.py",
    "test_upstreams.py",
)
collect_ignore = [] if sys.platform == "linux" else [*LINUX]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Deselect what only FAULTS=long runs."""
    left_out = [item for item in items if not LONG and not in_short_form(item)]
    if left_out:
        items[:] = [item for item in items if in_short_form(item)]
        config.hook.pytest_deselected(items=left_out)


@pytest.fixture(scope="module")
def remote() -> Iterator[Remote]:
    with Naughty() as server, serving(server.url) as sidecar:
        yield Remote(sidecar, server)


@pytest.fixture(scope="module")
def local() -> Iterator[Local]:
    with serving(*naughty("plain")) as sidecar:
        yield Local(sidecar)


@pytest.fixture(scope="module")
def bridge() -> Iterator[Bridge]:
    with Naughty() as server, Bridge(server) as bridge:
        yield bridge
        assert bridge.close().code == 0


@pytest.fixture
def target(request: pytest.FixtureRequest) -> Remote | Bridge:
    target: Remote | Bridge = request.getfixturevalue(request.param)
    return target
