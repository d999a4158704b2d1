"""Each fault of a stdio server or client has the promised outcome: naughty.py, wrapped.

Everywhere the same: each request gets one answer, the next call works, untouched bytes are the
same, no process is left, and one line of the log names the fault.
"""

import json
import os
import re
import signal
import sys
from pathlib import Path

import pytest
from mcp_abridge.system import platform

from tests.faults.asking import Start, each_way
from tests.faults.naughty import result
from tests.faults.processes import LIFE, still, until, written_by
from tests.faults.routes import failure
from tests.faults.scale import scaled
from tests.faults.sidecar import call as posted
from tests.faults.sidecar import log_messages, soon
from tests.faults.wrapper import (
    OWN,
    Wrapped,
    call,
    codes,
    command,
    naughty,
    ok,
    wrapped,
)
from tests.platforms import on_posix

NOISE = 0.9  # seconds that a machine may be busy with something else


@pytest.mark.fault(1, "stdio")
@pytest.mark.parametrize(
    ("fault", "how"),
    [("ends", "0"), pytest.param("ends_before", "SIGKILL", marks=on_posix("no signals"))],
)
def test_a_server_that_ends_has_all_calls_in_flight_answered_with_the_cause(
    fault: str, how: str
) -> None:
    code, cause = codes(how)
    with wrapped(fault, how) as wire:
        wire.write(call(2, "end") + call(3) + call(4))
        lines = wire.rest()
        ended = wire.close()
    assert [failure(line, id) for line, id in zip(lines, (2, 3, 4), strict=True)] == [
        f"{cause}; its stderr ends with:\nthe disk is on fire"
    ] * 3
    assert ended.code == code
    assert log_messages(ended.stderr)[-1] == f"error: {cause}; requests answered with an error: 3"


@pytest.mark.fault(1, "stdio")
@pytest.mark.fault(20, "stdio")
@on_posix("no such hold on a pipe that could be shown under Wine")
@pytest.mark.parametrize(("fault", "code"), [("closes_stdout", 0), ("leaves_a_child_behind", 4)])
def test_a_server_whose_stdout_is_closed_or_held_open_by_others_has_its_calls_answered(
    fault: str, code: int
) -> None:
    with wrapped(fault) as wire:
        wire.write(call(2, "end"))
        [line] = wire.rest()
        ended = wire.close()
    assert failure(line, 2) == f"the server ended with exit code {code}"
    assert ended.code == code


@pytest.mark.fault(1, "stdio")
def test_a_server_that_ends_within_a_long_answer_has_its_call_answered() -> None:
    with wrapped("ends_within_a_long_answer") as wire:
        wire.write(call(2, "end"))
        cut, error = wire.rest()
        ended = wire.close()
    # What has gone on cannot be taken back; it is a line of its own.
    assert cut == result(b"2", "x" * 5_000_000)[:3_000_000] + b"\n"
    assert failure(error, 2) == "the server ended with exit code 3"
    assert ended.code == 3
    [warned, *_] = log_messages(ended.stderr)
    assert warned == "warning: the server ended within a line, after 3000000 bytes of it"


@pytest.mark.fault(2, "stdio")
def test_a_crash_at_the_start_answers_initialize_with_the_reason() -> None:
    with soon(2.0), Wrapped(command("crashes", "5")) as wire:
        [line] = wire.send("initialize", 1)
        ended = wire.close()
    assert json.loads(line)["error"]["message"] == (
        "the server ended with exit code 5; its stderr ends with:\nno such database"
    )
    assert (ended.code, ended.rest) == (5, b"")


@pytest.mark.fault(2, "stdio")
def test_a_command_that_cannot_be_started_is_named_with_the_reason() -> None:
    with soon(2.0), Wrapped([*OWN, "--", "no-such-command"]) as wire:
        [line] = wire.send("initialize", "a")
        ended = wire.close()
    reason = "'no-such-command' cannot be started: no such file or directory"
    assert json.loads(line)["error"]["message"] == reason
    assert ended.code == 127
    assert log_messages(ended.stderr)[0] == f"error: {reason}"


@pytest.mark.fault(8, "stdio")
@pytest.mark.parametrize("size", [1 << 20, scaled(20, 100) << 20])
def test_long_lines_pass_as_they_are_in_little_memory(size: int) -> None:
    with wrapped("large") as wire:
        with wire.in_memory(16 << 20):
            wire.write(call(2, str(size)) + call(3))
            assert wire.line() == ok(2, "x" * size)
            assert wire.line() == ok(3)
        assert wire.close().code == 0


