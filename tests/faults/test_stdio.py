"""What must be seen of each fault of a stdio server or client: naughty.py behind the wrapper.

Everywhere the same: each request gets one answer, the next call works, untouched bytes are the
same, no process is left, and one line of the log names the fault.
"""

import json
import os
import re
import signal
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from tests.faults.naughty import result
from tests.wire import Ended, Wire

ROOT = Path(__file__).resolve().parents[2]
NAUGHTY = Path(__file__).with_name("naughty.py")
LIFE = 6.0  # seconds in which a group must have ended, whatever happened
SIGNALS = [signal.SIGTERM, signal.SIGINT, signal.SIGHUP]


class Wrapped(Wire):
    """A raw client of a naughty server behind the wrapper."""

    def groups(self) -> set[int]:
        """Return the process groups that the wrapper has started: the server's, the guardian's."""
        return {group for _, parent, group in processes() if parent == self.process.pid}

    def ask(self, id: int, name: str = "ok") -> None:
        self.write(call(id, name))

    def rest(self) -> list[bytes]:
        """Read to the end of stdout."""
        lines = []
        while line := self.line():
            lines.append(line)
        return lines


@contextmanager
def wrapped(fault: str, *arguments: str, options: tuple[str, ...] = ()) -> Iterator[Wrapped]:
    """Start the wrapper, make a first call, and see to it that no process is left in the end."""
    command = [sys.executable, "-m", "proxy", "--rules", "none", *options, "--"]
    command += [sys.executable, str(NAUGHTY), fault, *arguments]
    with Wrapped(command, cwd=ROOT) as wire:
        wire.write(call(1))
        while not answers(wire.line(), 1):
            pass
        groups = wire.groups()
        assert groups
        yield wire
        until(lambda: not groups & {group for _, _, group in processes()}, LIFE)


def processes() -> list[tuple[int, int, int]]:
    """Return the number, parent and group of every process that is no zombie."""
    if not Path("/proc/self/stat").exists():
        listed = subprocess.run(
            ["ps", "-A", "-o", "pid=,ppid=,pgid=,stat="], capture_output=True, check=True, text=True
        )
        rows = [line.split() for line in listed.stdout.splitlines()]
        return [(int(p), int(q), int(g)) for p, q, g, state in rows if state[0] != "Z"]
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                state, parent, group = (entry / "stat").read_text().rpartition(")")[2].split()[:3]
            except (FileNotFoundError, ProcessLookupError):
                continue
            if state != "Z":
                found.append((int(entry.name), int(parent), int(group)))
    return found


def until(wanted: Callable[[], bool], seconds: float = 20.0) -> None:
    end = time.monotonic() + seconds
    while not wanted():
        assert time.monotonic() < end, f"not within {seconds} seconds"
        time.sleep(0.01)


def call(id: int, name: str = "ok") -> bytes:
    return b'{"jsonrpc":"2.0","id":%d,"method":"tools/call","params":{"name":"%s"}}\n' % (
        id,
        name.encode(),
    )


def ok(id: int, text: str = "ok") -> bytes:
    """Return the line with which the server answers."""
    return result(b"%d" % id, text) + b"\n"


def answers(line: bytes, id: int) -> bool:
    assert line, "the wrapper ended before it answered"
    return line.strip(b"\xef\xbb\xbf\r\n") == ok(id)[:-1]


def failure(line: bytes, id: int) -> str:
    """Return what an error result says, which must answer the call with this id."""
    message = json.loads(line)
    assert message["id"] == id
    assert message["result"]["isError"] is True
    [block] = message["result"]["content"]
    text: str = block["text"]
    return text


def said(ended: Ended) -> list[str]:
    """Return the wrapper's own lines on stderr."""
    found = re.findall(rb"^mcp-abridge: (.*)$", ended.stderr, re.MULTILINE)
    return [line.decode() for line in found]


def codes(how: str) -> tuple[int, str]:
    """Return the exit code for a server that ends so, and how that is said."""
    if how.isdigit():
        return int(how), f"the server ended with exit code {how}"
    return 128 + getattr(signal, how), f"the server was ended by {how}"


# Row 1


@pytest.mark.parametrize("fault", ["ends", "ends_before"])
@pytest.mark.parametrize("how", ["0", "3", "SIGKILL", "SIGSEGV"])
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
    assert said(ended)[-1] == f"error: {cause}; requests answered with an error: 3"


