"""The roads by which something can come to a caller: programs between two callers and a server."""

import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeVar

from tests.callers.server import Json
from tests.callers.speech import Exchange, Source, Spoken
from tests.callers.upstream import Upstream
from tests.faults.routes import META, stateless
from tests.faults.sidecar import EVENTS, PROGRAM, compact, get, post, request, serving
from tests.redis_server import redis_server
from tests.wire import Wire

SourceT = TypeVar("SourceT", bound=Source)

OWN = os.environ.get("CALLERS_PROGRAM")
TESTED = PROGRAM if OWN is None else (OWN,)
"""The program under test."""

SECONDS = 20.0  # after which an answer does not come any more
MOST_SESSIONS = 6
MOST_PROCESSES = 3
RULES = """\
version: 1
rules:
- {name: reading, tools: read, max_bytes: 1000}
- {name: paging, tools: page, response: [{paginate: {at: rows, limit: 4}}]}
"""
WRAPPED, WRAPPED_URL = "stdio", "stdio to a URL"
COMMAND, URL, FORWARD = "serve -- command", "serve URL", "serve URL with auth: forward"
STORES = ("memory", "redis", "redis of two replicas")
ROADS = {
    **dict.fromkeys((WRAPPED, WRAPPED_URL), ("folder",)),
    **dict.fromkeys((COMMAND, URL, FORWARD), STORES),
}
HANDSHAKE, SSE, STATELESS = "2025-11-25", "2024-11-05", "2026-07-28"


class Place(NamedTuple):
    """A road in use: the ports of its sidecars, or the command that wraps the server."""

    road: str
    tickets: Path
    ports: tuple[int, ...] = ()
    wrapping: tuple[str, ...] = ()


class Caller:
    """A credential, the secret behind it, and all that has come to whoever has it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.secret = f"secret-of-{name}-{secrets.token_hex(4)}"
        self.token = f"token-of-{name}-{secrets.token_hex(8)}"
        self.key = f"key-of-{name}-{secrets.token_hex(8)}"
        self.sources: list[Source] = []
        self.channels: dict[str, Channel] = {}

    def hears(self, source: SourceT) -> SourceT:
        """Have what comes from a source looked through."""
        if source not in self.sources:
            self.sources.append(source)
        return source

    def header_lines(self, road: str) -> tuple[str, ...]:
        if road == FORWARD:
            return (f"Authorization: Bearer {self.key}",)
        return f"Authorization: Bearer {self.token}", f"X-Api-Key: {self.key}"


ALICE, BOB = "alice", "bob"


def two_callers() -> tuple[Caller, ...]:
    return Caller(ALICE), Caller(BOB)


@contextmanager
def opened(road: str, store: str, callers: tuple[Caller, ...], folder: Path) -> Iterator[Place]:
    """Start the programs of a road; skips the test if there is no Redis for its store."""
    tickets = folder / "tickets"
    tickets.mkdir(parents=True)
    rules = folder / "rules.yaml"
    rules.write_text(RULES)
    command = [sys.executable, str(Path(__file__).with_name("server.py")), str(tickets)]
    with ExitStack() as stack:
        upstream: Any = {"command": command}
        if road in (WRAPPED_URL, URL, FORWARD):
            server = Upstream(tickets, {each.key: each.secret for each in callers})
            upstream = stack.enter_context(server).url
        if store == "folder":
            options = ("--ledger", "off", "--rules", str(rules), "--store", str(folder / "store"))
            to = ("--header", "X-Api-Key: ${KEY}", upstream) if road == WRAPPED_URL else ()
            yield Place(road, tickets, wrapping=(*TESTED, *options, *(to or ("--", *command))))
            return
        redis = "memory" if store == "memory" else stack.enter_context(redis_server()).url
        file = folder / "sidecar.yaml"
        file.write_text(configuration(road, upstream, rules, redis, callers, folder / "tokens"))
        count = 2 if "replicas" in store else 1
        sidecars = [
            stack.enter_context(serving("--config", str(file), program=TESTED))
            for _ in range(count)
        ]
        yield Place(road, tickets, tuple(sidecar.port for sidecar in sidecars))


def configuration(
    road: str, upstream: Any, rules: Path, store: str, callers: tuple[Caller, ...], tokens: Path
) -> str:
    """Return the sidecar's configuration; the tokens of the callers are written to `tokens`."""
    tokens.write_text("".join(f"{each.token}\n" for each in callers))
    access = {"auth": "forward"} if road == FORWARD else {"token_file": str(tokens)}
    limits = {"sessions": MOST_SESSIONS, "children": MOST_PROCESSES}
    keys = {"upstream": upstream, "rules": str(rules), "store": store, "limits": limits}
    return json.dumps({"version": 1, **keys, **access})


