"""Calls that an upstream leaves alone: what their client gets, in which form and where."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from proxy.transports.http.sse import encode_event
from tests.given import answer, call, line, texts
from tests.transports.http.raw import Request, Upstream, chunk, head, response, upstream
from tests.transports.http.standing import BOTH, Got, Standing, before

DEADLINE = 0.2
LATE = (
    "no answer within 0.2 seconds and no progress; the call was cancelled. "
    "Whether it took effect is not known: find out before you call again"
)
REASON = "no answer within 0.2 seconds and no progress"
STREAM = "text/event-stream"
JSON = "application/json"
VERSION = "2026-07-28"
NOTE = line(method="notifications/message", params={"data": "working"})
PING = line(id=9, method="ping")
PONG = answer({}, 9)

Silent = Callable[[asyncio.StreamWriter], Awaitable[None]]


async def nothing(writer: asyncio.StreamWriter) -> None:
    """Do not even begin to answer."""


async def begun(writer: asyncio.StreamWriter) -> None:
    """Begin a stream."""
    writer.write(head(content_type=STREAM, transfer_encoding="chunked") + chunk(encode_event(NOTE)))


class Server:
    """Answers what is no call; calls it leaves alone, after `first`."""

    def __init__(self, first: Silent = nothing) -> None:
        self.first = first
        self.told: asyncio.Queue[Any] = asyncio.Queue()
        self.events: asyncio.Queue[bytes] = asyncio.Queue()
        self.called = asyncio.Event()

    async def __call__(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if request.line.startswith("GET"):
            writer.write(head(content_type=STREAM, transfer_encoding="chunked"))
            while True:
                writer.write(chunk(await self.events.get()))
        message = json.loads(request.body)
        if not isinstance(message, list) and "id" not in message:
            self.told.put_nowait(message["params"])
            writer.write(response(b"", "202 Accepted"))
            return
        if not isinstance(message, list) and message["method"] == "ping":
            writer.write(response(answer({}, message["id"])))
            return
        await self.first(writer)
        self.called.set()
        assert await reader.read() == b""
        raise ConnectionResetError

    async def cancelled(self) -> Any:
        """Wait until a call is to be given up; return what is said of it."""
        async with asyncio.timeout(20):
            return await self.told.get()


@asynccontextmanager
async def waiting(
    first: Silent = nothing, deadline: float = DEADLINE
) -> AsyncIterator[tuple[Standing, Server, Upstream]]:
    """Stand before such a server, which has nothing more to say in the end."""
    server = Server(first)
    async with upstream(server) as there, before(there.url, deadline=deadline) as proxy:
        yield proxy, server, there
        assert (await proxy.post(PING, mcp_session_id="s")).body == PONG
        assert server.told.empty()


def events(got: Got) -> list[bytes]:
    """Return the data of an event stream."""
    assert got.headers["content-type"].startswith(STREAM)
    return [each.removeprefix(b"data: ") for each in got.body.split(b"\n") if each[:5] == b"data:"]


@pytest.mark.parametrize(("accept", "streams"), [(BOTH, False), (JSON, False), (STREAM, True)])
async def test_the_error_comes_in_a_form_that_the_client_takes(accept: str, streams: bool) -> None:
    async with waiting() as (proxy, server, there):
        got = await proxy.post(call("slow", id=7), accept, mcp_session_id="s")
        assert (got.status, got.ended) == (200, True)
        [raw] = events(got) if streams else [got.body]
        assert json.loads(raw)["id"] == 7
        assert texts(raw) == [LATE]
        assert await server.cancelled() == {"requestId": 7, "reason": REASON}
        asked = proxy.asked[0]
        assert (asked.answered_by, asked.failure) == ("proxy", "the server did not answer in time")
        # Its connection is not kept either.
        await asyncio.wait_for(there.gone.wait(), 20)


async def test_the_error_is_the_last_event_of_a_stream_that_has_begun() -> None:
    async with waiting(begun) as (proxy, server, there):
        got = await proxy.post(call("slow", id=7), mcp_session_id="s")
        note, raw = events(got)
        assert (note, texts(raw), got.ended) == (NOTE, [LATE], True)
        assert await server.cancelled() == {"requestId": 7, "reason": REASON}
        await asyncio.wait_for(there.gone.wait(), 20)


async def test_the_cancellation_goes_in_the_name_of_the_client() -> None:
    async with waiting() as (proxy, server, there):
        await proxy.post(call("slow", id=7), mcp_session_id="s", idempotency_key="k", x_mine="m")
        await server.cancelled()
        asked, told = there.asked[:2]
        assert (told.headers["mcp-session-id"], told.headers["x-mine"]) == ("s", "m")
        assert ("idempotency-key" in asked.headers, "idempotency-key" in told.headers) == (
            True,
            False,
        )
