"""The ways in which a guard may stand before a server, and the messages of server and client.

Over each way calls are made alike. All that clients are sent is kept: nothing in it may be of the
proxy's own questions.
"""

import itertools
import json
import sys
import time
from collections.abc import Callable, Iterable, Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

from tests.faults import probed
from tests.faults.probed import name
from tests.faults.processes import until
from tests.faults.routes import META, closing, stateless
from tests.faults.sidecar import INITIALIZE, Client, Sidecar, call, keys, post, serving
from tests.faults.wrapper import OWN, Wrapped
from tests.raw_http import STREAM, RawRequest, RawServer, Reset, event, initialized, whole

GATE = Path(__file__).with_name("gate.yaml")
PROBED = (sys.executable, str(Path(__file__).with_name("probed.py")))
GUARDED = ("--allow-python", "--rules", str(GATE))
LIMITED = (*GUARDED, *keys(limits={"message": "1MB", "children": 1}))
"""For one server, which can say all that it has heard."""
QUESTION = b"abridge-"
"""What every id of the proxy's own questions has in it."""

SESSIONS, STATELESS = "sessions", "stateless"
STDIO, RUN_URL, SERVE_URL = "stdio", "run URL", f"serve URL, {STATELESS}"
COMMAND = (f"serve command, {SESSIONS}", f"serve command, {STATELESS}")
"""What a guard asks goes out as any request of its way does: before a URL one era shows it."""
STDIO_WAYS, HTTP_WAYS = (STDIO, RUN_URL), (SERVE_URL, *COMMAND)
ALL = (*STDIO_WAYS, *HTTP_WAYS)
CANCELLED = "notifications/cancelled"

Messages = list[dict[str, Any]]


class Pending(NamedTuple):
    """A call that was begun: what waits for its messages, and what lets its client go away."""

    messages: Callable[[], Messages]
    leave: Callable[[], None]


class StdioWay(Wrapped):
    """`run`: lines on stdin and stdout, before a command or a URL."""

    def __init__(self, *server: str, http: "Probed | None" = None) -> None:
        super().__init__([*OWN, "--max-message", "1MB", *GUARDED, *server])
        self.http = http
        self.client_bytes = bytearray()
        self.ask(INITIALIZE)
        self.open: dict[int, dict[str, Any] | None] = {}

    def _take(self, size: int) -> bytes:
        raw = super()._take(size)
        self.client_bytes += raw
        return raw

    def call(self, id: int, tool: str, **arguments: Any) -> Pending:
        """Begin a call."""
        self.open[id] = None
        self.write(call(id, tool, **params_of(arguments)) + b"\n")
        return Pending(partial(self._messages, id), self.kill)

    def _messages(self, id: int) -> Messages:
        others: Messages = []
        while self.open[id] is None:
            line = self.line()
            assert line, bytes(self.errors)
            message = json.loads(line)
            if "method" not in message and message["id"] in self.open:
                assert self.open[message["id"]] is None
                self.open[message["id"]] = message
            else:
                others.append(message)
        answer = self.open.pop(id)
        return [*others, answer] if answer else []


class HttpWay:
    """`serve`: a client of one era before a command or a URL."""

    def __init__(self, sidecar: Sidecar, era: str, http: "Probed | None" = None) -> None:
        self.sidecar = sidecar
        self.http = http
        self.client_bytes = bytearray()
        self.headers = None if era == STATELESS else [sidecar.begin()]
        server_messages(self)

    def call(self, id: int, tool: str, **arguments: Any) -> Pending:
        """Begin a call, on a connection of its own."""
        params = params_of(arguments, modern=self.headers is None)
        headers = stateless(tool) if self.headers is None else self.headers
        client = self.sidecar.client()
        client.send(post(call(id, tool, **params), *headers))
        return Pending(partial(self._messages, client), client.reset)

    def _messages(self, client: Client) -> Messages:
        with client:
            response = client.answer()
        self.client_bytes += repr(response).encode()
        assert response.ended
        return [json.loads(raw) for raw in response.messages]


Way = StdioWay | HttpWay


def server_messages(way: Way) -> Messages:
    """Return the messages that the server has read since the last time."""
    if way.http is not None:
        return way.http.new_messages()
    messages: Messages = json.loads(bytes.fromhex(text(way.call(0, "heard").messages()[-1])))
    return messages


def hears(way: Way, *names: str) -> Messages:
    """Wait for these messages at the server, and no others; return them in this order."""
    messages: Messages = []

    def enough() -> bool:
        messages.extend(server_messages(way))
        return len(messages) >= len(names)

    until(enough, detail=lambda: str(messages))
    # Over HTTP each message goes on its own.
    assert sorted(map(name, messages)) == sorted(names)
    return sorted(messages, key=lambda message: names.index(name(message)))


