"""A stream and its connection: who gets what, what is kept, how far a client may fall behind."""

import asyncio
from asyncio import StreamReader
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer
from hypothesis import given
from hypothesis import strategies as st

from proxy.transports.log import Log
from proxy.transports.sidecar.command import streams
from proxy.transports.sidecar.command.streams import EventStore, EventStream
from proxy.transports.sidecar.response_writer import ResponseWriter
from proxy.transports.sidecar.route import AccessRecord

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
    assert len(store._events) == len(stored)


def test_the_newest_stays_whatever_its_size() -> None:
    store = EventStore(size=1000)
    stream = EventStream(store, SILENT)
    for data in (b"", b"x" * 5000):
        stream.add(data)
    assert stream.resume(1)


@asynccontextmanager
async def flooded(stream: EventStream) -> AsyncIterator[tuple[StreamReader, asyncio.Task[None]]]:
    """Send more than a client takes that reads nothing by itself."""
    there = asyncio.Event()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        answer = ResponseWriter(request, "stream", streams=True, expected=0)
        asyncio.get_running_loop().call_soon(there.set)
        return await stream.serve(request, answer, AccessRecord(), pings=True)

    async def flood() -> None:
        for _ in range(60):
            stream.add(b"x" * 1_000_000)
            await stream.room()

    async with RawTestServer(handle) as server:
        reader, writer = await asyncio.open_connection(server.host, server.port, limit=1 << 16)
        writer.write(b"GET /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
        await there.wait()
        async with asyncio.timeout(20):
            yield reader, asyncio.create_task(flood())
        stream.finish()
        writer.transport.abort()


async def test_a_client_that_is_slow_holds_up_who_speaks() -> None:
    async with flooded(EventStream(EventStore(), SILENT)) as (reader, speaking):
        finished, _ = await asyncio.wait([speaking], timeout=0.3)
        assert not finished
        while not speaking.done():
            await reader.read(1 << 20)


async def test_a_client_that_reads_nothing_at_all_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "_STUCK", 0.05)
    stream = EventStream(EventStore(), SILENT)
    async with flooded(stream) as (_, speaking):
        await speaking
        assert not stream.connected


async def test_nobody_is_held_up_when_the_end_is_near() -> None:
    stream = EventStream(EventStore(), SILENT)
    async with flooded(stream) as (_, speaking):
        await asyncio.wait([speaking], timeout=0.1)
        stream.hurry()
        await speaking
