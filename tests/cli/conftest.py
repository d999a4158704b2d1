"""A command line in this process, for the tests of every verb."""

from collections.abc import Callable

import pytest

from proxy.cli import main

Run = Callable[..., tuple[object, str, str]]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command line, and returns its exit code, stdout and stderr."""

    def run(*words: object, **variables: str) -> tuple[object, str, str]:
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        try:
            code: object = main(list(map(str, words)))
        except SystemExit as ended:
            code = ended.code
        return code, *capfd.readouterr()

    return run
