"""The response to a POST as its bytes on the wire, for every form that a client may want."""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import ClientResponse, web
from aiohttp.test_utils import TestClient
from mcp_abridge.transports.http.negotiation import Wanted
from mcp_abridge.transports.http.sse import Event, Events, encode_event
from mcp_abridge.transports.sidecar.response_writer import ResponseWriter, message_event
from mcp_abridge.transports.sidecar.route import AccessRecord, Request
from pytest_aiohttp import AiohttpClient

from tests.transports.http.route_server import RequestServer

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


Handler = Callable[[Request], Awaitable[web.StreamResponse]]
Ask = Callable[[Handler], Awaitable[ClientResponse]]
Respond = Callable[..., Awaitable[tuple[ClientResponse, ResponseWriter]]]


def form(response: ClientResponse) -> str:
    return "stream" if response.content_type == "text/event-stream" else "json"


def event(raw: bytes) -> Event:
    """Read an event, or write one for a message."""
    events = Events(1 << 30)
    return next(iter(events.feed(encode_event(raw) if raw[:1] in b"{[" else raw)))


@pytest.fixture
def request_from(aiohttp_client: AiohttpClient) -> Ask:
    """Send a request to a handler, and read the response."""

    async def request_from(handler: Handler) -> ClientResponse:
        client: TestClient[Any, None] = await aiohttp_client(RequestServer(handler))
        response = await client.post("/mcp")
        await response.read()
        return response

    return request_from


@pytest.fixture
def respond(request_from: Ask) -> Respond:
    """Write events and messages as the response to a request, and read it."""

    async def respond(
        accepts: Wanted, *events: bytes, **options: Any
    ) -> tuple[ClientResponse, ResponseWriter]:
        writers: list[ResponseWriter] = []
        records: list[AccessRecord] = []

        async def handle(request: Request) -> web.StreamResponse:
            writer = ResponseWriter(
                request, accepts, **{"streams": False, "expected": 1, **options}
            )
            writers.append(writer)
            records.append(request.record)
            for each in events:
                await writer.add(event(each))
            return await writer.end()

        response = await request_from(handle)
        assert records[0].bytes_sent == len(await response.read())
        return response, writers[0]

    return respond


async def test_a_stream_is_one_frame_and_these_headers(respond: Respond) -> None:
    response, _ = await respond("stream", RESPONSE)

    assert response.status == 200
    assert await response.read() == b"event: message\ndata: " + RESPONSE + b"\n\n"
    assert response.headers.getall("Content-Type") == ["text/event-stream; charset=utf-8"]
    assert response.headers.getall("Cache-Control") == ["no-cache, no-transform"]
    assert response.headers.getall("X-Accel-Buffering") == ["no"]
    assert not {"Connection", "Content-Length"} & response.headers.keys()


Case = tuple[Wanted, bool, int, list[bytes], str]
ALONE, BOTH = [RESPONSE], [PROGRESS, RESPONSE]
PRIMED = [PRIMING, COMMENT, RESPONSE]
CASES: list[Case] = [
    # wanted, upstream streams, expected, events, the form
    *(("json", streams, 1, ALONE, "json") for streams in (True, False)),
    ("json", True, 1, PRIMED, "json"),
    ("json", True, 1, [REQUEST, RESPONSE, PROGRESS, RESPONSE], "json"),
    *(("stream", streams, 1, ALONE, "stream") for streams in (True, False)),
    ("stream", True, 1, PRIMED, "stream"),
    *(("prefer json", streams, 1, ALONE, "json") for streams in (True, False)),
    ("prefer json", True, 1, [PRIMING, RESPONSE], "json"),
    ("prefer json", True, 1, [PRIMING, *BOTH], "stream"),
    ("prefer json", True, 1, [RESPONSE, PROGRESS], "json"),
    ("prefer json", True, 2, [RESPONSE, SECOND], "json"),
    ("prefer json", True, 1, [PRIMING], "stream"),
    ("either", True, 1, ALONE, "stream"),
    ("either", True, 1, [], "stream"),
    ("either", False, 1, ALONE, "json"),
    # What upstream's JSON could not say, as what a rule or a child has to say beside it.
    ("either", False, 1, BOTH, "stream"),
    ("either", False, 2, [RESPONSE, SECOND], "json"),
]


@pytest.mark.parametrize(("accepts", "streams", "expected", "events", "expected_form"), CASES)
async def test_an_answer_takes_its_form(
    accepts: Wanted,
    streams: bool,
    expected: int,
    events: list[bytes],
    expected_form: str,
    respond: Respond,
) -> None:
    response, writer = await respond(
        accepts, *events, streams=streams, expected=expected, batch=expected > 1
    )

    assert form(response) == expected_form
    if expected_form == "json":
        assert await response.read() == (
            RESPONSE if expected == 1 else b"[" + RESPONSE + b"," + SECOND + b"]"
        )
    else:
        assert await response.read() == b"".join(event(each).raw for each in events)
    assert response.status == 200
    assert writer.started


