"""The roads by which something can come to a caller: programs between two callers and a server."""

import json
import os
import secrets
import sys
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any, NamedTuple

from tests.callers.server import Json
from tests.callers.speech import Exchange, Source, Spoken, answer_in
from tests.callers.upstream import Upstream
from tests.faults.forks import PROGRAM
from tests.faults.routes import META, stateless
from tests.faults.sidecar import EVENTS, compact, get, post, request, serving
from tests.redis_server import redis_server
from tests.serving import upstream as started
from tests.wire import Wire

OTHER = os.environ.get("CALLERS_PROGRAM")
TESTED = PROGRAM if OTHER is None else (OTHER,)
"""The program under test."""

ALICE, BOB = "alice", "bob"
WRAPPED, WRAPPED_URL = "stdio", "stdio to a URL"
COMMAND, URL, FORWARD = "serve -- command", "serve URL", "serve URL with auth: forward"
INSIDE = "middleware in a Python server"
STORES = ("memory", "redis", "redis of two replicas")
ROADS = {
    **dict.fromkeys((WRAPPED, WRAPPED_URL), ("folder",)),
    **dict.fromkeys((COMMAND, URL, FORWARD), STORES),
    INSIDE: ("memory",),
}
"""The roads, each with the stores that it may have."""

HANDSHAKE, SSE, STATELESS = "2025-11-25", "2024-11-05", "2026-07-28"
MOST_SESSIONS = 6
MOST_PROCESSES = 3
SECONDS = 20.0  # after which an answer does not come any more
RULES = """\
version: 1
rules:
- {name: reading, tools: read, max_bytes: 1000}
- {name: resource, resources: "ticket:*", max_bytes: 1000}
- {name: paging, tools: page, response: [{paginate: {at: rows, limit: 4}}]}
"""


class Caller:
    """A credential, the secret behind it, and all that has come to whoever has it."""

    def __init__(self, name: str) -> None:
        self.name = name
        self.secret, self.token, self.key = (
            f"{kind}-of-{name}-{secrets.token_hex(8)}" for kind in ("secret", "token", "key")
        )
        self.sources: list[Source] = []
        self.channels: dict[str, Channel] = {}

    def hears(self, source: Exchange) -> Exchange:
        """Have what comes from a source looked through."""
        self.sources.append(source)
        return source

    def header_lines(self, road: str) -> list[str]:
        if road == FORWARD:
            return [f"Authorization: Bearer {self.key}"]
        return [f"Authorization: Bearer {self.token}", f"X-Api-Key: {self.key}"]


class Place(NamedTuple):
    """A road in use: the ports of its sidecars, or the command that wraps the server."""

    road: str
    store: str
    callers: dict[str, Caller]
    tickets: Path
    ports: list[int]
    wrapping: list[str]


@contextmanager
def opened(road: str, store: str, folder: Path) -> Iterator[Place]:
    """Start the programs of a road; skips the test if there is no Redis for its store."""
    callers = {name: Caller(name) for name in (ALICE, BOB)}
    tickets, rules = folder / "tickets", folder / "rules.yaml"
    tickets.mkdir(parents=True)
    rules.write_text(RULES)
    command = [sys.executable, str(Path(__file__).with_name("server.py")), str(tickets)]
    place = Place(road, store, callers, tickets, [], [])
    with ExitStack() as stack:
        upstream: Any = {"command": command}
        if road in (WRAPPED_URL, URL, FORWARD):
            server = Upstream(tickets, {each.key: each.secret for each in callers.values()})
            upstream = stack.enter_context(server).url
        if store == "folder":
            to = ["--", *command] if road == WRAPPED else ["--header=X-Api-Key: ${KEY}", upstream]
            options = ["--ledger", "off", "--rules", str(rules), "--store", str(folder / "store")]
            place.wrapping.extend([*TESTED, *options, *to])
        elif road == INSIDE:
            who = [{**vars(each), "sources": [], "channels": {}} for each in callers.values()]
            program = [sys.executable, str(Path(__file__).with_name("program.py"))]
            program += [str(tickets), str(rules), json.dumps(who)]
            origin = stack.enter_context(started(program, folder / "log"))
            place.ports.append(int(origin.rpartition(":")[2]))
        else:
            url = "memory" if store == "memory" else stack.enter_context(redis_server()).url
            limits = {"sessions": MOST_SESSIONS, "children": MOST_PROCESSES}
            keys = {"upstream": upstream, "rules": str(rules), "store": url, "limits": limits}
            config = folder / "sidecar.yaml"
            config.write_text(json.dumps({"version": 1, **keys, **access(place, folder)}))
            for _ in range(2 if "replicas" in store else 1):
                sidecar = serving("--config", str(config), program=TESTED)
                place.ports.append(stack.enter_context(sidecar).port)
        try:
            yield place
        finally:
            for source in [each for caller in callers.values() for each in caller.sources]:
                source.close()


def access(place: Place, folder: Path) -> Json:
    """Return the keys of a configuration that let both callers in."""
    if place.road == FORWARD:
        return {"auth": "forward"}
    file = folder / "tokens"
    file.write_text("".join(f"{each.token}\n" for each in place.callers.values()))
    return {"token_file": str(file)}


class Refused(Exception):
    """A session could not begin."""


