"""A stream and its connection: who hears what, and how far a client may fall behind."""

import asyncio
from asyncio import StreamReader
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from proxy.transports.sidecar.command import streams
from proxy.transports.sidecar.command.event_store import StoredEvent
from proxy.transports.sidecar.command.streams import EventStream
from proxy.transports.sidecar.response_writer import ResponseWriter
from proxy.transports.sidecar.route import AccessRecord


def said(number: int, data: bytes = b"{}") -> StoredEvent:
    return StoredEvent(f"1-{number}", data)


def test_what_waits_for_nobody_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_MOST_KEPT", 3)
    stream = EventStream(1, keeps=True)
    for number in range(5):
        stream.add(said(number))
    assert stream.dropped == 2


@asynccontextmanager
async def flooded(stream: EventStream) -> AsyncIterator[tuple[StreamReader, asyncio.Task[None]]]:
    """Send more than a client takes that reads nothing by itself."""
    there = asyncio.Event()

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        answer = ResponseWriter(request, "stream", streams=True, expected=0)
        asyncio.get_running_loop().call_soon(there.set)
        return await stream.serve(request, answer, AccessRecord(), pings=True)

    async def flood() -> None:
        for number in range(60):
            stream.add(said(number, b"x" * 1_000_000))
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
    async with flooded(EventStream(1)) as (reader, speaking):
        done, _ = await asyncio.wait([speaking], timeout=0.3)
        assert not done
        while not speaking.done():
            await reader.read(1 << 20)


async def test_a_client_that_reads_nothing_at_all_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "_STUCK", 0.05)
    stream = EventStream(1)
    async with flooded(stream) as (_, speaking):
        await speaking
        assert not stream.connected


async def test_nobody_is_held_up_when_the_end_is_near() -> None:
    stream = EventStream(1)
    async with flooded(stream) as (_, speaking):
        await asyncio.wait([speaking], timeout=0.1)
        stream.hurry()
        await speaking
