"""A sidecar on a free port before a small handler, and a client that speaks raw bytes to it."""

import asyncio
import json
import os
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from aiohttp import web

from proxy.ruleset.loading.config_model import LimitsSpec
from proxy.transports.http import body
from proxy.transports.log import Log
from proxy.transports.sidecar.access import LOOPBACK, Access
from proxy.transports.sidecar.metrics import Metrics
from proxy.transports.sidecar.route import AccessRecord, Route
from proxy.transports.sidecar.router import Mount
from proxy.transports.sidecar.sidecar import Sidecar
from tests.transports.http.standing import Got

LISTEN = "127.0.0.1:0"


class Small:
    """Answers a POST with what it said, and a GET with a stream that has no end.

    A body `wait` is answered when `go` is set, `fail` with an exception, `call` as a call of a
    tool, `listen` with such a stream too, `half` with the first half of an answer, after which the
    handler fails.
    """

    def __init__(self) -> None:
        self.reason: str | None = None
        self.log: list[str] = []
        self.begun = asyncio.Event()
        self.go = asyncio.Event()
        self.gone = asyncio.Event()

    async def open(self) -> None:
        self.log.append("open")

    def counts(self) -> tuple[int, int]:
        return 3, 2

    def not_ready_reason(self) -> str | None:
        return self.reason

    async def close(self) -> None:
        self.log.append("close")

    async def handle(self, request: web.BaseRequest, asked: AccessRecord) -> web.StreamResponse:
        self.begun.set()
        try:
            if request.method == "GET":
                return await self._stream(request)
            return await self._post(request, asked)
        except asyncio.CancelledError:
            self.gone.set()
            raise

    async def _post(self, request: web.BaseRequest, asked: AccessRecord) -> web.StreamResponse:
        raw = await body.whole(request.content, None, 1 << 20)
        asked.bytes_received = 7
        match raw:
            case b"wait":
                asked.id = b"7"
                await self.go.wait()
            case b"fail":
                raise RuntimeError("for a reason")
            case b"half":
                response = web.StreamResponse()
                response.content_length = 100
                await response.prepare(request)
                await response.write(b"half")
                raise RuntimeError("in the middle")
            case b"listen":
                asked.method = "subscriptions/listen"
                return await self._stream(request)
            case b"call":
                asked.method, asked.tool = "tools/call", "find\nme"
                asked.client, asked.session = "tester", "abc"
        return web.Response(body=b"you said " + raw)

    async def _stream(self, request: web.BaseRequest) -> web.StreamResponse:
        response = web.StreamResponse(headers={"Content-Type": "text/event-stream"})
        await response.prepare(request)
        await response.write(b"data: first\n\n")
        await self.go.wait()
        return response


class Client:
    """One connection."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader, self._writer = reader, writer

    async def send(self, raw: bytes) -> None:
        self._writer.write(raw)
        await self._writer.drain()

    async def post(self, path: str, body: bytes, *headers: str) -> None:
        lines = [f"POST {path} HTTP/1.1", f"Content-Length: {len(body)}", *headers]
        if not any(line.lower().startswith("host:") for line in headers):
            lines.append("Host: localhost")
        await self.send("\r\n".join([*lines, "", ""]).encode() + body)

    async def get(self, path: str, *headers: str) -> None:
        lines = [f"GET {path} HTTP/1.1", "Host: localhost", *headers]
        await self.send("\r\n".join([*lines, "", ""]).encode())

    async def head(self) -> bytes:
        return (await self._reader.readuntil(b"\r\n\r\n"))[:-4]

    async def answer(self) -> Got:
        got = Got.read(await self.head())
        got.body = await self._reader.readexactly(int(got.headers.get("content-length", 0)))
        return got

    async def until(self, raw: bytes) -> bytes:
        return await self._reader.readuntil(raw)

    async def rest(self) -> bytes:
        """Return what comes until the server closes the connection."""
        try:
            return await self._reader.read()
        except ConnectionResetError:
            return b""

    def close(self) -> None:
        self._writer.close()


class Running:
    """A sidecar that serves, with what its log says."""

    def __init__(self, sidecar: Sidecar, log: int, handler: Small) -> None:
        self.sidecar = sidecar
        self.handler = handler
        self._log = log
        self._clients: list[Client] = []

    async def client(self) -> Client:
        host, _, port = self.sidecar.address(LISTEN).rpartition(":")
        client = Client(*await asyncio.open_connection(host, int(port)))
        self._clients.append(client)
        return client

    async def posted(self, path: str, body: bytes, *headers: str) -> Got:
        client = await self.client()
        await client.post(path, body, *headers)
        return await client.answer()

    async def got(self, path: str, *headers: str) -> Got:
        client = await self.client()
        await client.get(path, *headers)
        return await client.answer()

    def said(self, event: str) -> list[dict[str, Any]]:
        """Return the events of a name that were logged since the last time."""
        lines = os.read(self._log, 1 << 20).splitlines()
        return [each for each in map(json.loads, lines) if each.get("event") == event]

    def end(self) -> None:
        for client in self._clients:
            client.close()


def route(**given: Any) -> Route:
    """Return a route on a free port."""
    access = given.pop("access", Access(hosts=LOOPBACK))
    return Route(**{"upstream": "http://u", "access": access, "listen": LISTEN, **given})


@asynccontextmanager
async def serving(*routes: Route, **limits: Any) -> AsyncIterator[Running]:
    """Serve `routes`, all of them by one handler."""
    reading, writing = os.pipe()
    handler = Small()
    mounts = [Mount(each, handler) for each in routes or (route(),)]
    log = Log("debug", "json", writing)
    sidecar = Sidecar(mounts, LimitsSpec(**{"drain_seconds": 0.0, **limits}), log, Metrics())
    await sidecar.start()
    running = Running(sidecar, reading, handler)
    try:
        yield running
    finally:
        running.end()
        await sidecar.close()
        os.close(reading)
        os.close(writing)
