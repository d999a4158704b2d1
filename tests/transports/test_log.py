"""The output on stderr: the server's bytes as they are, our lines whole, never a long wait."""

import json
import os
import re
import threading
import time

import pytest
from mcp_abridge.transports.log import TAIL, Level, Log, PollSink, ThreadSink

from tests.transports.processes import fill


def read_all(pipe: tuple[int, int]) -> bytes:
    """Read the rest of the pipe."""
    os.close(pipe[1])
    raw = b""
    while chunk := os.read(pipe[0], 1 << 16):
        raw += chunk
    return raw


def drain(reading: int, filled: int) -> None:
    while filled:
        filled -= len(os.read(reading, min(filled, 1 << 16)))


def test_a_line_of_ours_is_whole_beside_an_unfinished_one_of_the_server(
    pipe: tuple[int, int],
) -> None:
    log = Log(descriptor=pipe[1])
    log.pass_on(b"loading... ")
    log.warning("two\nlines")
    log.info("ü \ud800")
    assert read_all(pipe) == (
        b"loading... \nmcp-abridge: warning: two\\nlines\nmcp-abridge: \xc3\xbc ?\n"
    )


def test_a_json_line_has_its_time_and_level_and_a_message_or_an_event_with_its_fields(
    pipe: tuple[int, int],
) -> None:
    log = Log(form="json", descriptor=pipe[1])
    log.error('"quoted"\nü \ud800')
    log.event("request", tool="", client=None, received=0)
    log.event("detail", "debug", tool="x")
    message, event = map(json.loads, read_all(pipe).splitlines())
    assert message.pop("time").endswith("Z")
    assert message == {"level": "error", "message": '"quoted"\nü ?'}
    assert event.pop("time").endswith("Z")
    assert event == {"level": "info", "event": "request", "received": 0}


@pytest.mark.parametrize("form", ["text", "json"])
def test_a_tool_s_name_ends_no_line_and_hides_or_reorders_nothing(
    pipe: tuple[int, int], form: str
) -> None:
    unprintable = "\x1b\x7f\x85\x9b\u061c\u200b\u200f\u2028\u2029\u202e\u2066\ufeff\U000e0041"
    log = Log("info", form, pipe[1])  # type: ignore[arg-type]
    log.warning(f"{unprintable}é: left as it came")
    log.warning("\U000e0041" * 10_000)
    log.event("call", tool=f"{unprintable}é")
    text = read_all(pipe).decode()
    assert text.replace("\n", "").isprintable()
    message, long, event = text.splitlines()
    assert len(long) < 10_000
    for line in (message, event):
        escaped = re.findall(r"\\u[0-9a-f]{4}", line)
        assert "".join(escaped) == json.dumps(unprintable)[1:-1]
        assert "é" in line
    if form == "json":
        assert json.loads(event)["tool"] == f"{unprintable}é"
        assert set(json.loads(long)["message"]) == {"\U000e0041"}


def test_a_level_logs_messages_that_are_at_most_as_detailed(pipe: tuple[int, int]) -> None:
    levels: tuple[Level, ...] = ("error", "warning", "info", "debug")
    for level in levels:
        log = Log(level, descriptor=pipe[1])
        for each in levels:
            getattr(log, each)(each)
    messages = [line.split()[-1] for line in read_all(pipe).decode().splitlines()]
    assert messages == [each for at in range(4) for each in levels[: at + 1]]


def test_an_event_is_one_line_of_fields_that_may_begin_with_the_time(
    pipe: tuple[int, int],
) -> None:
    log = Log(descriptor=pipe[1])
    log.event("request", route="/mcp/{token}", status=200, tool="two words", client="a=b\n\x1b[1m")
    Log(descriptor=pipe[1], dated=True).event("call", "warning", seconds=0.25, received=0)
    first, dated = read_all(pipe).decode().splitlines()
    assert first == (
        'mcp-abridge: request route=/mcp/{token} status=200 tool="two words" '
        'client="a=b\\n\\u001b[1m"'
    )
    time = r"\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ"
    assert re.fullmatch(f"{time} mcp-abridge: warning: call seconds=0.25 received=0", dated)


