"""Calls that an upstream does not answer: the form and the stream of their errors."""

import asyncio
import json
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest

from proxy.transports.http.sse import encode_event
from tests.builders import answer, call, line, texts
from tests.transports.http.raw_upstream import (
    Request,
    Upstream,
    chunk,
    head,
    raw_response,
    upstream,
)
from tests.transports.http.route_server import BOTH, Response, UrlServer, serve_url

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


async def begin_stream(writer: asyncio.StreamWriter) -> None:
    """Begin a stream."""
    writer.write(head(content_type=STREAM, transfer_encoding="chunked") + chunk(encode_event(NOTE)))


class SilentServer:
    """Answers messages that are no call; calls only get `first`."""

    def __init__(self, first: Silent = nothing) -> None:
        self.first = first
        self.notifications: asyncio.Queue[Any] = asyncio.Queue()
        self.events: asyncio.Queue[bytes] = asyncio.Queue()
        self.silent = asyncio.Event()

    async def __call__(
        self, request: Request, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        if request.line.startswith("GET"):
            writer.write(head(content_type=STREAM, transfer_encoding="chunked"))
            while True:
                writer.write(chunk(await self.events.get()))
        message = json.loads(request.body)
        if not isinstance(message, list) and "id" not in message:
            self.notifications.put_nowait(message["params"])
            writer.write(raw_response(b"", "202 Accepted"))
            return
        if not isinstance(message, list) and message["method"] == "ping":
            writer.write(raw_response(answer({}, message["id"])))
            return
        await self.first(writer)
        self.silent.set()
        assert await reader.read() == b""
        raise ConnectionResetError

    async def cancelled(self) -> Any:
        """Wait for a cancellation; return its params."""
        async with asyncio.timeout(20):
            return await self.notifications.get()


@asynccontextmanager
async def waiting(
    first: Silent = nothing, deadline: float = DEADLINE
) -> AsyncIterator[tuple[UrlServer, SilentServer, Upstream]]:
    """Stand before such a server, which has nothing more to say in the end."""
    server = SilentServer(first)
    async with upstream(server) as there, serve_url(there.url, deadline=deadline) as proxy:
        yield proxy, server, there
        assert (await proxy.post(PING, mcp_session_id="s")).body == PONG
        assert server.notifications.empty()


def events(response: Response) -> list[bytes]:
    assert response.headers["content-type"].startswith(STREAM)
    return [
        each.removeprefix(b"data: ") for each in response.body.split(b"\n") if each[:5] == b"data:"
    ]


@pytest.mark.parametrize(("accept", "streams"), [(BOTH, False), (JSON, False), (STREAM, True)])
async def test_the_error_comes_in_a_form_that_the_client_takes(accept: str, streams: bool) -> None:
    async with waiting() as (proxy, server, there):
        response = await proxy.post(call("slow", id=7), accept, mcp_session_id="s")
        assert response.status == 200
        [raw] = events(response) if streams else [response.body]
        assert json.loads(raw)["id"] == 7
        assert texts(raw) == [LATE]
        assert await server.cancelled() == {"requestId": 7, "reason": REASON}
        record = proxy.records[0]
        assert (record.answered_by, record.failure) == (
            "proxy",
            "the server did not answer in time",
        )
        # Its connection is not kept either.
        await asyncio.wait_for(there.disconnected.wait(), 20)


async def test_the_error_is_the_last_event_of_a_stream_that_has_begun() -> None:
    async with waiting(begin_stream) as (proxy, server, there):
        response = await proxy.post(call("slow", id=7), mcp_session_id="s")
        note, raw = events(response)
        assert (note, texts(raw)) == (NOTE, [LATE])
        assert await server.cancelled() == {"requestId": 7, "reason": REASON}
        await asyncio.wait_for(there.disconnected.wait(), 20)


async def test_the_cancellation_has_the_headers_of_the_client() -> None:
    async with waiting() as (proxy, server, there):
        await proxy.post(call("slow", id=7), mcp_session_id="s", idempotency_key="k", x_mine="m")
        await server.cancelled()
        request, cancellation = there.requests[:2]
        assert (cancellation.headers["mcp-session-id"], cancellation.headers["x-mine"]) == (
            "s",
            "m",
        )
        assert (
            "idempotency-key" in request.headers,
            "idempotency-key" in cancellation.headers,
        ) == (
            True,
            False,
        )
