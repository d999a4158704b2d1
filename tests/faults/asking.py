"""Clients of the wrapper and of the sidecar before echo.py, which ask one thing after the other."""

import json
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager, contextmanager
from pathlib import Path
from typing import Any

import pytest

from tests.faults.processes import until
from tests.faults.sidecar import INITIALIZE, PROGRAM, ROOT, Sidecar, compact, serving
from tests.wire import Wire

SERVER = ("--", sys.executable, str(Path(__file__).with_name("echo.py")))


class Written:
    """A client on stdio."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire

    def ask(self, raw: bytes) -> bytes:
        """Make a request; return its one answer."""
        self.wire.write(raw + b"\n")
        line = self.wire.line()
        assert line, bytes(self.wire.errors)
        return line[:-1]

    def logged(self, wanted: str) -> int:
        """Wait until the log says what is wanted; return how often."""
        return _count(self.wire.errors, wanted)

    @property
    def errors(self) -> bytes:
        return bytes(self.wire.errors)


class Posting:
    """A client over HTTP."""

    def __init__(self, sidecar: Sidecar) -> None:
        self.sidecar = sidecar
        self.headers = [sidecar.begin()]

    def ask(self, raw: bytes) -> bytes:
        got = self.sidecar.post(raw, *self.headers)
        assert got.ended
        [answer] = [data for data in got.events if data] or [got.body]
        return answer

    def logged(self, wanted: str) -> int:
        return _count(self.sidecar.errors, wanted)

    @property
    def errors(self) -> bytes:
        return bytes(self.sidecar.errors)


Client = Written | Posting
Way = Callable[..., AbstractContextManager[Client]]


def _count(errors: bytearray, wanted: str) -> int:
    until(lambda: wanted.encode() in errors, said=lambda: errors.decode())
    return errors.decode().count(wanted)


@contextmanager
def on_stdio(
    *options: str, program: Sequence[str] = PROGRAM, server: Sequence[str] = SERVER
) -> Iterator[Written]:
    with Wire([*program, "--ledger", "off", *options, *server], cwd=ROOT) as wire:
        client = Written(wire)
        client.ask(INITIALIZE)
        yield client
        ended = wire.close()
        assert (ended.code, ended.rest) == (0, b""), (ended.rest, ended.stderr[-2000:])


@contextmanager
def over_http(
    *options: str, program: Sequence[str] = PROGRAM, server: Sequence[str] = SERVER
) -> Iterator[Posting]:
    if sys.platform != "linux":
        pytest.skip("what a process holds is read from /proc")
    with serving(*options, *server, program=program) as sidecar:
        yield Posting(sidecar)


def asks(tool: str, answer: dict[str, Any], id: int | str = 2, **arguments: Any) -> dict[str, Any]:
    params = {"name": tool, "arguments": {"answer": answer, **arguments}}
    return {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}


def result(client: Client, message: dict[str, Any]) -> Any:
    return json.loads(client.ask(compact(message)))["result"]
