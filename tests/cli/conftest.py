"""A command line in this process, for the tests of every verb."""

import io
from collections.abc import Callable
from typing import NamedTuple

import pytest
from mcp_abridge.cli import main


class Printed(NamedTuple):
    """The output of a command line."""

    out: str
    err: str


Run = Callable[..., Printed]


@pytest.fixture
def run(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> Run:
    """Return a function that runs a command line, which must end with the exit code `code`."""

    def run(*words: object, code: int = 0, stdin: bytes | None = None, **variables: str) -> Printed:
        if stdin is not None:
            monkeypatch.setattr("sys.stdin", io.TextIOWrapper(io.BytesIO(stdin)))
        for name, value in variables.items():
            monkeypatch.setenv(name, value)
        try:
            ended: object = main(list(map(str, words)))
        except SystemExit as error:
            ended = error.code
        printed = Printed(*capfd.readouterr())
        assert ended == code, printed
        return printed

    return run