@contextmanager
def all_ways(*options: str) -> Iterator[dict[str, Way]]:
    """Start both servers behind all ways; at the end each wrapper must end well."""
    with ExitStack() as open:
        http = open.enter_context(Probed())
        url = open.enter_context(serving(*LIMITED, *options, http.url))
        command = open.enter_context(serving(*LIMITED, *options, "--", *PROBED))
        wires = {
            STDIO: open.enter_context(StdioWay(*options, "--", *PROBED)),
            RUN_URL: open.enter_context(StdioWay(*options, http.url, http=http)),
        }
        yield {
            **wires,
            SERVE_URL: HttpWay(url, STATELESS, http),
            **{name: HttpWay(command, name.partition(", ")[2]) for name in COMMAND},
        }
        for wire in wires.values():
            ended = wire.close()
            assert (ended.code, ended.rest) == (0, b"")
            assert b"Traceback" not in ended.stderr


def params_of(arguments: dict[str, Any], *, modern: bool = False) -> dict[str, Any]:
    """Return the params of a call; its `token` is no argument but what names its progress."""
    token = arguments.pop("token", None)
    meta = {**(META if modern else {}), **({} if token is None else {"progressToken": token})}
    return {"arguments": arguments, **({"_meta": meta} if meta else {})}


def text(answer: dict[str, Any]) -> str:
    [block] = answer["result"]["content"]
    string: str = block["text"]
    return string


class Probed(RawServer):
    """The same server over HTTP, which can be at fault in more ways."""

    def __init__(self) -> None:
        self.read = 0
        self.abandoned_queries = 0
        """How many of its questions were given up by the end of their connection."""
        self.sessions = itertools.count(1)
        super().__init__(self._answer)

    def new_messages(self) -> Messages:
        requests = self.of("POST")
        self.read, before = len(requests), self.read
        return [each.message for each in requests[before:]]

    def _answer(self, request: RawRequest) -> Iterator[bytes]:
        no = whole(b"", "405 No")
        for piece in self._responses(request) if request.method == "POST" else [no]:
            yield closing(piece) if piece.startswith(b"HTTP/1.1 ") else piece
        yield b""

    def _responses(self, request: RawRequest) -> Iterator[bytes]:
        message = request.message
        match name(message):
            case "initialize":
                session = f"Mcp-Session-Id: s-{next(self.sessions)}"
                yield whole(initialized(request.id), "200 OK", session)
            case "tools/list":
                yield whole(probed.tools(request.id))
            case "check":
                yield from self._checked(request, message["params"]["arguments"]["how"])
            case _ if "id" in message and "method" in message:
                yield whole(probed.answer(request.id))
            case _:
                yield whole(b"", "202 Accepted")

    def _checked(self, request: RawRequest, how: str) -> Iterator[bytes]:
        if how == "reset":
            raise Reset
        if how in FAULTS:
            yield from FAULTS[how](request.id)
            return
        if how == "slow":
            time.sleep(0.3)
            how = "fine"
        if how == "alive":
            yield STREAM
            yield from map(event, probed.tells(request.message))
            return
        if how == "belated" and "mcp-method" not in request.headers:
            with self.arrived:
                assert self.arrived.wait_for(lambda: self._cancelled(request), 20)
            yield whole(probed.answer(request.id))
            return
        messages = probed.check_responses(request.id, how)
        if not messages:
            closed = request.closed_by_client()
            # Only now: the count is another one after that wait.
            self.abandoned_queries += closed
        elif len(messages) == 1:
            yield whole(messages[0])
        else:
            yield STREAM + b"".join(map(event, messages))

    def _cancelled(self, request: RawRequest) -> bool:
        own = [each.message for each in self.of("POST")]
        notices = [each["params"] for each in own if name(each) == CANCELLED]
        return request.message["id"] in [params["requestId"] for params in notices]


_HTML = "Content-Type: text/html"
_OOPS = whole(b"<h1>Oops</h1>", "500 Internal Server Error", _HTML)
FAULTS: dict[str, Callable[[bytes], Iterable[bytes]]] = {
    "broken": lambda id: [STREAM + event(probed.answer(id))[:-9]],
    "ended": lambda id: [STREAM + event(probed.NOTE)],
    "failing": lambda id: [_OOPS],
    "failing with an error": lambda id: [whole(probed.error(id), "404 Not Found")],
    "empty": lambda id: [whole(b"", "202 Accepted")],
    "other": lambda id: [whole(b"<h1>Hello</h1>", "200 OK", _HTML)],
    "streamed": lambda id: [
        STREAM + event(b"", "id: 1") + event(probed.check_responses(id, "fine")[0], "id: 2")
    ],
}
