"""A route to a command on a real listener, and clients of both eras that see each event."""

import json
import os
import sys
from collections.abc import AsyncIterator, Sequence
from contextlib import asynccontextmanager
from io import BytesIO
from pathlib import Path
from typing import Any

import aiohttp

from proxy.ruleset.rule import EMPTY, RuleSet
from proxy.transports.http.sse import Event, Events
from proxy.transports.sidecar.command.route_handler import CommandRoute
from proxy.transports.sidecar.route import Services
from tests.faults.processes import processes, until
from tests.transports.http.standing import BOTH, Standing, route, shared, standing

TALKATIVE = (sys.executable, str(Path(__file__).with_name("talkative.py")))
OFFICIAL = (sys.executable, str(Path(__file__).parents[1] / "remote_tools.py"), "stdio")
STREAM = "text/event-stream"
JSON = "application/json"
EVENTS = f"{STREAM}, {JSON};q=0.9"
"""Of a client that takes both forms, and prefers to see events as they come."""
SECONDS = 60.0

META = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {},
}


class Heard:
    """An answer as it comes."""

    def __init__(self, response: aiohttp.ClientResponse) -> None:
        self._response = response
        self._events = Events(1 << 26)
        self._ready: list[Event] = []
        self.status = response.status
        self.headers = response.headers
        self.ids: list[str] = []

    async def event(self) -> Event | None:
        """Return the next event that is no comment; None at the end."""
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

    async def next(self) -> Any:
        """Return the next message; None at the end."""
        while (event := await self.event()) is not None:
            if event.data:
                return json.loads(event.data)
        return None

    async def rest(self) -> list[Any]:
        """Return all messages that are still to come, of an answer in either form."""
        if self._response.content_type == JSON:
            return [json.loads(await self._response.read())]
        messages = []
        while (said := await self.next()) is not None:
            messages.append(said)
        return messages

    async def said(self) -> str:
        """Return the text of the result that is all that comes."""
        [message] = await self.rest()
        return str(message["result"]["content"][0]["text"])

    def leave(self) -> None:
        """Close the connection."""
        self._response.close()


class Client:
    """Sends one request per connection; `session` and `version` go along where they are known."""

    def __init__(self, http: aiohttp.ClientSession, url: str, heard: list[Heard]) -> None:
        self.http = http
        self._heard = heard
        self.url = url
        self.session: str | None = None
        self.version: str | None = None

    async def send(
        self, method: str, body: Any = None, accept: str = EVENTS, **headers: str
    ) -> Heard:
        held = {"Accept": accept}
        if self.session is not None:
            held["Mcp-Session-Id"] = self.session
        if self.version is not None:
            held["Mcp-Protocol-Version"] = self.version
        held |= {name.replace("_", "-"): value for name, value in headers.items()}
        raw = body if isinstance(body, bytes) else json.dumps(body).encode()
        data = None if body is None else BytesIO(raw)
        heard = Heard(await self.http.request(method, self.url, data=data, headers=held))
        self._heard.append(heard)
        return heard

    async def ask(
        self, id: Any, method: str, params: Any = None, accept: str = EVENTS, **headers: str
    ) -> Heard:
        message = {"jsonrpc": "2.0", "id": id, "method": method, "params": params or {}}
        return await self.send("POST", message, accept, **headers)

    async def call(
        self,
        id: Any,
        name: str,
        given: Any = None,
        accept: str = EVENTS,
        token: Any = None,
        **headers: str,
    ) -> Heard:
        params = {"name": name, "arguments": given or {}}
        if token is not None:
            params["_meta"] = {"progressToken": token}
        return await self.ask(id, "tools/call", params, accept, **headers)

    async def tell(self, method: str, **params: Any) -> int:
        heard = await self.send("POST", {"jsonrpc": "2.0", "method": method, "params": params})
        return heard.status

    async def begin(self, version: str = "2025-11-25") -> "Client":
        params = {"protocolVersion": version, "capabilities": {}, "clientInfo": {"name": "test"}}
        heard = await self.ask(0, "initialize", params)
        assert heard.status == 200
        self.session = heard.headers["Mcp-Session-Id"]
        [answer] = await heard.rest()
        self.version = answer["result"]["protocolVersion"]
        assert await self.tell("notifications/initialized") == 202
        return self

    async def modern(
        self,
        id: Any,
        method: str,
        params: Any = None,
        accept: str = BOTH,
        meta: Any = None,
        **headers: str,
    ) -> Heard:
        """Ask as in the stateless era."""
        params = {**(params or {}), "_meta": {**META, **(meta or {})}}
        held = {"Mcp_Protocol_Version": "2026-07-28", "Mcp_Method": method}
        if "name" in params:
            held["Mcp_Name"] = params["name"]
        return await self.ask(id, method, params, accept, **{**held, **headers})

    async def modern_call(
        self, id: Any, name: str, given: Any = None, accept: str = BOTH, token: Any = None
    ) -> Heard:
        meta = {} if token is None else {"progressToken": token}
        params = {"name": name, "arguments": given or {}}
        return await self.modern(id, "tools/call", params, accept, meta)


class Hosting:
    """A route that listens; every client of it is closed with it."""

    def __init__(self, made: Standing, http: aiohttp.ClientSession, local: CommandRoute) -> None:
        self.made = made
        self.local = local
        self._http = http
        self._heard: list[Heard] = []

    def close(self) -> None:
        for heard in self._heard:
            heard.leave()

    def client(self, path: str = "/mcp") -> Client:
        url = f"http://127.0.0.1:{self.made.port}{path}"
        return Client(self._http, url, self._heard)

    async def single(self) -> tuple[Heard, Client]:
        """Open the one stream of 2024-11-05; return it, and a client of its endpoint."""
        stream = await self.client("/mcp/sse").send("GET", accept=STREAM)
        event = await stream.event()
        assert event is not None
        assert event.data is not None
        return stream, self.client("/mcp/sse" + event.data.decode())


@asynccontextmanager
async def hosting(
    command: Sequence[str] = TALKATIVE,
    rules: RuleSet = EMPTY,
    share: Services | None = None,
    deadline: float | None = None,
    **limits: Any,
) -> AsyncIterator[Hosting]:
    """Serve a command."""
    share = share or shared(**limits)
    local = CommandRoute(route(tuple(command), deadline=deadline), lambda *_: rules, share)
    connector = aiohttp.TCPConnector(force_close=True, limit=0)
    timeout = aiohttp.ClientTimeout(total=SECONDS)
    async with (
        standing(local) as made,
        aiohttp.ClientSession(connector=connector, timeout=timeout) as http,
    ):
        hosted = Hosting(made, http, local)
        try:
            yield hosted
        finally:
            hosted.close()
    share.workers.close()


def alive(pid: int) -> bool:
    """Say whether there is such a process, unless it only waits to be noticed."""
    return pid in {each for each, _, _ in processes()}


def wait_gone(pid: int) -> None:
    """Wait until a process is no more, which is for somebody else to bring about."""
    until(lambda: not alive(pid))


def descriptors() -> int:
    """Count what this process has open."""
    return len(os.listdir("/proc/self/fd"))
