"""What every test gets: a home of its own, and, when asked for, the real servers."""

import os
from collections.abc import Iterator

import hypothesis
import pytest

from tests.servers.install import install

# Installers need the user's own settings (a mirror, a certificate), which lie in the real home.
AS_STARTED = dict(os.environ)

# The same examples on every run, and no limit of time: a slow machine is not a bug.
# To look for new ones: pytest --hypothesis-profile=explore
hypothesis.settings.register_profile("steady", derandomize=True, deadline=None)
hypothesis.settings.register_profile("explore", deadline=None, max_examples=2000)
hypothesis.settings.load_profile("steady")


@pytest.fixture(scope="session", autouse=True)
def home(tmp_path_factory: pytest.TempPathFactory) -> Iterator[None]:
    """Keep every test, and every process that it starts, out of the user's home and settings."""
    folder = tmp_path_factory.mktemp("home")
    with pytest.MonkeyPatch.context() as patch:
        for name in os.environ:
            if name.startswith(("MCP_ABRIDGE_", "XDG_", "GIT_")):
                patch.delenv(name)
        for name in ("FORCE_COLOR", "NO_COLOR", "GITHUB_PERSONAL_ACCESS_TOKEN", "MEMORY_FILE_PATH"):
            patch.delenv(name, raising=False)
        patch.setenv("HOME", str(folder))
        patch.setenv("GIT_CONFIG_NOSYSTEM", "1")
        yield


@pytest.fixture(autouse=True)
def state(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> None:
    """Give each test an empty state folder, so that no ledger holds another test's calls."""
    monkeypatch.setenv("XDG_STATE_HOME", str(tmp_path_factory.mktemp("state")))


@pytest.fixture(scope="session")
def servers() -> None:
    """Have the servers and clients of tests/servers installed. Raises NotInstalled, never skips."""
    install(AS_STARTED)
