"""Calls that the server leaves alone for longer than `--deadline` allows fail at that time.

Progress, guards and equal ids are shown in tests/session/test_deadlines.py, forms of the error
before a URL in tests/transports/sidecar/url/test_route_handler.py.
"""

import json
from itertools import count
from pathlib import Path

import pytest

from tests.faults.asking import Start, each_way, on_stdio
from tests.faults.naughty import result
from tests.faults.processes import until
from tests.faults.puppets import Puppet, arguments
from tests.faults.routes import Local, failure
from tests.faults.sidecar import call, get
from tests.faults.wrapper import Wrapped, naughty, ok

DEADLINE = ("--deadline", "0.5")
REASON = "no answer within 0.5 seconds and no progress"
LATE = (
    f"{REASON}; the call was cancelled. "
    "Whether it took effect is not known: find out before you call again"
)


@each_way(14)
def test_a_late_call_is_an_error_and_is_cancelled_once(start: Start) -> None:
    with start(*DEADLINE, server=naughty("puppet")) as client:
        puppet = Puppet(client)
        puppet.server_lines()
        assert failure(client.ask(call(7, "any", arguments=arguments(b""))), 7) == LATE
        lines: list[bytes] = []

        def both() -> bool:
            lines.extend(puppet.server_lines().splitlines())
            return len(lines) >= 2

        until(both)
        _, notice = map(json.loads, lines)
        assert notice["method"] == "notifications/cancelled"
        assert notice["params"] == {"requestId": 7, "reason": REASON}
        # A late answer reaches nobody, and the next call works.
        reply = puppet.ask("any", result(b"7", "late") + b"\n" + result(b"ID"))
        assert reply.line == result(reply.id)
        if isinstance(client, Local):
            figures = client.sidecar.ask(get("/metrics")).body
            assert b'mcp_abridge_calls_total{outcome="late",route="/mcp",tool="any"}' in figures
        else:
            warning = f"warning: any: {REASON}; the call was cancelled"
            until(lambda: warning in client.log())


@pytest.mark.fault(14, "stdio")
def test_an_answer_that_has_begun_to_pass_is_not_late() -> None:
    # A bounded answer is held until it is whole.
    with on_stdio(*DEADLINE, "--budget", "off", server=naughty("halts", "100000")) as wire:
        assert isinstance(wire, Wrapped)
        for id, name in ((7, "long"), (8, "never")):
            wire.write(call(id, name) + b"\n")
        long, late = wire.line(), wire.line()
        assert long == ok(7, "x" * 100_000)
        assert failure(late, 8) == LATE
        wire.works()


@each_way(14, 16)
def test_a_call_that_the_server_does_not_even_take_is_answered(
    start: Start, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    with start(*DEADLINE, server=naughty("deaf", str(gate))) as client:
        late = client.ask(call(7, arguments={"filler": "x" * 300_000}))
        assert failure(late, 7) == LATE
        gate.touch()
        ids = count(8)

        def answered() -> bool:
            id = next(ids)
            return client.ask(call(id)) == result(b"%d" % id)

        # A busy server may take longer than the deadline to read what has waited for it.
        until(answered)
