"""A stream and its connection: which events are stored, how far a client may fall behind."""

import asyncio
from asyncio import StreamReader
from collections.abc import AsyncIterator

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.sidecar.command import streams
from mcp_abridge.transports.sidecar.command.streams import EventStore, EventStream
from mcp_abridge.transports.sidecar.response_writer import ResponseWriter
from mcp_abridge.transports.sidecar.route import Request

from tests.transports.http.route_server import RequestServer

SILENT = Log("error")


@given(
    st.lists(st.tuples(st.sampled_from(["add", "drop"]), st.integers(0, 3))),
    st.integers(1, 5),
)
def test_a_stream_is_resumed_with_all_that_followed_or_not_at_all(
    steps: list[tuple[str, int]], number: int
) -> None:
    store = EventStore(number=number)
    there = [EventStream(store, SILENT) for _ in range(4)]
    added: list[tuple[EventStream, int]] = []
    counts = dict.fromkeys(there, 0)
    for step, at in steps:
        stream = there[at]
        if step == "add":
            stream.add(b"x")
            counts[stream] += 1
            added = [*added, (stream, counts[stream])][-number:]
        else:
            stream.close()
            added = [event for event in added if event[0] is not stream]
    stored = set(added)
    for stream, count in counts.items():
        assert not stream.resume(0)
        assert not stream.resume(count + 1)
        for position in range(1, count + 1):
            following = {(stream, each) for each in range(position + 1, count + 1)}
            assert stream.resume(position) is (following <= stored)
    assert len(store) == len(stored)


def test_the_newest_stays_whatever_its_size() -> None:
    store = EventStore(size=1000)
    stream = EventStream(store, SILENT)
    for data in (b"", b"x" * 5000):
        stream.add(data)
    assert stream.resume(1)


@pytest.fixture
def stream() -> EventStream:
    return EventStream(EventStore(), SILENT)


@pytest.fixture
async def connection(stream: EventStream) -> AsyncIterator[StreamReader]:
    """A connection that the stream goes to; its client reads nothing by itself."""
    connected = asyncio.Event()

    async def handle(request: Request) -> web.StreamResponse:
        writer = ResponseWriter(request, "stream", streams=True, expected=0)
        asyncio.get_running_loop().call_soon(connected.set)
        return await stream.serve(request, writer, pings=True)

    async with RequestServer(handle) as server:
        reader, writer = await asyncio.open_connection(server.host, server.port, limit=1 << 16)
        writer.write(b"GET /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await connected.wait()
        yield reader
        stream.finish()
        writer.transport.abort()


async def flood(stream: EventStream) -> None:
    """Send more than a client takes that reads nothing."""
    async with asyncio.timeout(20):
        for _ in range(60):
            stream.add(b"x" * 1_000_000)
            await stream.room()


async def test_a_sender_waits_for_a_slow_client(
    stream: EventStream, connection: StreamReader
) -> None:
    sender = asyncio.create_task(flood(stream))
    finished, _ = await asyncio.wait([sender], timeout=0.3)
    assert not finished
    while not sender.done():
        await connection.read(1 << 20)
    await sender


@pytest.mark.usefixtures("connection")
async def test_a_client_that_reads_nothing_is_disconnected(
    stream: EventStream, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(streams, "_STUCK", 0.05)
    await flood(stream)
    assert not stream.connected