class Refused(Exception):
    """A session could not begin."""


class Pending:
    """A request that waits for its answer, and the sources that it may come from."""

    def __init__(self, caller: Caller, id: Any, *sources: Source) -> None:
        self.id = id
        self.sources = sources
        for source in sources:
            caller.hears(source)

    def answer(self, seconds: float) -> Json | None:
        """Wait for the answer or the refusal; None if the time is over."""
        for _ in range(max(1, round(seconds / 0.02))):
            for source in self.sources:
                for message in source.messages():
                    if message.get("id") == self.id and {"result", "error"} & message.keys():
                        return message
            first = self.sources[0]
            if isinstance(first, Exchange) and first.over:
                status = first.response().status
                if status >= 400:
                    return {"error": {"status": status}}
                if len(self.sources) == 1:
                    return None
            if isinstance(first, Spoken) and first.wire.at_end:
                return {"error": {"status": 0}}
            wait = 0.02 / len(self.sources)
            while any([source.read(wait) for source in self.sources]):
                wait = 0.0
        return None


class Channel(Protocol):
    """How a caller speaks in one era; `over` once no more answers come."""

    over: bool

    def send(self, message: Json) -> Pending: ...

    def cancel(self, pending: Pending) -> None: ...


def greet(channel: Channel, version: str | None) -> Json:
    """Begin as clients do: with a handshake unless the era has none, and the list of tools."""
    answer: Json | None = {}
    if version is not None:
        client = {"clientInfo": {"name": "raw", "version": "1"}, "capabilities": {}}
        params = {"protocolVersion": version, **client}
        answer = channel.send(asking(0, "initialize", **params)).answer(SECONDS)
        channel.send({"jsonrpc": "2.0", "method": "notifications/initialized"})
    if answer is None or "error" in answer:
        raise Refused(str(answer))
    channel.send(asking("tools", "tools/list")).answer(SECONDS)
    return answer