@pytest.mark.fault(8, "stdio")
def test_a_long_line_that_must_be_looked_at_takes_at_most_three_times_its_size() -> None:
    size = scaled(30, 100) << 20
    with wrapped("large", "last") as wire:
        # While a list of tools is awaited, a line that does not begin with its id is held.
        listing = b'{"jsonrpc":"2.0","id":3,"method":"tools/list"}\n'
        with wire.in_memory(3 * size):
            wire.write(call(2, str(size)) + listing + call(4))
            line = wire.line()
            assert line[-40:].endswith(b',"id":2}\n')
            assert b"x" * size in line
            assert b'"id":3' in wire.line()
            assert b'"id":4' in wire.line()
        assert wire.close().code == 0


@pytest.mark.fault(9, "stdio")
def test_an_endless_line_is_discarded_its_call_answered_and_the_session_lives() -> None:
    with wrapped("endless", str(64 << 20), options=("--max-message", "1MB")) as wire:
        wire.write(call(2, "end") + call(3))
        cut, error = wire.line(), wire.line()
        assert wire.line() == ok(3)
        ended = wire.close()
    assert "is over the limit of 1000000 bytes" in failure(error, 2)
    # What had gone on when it grew too long is a line of its own.
    assert len(cut) <= 1_000_001
    assert (ended.code, ended.rest) == (0, b"")
    [logged] = log_messages(ended.stderr)
    assert "is over the limit of 1000000 bytes" in logged


@pytest.mark.fault(9, "stdio")
def test_a_request_over_the_limit_is_refused_and_never_arrives() -> None:
    long = posted(2, "x" * 2_000_000)
    with wrapped("plain", options=("--max-message", "1MB")) as wire:
        wire.write(long + b"\n" + call(3))
        error, answered = wire.line(), wire.line()
        ended = wire.close()
    text = f"a message of {len(long)} bytes is over the limit of 1000000 bytes"
    assert json.loads(error) == {
        "jsonrpc": "2.0",
        "id": 2,
        "error": {"code": -1, "message": text},
    }
    assert answered == ok(3)
    assert ended.rest == b""
    assert log_messages(ended.stderr) == [f"warning: from the client: {text}"]


