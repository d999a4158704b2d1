"""An HTTP server that writes raw bytes, and the pieces of what it writes."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import msgspec

from tests.raw_http import parsed


class Request(msgspec.Struct):
    """A request: its first line, its headers with lower-case names, its body."""

    line: str
    headers: dict[str, str]
    body: bytes


Script = Callable[[Request, asyncio.StreamReader, asyncio.StreamWriter], Awaitable[None]]


class Upstream(msgspec.Struct):
    """A server of raw bytes; `disconnected` is set once a client closes its connection early."""

    port: int
    requests: list[Request] = msgspec.field(default_factory=list)
    disconnected: asyncio.Event = msgspec.field(default_factory=asyncio.Event)

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"


@asynccontextmanager
async def upstream(script: Script | bytes) -> AsyncIterator[Upstream]:
    """Serve each request by `script`, or answer each with the same bytes."""
    server = Upstream(0)

    async def talk(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            while (request := await _request(reader)) is not None:
                server.requests.append(request)
                if isinstance(script, bytes):
                    writer.write(script)
                    await writer.drain()
                else:
                    await script(request, reader, writer)
        except (ConnectionError, asyncio.IncompleteReadError, asyncio.CancelledError):
            server.disconnected.set()
        finally:
            writer.close()

    listener = await asyncio.start_server(talk, "127.0.0.1", 0)
    server.port = listener.sockets[0].getsockname()[1]
    try:
        yield server
    finally:
        listener.close()


async def _request(reader: asyncio.StreamReader) -> Request | None:
    try:
        head = await reader.readuntil(b"\r\n\r\n")
    except asyncio.IncompleteReadError:
        return None
    line, headers = parsed(head[:-4])
    body = await reader.readexactly(int(headers.get("content-length", "0")))
    return Request(line, headers, body)


def raw_response(body: bytes, status: str = "200 OK", **headers: str) -> bytes:
    """Write a whole response with its length; header names are written with `_` for `-`."""
    pairs = {"content_type": "application/json", **headers, "content_length": str(len(body))}
    return head(status, **pairs) + body


def head(status: str = "200 OK", **headers: str) -> bytes:
    """Write the head of a response."""
    lines = [f"{name.replace('_', '-')}: {value}" for name, value in headers.items()]
    return "\r\n".join([f"HTTP/1.1 {status}", *lines, "", ""]).encode()


def chunk(raw: bytes) -> bytes:
    """Write a chunk of a chunked body; of nothing, its end."""
    return b"%x\r\n%s\r\n" % (len(raw), raw)


STREAM_HEAD = head(content_type="text/event-stream", transfer_encoding="chunked")


def streamed(*events: bytes) -> bytes:
    """Write a whole response of events."""
    return STREAM_HEAD + b"".join(map(chunk, events)) + chunk(b"")
