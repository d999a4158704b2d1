"""Calls that the server leaves alone for longer than `--deadline` allows fail at that time."""

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.asking import Start, each_way
from tests.faults.naughty import result
from tests.faults.processes import until
from tests.faults.routes import failure
from tests.faults.sidecar import call, get
from tests.faults.ways import (
    CANCELLED,
    HTTP_WAYS,
    SERVE_URL,
    STDIO_WAYS,
    HttpWay,
    StdioWay,
    Way,
    all_ways,
    hears,
    server_messages,
    text,
)
from tests.faults.wrapper import naughty

# A machine under load may stop a process for a second; the server reports progress each 50 ms.
DEADLINE = ("--deadline", "2")
REASON = "no answer within 2 seconds and no progress"
LATE = (
    f"{REASON}; the call was cancelled. "
    "Whether it took effect is not known: find out before you call again"
)
IDS = itertools.count(100)
FREE = '{"busy":false}'


@pytest.fixture(scope="module")
def ways() -> Iterator[dict[str, Way]]:
    with all_ways(*DEADLINE) as started:
        yield started


@pytest.mark.parametrize(
    "name",
    [
        pytest.param(name, marks=pytest.mark.fault(14, way))
        for way, names in (("stdio", STDIO_WAYS), ("http", HTTP_WAYS))
        for name in names
    ],
)
def test_a_late_call_is_an_error_and_is_cancelled_once(ways: dict[str, Way], name: str) -> None:
    way = ways[name]
    server_messages(way)
    calls = {
        how: way.call(next(IDS), "check", how=how, token=f"token of {how}")
        for how in ("never", "belated", "alive")
    }
    # The time of a call that a guard holds begins when it is sent.
    calls["held"] = way.call(next(IDS), "act", how="never", then="pass", seconds=3.0)
    answers = {how: call.messages()[-1] for how, call in calls.items()}
    assert [text(answers[how]) for how in calls] == [LATE, LATE, "done", "done"]
    failed = [answers[how]["result"].get("isError", False) for how in calls]
    assert failed == [True, True, False, False]
    # In the stateless era over HTTP the end of the connection says so.
    notices = [] if name == SERVE_URL else [CANCELLED] * 3
    told_to = hears(way, *["check"] * 4, "act", *notices)
    reasons = [each["params"].get("reason") for each in told_to if each["method"] == CANCELLED]
    assert reasons.count(REASON) == (2 if notices else 0)
    if isinstance(way, StdioWay):
        assert str(way.log()).count(f"check: {REASON}; the call was cancelled") == 2
    # A late answer reaches nobody, and the next call works.
    *others, last = way.call(next(IDS), "check", how="fine").messages()
    assert (others, text(last)) == ([], FREE)
    if isinstance(way, HttpWay):
        until(lambda: way.sidecar.resources.requests == 0)
        figures = way.sidecar.ask(get("/metrics")).body
        assert b'mcp_abridge_calls_total{outcome="late",tool="check"}' in figures


SHORT = ("--deadline", "0.5")


@pytest.mark.fault(14, "stdio")
def test_an_answer_that_has_begun_to_pass_is_not_late() -> None:
    # A bounded answer is held until it is whole.
    with StdioWay(*SHORT, "--budget", "off", *naughty("halts", "100000")) as wire:
        for id, name in ((7, "long"), (8, "never")):
            wire.write(call(id, name) + b"\n")
        long, late = wire.line(), wire.line()
        assert len(text(json.loads(long))) == 100_000
        assert json.loads(late)["id"] == 8
        assert text(wire.call(9, "fine").messages()[-1]) == "ok"
        ended = wire.close()
        assert (ended.code, ended.rest) == (0, b"")


@each_way(14, 16)
def test_a_call_that_the_server_does_not_even_take_is_answered(
    start: Start, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    with start(*SHORT, server=naughty("deaf", str(gate))) as client:
        late = client.ask(call(7, arguments={"filler": "x" * 300_000}))
        assert failure(late, 7).startswith("no answer within 0.5 seconds")
        os.close(os.open(gate, os.O_WRONLY))
        assert client.ask(call(8)) == result(b"8")