@pytest.mark.fault(16, "stdio")
def test_a_server_that_does_not_read_holds_its_client_up_and_nothing_piles_up(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    line = call(2, "x" * 100_000)
    with wrapped("deaf", str(gate)) as wire:
        with wire.in_memory(16 << 20):
            total = wire.pour(line)
            assert total < 16 << 20
            gate.touch()
            calls = wire.pour_out(line)
            wire.write(call(3))
            assert [wire.line() for _ in range(calls)] == [ok(2)] * calls
            assert wire.line() == ok(3)
        assert wire.close().code == 0


@on_posix("no count of what a process has written, under Wine")
@pytest.mark.fault(16, "stdio")
def test_a_client_that_does_not_read_holds_the_server_up_and_nothing_piles_up() -> None:
    count, size = 1000, 100_000
    with wrapped("talks", str(count), str(size)) as wire:
        server = wire.server_pid()
        with wire.in_memory(16 << 20):
            wire.write(call(2))
            total = still(lambda: written_by(server))
            assert total < (count * size) + (16 << 20), "of the second hundred megabytes"
            assert numbers([wire.line() for _ in range(count)]) == list(range(count))
            assert wire.line() == ok(2)
        assert wire.close().code == 0


@pytest.mark.fault(16, "stdio")
def test_a_client_and_a_server_that_do_not_read_wait_for_each_other_and_go_on() -> None:
    count, size = 50, 100_000
    line = call(2, "x" * size)
    with wrapped("talks", str(count), str(size)) as wire:
        with wire.in_memory(16 << 20):
            # The server answers, and reads no more while nobody reads that.
            total = wire.pour(line)
            assert total < 16 << 20
            calls = wire.pour_out(line)
            for _ in range(calls):
                assert numbers([wire.line() for _ in range(count)]) == list(range(count))
                assert wire.line() == ok(2)
        assert wire.close().code == 0


def numbers(lines: list[bytes]) -> list[int]:
    return [int(line[:80].split(b'"number":')[1].split(b",")[0]) for line in lines]


@pytest.mark.fault(18, "stdio")
def test_answers_that_come_after_the_end_of_input_are_delivered() -> None:
    with Wrapped(command("late", "4")) as wire:
        wire.write(call(1) + call(2) + call(3))
        wire.shut_stdin()
        assert wire.rest() == [ok(1), ok(2), ok(3)]
        ended = wire.close()
    assert ended.code == 0
    assert log_messages(ended.stderr) == []


@pytest.mark.fault(18, "stdio")
@pytest.mark.parametrize(
    ("how", "warnings"),
    [
        (["stays"], [platform.TERMINATED]),
        pytest.param(
            ["stays", "ignore", "fork"],
            ["did not end by itself: sent it SIGTERM", "did not end on SIGTERM: sent it SIGKILL"],
            marks=on_posix("no signals that a process can ignore"),
        ),
    ],
    ids=["stays", "stays ignore fork"],
)
def test_a_server_that_does_not_end_with_its_input_is_ended(
    how: list[str], warnings: list[str]
) -> None:
    with wrapped(*how) as wire:
        ended = wire.close(LIFE + NOISE)
    number = platform.TERMINATE if len(warnings) == 1 else platform.KILL
    assert ended.code == (1 if sys.platform == "win32" else 128 + number)
    assert log_messages(ended.stderr)[: len(warnings)] == [
        f"warning: the server {each}" for each in warnings
    ]


@on_posix("no signals")
@pytest.mark.fault(19, "stdio")
@pytest.mark.parametrize("number", platform.END_SIGNALS)
def test_a_signal_ends_both_sides_and_answers_the_calls_in_flight(number: int) -> None:
    with wrapped("silent") as wire:
        # A call must have arrived before the signal does.
        wire.write(call(2, "never") + call(3, "never") + call(4))
        assert [wire.line(), wire.line()] == [ok(3, "late"), ok(4)]
        wire.process.send_signal(number)
        lines = wire.rest()
        code = wire.process.wait(20)
    assert code == 128 + number
    assert [failure(line, 2) for line in lines] == [
        f"the proxy was ended by {signal.Signals(number).name}"
    ]


@on_posix("no signals")
@pytest.mark.fault(19, "stdio")
def test_a_signal_while_the_end_is_awaited_hastens_it() -> None:
    with wrapped("stays", "ignore", "fork") as wire:
        wire.shut_stdin()
        wire.process.send_signal(signal.SIGTERM)
        wire.process.send_signal(signal.SIGTERM)
        assert wire.process.wait(20) == 128 + signal.SIGTERM


@on_posix("no sessions of processes")
@pytest.mark.fault(20, "stdio")
def test_a_grandchild_out_of_reach_does_not_delay_the_end() -> None:
    with wrapped("leaves_a_child_behind", "session") as wire:
        wire.write(call(2, "end"))
        [line] = wire.rest()
        assert wire.process.wait(20) == 4
        assert failure(line, 2).startswith("the server ended with exit code 4")
        stray = int(re.findall(rb"child (\d+)", bytes(wire.errors))[0])
        os.kill(stray, signal.SIGKILL)


# What is seen in the same way over HTTP


@each_way(3)
def test_a_last_answer_without_newline_is_delivered(start: Start) -> None:
    size = 5_000_000
    with start(server=naughty("last_without_newline", str(size))) as client:
        assert client.ask(posted(2, "end")) == result(b"2", "x" * size)
    assert not [each for each in client.log() if each.startswith(("warning", "error"))]


@each_way(15)
def test_a_flood_on_stderr_passes_whole_and_holds_nothing_up(start: Start) -> None:
    size = scaled(5, 50) << 20
    line = b"e" * ((1 << 16) - 20)
    with start(server=naughty("floods_stderr", str(size))) as client:
        assert client.ask(posted(2)) == result(b"2")
        # With that of the first request. Our own lines may stand in the middle of such long ones.
        until(lambda: client.errors.count(b"e") >= 2 * (size >> 16) * len(line))


class Unread(Wrapped):
    """A client that reads no stderr."""

    def _drain(self, stderr: int) -> None: ...


@pytest.mark.fault(15, "stdio")
def test_a_flood_on_stderr_that_nobody_reads_holds_nothing_up() -> None:
    with Unread(command("floods_stderr", str(scaled(20, 100) << 20))) as wire, soon(6.0):
        assert wire.ask(posted(2)) == result(b"2")
        wire.works()
        assert wire.close().code == 0


@each_way(17)
def test_thousands_of_notifications_before_an_answer_keep_their_order(start: Start) -> None:
    count = scaled(2000, 20_000)
    with start(server=naughty("talks", str(count), "20", "listen")) as client:
        *notes, answer = client.messages(posted(2, "listen"))
        assert [json.loads(each)["params"]["number"] for each in notes] == list(range(count))
        assert answer == result(b"2")
