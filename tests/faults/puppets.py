"""A server whose every word is told to it by the call, over stdio and over HTTP.

Both ways offer the same: `ask` makes a call and returns what came of it, `sound` sees to it that
nothing is left of what happens. See `puppet` of naughty.py.
"""

import json
import sys
from collections.abc import Iterator
from contextlib import AbstractContextManager, contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.routes import NAUGHTY, Local, answer_of, modern
from tests.faults.rows import Way
from tests.faults.sidecar import Sidecar, compact, serving
from tests.faults.wrapper import Wrapped, said, wrapped

RULES = """\
version: 1
rules:
- {name: shaping, tools: shaped, response: [{drop: [noise]}]}
- {name: withholding, tools: withheld, response: [{drop: [noise]}], on_failure: refuse}
- {name: limiting, tools: limited, arguments: {limit: {maximum: 5}}}
- {name: hiding, tools: hidden, hide: true}
"""
WHOLE = ("--budget", "off")  # `plain`, which no rule names, passes at any length


LARGE = b'{"jsonrpc":"2.0","id":ID,"result":{"content":[{"type":"text","text":"[%b0]"}]}}' % (
    b"1," * 300_000
)


class Came(NamedTuple):
    """What came of a call: its id, as it is spelled, and all lines up to its end."""

    id: bytes
    lines: list[bytes]

    @property
    def line(self) -> bytes:
        [line] = self.lines
        return line


class Written:
    """Over stdio."""

    def __init__(self, wire: Wrapped) -> None:
        self.wire = wire
        self.numbers = count(100)

    def ask(self, tool: str, says: bytes, cut: int | None = None) -> Came:
        """Make a call, to be answered by these bytes, `ID` being its id; perhaps in pieces."""
        number = next(self.numbers)
        self.wire.write(told(number, tool, says, cut) + b"\n")
        return Came(b"%d" % number, self.so_far())

    def so_far(self) -> list[bytes]:
        *lines, _ = self._up_to("ok")
        return lines

    def heard(self) -> bytes:
        """Return the lines that the server was told since the last time."""
        last = json.loads(self._up_to("heard")[-1])
        return bytes.fromhex(last["result"]["content"][0]["text"])

    def _up_to(self, tool: str) -> list[bytes]:
        id = next(self.wire.ids)
        self.wire.write(told(id, tool) + b"\n")
        lines = [self._line()]
        while not lines[-1].startswith(b'{"jsonrpc":"2.0","id":%d,' % id):
            lines.append(self._line())
        return lines

    def _line(self) -> bytes:
        line = self.wire.line()
        assert line, f"it ended: {bytes(self.wire.errors)!r}"
        return line[:-1]

    @property
    def errors(self) -> bytes:
        return bytes(self.wire.errors)

    def log(self) -> list[str]:
        return said(self.errors)

    def sound(self) -> AbstractContextManager[None]:
        return self.wire.sound()


class Posted(Local):
    """Over HTTP, as a session or without."""

    def __init__(self, sidecar: Sidecar) -> None:
        super().__init__(sidecar)
        self.numbers = count(100)
        self.stateless = False

    def ask(self, tool: str, says: bytes, cut: int | None = None) -> Came:
        number = next(self.numbers)
        if self.stateless:
            got = self.sidecar.ask(modern(number, tool, arguments=arguments(says, cut)))
        else:
            got = self.sidecar.post(told(number, tool, says, cut), self.session)
        events = [data for data in got.events if data]
        return Came(b"%d" % number, events or [answer_of(got)])

    def heard(self) -> bytes:
        """Return the lines that the server of the session was told since the last time."""
        got = self.sidecar.post(told(next(self.numbers), "heard"), self.session)
        return bytes.fromhex(json.loads(answer_of(got))["result"]["content"][0]["text"])

    @property
    def errors(self) -> bytes:
        return bytes(self.sidecar.errors)

    def log(self) -> list[str]:
        lines = tuple(self.sidecar.lines)
        return [f"{line['level']}: {line['message']}" for line in lines if line.get("message")]


Puppet = Written | Posted


def told(id: int, tool: str, says: bytes | None = None, cut: int | None = None) -> bytes:
    params = {"name": tool, **({} if says is None else {"arguments": arguments(says, cut)})}
    return compact({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params})


def arguments(says: bytes, cut: int | None = None) -> dict[str, str | int]:
    return {"says": says.hex(), **({} if cut is None else {"cut": cut})}


@contextmanager
def puppet(way: Way, folder: Path) -> Iterator[Puppet]:
    rules = folder / "rules.yaml"
    rules.write_text(RULES)
    if way == "stdio":
        with wrapped("puppet", options=("--rules", str(rules), *WHOLE), once=False) as wire:
            yield Written(wire)
            ended = wire.close()
            assert (ended.code, ended.rest) == (0, b""), ended
    else:
        server = (sys.executable, str(NAUGHTY), "puppet")
        with serving("--rules", str(rules), *WHOLE, "--", *server) as sidecar:
            posted = Posted(sidecar)
            # What is large is shaped in a process of its own, which then stays.
            posted.ask("shaped", LARGE)
            yield posted


def each_way(row: int, *ways: Way) -> pytest.MarkDecorator:
    """Have a test show a row by several ways: it is given a puppet for each."""
    return pytest.mark.parametrize(
        "puppets",
        [pytest.param(way, marks=pytest.mark.fault(row, way)) for way in ways],
        indirect=True,
    )
