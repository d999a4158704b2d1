"""The answer to a POST as its bytes on the wire, for every form that a client may want."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import ClientSession, web
from aiohttp.test_utils import RawTestServer
from msgspec import Struct
from multidict import CIMultiDictProxy

from proxy.transports.http.negotiation import Wanted
from proxy.transports.http.sse import Event, Events, encode_event
from proxy.transports.sidecar.response_writer import ResponseWriter, message_event

RESPONSE = b'{"jsonrpc":"2.0","id":1,"result":{"n": 1.0}}'
SECOND = b'{"jsonrpc":"2.0","id":2,"error":{"code":-1,"message":"no"}}'
PROGRESS = b'{"jsonrpc":"2.0","method":"notifications/progress","params":{}}'
REQUEST = b'{"jsonrpc":"2.0","id":1,"method":"ping"}'
PRIMING = b"id: 0\nretry: 100\ndata:\n\n"
COMMENT = b": ping\n\n"
NO_RESPONSE = (
    b'{"jsonrpc":"2.0","id":null,"error":'
    b'{"code":-1,"message":"the server ended its answer without a response"}}'
)


class Reply(Struct):
    """The answer that a client received."""

    status: int
    headers: CIMultiDictProxy[str]
    body: bytes

    def named(self, name: str) -> list[str]:
        return self.headers.getall(name, [])

    @property
    def form(self) -> str:
        return "stream" if self.named("Content-Type")[0].startswith("text/event-stream") else "json"


async def asked(handle: Callable[[web.BaseRequest], Awaitable[web.StreamResponse]]) -> Reply:
    """Have a real server answer one request."""
    async with (
        RawTestServer(handle) as server,
        ClientSession() as session,
        session.post(server.make_url("/mcp")) as response,
    ):
        return Reply(response.status, response.headers, await response.read())


def event(raw: bytes) -> Event:
    """Read an event, or write one for a message."""
    events = Events(1 << 30)
    return next(iter(events.feed(encode_event(raw) if raw[:1] in b"{[" else raw)))


async def answered(wanted: Wanted, *said: bytes, **options: Any) -> tuple[Reply, ResponseWriter]:
    """Return what a client gets for these events and messages."""
    answers: list[ResponseWriter] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        answer = ResponseWriter(request, wanted, **{"streams": False, "expected": 1, **options})
        answers.append(answer)
        for each in said:
            await answer.add(event(each))
        return await answer.end()

    reply = await asked(handle)
    return reply, answers[0]


async def test_a_stream_is_one_frame_and_these_headers() -> None:
    reply, answer = await answered("stream", RESPONSE)

    assert reply.status == 200
    assert reply.body == b"event: message\ndata: " + RESPONSE + b"\n\n"
    assert reply.named("Content-Type") == ["text/event-stream; charset=utf-8"]
    assert reply.named("Cache-Control") == ["no-cache, no-transform"]
    assert reply.named("X-Accel-Buffering") == ["no"]
    assert reply.named("Connection") == []
    assert reply.named("Content-Length") == []
    assert answer.bytes_sent == len(reply.body)


Case = tuple[Wanted, bool, int, list[bytes], str]
ALONE, BOTH = [RESPONSE], [PROGRESS, RESPONSE]
PRIMED = [PRIMING, COMMENT, RESPONSE]
CASES: list[Case] = [
    # wanted, upstream streams, expected, said, the form
    *(("json", streams, 1, ALONE, "json") for streams in (True, False)),
    ("json", True, 1, BOTH, "json"),
    ("json", True, 1, PRIMED, "json"),
    ("json", True, 1, [RESPONSE, PROGRESS, RESPONSE], "json"),
    ("json", True, 1, [REQUEST, RESPONSE], "json"),
    *(("stream", streams, 1, ALONE, "stream") for streams in (True, False)),
    ("stream", True, 1, BOTH, "stream"),
    ("stream", True, 1, PRIMED, "stream"),
    *(("prefer json", streams, 1, ALONE, "json") for streams in (True, False)),
    ("prefer json", True, 1, BOTH, "stream"),
    ("prefer json", True, 1, [PRIMING, RESPONSE], "json"),
    ("prefer json", True, 1, [PRIMING, *BOTH], "stream"),
    ("prefer json", True, 1, [REQUEST], "stream"),
    ("prefer json", True, 1, [RESPONSE, PROGRESS], "json"),
    ("prefer json", True, 2, [RESPONSE, SECOND], "stream"),
    ("prefer json", True, 1, [PRIMING], "stream"),
    ("prefer json", True, 1, [], "stream"),
    ("either", True, 1, ALONE, "stream"),
    ("either", True, 1, BOTH, "stream"),
    ("either", True, 1, [], "stream"),
    ("either", False, 1, ALONE, "json"),
    # What upstream's JSON could not say, as what a rule or a child has to say beside it.
    ("either", False, 1, BOTH, "stream"),
    ("either", False, 2, [RESPONSE, PROGRESS, SECOND], "stream"),
    ("either", False, 2, [RESPONSE, SECOND], "json"),
]


@pytest.mark.parametrize(
    ("wanted", "streams", "expected", "said", "form"),
    CASES,
    ids=[f"{case[0]}-{n}" for n, case in enumerate(CASES)],
)
async def test_an_answer_takes_its_form(
    wanted: Wanted, streams: bool, expected: int, said: list[bytes], form: str
) -> None:
    reply, answer = await answered(
        wanted, *said, streams=streams, expected=expected, batch=expected > 1
    )

    assert reply.form == form
    if form == "json":
        assert reply.body == (RESPONSE if expected == 1 else b"[" + RESPONSE + b"," + SECOND + b"]")
    else:
        assert reply.body == b"".join(event(each).raw for each in said)
    assert reply.status == 200
    assert answer.bytes_sent == len(reply.body)
    assert answer.started


@pytest.mark.parametrize(
    ("said", "body"),
    [
        ([RESPONSE], b"[" + RESPONSE + b"]"),
        ([b"[" + RESPONSE + b" ]", SECOND], b"[" + RESPONSE + b" ," + SECOND + b"]"),
        # One array that has them all is the body, to the byte.
        (
            [b" [ " + RESPONSE + b" , " + SECOND + b" ] "],
            b" [ " + RESPONSE + b" , " + SECOND + b" ] ",
        ),
        (
            [b"[" + PROGRESS + b"," + RESPONSE + b"]", SECOND],
            b"[" + RESPONSE + b"," + SECOND + b"]",
        ),
        ([PROGRESS, RESPONSE, REQUEST, SECOND, RESPONSE], b"[" + RESPONSE + b"," + SECOND + b"]"),
    ],
    ids=["one of two", "array and one", "array", "mixed array", "mixed"],
)
async def test_a_batch_is_answered_by_an_array_of_its_responses(
    said: list[bytes], body: bytes
) -> None:
    reply, _ = await answered("json", *(data_event(each) for each in said), expected=2, batch=True)

    assert reply.body == body


def data_event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


@pytest.mark.parametrize("wanted", ["json", "prefer json", "either"])
@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 3000 + b"]" * 3000 + b"}",
        b'{"jsonrpc":"2.0","id":1,"result":NaN}',
        b'{"id":"' + b"x" * 600 + b'","result":{}}',
        b'{"jsonrpc":"2.0","error":{"code":1,"message":""}}',
        b'{"detail":"no JSON-RPC at all"}',
        b"[" + RESPONSE + b"]",
        b"{cut",
        b"[NaN]",
    ],
    ids=["deep", "nan", "long id", "no id", "other", "array", "cut", "nan in an array"],
)
async def test_what_asks_nothing_is_part_of_the_answer_as_it_came(
    wanted: Wanted, data: bytes
) -> None:
    reply, _ = await answered(wanted, data_event(data))

    assert (reply.form, reply.body) == ("json", data)


@pytest.mark.parametrize(
    ("wanted", "streams", "said"),
    [
        ("json", True, [PRIMING, PROGRESS]),
        ("json", True, []),
        ("json", False, []),
        ("prefer json", False, []),
        ("either", False, [PRIMING]),
    ],
)
async def test_json_without_a_response_is_an_error_that_says_so(
    wanted: Wanted, streams: bool, said: list[bytes]
) -> None:
    reply, answer = await answered(wanted, *said, streams=streams)

    assert (reply.status, reply.body) == (502, NO_RESPONSE)
    assert not answer.complete


async def test_events_that_are_held_have_a_bound() -> None:
    priming = b"id: " + b"7" * 1000 + b"\ndata:\n\n"
    reply, _ = await answered("prefer json", *[priming] * 100, RESPONSE, streams=True)

    assert reply.form == "stream"
    assert reply.body == priming * 100 + event(RESPONSE).raw


UPSTREAMS = [
    ("content-type", "text/event-stream"),
    ("Cache-Control", "no-store"),
    ("X-Accel-Buffering", "no"),
    ("Mcp-Session-Id", "abc"),
    ("Set-Cookie", "a=1"),
    ("Set-Cookie", "b=2"),
    ("Content-Length", "7"),
    ("Content-Encoding", "gzip"),
    ("Transfer-Encoding", "chunked"),
    ("Connection", "close"),
]


async def test_upstreams_own_words_win_in_a_stream() -> None:
    reply, _ = await answered("stream", RESPONSE, streams=True, headers=UPSTREAMS, status=203)

    assert reply.status == 203
    expected = {
        "Content-Type": ["text/event-stream"],
        "Cache-Control": ["no-store"],
        "X-Accel-Buffering": ["no"],
        "Mcp-Session-Id": ["abc"],
        "Set-Cookie": ["a=1", "b=2"],
        "Transfer-Encoding": ["chunked"],
    }
    assert {name: reply.named(name) for name in expected} == expected
    assert not {"Connection", "Content-Length", "Content-Encoding"} & reply.headers.keys()


async def test_a_stream_that_becomes_json_is_not_called_a_stream() -> None:
    reply, _ = await answered("json", RESPONSE, streams=True, headers=UPSTREAMS)

    assert reply.named("Content-Type") == ["application/json"]
    assert reply.named("Content-Length") == [str(len(RESPONSE))]
    assert reply.named("Mcp-Session-Id") == ["abc"]
    assert not {"X-Accel-Buffering", "Content-Encoding", "Connection"} & reply.headers.keys()


# More than the system takes of a client that does not read.
LONG = b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * (24 << 20) + b'"}'


async def test_two_events_that_are_put_at_the_same_time_do_not_mix() -> None:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        answer = ResponseWriter(request, "stream", streams=True, expected=1)
        await asyncio.gather(answer.add(message_event(LONG)), answer.add(message_event(PROGRESS)))
        return await answer.end()

    reply = await asked(handle)
    assert reply.body == encode_event(LONG) + encode_event(PROGRESS)


@pytest.mark.parametrize("framed", [True, False])
async def test_an_event_that_has_begun_is_said_to_its_end_whatever_ends_it(framed: bool) -> None:
    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        answer = ResponseWriter(request, "stream", streams=True, expected=1)
        putting = asyncio.create_task(answer.add(event(LONG) if framed else message_event(LONG)))
        transport = request.transport
        assert isinstance(transport, asyncio.WriteTransport)
        while not transport.get_write_buffer_size():
            await asyncio.sleep(0)
        putting.cancel()
        with pytest.raises(asyncio.CancelledError):
            await putting
        return await answer.end()

    reply = await asked(handle)
    assert reply.body == encode_event(LONG)