def asking(id: Any, method: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def notifying(what: str, **params: Any) -> Json:
    return {"jsonrpc": "2.0", "method": f"notifications/{what}", "params": params}


class Channel:
    """How a caller speaks in one era; `over` once no more answers come."""

    over = False

    def __init__(self, place: Place, caller: Caller, era: str, port: int = 0) -> None:
        self.place = place
        self.caller = caller
        self.era = era
        self.port = port
        self.calls: dict[str, tuple[int, Json]] = {}
        """The ticket and the arguments of the last call of each tool."""
        self.begin()
        client = {"clientInfo": {"name": "raw", "version": "1"}, "capabilities": {}}
        if era != STATELESS:
            hello = self.send(asking("hello", "initialize", protocolVersion=era, **client))
            answer = answer_in(hello, "hello", SECONDS)
            if answer is None or "error" in answer:
                raise Refused(str(answer))
            self.welcome(hello)
            self.send(notifying("initialized"))
        answer_in(self.send(asking("tools", "tools/list")), "tools", SECONDS)

    def begin(self) -> None: ...

    def welcome(self, hello: list[Source]) -> None: ...

    def send(self, message: Json) -> list[Source]:
        """Send a message; return where its answer may come."""
        raise NotImplementedError

    def cancel(self, id: Any, sources: list[Source]) -> None:
        self.send(notifying("cancelled", requestId=id))

    def leave(self) -> None: ...

    def with_meta(self, message: Json) -> bytes:
        meta = META if self.era == STATELESS else {}
        own = {"progressToken": message["id"]} if "id" in message else {}
        return compact({**message, "params": {**message["params"], "_meta": {**meta, **own}}})


class Stdio(Channel):
    """A wrapper and a server of the caller's own, in the caller's environment."""

    def begin(self) -> None:
        environment = {"SECRET": self.caller.secret, "KEY": self.caller.key}
        self.wire = Wire(self.place.wrapping, {**os.environ, **environment})
        self.source = Spoken(self.wire)
        self.caller.sources.append(self.source)

    def send(self, message: Json) -> list[Source]:
        with suppress(BrokenPipeError):  # the end of its output tells of it
            self.wire.write(self.with_meta(message) + b"\n")
        self.over = self.source.over
        return [self.source]

    def leave(self) -> None:
        self.source.close()


class Stateless(Channel):
    """Requests that belong to no session, each to another replica."""

    def send(self, message: Json) -> list[Source]:
        name = message["params"].get("name") or message["params"].get("uri", "")
        lines = [*stateless(name, message["method"]), *self.caller.header_lines(self.place.road)]
        ports = self.place.ports
        ports.append(ports.pop(0))
        return [self.caller.hears(Exchange(ports[0], post(self.with_meta(message), *lines)))]

    def cancel(self, id: Any, sources: list[Source]) -> None:
        sources[0].close()


class Session(Channel):
    """A session of Streamable HTTP, or the stream and the endpoint of HTTP+SSE.

    Each method sends a request as some caller, perhaps with another id of a session.
    """

    id = ""
    first_event = b""
    """The id of the first event of an answer that can be resumed."""

    def begin(self) -> None:
        self.path, self.streams = "/mcp", list[Exchange]()
        if self.era == SSE:
            stream = self.open(self.caller, "")
            while not (endpoints := stream.events("data")):
                if not stream.read(SECONDS):
                    raise Refused(f"there is no endpoint: {stream.raw()!r}")
            self.streams.append(stream)
            query, _, self.id = endpoints[0].decode().partition("=")
            self.path += query + "="

    def welcome(self, hello: list[Source]) -> None:
        if not self.streams and isinstance(hello[0], Exchange):
            self.id = hello[0].response().headers.get("mcp-session-id", "")

    def send(self, message: Json) -> list[Source]:
        return [self.post(self.caller, self.id, message), *self.streams]

    def leave(self) -> None:
        for stream in self.streams or [self.end(self.caller, self.id)]:
            stream.read(SECONDS if not self.streams else 0)
            stream.close()

    def post(self, caller: Caller, id: str, message: Json) -> Exchange:
        lines, path = self._address(caller, id)
        return caller.hears(Exchange(self.port, post(self.with_meta(message), *lines, path=path)))

    def open(self, caller: Caller, id: str, last: bytes = b"") -> Exchange:
        lines, path = self._address(caller, id)
        lines += [f"Last-Event-ID: {last.decode()}"] if last else []
        return caller.hears(Exchange(self.port, get(path, EVENTS, *lines)))

    def end(self, caller: Caller, id: str) -> Exchange:
        lines, path = self._address(caller, id)
        return caller.hears(Exchange(self.port, request("DELETE", path, *lines)))

    def _address(self, caller: Caller, id: str) -> tuple[list[str], str]:
        lines = caller.header_lines(self.place.road)
        if self.era == SSE:
            return lines, self.path + id
        own = [f"Mcp-Session-Id: {id}", f"Mcp-Protocol-Version: {HANDSHAKE}"] if id else []
        return [*lines, *own], self.path


def channel(place: Place, caller: Caller, era: str) -> Channel:
    """Begin to speak; raises Refused."""
    if place.wrapping:
        return Stdio(place, caller, era)
    if era == STATELESS:
        return Stateless(place, caller, era)
    place.ports.append(place.ports.pop(0))
    return Session(place, caller, era, place.ports[0])
