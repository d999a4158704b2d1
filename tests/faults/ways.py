"""The ways in which a guard may stand before a server, and what server and client get to see.

Over each way calls are made alike. All that clients are sent is kept: nothing in it may be of the
proxy's own questions.
"""

import itertools
import json
import sys
import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path
from typing import Any

from tests.faults import probed
from tests.faults.probed import name
from tests.faults.processes import until
from tests.faults.routes import META, stateless
from tests.faults.sidecar import (
    INITIALIZE,
    ROOT,
    Client,
    Sidecar,
    call,
    compact,
    keys,
    post,
    serving,
)
from tests.raw_http import STREAM, Asked, RawServer, Reset, event, initialized, whole
from tests.wire import SECONDS, Wire, answers

GATE = Path(__file__).with_name("gate.yaml")
PROBED = (sys.executable, str(Path(__file__).with_name("probed.py")))
GUARDED = ("--allow-python", "--rules", str(GATE))
LIMITED = (*GUARDED, *keys(limits={"message": "1MB", "children": 1}))
"""For one server, which can say all that it has heard."""
OWN = b"abridge-"
"""What every id of the proxy's own questions has in it."""

SESSIONS, STATELESS = "sessions", "stateless"
STDIO, RUN_URL, SERVE_URL = "stdio", "run URL", f"serve URL, {STATELESS}"
COMMAND = (f"serve command, {SESSIONS}", f"serve command, {STATELESS}")
"""What a guard asks goes out as any request of its way does: before a URL one era shows it."""
WRITTEN, SERVED = (STDIO, RUN_URL), (SERVE_URL, *COMMAND)
ALL = (*WRITTEN, *SERVED)
CANCELLED = "notifications/cancelled"

Said = list[dict[str, Any]]


def hears(way: "Way", *names: str) -> Said:
    """Wait until the server was told this, and nothing else; return the messages in this order."""
    found: Said = []

    def enough() -> bool:
        found.extend(way.heard())
        return len(found) >= len(names)

    until(enough, said=lambda: str(found))
    # Over HTTP each message goes on its own.
    assert sorted(map(name, found)) == sorted(names)
    return sorted(found, key=lambda message: names.index(name(message)))


class Hearing(ABC):
    """A client whose server can be asked what it was told; `http` is one over HTTP."""

    http: "Probed | None"
    all: bytearray

    @abstractmethod
    def call(self, id: int, tool: str, **arguments: Any) -> "Line | Posted":
        """Begin a call."""

    def heard(self) -> Said:
        if self.http is not None:
            return self.http.heard()
        found: Said = json.loads(bytes.fromhex(text(self.call(0, "heard").messages()[-1])))
        return found

    def shown(self) -> bytes:
        return bytes(self.all)


class Written(Wire, Hearing):
    """`run`: lines on stdin and stdout, before a command or a URL."""

    def __init__(self, *server: str, http: "Probed | None" = None) -> None:
        own = [sys.executable, "-m", "proxy", "--ledger", "off", "--max-message", "1MB", *GUARDED]
        super().__init__([*own, *server], cwd=ROOT)
        self.http = http
        self.all = bytearray()
        self.write(INITIALIZE + b"\n")
        self.line()

    def line(self, seconds: float = SECONDS) -> bytes:
        found = super().line(seconds)
        self.all += found
        return found

    def call(self, id: int, tool: str, **arguments: Any) -> "Line":
        params = params_of(arguments, modern=False)
        self.write(call(id, tool, **params) + b"\n")
        return Line(self, id)


class Line:
    """A call that was written."""

    def __init__(self, wire: Written, id: int) -> None:
        self.wire = wire
        self.id = id

    def messages(self) -> Said:
        found: Said = []
        while not found or not answers(compact(found[-1]), self.id):
            line = self.wire.line()
            assert line, bytes(self.wire.errors)
            found.append(json.loads(line))
        return found


class Served(Hearing):
    """`serve`: a client of one era before a command or a URL."""

    def __init__(self, sidecar: Sidecar, era: str, http: "Probed | None" = None) -> None:
        self.sidecar = sidecar
        self.modern = era == STATELESS
        self.http = http
        self.all = bytearray()
        self.headers: list[str] = []
        if not self.modern:
            self.headers = [sidecar.begin()]
        self.heard()

    def call(self, id: int, tool: str, **arguments: Any) -> "Posted":
        params = params_of(arguments, modern=self.modern)
        own = stateless(tool) if self.modern else self.headers
        client = self.sidecar.client()
        client.send(post(call(id, tool, **params), *own))
        return Posted(self, client)


class Posted:
    """A call that was posted on a connection of its own."""

    def __init__(self, way: Served, client: Client) -> None:
        self.way = way
        self.client = client

    def messages(self) -> Said:
        with self.client:
            got = self.client.answer()
        self.way.all += repr(got).encode()
        assert got.ended
        events = [data for data in got.events if data]
        found: Said = [json.loads(raw) for raw in events or [got.body]]
        return found

    def leave(self) -> None:
        self.client.reset()


Way = Written | Served