@pytest.mark.parametrize(
    ("events", "body"),
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
    ],
    ids=["one of two", "array and one", "array", "mixed array"],
)
async def test_a_batch_is_answered_by_an_array_of_its_responses(
    events: list[bytes], body: bytes, respond: Respond
) -> None:
    response, _ = await respond(
        "json", *(data_event(each) for each in events), expected=2, batch=True
    )

    assert await response.read() == body


def data_event(data: bytes) -> bytes:
    return b"data: " + data + b"\n\n"


@pytest.mark.parametrize("accepts", ["json", "prefer json", "either"])
@pytest.mark.parametrize(
    "data",
    [
        b'{"jsonrpc":"2.0","id":1,"result":' + b"[" * 3000 + b"]" * 3000 + b"}",
        b'{"jsonrpc":"2.0","id":1,"result":NaN}',
        b'{"jsonrpc":"2.0","error":{"code":1,"message":""}}',
        b'{"detail":"no JSON-RPC at all"}',
        b"[" + RESPONSE + b"]",
        b"{cut",
    ],
    ids=["deep", "nan", "no id", "other", "array", "cut"],
)
async def test_data_that_is_no_request_is_the_response_unchanged(
    accepts: Wanted, data: bytes, respond: Respond
) -> None:
    response, _ = await respond(accepts, data_event(data))

    assert (form(response), await response.read()) == ("json", data)


@pytest.mark.parametrize(
    ("accepts", "streams", "events"),
    [
        ("json", True, [PRIMING, PROGRESS]),
        ("json", False, []),
        ("prefer json", False, []),
        ("either", False, [PRIMING]),
    ],
)
async def test_json_without_a_response_is_an_error(
    accepts: Wanted, streams: bool, events: list[bytes], respond: Respond
) -> None:
    response, writer = await respond(accepts, *events, streams=streams)

    assert (response.status, await response.read()) == (502, NO_RESPONSE)
    assert not writer.complete


async def test_events_that_wait_for_a_form_are_bounded(respond: Respond) -> None:
    priming = b"id: " + b"7" * 1000 + b"\ndata:\n\n"
    response, _ = await respond("prefer json", *[priming] * 100, RESPONSE, streams=True)

    assert form(response) == "stream"
    assert await response.read() == priming * 100 + event(RESPONSE).raw


UPSTREAMS = [
    ("content-type", "text/event-stream"),
    ("Cache-Control", "no-store"),
    ("X-Accel-Buffering", "no"),
    ("Mcp-Session-Id", "abc"),
    ("Set-Cookie", "a=1"),
    ("Set-Cookie", "b=2"),
]


async def test_upstream_headers_win_in_a_stream(respond: Respond) -> None:
    response, _ = await respond("stream", RESPONSE, streams=True, headers=UPSTREAMS, status=203)

    assert response.status == 203
    expected = {
        "Content-Type": ["text/event-stream"],
        "Cache-Control": ["no-store"],
        "X-Accel-Buffering": ["no"],
        "Mcp-Session-Id": ["abc"],
        "Set-Cookie": ["a=1", "b=2"],
        "Transfer-Encoding": ["chunked"],
    }
    assert {name: response.headers.getall(name) for name in expected} == expected


async def test_a_stream_that_becomes_json_has_the_headers_of_json(respond: Respond) -> None:
    response, _ = await respond("json", RESPONSE, streams=True, headers=UPSTREAMS)

    assert response.headers.getall("Content-Type") == ["application/json"]
    assert response.headers.getall("Content-Length") == [str(len(RESPONSE))]
    assert response.headers.getall("Mcp-Session-Id") == ["abc"]
    assert "X-Accel-Buffering" not in response.headers


# More than the system takes of a client that does not read.
LONG = b'{"jsonrpc":"2.0","id":1,"result":"' + b"x" * (24 << 20) + b'"}'


@pytest.mark.parametrize("framed", [True, False])
async def test_an_event_is_written_whole_though_its_sender_is_cancelled(
    framed: bool, request_from: Ask
) -> None:
    async def handle(request: Request) -> web.StreamResponse:
        writer = ResponseWriter(request, "stream", streams=True, expected=1)
        sender = asyncio.create_task(writer.add(event(LONG) if framed else message_event(LONG)))
        transport = request.transport
        assert isinstance(transport, asyncio.WriteTransport)
        while not transport.get_write_buffer_size():
            await asyncio.sleep(0)
        sender.cancel()
        with pytest.raises(asyncio.CancelledError):
            await sender
        return await writer.end()

    response = await request_from(handle)
    assert await response.read() == encode_event(LONG)
