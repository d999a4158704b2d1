"""A stream and its connection: who hears what, and how far a client may fall behind."""

import asyncio

import pytest
from aiohttp import web

from proxy.transports.sidecar.command import streams
from proxy.transports.sidecar.command.event_store import StoredEvent
from proxy.transports.sidecar.command.streams import EventStream
from proxy.transports.sidecar.response_writer import ResponseWriter
from proxy.transports.sidecar.route import AccessRecord
from tests.transports.http.standing import standing


class Serving:
    """Serves one stream to whoever asks."""

    def __init__(self, stream: EventStream) -> None:
        self.stream = stream
        self.there = asyncio.Event()

    async def open(self) -> None:
        pass

    async def close(self) -> None:
        pass

    def counts(self) -> tuple[int, int]:
        return 0, 0

    def not_ready_reason(self) -> str | None:
        return None

    async def handle(self, request: web.BaseRequest, asked: AccessRecord) -> web.StreamResponse:
        answer = ResponseWriter(request, "stream", streams=True, expected=0)
        asyncio.get_running_loop().call_soon(self.there.set)
        return await self.stream.serve(request, answer, asked, pings=True)


def said(number: int, data: bytes = b"{}") -> StoredEvent:
    return StoredEvent(f"1-{number}", data)


def test_what_waits_for_nobody_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(streams, "_MOST_KEPT", 3)
    stream = EventStream(1, keeps=True)
    for number in range(5):
        stream.add(said(number))
    assert stream.dropped == 2


async def reading(port: int) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
    """Ask for the stream, and read no more than a little ahead."""
    reader, writer = await asyncio.open_connection("127.0.0.1", port, limit=1 << 16)
    writer.write(b"GET /mcp HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n")
    return reader, writer


async def flood(stream: EventStream, count: int) -> None:
    for number in range(count):
        stream.add(said(number, b"x" * 1_000_000))
        await stream.room()


async def test_a_client_that_is_slow_holds_up_who_speaks() -> None:
    stream = EventStream(1)
    serving = Serving(stream)
    async with standing(serving) as made:
        reader, writer = await reading(made.port)
        await serving.there.wait()
        speaking = asyncio.create_task(flood(stream, 60))
        done, _ = await asyncio.wait([speaking], timeout=0.3)
        assert not done
        async with asyncio.timeout(20):
            while not speaking.done():
                await reader.read(1 << 20)
        writer.close()


async def test_a_client_that_reads_nothing_at_all_is_let_go(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(streams, "_STUCK", 0.05)
    stream = EventStream(1)
    serving = Serving(stream)
    async with standing(serving) as made:
        _, writer = await reading(made.port)
        await serving.there.wait()
        await asyncio.wait_for(flood(stream, 60), 20)
        assert not stream.connected
        writer.close()


async def test_nobody_is_held_up_when_the_end_is_near() -> None:
    stream = EventStream(1)
    serving = Serving(stream)
    async with standing(serving) as made:
        _, writer = await reading(made.port)
        await serving.there.wait()
        speaking = asyncio.create_task(flood(stream, 60))
        await asyncio.wait([speaking], timeout=0.1)
        stream.hurry()
        await asyncio.wait_for(speaking, 20)
        writer.close()
