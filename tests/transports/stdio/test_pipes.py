"""Reading and writing real pipes: every byte arrives, and no line breaks into another."""

import os
import threading
from collections.abc import Callable

import pytest
from mcp_abridge.transports.stdio.pipes import PipeReader, PipeWriter

from tests.threadless import threadless
from tests.transports.processes import fill

SECONDS = 60.0


def never() -> None:
    raise AssertionError("the other side is there")


def in_thread(target: Callable[..., object], *args: object) -> threading.Thread:
    thread = threading.Thread(target=target, args=args, daemon=True)
    thread.start()
    return thread


def read_all(descriptor: int) -> bytes:
    raw = b""
    inlet = PipeReader(descriptor)
    while True:
        buffer, size = inlet.read()
        if not size:
            return raw
        raw += bytes(buffer[:size])


@pytest.mark.parametrize("blocking", [True, False])
@pytest.mark.parametrize("size", [1, 65_536, 5_000_000])
def test_every_line_that_is_sent_is_read(pipe: tuple[int, int], size: int, blocking: bool) -> None:
    reading, writing = pipe
    for end in pipe:
        os.set_blocking(end, blocking)
    line = os.urandom(size)
    outlet = PipeWriter(writing, never)
    output: list[bytes] = []
    reader = in_thread(lambda: output.append(read_all(reading)))
    outlet.send([line])
    outlet.send([line, line])
    outlet.close()
    reader.join(SECONDS)
    assert output == [(line + b"\n") * 3]


def test_small_chunks_after_large_ones_are_read_as_well(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    inlet = PipeReader(reading)
    for size in (10, 65_536, 65_536, 20, 65_536, 30):
        os.write(writing, b"x" * size)
        assert inlet.read()[1] == size


def test_a_line_for_later_is_sent_at_once_if_no_thread_starts(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    outlet = PipeWriter(writing, never)
    with threadless():
        outlet.send_later([b"x"])
    assert os.read(reading, 10) == b"x\n"


def test_a_line_sent_between_two_pieces_follows_the_last(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    outlet = PipeWriter(writing, never)
    outlet.send_chunk(b"a long ", False)
    outlet.send([b"first"])
    outlet.send([b"second", b"and more"])
    outlet.send_chunk(b"line\n", True)
    outlet.send([b"third"])
    outlet.send_chunk(b'{"cut', False)
    outlet.send([b"waited"])
    outlet.finish([b"last", b"words"])
    lines = b"a long line\nfirst\nsecond\nand more\nthird\n"
    assert os.read(reading, 100) == lines + b'{"cut\nwaited\nlast\nwords\n'


def test_lines_of_many_threads_do_not_mix(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    outlet = PipeWriter(writing, never)
    lines = [bytes([65 + n]) * 10_000 * n for n in range(1, 9)]
    output: list[bytes] = []
    reader = in_thread(lambda: output.append(read_all(reading)))

    def in_pieces() -> None:
        for _ in range(20):
            for piece in (b"(" * 10_000, b"(" * 10_000, b"\n"):
                outlet.send_chunk(piece, piece == b"\n")

    threads = [in_thread(in_pieces), *(in_thread(outlet.send, [line] * 20) for line in lines)]
    for thread in threads:
        thread.join(SECONDS)
    outlet.close()
    reader.join(SECONDS)
    rows = output[0].split(b"\n")[:-1]
    assert sorted(rows) == sorted([*(lines * 20), *[b"(" * 20_000] * 20])


def test_a_thread_that_must_not_wait_does_not_and_all_lines_arrive_in_order(
    pipe: tuple[int, int],
) -> None:
    reading, writing = pipe
    filled = fill(writing)
    outlet = PipeWriter(writing, never)
    for number in range(50):
        outlet.send_later([b"%d" % number])
    output = b""
    while output.count(b"\n") < 50:
        output += os.read(reading, 1 << 16)
    for number in range(50):
        outlet.send_later([b"later"])
        outlet.send([b"sent %d" % number])
    outlet.close()
    expected = [line for number in range(50) for line in (b"later", b"sent %d" % number)]
    output += read_all(reading)
    assert output[filled:].splitlines() == [*(b"%d" % number for number in range(50)), *expected]


def test_closing_ends_a_write_that_waits_for_a_reader(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    filled = fill(writing)
    outlet = PipeWriter(writing, never)
    writer = in_thread(outlet.send, [b"x" * 100_000])
    outlet.close()
    writer.join(SECONDS)
    assert not writer.is_alive()
    assert len(read_all(reading)) >= filled


def test_a_reader_that_is_gone_is_reported_once(pipe: tuple[int, int]) -> None:
    reading, writing = pipe
    os.close(reading)
    reports: list[str] = []
    outlet = PipeWriter(writing, lambda: reports.append("gone"))
    outlet.send([b"1"])
    outlet.send_chunk(b"2\n", True)
    assert reports == ["gone"]
    assert outlet.broken