def asking(id: Any, method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def cancelling(id: Any) -> Json:
    params = {"requestId": id}
    return {"jsonrpc": "2.0", "method": "notifications/cancelled", "params": params}


def with_meta(message: Json, meta: Json) -> Json:
    own = {**meta, **({"progressToken": message["id"]} if "id" in message else {})}
    return {**message, "params": {**message.get("params", {}), "_meta": own}}


class Stdio:
    """A wrapper and a server of the caller's own, in the caller's environment."""

    def __init__(self, place: Place, caller: Caller, era: str) -> None:
        self._caller = caller
        self._meta = META if era == STATELESS else {}
        environment = {**os.environ, "SECRET": caller.secret, "KEY": caller.key}
        self._source = Spoken(Wire(place.wrapping, environment))
        greet(self, None if era == STATELESS else era)

    @property
    def over(self) -> bool:
        return self._source.wire.at_end

    def send(self, message: Json) -> Pending:
        try:
            self._source.wire.write(compact(with_meta(message, self._meta)) + b"\n")
        except BrokenPipeError:
            pass  # the end of its output tells of it
        return Pending(self._caller, message.get("id"), self._source)

    def cancel(self, pending: Pending) -> None:
        self.send(cancelling(pending.id))


class Stateless:
    """Requests that belong to no session, each to another replica."""

    over = False

    def __init__(self, place: Place, caller: Caller) -> None:
        self._place = place
        self._caller = caller
        greet(self, None)

    def send(self, message: Json) -> Pending:
        id, method = message.get("id"), message["method"]
        params = message.get("params", {})
        name = params.get("name") or params.get("uri", "")
        lines = (*stateless(name, method), *self._caller.header_lines(self._place.road))
        port = self._place.ports[(id if isinstance(id, int) else 0) % len(self._place.ports)]
        return Pending(
            self._caller, id, Exchange(port, post(compact(with_meta(message, META)), *lines))
        )

    def cancel(self, pending: Pending) -> None:
        pending.sources[0].close()


class Session:
    """A session of Streamable HTTP, or the stream and the endpoint of HTTP+SSE."""

    def __init__(self, place: Place, caller: Caller, era: str, port: int) -> None:
        self.over = False
        self.port = port
        self.id = ""
        self.path = "/mcp"
        self.event = b""
        """The id of the first event of an answer that can be resumed."""
        self._road = place.road
        self._caller = caller
        self._stream: Exchange | None = None
        if era == SSE:
            path = "/mcp/sse" if place.road == COMMAND else "/mcp"
            self._stream = caller.hears(self.open(caller, path=path))
            while not (endpoints := self._stream.events("data")):
                if not self._stream.read(SECONDS):
                    raise Refused(f"no endpoint: {self._stream.raw()!r}")
            self.path = path + endpoints[0].decode()
            self.id = self.path.partition("=")[2]
        greet(self, era)

    def send(self, message: Json) -> Pending:
        exchange = self.posted(self._caller, message)
        streams = [] if self._stream is None else [self._stream]
        pending = Pending(self._caller, message.get("id"), exchange, *streams)
        if message["method"] == "initialize" and not streams:
            pending.answer(SECONDS)
            self.id = exchange.response().headers.get("mcp-session-id", "")
        return pending

    def cancel(self, pending: Pending) -> None:
        self.send(cancelling(pending.id))

    def posted(self, caller: Caller, message: Json, id: str | None = None) -> Exchange:
        """Send a message as some caller, perhaps with another id of a session."""
        lines, path = self._addressed(caller, self.id if id is None else id)
        return Exchange(self.port, post(compact(with_meta(message, {})), *lines, path=path))

    def open(
        self, caller: Caller, last: bytes = b"", id: str | None = None, path: str = "/mcp"
    ) -> Exchange:
        """Open a stream as some caller, perhaps behind an event."""
        lines, _ = self._addressed(caller, self.id if id is None else id)
        resuming = [f"Last-Event-ID: {last.decode()}"] if last else []
        return Exchange(self.port, get(path, EVENTS, *lines, *resuming))

    def end(self, caller: Caller, id: str | None = None) -> Exchange:
        """End the session as some caller."""
        lines, path = self._addressed(caller, self.id if id is None else id)
        return Exchange(self.port, request("DELETE", path, *lines))

    def _addressed(self, caller: Caller, id: str) -> tuple[list[str], str]:
        lines = [*caller.header_lines(self._road), f"Mcp-Protocol-Version: {HANDSHAKE}"]
        if "=" in self.path:
            return lines[:-1], f"{self.path.partition('=')[0]}={id}"
        return lines + ([f"Mcp-Session-Id: {id}"] if id else []), self.path


def channel(place: Place, caller: Caller, era: str, number: int) -> Channel:
    """Begin to speak; raises Refused."""
    if place.wrapping:
        return Stdio(place, caller, era)
    if era == STATELESS:
        return Stateless(place, caller)
    return Session(place, caller, era, place.ports[number % len(place.ports)])