@pytest.mark.parametrize("form", ["text", "json"])
def test_long_texts_are_cut_and_their_event_is_one_whole_line(
    pipe: tuple[int, int], form: str
) -> None:
    log = Log("info", form, pipe[1])  # type: ignore[arg-type]
    texts = {f"field_{number}": "\x01\ud800" * 5000 for number in range(12)}
    log.event("request", **texts, last="end")  # type: ignore[arg-type]
    (line,) = read_all(pipe).splitlines()
    assert len(line) < 20_000
    assert b"end" in line
    if form == "json":
        assert json.loads(line)["field_11"] == "\x01?" * 100


def test_the_last_bytes_of_the_servers_stderr_are_stored() -> None:
    log = Log(descriptor=os.open(os.devnull, os.O_WRONLY))
    log.pass_on(b"a" * 5000)
    log.pass_on(b"b" * 1000)
    assert log.tail == b"a" * (TAIL - 1000) + b"b" * 1000
    log.write_noise(b"noise")
    assert log.tail.endswith(b"b")


def test_noise_is_reported_once(pipe: tuple[int, int]) -> None:
    log = Log(descriptor=pipe[1])
    log.noise(b"one")
    log.noise(b"two")
    warning = b"mcp-abridge: warning: the server writes lines that are no messages to its stdout"
    assert read_all(pipe).splitlines() == [warning, b"one", b"two"]


def test_an_unread_stderr_delays_once_and_the_loss_is_reported_later(
    pipe: tuple[int, int],
) -> None:
    reading, writing = pipe
    filled = fill(writing)
    log = Log(descriptor=writing)
    log.warning("held")
    start = time.monotonic()
    log.pass_on(b"x" * 100_000)
    first = time.monotonic()
    log.pass_on(b"y" * 100_000)
    assert first - start >= 1
    assert time.monotonic() - first < first - start, "waited a second time"
    drain(reading, filled)
    log.pass_on(b"heard\n")
    warning = b"mcp-abridge: warning: %s\n"
    note = warning % b"200000 bytes dropped: stderr was not read"
    assert read_all(pipe) == warning % b"held" + note + b"heard\n"


def test_lines_that_wait_for_stderr_are_bounded_and_written_at_the_end(
    pipe: tuple[int, int],
) -> None:
    reading, writing = pipe
    filled = fill(writing)
    log = Log(descriptor=writing)
    for number in range(1000):
        log.info(f"{number:03d}{'x' * 500}")
    start = time.monotonic()
    log.flush()
    assert time.monotonic() - start >= 1
    drain(reading, filled)

    def write() -> None:
        log.flush()
        log.info("more")

    threading.Thread(target=write).start()
    output = b""
    while not output.endswith(b"more\n"):
        output += os.read(reading, 1 << 16)
    *lines, note, more = output.splitlines()
    whole = len("mcp-abridge: ") + 503 + 1
    assert len(lines) == (1 << 16) // whole
    assert [int(line.split()[-1][:3]) for line in lines] == list(range(len(lines)))
    dropped = (1000 - len(lines)) * whole
    assert note == b"mcp-abridge: warning: %d bytes dropped: stderr was not read" % dropped
    assert more == b"mcp-abridge: more"


def test_a_closed_stderr_is_no_error(pipe: tuple[int, int]) -> None:
    os.close(pipe[0])
    log = Log(descriptor=pipe[1])
    log.pass_on(b"x" * 10_000)
    log.error("nobody hears it")


@pytest.mark.parametrize("kind", [PollSink, ThreadSink])
def test_a_log_that_nobody_reads_takes_no_more_and_makes_nobody_wait(
    kind: type[PollSink | ThreadSink], pipe: tuple[int, int]
) -> None:
    reading, writing = pipe
    before = fill(writing)
    sink = kind(writing)
    line = b"x" * 1000
    accepted = 0
    while count := sink.write(line):
        accepted += count
        assert accepted < 1 << 20
    sink.wait(0.01)
    assert sink.write(line) == 0
    output = b""
    while len(output) < before + accepted:
        output += os.read(reading, 1 << 16)
    sink.flush(60.0)
    assert sink.write(b"more\n") == 5
    sink.flush(60.0)
    assert os.read(reading, 100) == b"more\n"
