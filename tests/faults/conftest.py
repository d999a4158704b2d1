"""Targets of the faults, and the tests that run on Linux alone."""

import sys
from collections.abc import Iterator

import pytest

from tests.faults.routes import Bridge, Local, Naughty, Remote
from tests.faults.sidecar import serving
from tests.faults.wrapper import naughty

# Limits are set by prlimit; what a process holds, and whom it has left, is read from /proc.
LINUX = """
    callers deadlines exhaustion messages names orphans queries records scarcity served sessions
    stalls upstreams
"""
if sys.platform == "win32":  # the table asks for all files
    LINUX = "orphans scarcity sessions table"
collect_ignore = [] if sys.platform == "linux" else [f"test_{name}.py" for name in LINUX.split()]


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