def test_a_server_that_ends_within_a_long_answer_has_its_call_answered() -> None:
    with wrapped("ends_within_a_long_answer") as wire:
        wire.write(call(2, "end"))
        cut, error = wire.rest()
        ended = wire.close()
    # What has gone on cannot be taken back; it is a line of its own.
    assert cut == result(b"2", "x" * 5_000_000)[:3_000_000] + b"\n"
    assert failure(error, 2) == "the server ended with exit code 3"
    assert ended.code == 3
    assert said(ended)[0] == "warning: the server ended within a line, after 3000000 bytes of it"


# Row 2


@pytest.mark.parametrize("how", ["5", "SIGABRT"])
def test_a_crash_at_the_start_answers_initialize_with_the_reason(how: str) -> None:
    code, cause = codes(how)
    command = [sys.executable, "-m", "proxy", "--", sys.executable, str(NAUGHTY), "crashes", how]
    with Wrapped(command, cwd=ROOT) as wire:
        [line] = wire.send("initialize", 1)
        ended = wire.close()
    assert json.loads(line)["error"]["message"] == (
        f"{cause}; its stderr ends with:\nno such database"
    )
    assert ended.code == code
    assert ended.rest == b""


@pytest.mark.parametrize(
    ("command", "reason"),
    [
        ("no-such-command", "'no-such-command' cannot be started: no such file or directory"),
        (os.devnull, f"'{os.devnull}' cannot be started: permission denied"),
    ],
)
def test_a_command_that_cannot_be_started_is_named_with_the_reason(
    command: str, reason: str
) -> None:
    with Wrapped([sys.executable, "-m", "proxy", "--", command], cwd=ROOT) as wire:
        [line] = wire.send("initialize", "a")
        ended = wire.close()
    assert json.loads(line)["error"]["message"] == reason
    assert ended.code == 127
    assert said(ended)[0] == f"error: {reason}"


def test_a_client_that_asks_nothing_learns_of_a_bad_command_as_well() -> None:
    with Wrapped([sys.executable, "-m", "proxy", "--", "no-such-command"], cwd=ROOT) as wire:
        assert wire.line() == b""
        assert wire.close().code == 127


# Row 3


@pytest.mark.parametrize("size", [10, 5_000_000])
def test_a_last_answer_without_newline_is_delivered(size: int) -> None:
    with wrapped("last_without_newline", str(size)) as wire:
        wire.ask(2, "end")
        assert wire.rest() == [ok(2, "x" * size)]
        ended = wire.close()
    assert ended.code == 0
    assert said(ended) == []


# Rows 4 and 5


def test_noise_goes_to_stderr_and_messages_pass_as_they_are() -> None:
    with wrapped("noisy") as wire:
        wire.ask(2)
        assert wire.line() == ok(2)[:-1] + b"\r\n"
        ended = wire.close()
    assert ended.rest == b""
    assert ended.code == 0
    for noise in (b"\xef\xbb\xbf\n", b"Server listening...\n", b"\xff\xfe binary \x00\n"):
        assert noise in ended.stderr
    assert said(ended) == [
        "warning: the server writes lines that are no messages to its stdout",
        "warning: 5 lines of the server's stdout were no messages",
    ]


def test_noise_in_front_of_a_message_is_taken_off() -> None:
    with wrapped("glued") as wire:
        wire.write(call(2) + call(3))
        assert [wire.line(), wire.line()] == [ok(2), ok(3)]
        ended = wire.close()
    assert ended.rest == b""
    assert ended.stderr.count(b"progress: 100%\n") == 3


# Row 8


def peak(pid: int) -> int:
    """Return the most memory that a process has held, in bytes (Linux)."""
    status = Path(f"/proc/{pid}/status").read_text()
    return int(re.findall(r"VmHWM:\s+(\d+)", status)[0]) << 10


@pytest.mark.parametrize("size", [1 << 20, 20 << 20, 100 << 20])
def test_long_lines_pass_as_they_are_in_little_memory(size: int) -> None:
    with wrapped("large") as wire:
        before = peak(wire.process.pid) if sys.platform == "linux" else 0
        wire.write(call(2, str(size)) + call(3))
        assert wire.line() == ok(2, "x" * size)
        assert wire.line() == ok(3)
        if before:
            assert peak(wire.process.pid) - before < 16 << 20
        assert wire.close().code == 0