class Ways:
    """All ways, before two servers that are started once."""

    def __init__(self, open: ExitStack, *options: str) -> None:
        self.http = open.enter_context(Probed())
        self.url = open.enter_context(serving(*LIMITED, *options, self.http.url))
        self.command = open.enter_context(serving(*LIMITED, *options, "--", *PROBED))
        self.stdio = open.enter_context(Written(*options, "--", *PROBED))
        self.run = open.enter_context(Written(*options, self.http.url, http=self.http))
        self.by_name: dict[str, Way] = {
            STDIO: self.stdio,
            RUN_URL: self.run,
            SERVE_URL: Served(self.url, STATELESS, self.http),
            **{f"serve command, {era}": Served(self.command, era) for era in (SESSIONS, STATELESS)},
        }

    def __getitem__(self, name: str) -> "Way":
        return self.by_name[name]


@contextmanager
def all_ways(*options: str) -> Iterator[Ways]:
    """Start both servers behind all ways; at the end each wrapper must end well."""
    with ExitStack() as open:
        ways = Ways(open, *options)
        yield ways
        for wire in (ways.stdio, ways.run):
            ended = wire.close()
            assert (ended.code, ended.rest) == (0, b"")
            assert b"Traceback" not in ended.stderr


def params_of(arguments: dict[str, Any], *, modern: bool) -> dict[str, Any]:
    """Return the params of a call; its `token` is no argument but what names its progress."""
    token = arguments.pop("token", None)
    meta = {**(META if modern else {}), **({} if token is None else {"progressToken": token})}
    return {"arguments": arguments, **({"_meta": meta} if meta else {})}


def text(answer: dict[str, Any]) -> str:
    [block] = answer["result"]["content"]
    found: str = block["text"]
    return found


class Probed(RawServer):
    """The same server over HTTP, which can be at fault in more ways."""

    def __init__(self) -> None:
        self.read = 0
        self.left = 0
        """How many of its questions were given up by the end of their connection."""
        self.sessions = itertools.count(1)
        super().__init__(self._answer)

    def heard(self) -> Said:
        asked = self.of("POST")
        self.read, before = len(asked), self.read
        return [each.message for each in asked[before:]]

    def _answer(self, asked: Asked) -> Iterator[bytes]:
        yield from self._said(asked) if asked.method == "POST" else [_closing("405 No", b"")]
        yield b""

    def _said(self, asked: Asked) -> Iterator[bytes]:
        message = asked.message
        match name(message):
            case "initialize":
                session = f"Mcp-Session-Id: s-{next(self.sessions)}"
                yield _closing("200 OK", initialized(asked.id), session)
            case "tools/list":
                yield _closing("200 OK", probed.tools(asked.id))
            case "check":
                yield from self._checked(asked, message["params"]["arguments"]["how"])
            case _ if "id" in message and "method" in message:
                yield _closing("200 OK", probed.answer(asked.id))
            case _:
                yield _closing("202 Accepted", b"")

    def _checked(self, asked: Asked, how: str) -> Iterator[bytes]:
        if how == "reset":
            raise Reset
        if how in FAULTS:
            yield from FAULTS[how](asked.id)
            return
        if how == "slow":
            time.sleep(0.3)
            how = "fine"
        if how == "alive":
            yield STREAM
            yield from map(event, probed.tells(asked.message))
            return
        if how == "belated" and "mcp-method" not in asked.headers:
            with self.arrived:
                assert self.arrived.wait_for(lambda: self._cancelled(asked), 20)
            yield _closing("200 OK", probed.answer(asked.id))
            return
        messages = probed.said(asked.id, how)
        if not messages:
            gone = asked.gone()
            # Only now: the count is another one after that wait.
            self.left += gone
        elif len(messages) == 1:
            yield _closing("200 OK", messages[0])
        else:
            yield STREAM + b"".join(map(event, messages))

    def _cancelled(self, asked: Asked) -> bool:
        own = [each.message for each in self.of("POST")]
        told = [each["params"] for each in own if name(each) == "notifications/cancelled"]
        return asked.message["id"] in [params["requestId"] for params in told]


def _closing(status: str, body: bytes, *headers: str) -> bytes:
    return whole(body, status, "Connection: close", *headers)


def _chunked(raw: bytes) -> list[bytes]:
    head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n"
    pieces = [b"1\r\n%c\r\n" % byte for byte in raw]
    return [head + b"Connection: close\r\n\r\n", *pieces, b"0\r\n\r\n"]


_HTML = "Content-Type: text/html"
_OOPS = _closing("500 Internal Server Error", b"<h1>Oops</h1>", _HTML)
FAULTS: dict[str, Callable[[bytes], Iterable[bytes]]] = {
    "broken": lambda id: [STREAM + event(probed.answer(id))[:-9]],
    "ended": lambda id: [STREAM + event(probed.NOTE)],
    "failing": lambda id: [_OOPS],
    "failing with an error": lambda id: [_closing("404 Not Found", probed.error(id))],
    "empty": lambda id: [_closing("202 Accepted", b"")],
    "other": lambda id: [_closing("200 OK", b"<h1>Hello</h1>", _HTML)],
    "streamed": lambda id: [
        STREAM + event(b"", "id: 1") + event(probed.said(id, "fine")[0], "id: 2")
    ],
    "chunked": lambda id: _chunked(probed.said(id, "fine")[0]),
}
