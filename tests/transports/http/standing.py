"""A handler on a real listener, and a client that takes answers as raw as they come."""

import asyncio
from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

import msgspec
from aiohttp import web

from proxy.ruleset.loading.config_model import LimitsSpec
from proxy.ruleset.rule import EMPTY, RuleSet
from proxy.storage.calls import RecentCalls
from proxy.storage.meter import Meters
from proxy.storage.snapshots import Memory, Store
from proxy.transports.log import Log
from proxy.transports.sidecar.access import Access
from proxy.transports.sidecar.connection import Connections, SidecarServer
from proxy.transports.sidecar.request import RequestRefused
from proxy.transports.sidecar.route import AccessRecord, Handler, Route, Services
from proxy.transports.sidecar.url.route_handler import UrlRoute
from proxy.transports.workers.pool import Workers
from tests.raw_http import parsed

BOTH = "application/json, text/event-stream"


def shared(store: Store | None = None, **limits: Any) -> Services:
    """Return what routes share, made for a test."""
    kept = Memory() if store is None else store
    return Services(Meters(), kept, RecentCalls(), Workers(), Log("error"), LimitsSpec(**limits))


def route(upstream: str | tuple[str, ...], **keys: Any) -> Route:
    """Return a route that anybody may use."""
    return Route(upstream=upstream, access=Access(hosts=None, origins=(), tokens=()), **keys)


class Standing(msgspec.Struct):
    """A handler that listens, and what was asked of it."""

    port: int
    handler: Handler
    asked: list[AccessRecord]

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.port}/mcp"

    async def post(self, body: bytes, accept: str | None = BOTH, **headers: str) -> "Got":
        """Send a POST and read the whole answer; header names are written with `_` for `-`."""
        return await self.ask("POST", body, accept=accept, **headers)

    async def ask(
        self, method: str, body: bytes = b"", accept: str | None = None, **headers: str
    ) -> "Got":
        """Send a request and read the whole answer."""
        reader, writer = await self.send(method, body, accept=accept, **headers)
        raw = await asyncio.wait_for(reader.read(), 20)
        writer.close()
        return Got.read(raw)

    async def send(
        self, method: str, body: bytes = b"", accept: str | None = None, **headers: str
    ) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Send a request on a connection of its own, and leave the answer to the test."""
        reader, writer = await asyncio.open_connection("127.0.0.1", self.port, limit=1 << 26)
        held = {"host": f"127.0.0.1:{self.port}", "connection": "close", **headers}
        if accept is not None:
            held["accept"] = accept
        if body or method == "POST":
            held["content-length"] = str(len(body))
            held.setdefault("content_type", "application/json")
        lines = [f"{name.replace('_', '-')}: {value}" for name, value in held.items()]
        writer.write("\r\n".join([f"{method} /mcp HTTP/1.1", *lines, "", ""]).encode() + body)
        await writer.drain()
        return reader, writer


class Got(msgspec.Struct):
    """An answer: its status, its headers with lower-case names, its body without chunks."""

    status: int
    headers: Mapping[str, str]
    body: bytes
    ended: bool

    @classmethod
    def read(cls, raw: bytes) -> "Got":
        head, _, rest = raw.partition(b"\r\n\r\n")
        line, headers = parsed(head)
        ended = True
        if headers.get("transfer-encoding") == "chunked":
            body = b""
            while True:
                size, found, rest = rest.partition(b"\r\n")
                if not found:
                    ended = False
                    break
                length = int(size, 16)
                if not length:
                    break
                body, rest = body + rest[:length], rest[length + 2 :]
        else:
            body = rest
        return cls(int(line.split()[1]), headers, body, ended)

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def error(self) -> tuple[int, int, str]:
        """The status, and the code and message of the JSON-RPC error in the body."""
        said = self.json
        assert said.keys() == {"jsonrpc", "id", "error"}
        assert (said["jsonrpc"], said["id"]) == ("2.0", None)
        return self.status, said["error"]["code"], said["error"]["message"]


@asynccontextmanager
async def standing(handler: Handler) -> AsyncIterator[Standing]:
    """Let a handler answer on a free port."""
    asked: list[AccessRecord] = []

    async def handle(request: web.BaseRequest) -> web.StreamResponse:
        asked.append(AccessRecord())
        try:
            return await handler.handle(request, asked[-1])
        except RequestRefused as refused:
            asked[-1].answered_by, asked[-1].failure = "proxy", str(refused)
            return refused.response(asked[-1].id)

    await handler.open()
    log = Log("error")
    server = SidecarServer(handle, log, Connections(1000, None, log))
    listener = await asyncio.get_running_loop().create_server(server, "127.0.0.1", 0)
    try:
        yield Standing(listener.sockets[0].getsockname()[1], handler, asked)
    finally:
        listener.close()
        await server.shutdown(1)
        await handler.close()


@asynccontextmanager
async def before(
    upstream: str, rules: RuleSet = EMPTY, share: Services | None = None, **keys: Any
) -> AsyncIterator[Standing]:
    """Stand before an upstream."""
    share = share or shared()
    async with standing(UrlRoute(route(upstream, **keys), lambda *_: rules, share)) as made:
        yield made
    share.workers.close()
