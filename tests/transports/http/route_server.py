"""The handler of a route on a real listener, and clients of both eras that see each event."""

import asyncio
import json
import sys
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping, Sequence
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any, Generic, TypeVar

import aiohttp
import msgspec
from aiohttp import web
from aiohttp.test_utils import RawTestServer, TestClient
from mcp_abridge.ruleset.loading.config_model import LimitsSpec, Secret, Token
from mcp_abridge.ruleset.rule_set import RuleSet
from mcp_abridge.storage.calls import RecentCalls
from mcp_abridge.storage.meter import Meters
from mcp_abridge.storage.snapshots import Memory, Store
from mcp_abridge.transports.http.sse import Event, Events
from mcp_abridge.transports.log import Log
from mcp_abridge.transports.sidecar.access import Access
from mcp_abridge.transports.sidecar.command.route_handler import CommandRoute
from mcp_abridge.transports.sidecar.refusal import RequestRefused
from mcp_abridge.transports.sidecar.route import AccessRecord, Handler, Request, Route, Services
from mcp_abridge.transports.sidecar.url.route_handler import UrlRoute
from mcp_abridge.transports.workers.pool import Workers
from yarl import URL

from tests.builders import EMPTY

TALKATIVE = (sys.executable, str(Path(__file__).with_name("talkative.py")))
STREAM = "text/event-stream"
JSON = "application/json"
BOTH = f"{JSON}, {STREAM}"
EVENTS = f"{STREAM}, {JSON};q=0.9"
"""Of a client that takes both forms, and prefers to see events as they come."""
SECONDS = 60.0

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


def make_services(store: Store | None = None, **limits: Any) -> Services:
    """Make the services that routes share."""
    store = Memory() if store is None else store
    return Services(Meters(), store, RecentCalls(), Workers(), Log("error"), LimitsSpec(**limits))


def tokens(*names: str) -> Callable[[], tuple[Token, ...]]:
    """Make the tokens of a route, each its own name."""
    return lambda: tuple(Token(name, Secret(name)) for name in names)


def route(upstream: str | tuple[str, ...], **keys: Any) -> Route:
    """Make a route that anybody may use."""
    return Route(upstream=upstream, access=Access(hosts=None, origins=(), tokens=tokens()), **keys)


class Response(msgspec.Struct):
    """A whole response."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return msgspec.json.decode(self.body)

    @property
    def error(self) -> tuple[int, int, str]:
        """The status, and the code and message of the JSON-RPC error in the body."""
        message = self.json
        assert message.keys() == {"jsonrpc", "id", "error"}
        assert (message["jsonrpc"], message["id"]) == ("2.0", None)
        return self.status, message["error"]["code"], message["error"]["message"]


class StreamedResponse:
    """A response as it comes."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._events = Events(1 << 26)
        self._ready: list[Event] = []
        self.status = response.status
        self.headers = response.headers
        self.ids: list[str] = []

    async def read(self) -> Response:
        """Read the whole body; an error if it breaks off."""
        return Response(self.status, self.headers, await self._response.read())

    async def event(self) -> Event | None:
        """Read the next event that is no comment; None at the end."""
        while True:
            while self._ready:
                event = self._ready.pop(0)
                if event.id is not None:
                    self.ids.append(event.id)
                if event.data is not None:
                    return event
            chunk = await self._response.content.readany()
            if not chunk:
                return None
            self._ready += self._events.feed(chunk)

    async def data(self) -> bytes:
        """Read the data of the next event."""
        event = await self.event()
        assert event is not None
        assert event.data is not None
        return event.data

    async def message(self) -> Any:
        """Read the next message; None at the end."""
        while (event := await self.event()) is not None:
            if event.data:
                return json.loads(event.data)
        return None

    async def messages(self) -> list[Any]:
        """Read all messages that are still to come, of a response in either form."""
        if self._response.content_type == JSON:
            return [json.loads(await self._response.read())]
        messages = []
        while (message := await self.message()) is not None:
            messages.append(message)
        return messages

    async def text(self) -> str:
        """Read the text of the result, which is all that comes."""
        [message] = await self.messages()
        return str(message["result"]["content"][0]["text"])

    def close(self) -> None:
        """Close the connection."""
        self._response.close()


HttpClient = TestClient[Any, None]


