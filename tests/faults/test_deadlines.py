"""What must be seen of calls that the server leaves alone for longer than `--deadline` allows."""

import itertools
import json
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.faults.processes import until
from tests.faults.routes import answer_of, modern
from tests.faults.sidecar import call, get, post, serving
from tests.faults.ways import (
    CANCELLED,
    PROBED,
    SERVE_URL,
    SERVED,
    SESSIONS,
    STATELESS,
    WRITTEN,
    Served,
    Way,
    Written,
    all_ways,
    heard,
    hears,
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
        for way, names in (("stdio", WRITTEN), ("http", SERVED))
        for name in names
    ],
)
def test_a_call_that_is_late_is_an_error_and_the_server_is_told_once(
    ways: dict[str, Way], name: str
) -> None:
    way = ways[name]
    heard(way)
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
    told = [] if name == SERVE_URL else [CANCELLED] * 3
    told_to = hears(way, *["check"] * 4, "act", *told)
    reasons = [each["params"].get("reason") for each in told_to if each["method"] == CANCELLED]
    assert reasons.count(REASON) == (2 if told else 0)
    # A late answer reaches nobody, and the next call works.
    *others, last = way.call(next(IDS), "check", how="fine").messages()
    assert (others, text(last)) == ([], FREE)
    if isinstance(way, Served):
        until(lambda: way.sidecar.left.requests == 0)
        figures = way.sidecar.ask(get("/metrics")).body
        assert b'mcp_abridge_calls_total{outcome="late",tool="check"}' in figures


SHORT = ("--deadline", "0.5")
TOO_LATE = "no answer within 0.5 seconds"
FILLER = "x" * 300_000


@pytest.fixture
def gate(tmp_path: Path) -> Path:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    return gate


@pytest.mark.fault(14, "stdio")
def test_an_answer_that_has_begun_to_pass_is_not_late() -> None:
    # A bounded answer is held until it is whole.
    with Written(*SHORT, "--budget", "off", *naughty("halts", "100000")) as wire:
        for id, name in ((7, "long"), (8, "never")):
            wire.write(call(id, name) + b"\n")
        long, late = wire.line(), wire.line()
        assert len(text(json.loads(long))) == 100_000
        assert json.loads(late)["id"] == 8
        assert text(wire.call(9, "fine").messages()[-1]) == "ok"
        ended = wire.close()
        assert (ended.code, ended.rest) == (0, b"")


@pytest.mark.fault(14, "stdio")
@pytest.mark.fault(16, "stdio")
def test_a_call_that_the_server_does_not_even_take_is_answered(gate: Path) -> None:
    with Written(*SHORT, *naughty("deaf", str(gate))) as wire:
        assert text(wire.call(7, "free", filler=FILLER).messages()[0]).startswith(TOO_LATE)
        os.close(os.open(gate, os.O_WRONLY))
        assert text(wire.call(8, "free").messages()[-1]) == "ok"
        ended = wire.close()
        assert (ended.code, ended.rest) == (0, b"")


@pytest.mark.fault(14, "http")
@pytest.mark.fault(16, "http")
@pytest.mark.parametrize("era", [SESSIONS, STATELESS])
def test_a_call_that_a_server_behind_a_sidecar_does_not_even_take_is_answered(
    era: str, gate: Path
) -> None:
    with serving(*SHORT, *naughty("deaf", str(gate))) as sidecar:
        session = () if era == STATELESS else (sidecar.begin(),)

        def said(id: int, filler: str = "") -> str:
            asked = modern(id, arguments={"filler": filler})
            if session:
                asked = post(call(id, arguments={"filler": filler}), *session)
            return text(json.loads(answer_of(sidecar.ask(asked))))

        if era == STATELESS:
            assert said(6) == "ok"
        assert said(7, FILLER).startswith(TOO_LATE)
        os.close(os.open(gate, os.O_WRONLY))
        assert said(8) == "ok"


@pytest.mark.fault(14, "stdio")
def test_each_call_that_is_late_leaves_a_line_in_the_log() -> None:
    with Written(*SHORT, "--", *PROBED) as wire:
        for id in (7, 8):
            wire.call(id, "check", how="never").messages()
        ended = wire.close()
    said = "check: no answer within 0.5 seconds and no progress; the call was cancelled"
    assert ended.stderr.decode().count(said) == 2