def test_a_long_line_that_must_be_looked_at_takes_at_most_three_times_its_size() -> None:
    size = 100 << 20
    with wrapped("large", "last") as wire:
        before = peak(wire.process.pid) if sys.platform == "linux" else 0
        # While a list of tools is awaited, a line that does not begin with its id is held.
        listing = b'{"jsonrpc":"2.0","id":3,"method":"tools/list"}\n'
        wire.write(call(2, str(size)) + listing + call(4))
        assert len(wire.line()) > size
        assert b'"id":3' in wire.line()
        assert b'"id":4' in wire.line()
        if before:
            assert peak(wire.process.pid) - before < 3 * size
        assert wire.close().code == 0


def test_a_long_request_arrives() -> None:
    with wrapped("plain") as wire:
        wire.write(call(2, "x" * (20 << 20)) + call(3))
        assert [wire.line(), wire.line()] == [ok(2), ok(3)]
        assert wire.close().code == 0


# Row 9


@pytest.mark.parametrize("id_stands", ["first", "last"])
def test_an_endless_line_is_discarded_its_call_answered_and_the_session_lives(
    id_stands: str,
) -> None:
    with wrapped("endless", str(64 << 20), id_stands, options=("--max-message", "1MB")) as wire:
        wire.write(call(2, "end") + call(3))
        lines = [wire.line()]
        while not answers(lines[-1], 3):
            lines.append(wire.line())
        ended = wire.close()
    *cut, error, _ = lines
    text = failure(error, 2) if id_stands == "first" else json.loads(error)["error"]["message"]
    assert "is over the limit of 1000000 bytes" in text
    # What had gone on when it grew too long is a line of its own.
    assert sum(map(len, cut)) <= 1_000_001
    assert ended.rest == b""
    assert ended.code == 0
    assert len(said(ended)) == 1
    assert "is over the limit of 1000000 bytes" in said(ended)[0]


@pytest.mark.parametrize("id_first", [True, False])
def test_a_request_over_the_limit_is_refused_and_never_arrives(id_first: bool) -> None:
    long = {"method": "tools/call", "params": {"name": "x" * 2_000_000}}
    envelope = {"jsonrpc": "2.0", "id": 2}
    message = {**envelope, **long} if id_first else {**long, **envelope}
    with wrapped("plain", options=("--max-message", "1MB")) as wire:
        wire.write(json.dumps(message).encode() + b"\n" + call(3))
        refused, answered = wire.line(), wire.line()
        ended = wire.close()
    size = len(json.dumps(message))
    text = f"a message of {size} bytes is over the limit of 1000000 bytes"
    assert json.loads(refused) == {
        "jsonrpc": "2.0",
        "id": 2,
        "error": {"code": -1, "message": text},
    }
    assert answered == ok(3)
    assert ended.rest == b""
    assert said(ended) == [f"warning: from the client: {text}"]


# Row 10


def test_odd_ids_pass_as_they_are_and_confuse_nothing() -> None:
    with wrapped("odd_ids") as wire:
        wire.line()  # the second answer to the first call
        wire.write(call(2) + call(3))
        lines = [wire.line() for _ in range(10)]
        ended = wire.close()
    expected = []
    for id in (b"2", b"3"):
        expected += [
            result(b"987654") + b"\n",
            result(b'"%s"' % id) + b"\n",
            b'{"jsonrpc":"2.0","id":%s,"method":"ping"}\n' % id,
            *[result(id) + b"\n"] * 2,
        ]
    assert lines == expected
    assert ended.rest == b""
    assert ended.code == 0
    assert said(ended) == []


# Row 14


def test_calls_that_were_cancelled_are_forgotten() -> None:
    cancel = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}\n'
    with wrapped("silent") as wire:
        for id in range(2, 500):
            wire.write(call(id, "never") + cancel % id)
        wire.ask(500)
        assert [wire.line(), wire.line()] == [ok(499, "late"), ok(500)]
        ended = wire.close()
    # Else each of them would be answered with an error now.
    assert ended.rest == b""
    assert said(ended) == []


def test_calls_that_are_never_answered_are_answered_when_the_server_has_ended() -> None:
    with wrapped("silent") as wire:
        wire.write(call(2, "never") + call(3, "never"))
        wire.shut_stdin()
        lines = wire.rest()
        ended = wire.close()
    assert [failure(line, id) for line, id in zip(lines, (2, 3), strict=True)] == [
        "the server ended with exit code 0"
    ] * 2
    assert ended.code == 0


# Row 15