class Client:
    """Sends one request per connection; `session` and `version` go along if they are set."""

    def __init__(self, http: HttpClient, path: str) -> None:
        self._http = http
        self._path = URL(path, encoded=True)
        self.session: str | None = None
        self.version: str | None = None

    async def send(
        self, method: str, body: Any = None, accept: str | None = EVENTS, **headers: str
    ) -> StreamedResponse:
        """Send a request; header names are written with `_` for `-`."""
        names = {"Accept": accept, "Mcp-Session-Id": self.session}
        names["Mcp-Protocol-Version"] = self.version
        if body is not None:
            names["Content-Type"] = JSON
        pairs = {name: value for name, value in names.items() if value is not None}
        pairs |= {name.replace("_", "-"): value for name, value in headers.items()}
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        data = None if body is None else BytesIO(raw)
        return StreamedResponse(
            await self._http.request(method, self._path, data=data, headers=pairs)
        )

    async def request(
        self, id: Any, method: str, params: Any = None, accept: str = EVENTS, **headers: str
    ) -> StreamedResponse:
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
        return await self.send("POST", message, accept, **headers)

    async def call(
        self,
        id: Any,
        name: str,
        arguments: Any = None,
        accept: str = EVENTS,
        token: Any = None,
        **headers: str,
    ) -> StreamedResponse:
        params = {"name": name, "arguments": arguments or {}}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        return await self.request(id, "tools/call", params, accept, **headers)

    async def notify(self, method: str, **params: Any) -> int:
        message = {"jsonrpc": "2.0", "method": method, "params": params}
        return (await self.send("POST", message)).status

    async def initialize(self, version: str = "2025-11-25") -> "Client":
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test"}}
        response = await self.request(0, "initialize", params)
        assert response.status == 200
        self.session = response.headers["Mcp-Session-Id"]
        [message] = await response.messages()
        self.version = message["result"]["protocolVersion"]
        assert await self.notify("notifications/initialized") == 202
        return self

    async def modern(
        self,
        id: Any,
        method: str,
        params: Any = None,
        accept: str = BOTH,
        meta: Any = None,
        **headers: str,
    ) -> StreamedResponse:
        """Send a request of the stateless era."""
        params = {**(params or {}), "_meta": {**META, **(meta or {})}}
        own = {"Mcp_Protocol_Version": "2026-07-28", "Mcp_Method": method}
        if "name" in params:
            own["Mcp_Name"] = params["name"]
        return await self.request(id, method, params, accept, **{**own, **headers})

    async def modern_call(
        self, id: Any, name: str, arguments: Any = None, accept: str = BOTH, token: Any = None
    ) -> StreamedResponse:
        meta = {} if token is None else {"progressToken": token}
        params = {"name": name, "arguments": arguments or {}}
        return await self.modern(id, "tools/call", params, accept, meta)


HandlerType = TypeVar("HandlerType", bound=Handler)


class RouteServer(Generic[HandlerType]):
    """A handler that serves requests, which are closed with it."""

    def __init__(self, handler: HandlerType, http: HttpClient) -> None:
        self.handler = handler
        self.http = http
        self.records: list[AccessRecord] = []

    def client(self, path: str = "") -> Client:
        """Make a client of a path or query that follows the route's."""
        return Client(self.http, "/mcp" + path)

    async def post(self, body: bytes, accept: str | None = BOTH, **headers: str) -> Response:
        """Post a body and read the whole response."""
        return await (await self.client().send("POST", body, accept, **headers)).read()

    async def single_stream(self, path: str = "") -> tuple[StreamedResponse, Client]:
        """Open the one stream of 2024-11-05; return it, and a client of its endpoint."""
        stream = await self.client(path).send("GET", accept=STREAM)
        return stream, self.client(path + (await stream.data()).decode())


UrlServer = RouteServer[UrlRoute]


class RequestServer(RawTestServer):
    """A server whose requests are the sidecar's."""

    def __init__(self, handle: Callable[[Request], Awaitable[web.StreamResponse]]) -> None:
        super().__init__(handle)  # type: ignore[arg-type]

    async def _make_runner(self, debug: bool = True, **options: Any) -> web.ServerRunner:
        loop = asyncio.get_running_loop()
        options["request_factory"] = lambda *parts: Request(*parts, loop)
        return web.ServerRunner(web.Server(self._handler, **options))


@asynccontextmanager
async def serve_handler(handler: HandlerType) -> AsyncIterator[RouteServer[HandlerType]]:
    """Let a handler answer on a free port."""

    async def handle(request: Request) -> web.StreamResponse:
        record = request.record
        server.records.append(record)
        try:
            return await handler.handle(request)
        except RequestRefused as refusal:
            record.answered_by, record.failure = "proxy", str(refusal)
            return refusal.response(record.id)

    http: HttpClient = TestClient(
        RequestServer(handle),
        connector=aiohttp.TCPConnector(force_close=True, limit=0),
        timeout=aiohttp.ClientTimeout(total=SECONDS),
        skip_auto_headers=("Accept", "Accept-Encoding", "User-Agent"),
        auto_decompress=False,
    )
    server = RouteServer(handler, http)
    await handler.open()
    try:
        async with http:
            yield server
    finally:
        await handler.close()


@asynccontextmanager
async def serve_url(
    upstream: str, rules: RuleSet = EMPTY, services: Services | None = None, **keys: Any
) -> AsyncIterator[UrlServer]:
    """Serve a route to an upstream."""
    services = services or make_services()
    handler = UrlRoute(route(upstream, select=lambda *_: rules, **keys), services)
    async with serve_handler(handler) as server:
        yield server
    services.workers.close()


@asynccontextmanager
async def serve_command(
    command: Sequence[str] = TALKATIVE,
    rules: RuleSet = EMPTY,
    **limits: Any,
) -> AsyncIterator[RouteServer[CommandRoute]]:
    """Serve a route to a command."""
    services = make_services(**limits)
    handler = CommandRoute(route(tuple(command), select=lambda *_: rules), services)
    async with serve_handler(handler) as server:
        yield server
    services.workers.close()
