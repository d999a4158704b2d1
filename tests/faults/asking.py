"""Clients of the wrapper and of the sidecar before a command, which are asked alike."""

import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path

import pytest

from tests.faults.forks import PROGRAM
from tests.faults.processes import until
from tests.faults.routes import Local
from tests.faults.rows import Way
from tests.faults.sidecar import INITIALIZE, bare, serving
from tests.faults.wrapper import Wrapped

CHANGING = ("--", sys.executable, str(Path(__file__).with_name("changing.py")))
Client = Wrapped | Local
Start = Callable[..., AbstractContextManager[Client]]


@contextmanager
def on_stdio(
    *options: str, program: Sequence[str] = PROGRAM, server: Sequence[str] = CHANGING
) -> Iterator[Client]:
    own = ("--log-format", "json")
    with Wrapped([*program, *own, *bare(*options), *server]) as wire:
        wire.ask(INITIALIZE)
        yield wire
        ended = wire.close()
        assert (ended.code, ended.rest) == (0, b""), (ended.rest, ended.stderr[-2000:])


@contextmanager
def over_http(
    *options: str, program: Sequence[str] = PROGRAM, server: Sequence[str] = CHANGING
) -> Iterator[Local]:
    with serving(*options, *server, program=program) as sidecar:
        yield Local(sidecar)


STARTS: dict[Way, Start] = {"stdio": on_stdio, "http": over_http}


def each_way(*rows: int) -> pytest.MarkDecorator:
    """Have a test show rows by both ways."""
    marked = [
        pytest.param(start, id=way, marks=[pytest.mark.fault(row, way) for row in rows])
        for way, start in STARTS.items()
    ]
    return pytest.mark.parametrize("start", marked)


def logged(client: Client, message: str) -> int:
    """Wait until the log says what is wanted; return how often."""
    until(lambda: message in "\n".join(client.log()), detail=client.errors.decode)
    return "\n".join(client.log()).count(message)