def test_a_flood_on_stderr_passes_whole_and_holds_nothing_up() -> None:
    size = 20 << 20
    with wrapped("floods_stderr", str(size)) as wire:
        wire.ask(2)
        assert wire.line() == ok(2)
        ended = wire.close()
    flood = b"".join((b"%d " % at) + b"e" * ((1 << 16) - 20) + b"\n" for at in range(size >> 16))
    assert ended.stderr == flood * 2


def test_a_stderr_that_nobody_reads_holds_nothing_up() -> None:
    command = [sys.executable, "-m", "proxy", "--rules", "none", "--", sys.executable, str(NAUGHTY)]
    reading, writing = os.pipe()
    process = subprocess.Popen(
        [*command, "floods_stderr", "5000000"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=writing,
        cwd=ROOT,
    )
    os.close(writing)
    try:
        out, _ = process.communicate(call(2) + call(3), timeout=20)
    finally:
        process.kill()
        os.close(reading)
    assert out == ok(2) + ok(3)
    assert process.returncode == 0


# Row 16


def test_a_server_that_does_not_read_holds_its_client_up_and_nothing_piles_up(
    tmp_path: Path,
) -> None:
    gate = tmp_path / "gate"
    os.mkfifo(gate)
    line = call(2, "x" * 100_000)
    with wrapped("deaf", str(gate)) as wire:
        taken, quiet = 0, time.monotonic()
        while time.monotonic() - quiet < 1.0:
            try:
                taken += os.write(wire.stdin, line[taken % len(line) :])
                quiet = time.monotonic()
            except BlockingIOError:
                time.sleep(0.01)
        assert taken < 16 << 20
        os.close(os.open(gate, os.O_WRONLY))
        sent = taken // len(line) + 1
        wire.write(line[taken % len(line) :] + call(3))
        assert [wire.line() for _ in range(sent)] == [ok(2)] * sent
        assert wire.line() == ok(3)
        assert wire.close().code == 0


def test_a_client_that_does_not_read_holds_the_server_up_and_nothing_piles_up() -> None:
    count, size = 1000, 100_000
    with wrapped("talks", str(count), str(size)) as wire:
        [server] = [
            pid
            for pid, parent, group in processes()
            if parent == wire.process.pid and pid == group and b"naughty" in command_of(pid)
        ]
        wire.ask(2)
        written, quiet = 0, time.monotonic()
        while time.monotonic() - quiet < 1.0:
            now = written_by(server)
            if now != written:
                written, quiet = now, time.monotonic()
            time.sleep(0.01)
        assert written < (count * size) + (16 << 20), "of the second hundred megabytes"
        lines = [wire.line() for _ in range(count)]
        assert [int(line[:80].split(b'"number":')[1].split(b",")[0]) for line in lines] == list(
            range(count)
        )
        assert wire.line() == ok(2)
        assert wire.close().code == 0


def command_of(pid: int) -> bytes:
    return Path(f"/proc/{pid}/cmdline").read_bytes()


def written_by(pid: int) -> int:
    return int(re.findall(r"wchar: (\d+)", Path(f"/proc/{pid}/io").read_text())[0])


# Row 17


def test_twenty_thousand_notifications_before_an_answer_keep_their_order() -> None:
    with wrapped("talks", "20000", "20") as wire:
        wire.write(call(2))
        lines = [wire.line() for _ in range(20_001)]
        assert wire.close().code == 0
    assert [json.loads(line)["params"]["number"] for line in lines[:-1]] == list(range(20_000))
    assert lines[-1] == ok(2)


# Row 18


def test_answers_that_come_after_the_end_of_input_are_delivered() -> None:
    command = [sys.executable, "-m", "proxy", "--rules", "none", "--"]
    with Wrapped([*command, sys.executable, str(NAUGHTY), "late"], cwd=ROOT) as wire:
        wire.write(call(1) + call(2) + call(3))
        wire.shut_stdin()
        assert wire.rest() == [ok(1), ok(2), ok(3)]
        ended = wire.close()
    assert ended.code == 0
    assert said(ended) == []


def test_a_server_that_does_not_end_with_its_input_is_ended() -> None:
    with wrapped("stays") as wire:
        ended = wire.close()
    assert ended.code == 128 + signal.SIGTERM
    assert said(ended)[0] == "warning: the server did not end by itself: sent it SIGTERM"


def test_a_group_that_ignores_the_end_of_input_and_sigterm_is_killed() -> None:
    with wrapped("stays", "ignore", "fork") as wire:
        ended = wire.close()
    assert ended.code == 128 + signal.SIGKILL
    assert said(ended)[:2] == [
        "warning: the server did not end by itself: sent it SIGTERM",
        "warning: the server did not end on SIGTERM: sent it SIGKILL",
    ]


def test_a_server_that_closes_its_stdout_has_its_calls_answered() -> None:
    with wrapped("closes_stdout") as wire:
        wire.write(call(2, "end"))
        [line] = wire.rest()
        ended = wire.close()
    assert failure(line, 2) == "the server ended with exit code 0"
    assert ended.code == 0


# Row 19


@pytest.mark.parametrize("number", SIGNALS)
@pytest.mark.parametrize(
    "how", [("silent",), ("stays",), ("stays", "ignore", "fork")], ids=" ".join
)
def test_a_signal_ends_both_sides_and_answers_what_is_in_flight(
    number: signal.Signals, how: tuple[str, ...]
) -> None:
    with not_ignored(number), wrapped(*how) as wire:
        wire.write(call(2, "never"))
        answered = [] if how[0] == "silent" else [wire.line()]
        if how[0] == "silent":
            # The call must have arrived before the signal does.
            wire.write(call(3))
            assert [wire.line(), wire.line()] == [ok(2, "late"), ok(3)]
            wire.write(call(4, "never") + call(5, "never"))
            wire.write(b'{"jsonrpc":"2.0","id":6,"method":"ping"}\n')
            assert wire.line() == ok(5, "late")
            assert wire.line() == ok(6)
        wire.process.send_signal(number)
        lines = wire.rest()
        code = wire.process.wait(20)
    assert code == 128 + number
    assert answered == ([] if how[0] == "silent" else [ok(2)])
    if how[0] == "silent":
        assert [failure(line, 4) for line in lines] == [f"the proxy was ended by {number.name}"]
    else:
        assert lines == []


@contextmanager
def not_ignored(number: signal.Signals) -> Iterator[None]:
    """Start processes as from a terminal: a job in the background has SIGINT ignored."""
    before = signal.getsignal(number)
    signal.signal(number, signal.SIG_DFL)
    try:
        yield
    finally:
        signal.signal(number, before)


def test_a_signal_while_the_end_is_awaited_hastens_it() -> None:
    with wrapped("stays", "ignore", "fork") as wire:
        wire.shut_stdin()
        wire.process.send_signal(signal.SIGTERM)
        wire.process.send_signal(signal.SIGTERM)
        assert wire.process.wait(20) == 128 + signal.SIGTERM


# Row 20


def test_when_the_wrapper_is_killed_the_whole_group_ends() -> None:
    with wrapped("stays", "ignore", "fork") as wire:
        wire.process.kill()
        wire.process.wait(20)


def test_when_the_wrapper_is_killed_at_any_moment_no_process_is_left() -> None:
    marker = f"naughty-{os.getpid()}-{time.monotonic_ns()}"
    command = [sys.executable, "-m", "proxy", "--", sys.executable, str(NAUGHTY), "stays", marker]
    for turn in range(12):
        process = subprocess.Popen(
            command, cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE
        )
        until(lambda: any(marker in command_line(pid) for pid, _, _ in processes()))
        end = time.monotonic() + turn * 0.01
        while time.monotonic() < end:
            pass
        process.kill()
        process.communicate()
    until(lambda: not any(marker in command_line(pid) for pid, _, _ in processes()), LIFE)


def command_line(pid: int) -> str:
    if not Path("/proc/self/cmdline").exists():
        listed = ["ps", "-o", "command=", "-p", str(pid)]
        return subprocess.run(listed, capture_output=True, text=True, check=False).stdout
    try:
        return command_of(pid).decode(errors="replace")
    except (FileNotFoundError, ProcessLookupError):
        return ""


def test_a_grandchild_that_holds_stdout_open_does_not_keep_anybody() -> None:
    with wrapped("leaves_a_child_behind") as wire:
        wire.write(call(2, "end"))
        [line] = wire.rest()
        ended = wire.close()
    assert failure(line, 2) == "the server ended with exit code 4"
    assert ended.code == 4


def test_a_grandchild_out_of_reach_does_not_keep_anybody() -> None:
    with wrapped("leaves_a_child_behind", "session") as wire:
        wire.write(call(2, "end"))
        [line] = wire.rest()
        assert wire.process.wait(20) == 4
        assert failure(line, 2).startswith("the server ended with exit code 4")
        stray = int(re.findall(rb"child (\d+)", bytes(wire.errors))[0])
        os.kill(stray, signal.SIGKILL)
