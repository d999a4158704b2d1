"""Every test has a home of its own and, on demand, the real servers."""

import gc
import os
import signal
from collections.abc import Generator, Iterator
from itertools import count
from pathlib import Path
from typing import Any

import hypothesis
import pytest
from mcp_abridge.system import platform

from tests.faults.scale import LONG, scaled
from tests.servers.install import require

# The same examples on every run, and no limit of time: a slow machine is not a bug.
# To look for new ones: pytest --hypothesis-profile=explore; `make unit` takes few of them.
hypothesis.settings.register_profile(
    "steady", derandomize=True, deadline=None, max_examples=scaled(6, 15)
)
hypothesis.settings.register_profile("few", derandomize=True, deadline=None, max_examples=5)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("steady")


# All that is made while tests are collected stays: looking through it again and again takes each
# worker a sixth of that time, and more in every test.
gc.disable()


def pytest_collection_finish() -> None:
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers() -> Generator[None, int, int]:
    """Have `-n auto` mean three workers for two cores."""
    # Nearly half of its time a worker waits, for a process that starts or for a time to pass.
    return (yield) * 3 // 2


# Each takes a worker some ten seconds or more.
LONGEST = {
    *("test_conformance.py", "test_examples.py", "test_sessions.py", "test_soak.py"),
    *("test_deadlines.py", "test_doctor.py", "test_exhaustion.py", "test_orphans.py"),
    *("test_first_calls.py", "test_http_clients.py", "test_stalls.py", "test_stdio.py"),
    *("test_current_folder.py", "test_in_process.py", "test_middleware.py"),
    *("test_agentdata.py", "test_codebase.py", "test_commands.py", "test_demo.py"),
    *("test_first_rule.py", "test_pictures.py", "test_telemetry.py", "test_two_callers.py"),
    *("test_real_clients.py", "test_real_servers.py", "test_suggest.py", "test_upstreams.py"),
}


@pytest.hookimpl(wrapper=True)
def pytest_collect_file(
    file_path: Path,
) -> Generator[None, list[pytest.Collector], list[pytest.Collector]]:
    """Look for doctests only where there are some: each worker goes through every module."""
    collectors = yield
    if file_path.suffix != ".py" or ">>> " in file_path.read_text("utf-8"):
        return collectors
    return [each for each in collectors if type(each).__name__ != "DoctestModule"]


def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Keep long tests out of a short run; and run the longest files first.

    All would wait for the worker that gets one last.
    """
    long = [item for item in items if not LONG and item.get_closest_marker("long")]
    if long:
        config.hook.pytest_deselected(items=long)
        items[:] = [item for item in items if not item.get_closest_marker("long")]
    items.sort(key=lambda item: item.path.name not in LONGEST)


@pytest.hookimpl(wrapper=True, tryfirst=True)
def pytest_runtest_teardown(item: pytest.Item) -> Generator[None, object, object]:
    """Keep a test that has failed from hanging in its teardown: the failure ended its limit."""
    limit: Any = item.config.pluginmanager.get_plugin("faulthandler")
    return (yield from limit.pytest_runtest_protocol(item))


@pytest.hookimpl(optionalhook=True)
def pytest_handlecrashitem(report: pytest.TestReport, sched: Any) -> None:
    """End the run with the test that ended its worker: another one would run that test again."""
    sched.config.hook.pytest_runtest_logreport(report=report)
    pytest.exit(str(report.longrepr), returncode=1)


@pytest.fixture(scope="session", autouse=True)
def signals() -> None:
    """Start processes as from a terminal: those of a job in the background ignore these signals."""
    for number in platform.END_SIGNALS:
        if signal.getsignal(number) == signal.SIG_IGN:
            # Ignored here as before; a process that is started has no handlers.
            signal.signal(number, lambda *_: None)


# What POSIX and Windows ask for it; APPDATA and LOCALAPPDATA lie in it, if they are not set.
HOME = ("HOME", "USERPROFILE")


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep every test, and every process that it starts, out of the user's home and settings."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            own = name.startswith(("MCP_ABRIDGE_", "XDG_", "GIT_", "OTEL_"))
            if own or name.upper().removesuffix("_PROXY") in ("HTTP", "HTTPS", "ALL", "NO"):
                patch.delenv(name)
        for name in (
            "APPDATA",
            "LOCALAPPDATA",
            "FORCE_COLOR",
            "NO_COLOR",
            "GITHUB_PERSONAL_ACCESS_TOKEN",
            "MEMORY_FILE_PATH",
        ):
            patch.delenv(name, raising=False)
        # Each of the hundreds of processes would compile the proxy anew.
        patch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
        for name in HOME:
            patch.setenv(name, str(folder))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        # Nobody out there is spoken to; to read whom to trust takes a fifth of each start.
        patch.setenv("SSL_CERT_FILE", str(Path(__file__).parent / "fixtures" / "nobody.pem"))
        yield


@pytest.fixture(scope="session")
def states(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Return new folders, one after another."""
    # mktemp looks through all that it has made before: thousands of times, that takes long.
    parent = tmp_path_factory.mktemp("states")
    return (parent / str(number) for number in count())


@pytest.fixture(autouse=True)
def state(states: Iterator[Path], monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test an empty state folder, so that no ledger holds another test's calls."""
    folder = next(states)
    folder.mkdir()
    monkeypatch.setenv("XDG_STATE_HOME", str(folder))


@pytest.fixture(scope="session")
def servers() -> None:
    """Refuse to run without the servers and clients of tests/servers. Raises NotInstalled."""
    require()
