"""A server whose calls dictate its answers byte by byte, over stdio and over HTTP.

See `puppet` of naughty.py.
"""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import count
from pathlib import Path
from typing import NamedTuple

import pytest

from tests.faults.asking import Client
from tests.faults.routes import Local
from tests.faults.rows import Way
from tests.faults.sidecar import call, serving
from tests.faults.wrapper import Wrapped, naughty, wrapped

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


class PuppetReply(NamedTuple):
    """The reply to a call: its id, as it is spelled, and all lines up to its end."""

    id: bytes
    lines: list[bytes]

    @property
    def line(self) -> bytes:
        [line] = self.lines
        return line


class Puppet:
    """The server behind a client."""

    def __init__(self, client: Client) -> None:
        self.client = client
        self._numbers = count(100)

    def ask(self, tool: str, says: bytes, cut: int | None = None) -> PuppetReply:
        """Make a call, to be answered by these bytes, `ID` being its id; perhaps in pieces."""
        number = next(self._numbers)
        params = arguments(says, cut)
        if isinstance(self.client, Wrapped):
            self.client.write(call(number, tool, arguments=params) + b"\n")
            lines = self.so_far()
        else:
            lines = self.client.messages(call(number, tool, arguments=params))
        return PuppetReply(b"%d" % number, lines)

    def so_far(self) -> list[bytes]:
        """Return the lines that have come on stdout."""
        *lines, _ = self._up_to("ok")
        return lines

    def server_lines(self) -> bytes:
        """Return the lines that the server has read since the last time."""
        last = json.loads(self._up_to("heard")[-1])
        return bytes.fromhex(last["result"]["content"][0]["text"])

    def _up_to(self, tool: str) -> list[bytes]:
        return self.client.messages(call(next(self.client.ids), tool))


def arguments(says: bytes, cut: int | None = None) -> dict[str, str | int]:
    return {"says": says.hex(), **({} if cut is None else {"cut": cut})}


@contextmanager
def puppet(way: Way, folder: Path) -> Iterator[Puppet]:
    rules = folder / "rules.yaml"
    rules.write_text(RULES)
    if way == "stdio":
        with wrapped("puppet", options=("--rules", str(rules), *WHOLE), once=False) as wire:
            yield Puppet(wire)
            ended = wire.close()
            assert (ended.code, ended.rest) == (0, b""), ended
    else:
        with serving("--rules", str(rules), *WHOLE, *naughty("puppet")) as sidecar:
            posted = Puppet(Local(sidecar))
            # What is large is shaped in a process of its own, which then stays.
            posted.ask("shaped", LARGE)
            yield posted


def by_ways(row: int, *ways: Way) -> pytest.MarkDecorator:
    """Have a test show a row by several ways: it is given a puppet for each."""
    return pytest.mark.parametrize(
        "puppets",
        [pytest.param(way, marks=pytest.mark.fault(row, way)) for way in ways],
        indirect=True,
    )
