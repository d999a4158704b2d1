"""A sidecar on a free port before a stub of a handler, and a client that sends raw bytes to it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web
from mcp_abridge.ruleset.loading.config_model import LimitsSpec
from mcp_abridge.transports.http import body
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.sidecar.access import LOOPBACK, Access
from mcp_abridge.transports.sidecar.metrics import Metrics
from mcp_abridge.transports.sidecar.route import Mount, Request, Route
from mcp_abridge.transports.sidecar.sidecar import Sidecar

from tests.faults.sidecar import request
from tests.raw_http import parsed
from tests.transports.http.route_server import Response

LISTEN = "127.0.0.1:0"


class StubHandler:
    """Answers a POST by its body, and a GET with a stream that has no end.

    A body `wait` is answered when `go` is set, `fail` with an exception, `call` as a call of a
    tool, `listen` with such a stream too.
    """

    def __init__(self) -> None:
        self.unready: str | None = None
        self.log: list[str] = []
        self.arrived = asyncio.Event()
        self.go = asyncio.Event()
        self.cancelled = asyncio.Event()

    async def open(self) -> None:
        self.log.append("open")

    def has_session(self, request: Request) -> bool:
        return False

    def counts(self) -> tuple[int, int]:
        return 3, 2

    async def close(self) -> None:
        self.log.append("close")

    async def handle(self, request: Request) -> web.StreamResponse:
        self.arrived.set()
        try:
            if request.method == "GET":
                return await self._stream(request)
            return await self._post(request)
        except asyncio.CancelledError:
            self.cancelled.set()
            raise

    async def _post(self, request: Request) -> web.StreamResponse:
        raw, record = await body.whole(request.content, None, 1 << 20), request.record
        record.bytes_received = 7
        match raw:
            case b"wait":
                record.id = b"7"
                await self.go.wait()
            case b"fail":
                raise RuntimeError("for a reason")
            case b"listen":
                record.method = "subscriptions/listen"
                return await self._stream(request)
            case b"call":
                record.method, record.tool = "tools/call", "find\nme"
                record.client, record.session = "tester", "abc"
                record.id, record.trace_id = b'"one"', "a1" * 16
        return web.Response(body=b"you said " + raw)

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: first\n\n")
        await self.go.wait()
        return response


class RawClient:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer
        self.close = writer.close
        self.until = reader.readuntil

    async def send(self, raw: bytes) -> None:
        self._writer.write(raw)
        await self._writer.drain()

    async def request(self, line: str, *headers: str, body: bytes | None = None) -> None:
        method, path = line.split()
        await self.send(request(method, path, *headers, body=body))

    async def post(self, path: str, body: bytes, *headers: str) -> None:
        await self.request(f"POST {path}", *headers, body=body)

    async def head(self) -> bytes:
        return (await self.until(b"\r\n\r\n"))[:-4]

    async def response(self) -> Response:
        """Read a response that has a Content-Length."""
        line, headers = parsed(await self.head())
        body = await self._reader.readexactly(int(headers.get("content-length", 0)))
        return Response(int(line.split()[1]), headers, body)

    async def rest(self) -> bytes:
        """Read until the server closes the connection."""
        try:
            return await self._reader.read()
        except ConnectionResetError:
            return b""


class RunningSidecar:
    """A sidecar that serves, and its log."""

    def __init__(self, sidecar: Sidecar, log: int, handler: StubHandler) -> None:
        self.sidecar = sidecar
        self.handler = handler
        self._log = log
        self._clients: list[RawClient] = []

    async def client(self) -> RawClient:
        host, _, port = self.sidecar.address(LISTEN).rpartition(":")
        client = RawClient(*await asyncio.open_connection(host, int(port)))
        self._clients.append(client)
        return client

    async def request(self, line: str, *headers: str, body: bytes | None = None) -> Response:
        client = await self.client()
        await client.request(line, *headers, body=body)
        return await client.response()

    async def post(self, path: str, body: bytes, *headers: str) -> Response:
        return await self.request(f"POST {path}", *headers, body=body)

    def events(self, name: str) -> list[dict[str, Any]]:
        """Read the events of a name that were logged since the last time."""
        lines = os.read(self._log, 1 << 20).splitlines()
        return [each for each in map(json.loads, lines) if each.get("event") == name]

    def close_clients(self) -> None:
        for client in self._clients:
            client.close()


def sidecar_route(**keys: Any) -> Route:
    """Make a route on a free port."""
    access = Access(hosts=LOOPBACK)
    return Route(**{"upstream": "http://u", "access": access, "listen": LISTEN, **keys})


@asynccontextmanager
async def serve_sidecar(*routes: Route, **limits: Any) -> AsyncIterator[RunningSidecar]:
    """Serve `routes`, all of them by one handler."""
    reading, writing = os.pipe()
    handler = StubHandler()
    mounts = [Mount(each, handler) for each in routes or (sidecar_route(),)]
    log = Log("debug", "json", writing)
    sidecar = Sidecar(mounts, LimitsSpec(**{"drain_seconds": 0.0, **limits}), log, Metrics())
    await sidecar.start()
    server = RunningSidecar(sidecar, reading, handler)
    try:
        yield server
    finally:
        server.close_clients()
        await sidecar.close()
        os.close(reading)
        os.close(writing)
