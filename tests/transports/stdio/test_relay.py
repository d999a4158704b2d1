"""The relay does what a session says, in order and without one side holding up the other.

What it does about servers and clients that fail stands in tests/faults.
"""

import sys
import threading
import time
from collections.abc import Iterator
from pathlib import Path

import pytest

from proxy.transports.stdio import relay
from proxy.transports.stdio.relay import run_with_timeout
from tests.threadless import threadless
from tests.wire import Wire

SECONDS = 60.0

ROOT = Path(__file__).resolve().parents[3]
COMMAND = [sys.executable, "-m", "tests.transports.scripted"]


@pytest.fixture
def wire() -> Iterator[Wire]:
    with Wire(COMMAND, cwd=ROOT) as started:
        yield started


def lines(wire: Wire, count: int) -> list[bytes]:
    return [wire.line().removesuffix(b"\n") for _ in range(count)]


def test_many_lines_at_once_go_on_in_their_order(wire: Wire) -> None:
    sent = [b"line %d" % number for number in range(5000)]
    wire.write(b"\n".join(sent) + b"\n")
    assert lines(wire, 5000) == sent
    assert wire.close().code == 0


@pytest.mark.parametrize("side", [b"client", b"server"])
def test_a_reply_goes_back_to_the_side_that_spoke(wire: Wire, side: bytes) -> None:
    wire.write(side + b" reply hello\n")
    # `cat` sends the replies to the server back; it may be quicker than the second reply.
    assert sorted(lines(wire, 3)) == sorted([b"hello", b"hello", side + b" reply hello"])


def test_snapshots_are_kept_found_and_forgotten(wire: Wire) -> None:
    steps = {
        b"server keep a": b"kept",
        b"client load a": b"loaded 7 a",
        b"client forget a": b"forgotten",
        b"client load b": b"loaded 7 nothing",
    }
    for said, line in steps.items():
        wire.write(said + b"\n")
        assert lines(wire, 1) == [line]


def test_the_client_is_heard_while_a_job_is_shaped(wire: Wire) -> None:
    wire.write(b"server shape job\n")
    assert lines(wire, 1) == [b"before shaping"]
    wire.write(b"client go\n")
    assert lines(wire, 2) == [b"shaped job", b"client go"]


def test_the_server_is_heard_while_a_job_is_shaped_for_a_request(wire: Wire) -> None:
    # What stands before the job goes on before it is done, though it was read at once.
    wire.write(b"server go\nclient shape job\n")
    assert sorted(lines(wire, 3)) == [b"before shaping", b"server go", b"shaped job"]


def test_noise_goes_to_stderr(wire: Wire) -> None:
    wire.write(b"server noise hum\n")
    assert lines(wire, 1) == [b"after noise"]
    ended = wire.close()
    assert b"\nhum\n" in ended.stderr
    assert ended.rest == b""


def test_a_long_line_that_may_pass_is_passed_and_reported(wire: Wire) -> None:
    line = b"server pass " + b"x" * 500_000 + b"end"
    wire.write(line + b"\n" + b"short\n")
    assert lines(wire, 2) == [line, b"short"]
    assert b"streamed 500015 server pass end\n" in wire.close().stderr


def test_another_thread_can_end_everything_with_a_code_of_its_own() -> None:
    with Wire([*COMMAND, "refuse"], cwd=ROOT) as wire:
        assert wire.line() == b""
        assert wire.close().code == 2


def test_a_call_with_a_timeout_is_waited_for_only_so_long() -> None:
    begun, go, ended = threading.Event(), threading.Event(), threading.Event()

    def slow() -> None:
        begun.set()
        go.wait(SECONDS)
        ended.set()

    start = time.monotonic()
    run_with_timeout(0.5, slow)
    assert time.monotonic() - start < SECONDS / 2
    assert begun.is_set()
    assert not ended.is_set()
    go.set()
    assert ended.wait(SECONDS)
    run_with_timeout(SECONDS, go.clear)
    assert not go.is_set()


@pytest.mark.parametrize("threads", ["none", "one that never begins"])
def test_a_call_with_a_timeout_is_made_once_without_a_thread(
    threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[int] = []
    if threads == "none":
        with threadless():
            run_with_timeout(SECONDS, lambda: calls.append(threading.get_ident()))
    else:
        monkeypatch.setattr(relay, "start_new_thread", lambda run, args: 0)
        run_with_timeout(0.1, lambda: calls.append(threading.get_ident()))
    assert calls == [threading.get_ident()]
