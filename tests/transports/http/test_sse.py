"""Event streams: the same events whatever the chunks, and no byte of them lost."""

import re
from collections.abc import Iterable, Iterator

import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from mcp_abridge.transports.http.sse import Event, Events, TooLong, encode_event

BIG = 20 << 20

ENDS = [b"\n", b"\r\n", b"\r"]
LINES = [
    *(b"", b"", b"", b"data", b"data:", b"data: ", b'data: {"id":1}', b"data:x", b"data:  two"),
    *(b"id: 7", b"id", b"id: \0", b"event: message", b"event: end", b"retry: 500", b"retry: x"),
    *(b": ping", b":", b"unknown: 1", b" data: 1", b"data\xff: 1", b"id: \xff", b"\xef\xbb\xbf"),
]
# Each line with its own end, or all with the same.
STREAM = st.one_of(
    st.lists(st.tuples(st.sampled_from(LINES), st.sampled_from(ENDS))),
    st.sampled_from(ENDS).flatmap(
        lambda end: st.lists(st.tuples(st.sampled_from(LINES), st.just(end)))
    ),
).map(lambda lines: b"".join(map(b"".join, lines)))
SIZES = st.lists(st.integers(1, 9), min_size=1)


Fields = tuple[bytes | None, str | None, str | None, int | None]
NOTHING: Fields = (None, None, None, None)


def by_the_book(raw: bytes) -> Iterator[Fields]:
    """Read a whole stream as WHATWG HTML words it (9.2.6); what carries no data counts, too."""
    fields = NOTHING
    *lines, _ = re.split(rb"\r\n|\n|\r", raw.removeprefix(b"\xef\xbb\xbf"))
    for line in lines:
        data, id, event, retry = fields
        name, _, value = line.partition(b":")
        value = value.removeprefix(b" ")
        if not line:
            if fields != NOTHING:
                yield fields
            fields = NOTHING
        elif name == b"data":
            fields = (value if data is None else data + b"\n" + value, id, event, retry)
        elif name == b"id" and b"\0" not in value:
            fields = (data, value.decode(errors="replace"), event, retry)
        elif name == b"event":
            fields = (data, id, value.decode(errors="replace"), retry)
        elif name == b"retry" and re.fullmatch(rb"[0-9]+", value):
            fields = (data, id, event, int(value))


def cut(stream: bytes, sizes: list[int]) -> Iterable[bytes]:
    """Cut a stream into chunks of these sizes, again and again."""
    at = turn = 0
    while at < len(stream):
        yield stream[at : at + sizes[turn % len(sizes)]]
        at, turn = at + sizes[turn % len(sizes)], turn + 1


def read(chunks: Iterable[bytes], limit: int = BIG) -> tuple[list[Event], bytes]:
    events = Events(limit)
    return [event for chunk in chunks for event in events.feed(chunk)], events.end()


def fields_of(events: list[Event]) -> list[Fields]:
    rows = [(event.data, event.id, event.event, event.retry) for event in events]
    return [fields for fields in rows if fields != NOTHING]


@given(STREAM, st.binary(max_size=9), SIZES)
@example(b"data: 1\r\r\n", b"", [1])
@example(b"\xef\xbb\xbfdata: 1\r\n\r\n", b"", [1])
def test_any_chunks_give_the_same_events(stream: bytes, rest: bytes, sizes: list[int]) -> None:
    assert read(cut(stream + rest, sizes)) == read([stream + rest])


@given(STREAM | st.binary(), st.binary(max_size=9), SIZES)
def test_no_byte_is_lost_but_a_byte_order_mark(
    stream: bytes, rest: bytes, sizes: list[int]
) -> None:
    events, remainder = read(cut(stream + rest, sizes))

    whole = b"".join(event.raw for event in events) + remainder
    assert whole == (stream + rest).removeprefix(b"\xef\xbb\xbf")


@given(STREAM, SIZES)
def test_the_events_are_those_of_the_specification(stream: bytes, sizes: list[int]) -> None:
    # One more byte tells a `\r` at the end from half a line end.
    events, _ = read(cut(stream + b":", sizes))

    assert fields_of(events) == [*by_the_book(stream + b":")]


@pytest.mark.parametrize(
    ("raw", "fields"),
    [
        (b"retry: " + b"9" * 5000 + b"\n\n", (None, None, None, None)),
        (b"data: a\n: in between\ndata: b\n\n", (b"a\nb", None, None, None)),
        ("data: a\u2028\x85\v\fb\n\n".encode(), ("a\u2028\x85\v\fb".encode(), None, None, None)),
    ],
)
def test_fields_that_other_parsers_read_differently(raw: bytes, fields: Fields) -> None:
    [event], remainder = read([raw])

    assert (event.data, event.id, event.event, event.retry) == fields
    assert (event.raw, remainder) == (raw, b"")


def test_a_comment_between_events_does_not_wait_for_a_blank_line() -> None:
    events = Events(100)

    for raw in (b": ping\n", b": ping\r\n", b"\r\n"):
        assert list(events.feed(raw)) == [Event(raw, None)]


@pytest.mark.parametrize("raw", [b"data: 1\n\n", b"data: 1\r\n\r\n", b"data: 1\r\r"])
def test_an_event_is_complete_with_its_last_byte(raw: bytes) -> None:
    events = Events(100)

    *early, last = [[event.raw for event in events.feed(bytes([byte]))] for byte in raw]
    assert not any(early)
    assert last == [raw]


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_an_event_over_the_limit_is_refused_whatever_the_chunks(size: int) -> None:
    fits, over = b"data: 12\n\n", b"data: 123\n\n"
    events = Events(len(fits))
    feed = (event for chunk in cut(fits + fits + over, [size]) for event in events.feed(chunk))

    assert [next(feed).raw, next(feed).raw] == [fits, fits]
    with pytest.raises(TooLong, match=r"^an event of more than 10 bytes$"):
        next(feed)
    with pytest.raises(TooLong):  # one without an end
        list(Events(len(fits)).feed(b"data: 12345"))


@pytest.mark.parametrize(("end", "line"), [(b"\n", BIG), (b"\r\n", 128), (b"\r", 128)])
def test_an_event_of_20_megabytes_is_read_in_chunks_of_any_line_end(end: bytes, line: int) -> None:
    data = b"x" * line
    raw = (b"data: " + data + end) * (BIG // line) + end
    events, remainder = read(
        (raw[at : at + 65536] for at in range(0, len(raw), 65536)), limit=len(raw)
    )

    assert [event.raw == raw for event in events] == [True]
    assert events[0].data == b"\n".join([data] * (BIG // line))
    assert remainder == b""


@given(st.binary().map(lambda data: data.replace(b"\r", b"")), st.sampled_from([None, "a", ""]))
def test_an_encoded_event_is_read_again(data: bytes, id: str | None) -> None:
    raw = encode_event(data, id=id, retry=5)

    assert read([raw]) == ([Event(raw, data, id, "message", 5)], b"")
