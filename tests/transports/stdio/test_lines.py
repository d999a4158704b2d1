"""The framing: whatever the chunks, the same lines, and nothing kept that need not be."""

from collections.abc import Iterable

from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.document.message import ENDS
from mcp_abridge.transports.stdio.pipes import (
    Chunk,
    Event,
    Lines,
    LineTruncated,
    LongLine,
)

BIG = 1 << 20
LONG = 16

# Mostly short lines, some around the bounds; any byte but the newline may stand in them.
LINE = st.one_of(
    st.sampled_from([b"", b"{}", b"\r", b"\xef\xbb\xbf{}", "\u2028\u0085".encode(), b"x" * LONG]),
    st.binary(max_size=3 * LONG).map(lambda raw: raw.replace(b"\n", b"")),
    st.integers(ENDS - 2, 3 * ENDS).map(lambda size: bytes(97 + n % 26 for n in range(size))),
)
SIZES = st.lists(st.integers(1, 40), min_size=1)


def events(lines: Lines, stream: bytes, sizes: Iterable[int]) -> list[Event]:
    """Feed a stream cut into chunks of these sizes, again and again, as the transport does."""
    output: list[Event] = []
    cuts = list(sizes)
    # One buffer for all chunks, as it is read into, with something old behind what is new.
    buffer = bytearray(b"\n" * max(cuts))
    at, turn = 0, 0
    while at < len(stream):
        chunk = stream[at : at + cuts[turn % len(cuts)]]
        buffer[: len(chunk)] = chunk
        for event in lines.feed(buffer, len(chunk)):
            copied = Chunk(bytes(event.raw), event.last) if isinstance(event, Chunk) else event
            output.append(copied)
        at, turn = at + len(chunk), turn + 1
    return [*output, *lines.end()]


def dropped(line: bytes) -> LongLine:
    return LongLine("dropped", line[:ENDS], line[-ENDS:], len(line))


def join_pieces(events: list[Event]) -> list[bytes]:
    """Return the lines that went on, whole or in pieces."""
    lines: list[bytes] = []
    passing = b""
    for event in events:
        if isinstance(event, list):
            assert not passing, "a line came between the pieces of another"
            lines += event
        elif isinstance(event, Chunk):
            passing += event.raw
            if event.last:
                assert passing.endswith(b"\n")
                lines.append(passing[:-1])
                passing = b""
    assert not passing
    return lines


@given(st.lists(LINE), LINE, SIZES)
def test_any_chunks_give_the_same_lines(lines: list[bytes], rest: bytes, sizes: list[int]) -> None:
    stream = b"".join(line + b"\n" for line in lines) + rest
    output = events(Lines(BIG, long=LONG), stream, sizes)
    assert join_pieces(output) == lines + ([rest] if rest.endswith((b"}", b"]")) else [])
    if rest and join_pieces(output) == lines:
        assert output[-1] == LineTruncated(rest, len(rest))


@given(st.lists(LINE), SIZES, st.booleans())
def test_long_lines_that_may_pass_go_on_in_pieces_and_are_reported(
    lines: list[bytes], sizes: list[int], last_is_whole: bool
) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    starts: list[bytes] = []

    def passes(start: bytes) -> bool:
        starts.append(start)
        return len(starts) % 2 == 1

    output = events(Lines(BIG, passes, LONG), stream, sizes)
    assert join_pieces(output) == lines
    reports = [event for event in output if isinstance(event, LongLine)]
    assert len(reports) == (len(starts) + 1) // 2
    pieces = iter(output)
    for report in reports:
        line = b""
        for event in pieces:
            if isinstance(event, Chunk):
                line += event.raw
            elif event is report:
                break
        line = line.removesuffix(b"\n")
        assert len(line) + 1 >= LONG
        assert report == LongLine("streamed", line[:ENDS], line[-ENDS:], len(line))
    assert not any(event.raw == b"" for event in output if isinstance(event, Chunk))


@given(st.lists(LINE), SIZES, st.integers(1, ENDS))
def test_lines_over_the_limit_are_dropped_and_all_others_are_read(
    lines: list[bytes], sizes: list[int], limit: int
) -> None:
    stream = b"".join(line + b"\n" for line in lines)
    output = events(Lines(limit, long=LONG), stream, sizes)
    assert join_pieces(output) == [line for line in lines if len(line) <= limit]
    notices = [event for event in output if isinstance(event, LongLine)]
    assert [event for event in notices if event.state == "dropped"] == [
        dropped(line) for line in lines if len(line) > limit
    ]
    for first, last in zip(notices[::2], notices[1::2], strict=True):
        assert (first.state, last.state) == ("too long", "dropped")
        assert limit < first.size <= last.size
        assert last.start.startswith(first.start)


def test_the_order_of_lines_and_reports_is_that_of_the_stream() -> None:
    stream = b"1\n" + b"2" * 40 + b"\n3\n" + b"4" * 200 + b"\n5\n"
    output = events(Lines(100, lambda start: start[:1] == b"2", LONG), stream, [len(stream)])
    assert output == [
        [b"1"],
        Chunk(b"2" * 40 + b"\n", True),
        LongLine("streamed", b"2" * 40, b"2" * 40, 40),
        [b"3"],
        LongLine("too long", b"4" * 200, b"", 200),
        dropped(b"4" * 200),
        [b"5"],
    ]


def test_a_line_that_was_cut_at_the_end_of_the_stream_is_not_reported_as_passed() -> None:
    cut = events(Lines(BIG, lambda _: True, LONG), b'{"result":{"text":"' + b"x" * 40, [50])
    assert [type(event) for event in cut] == [Chunk, Chunk, Chunk, LineTruncated]
    assert join_pieces(cut) == [b'{"result":{"text":"' + b"x" * 40]
    # A last line without a newline gets one, if it may be whole.
    line = b'{"result":{"text":"' + b"x" * 40 + b'"}}'
    whole = events(Lines(BIG, lambda _: True, LONG), line, [50])
    assert join_pieces(whole) == [line]
    assert whole[-1] == LongLine("streamed", line, line, len(line))


def test_a_line_that_grows_over_the_limit_while_it_passes_is_ended_there() -> None:
    output = events(Lines(100, lambda _: True, LONG), b"x" * 300 + b"\n{}\n", [40])
    assert join_pieces(output) == [b"x" * 80, b"{}"]
    assert LongLine("too long", b"x" * 120, b"", 120) in output
    assert dropped(b"x" * 300) in output
