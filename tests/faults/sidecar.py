"""The sidecar as a real process, a raw client of it, and what must hold whatever happened (Linux).

No library in between: requests are bytes, answers are read from the socket as they come.
"""

import atexit
import json
import math
import re
import shutil
import signal
import socket
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from functools import cached_property
from itertools import count
from pathlib import Path
from tempfile import mkdtemp
from time import monotonic
from typing import Any, NamedTuple, Self
from urllib.parse import urlsplit

import msgspec

from tests.faults.forks import PROGRAM, start
from tests.faults.processes import LIFE, SECONDS, Process, processes, until
from tests.faults.scale import scaled

ROOT = Path(__file__).resolve().parents[2]
CHUNK = 1 << 16
ENDED = 1 if sys.platform == "win32" else 0
"""The exit code of a sidecar that is told to end, which Windows does not let it do in order."""
BOTH = "Accept: application/json, text/event-stream"
EVENTS = "Accept: text/event-stream"
JSON = "Content-Type: application/json"
OPEN = "mcp_abridge_open_requests"


class Resources(NamedTuple):
    """The resources of a process: open requests by its own count, descriptors, children."""

    requests: int
    descriptors: int
    children: int


class RawResponse(msgspec.Struct):
    """An answer as it came: `ended` says that its body came to its proper end."""

    status: int
    reason: str
    headers: list[tuple[str, str]]
    body: bytes
    ended: bool

    def all(self, name: str) -> list[str]:
        return [value for each, value in self.headers if each.lower() == name]

    def one(self, name: str) -> str:
        [value] = self.all(name)
        return value

    @property
    def fields(self) -> dict[str, str]:
        """The headers by their names in lower case."""
        return {name.lower(): value for name, value in self.headers}

    @property
    def json(self) -> Any:
        return json.loads(self.body)

    @property
    def error(self) -> str:
        message: str = self.json["error"]["message"]
        return message

    @property
    def events(self) -> list[bytes]:
        """Return the data of each event of the body; no event here has data of several lines."""
        lines = self.body.replace(b"\r\n", b"\n").split(b"\n")
        return [line[6:] for line in lines if line.startswith(b"data: ")]

    @property
    def messages(self) -> list[bytes]:
        """The messages of the body, be it an event stream or JSON."""
        return [data for data in self.events if data] or [self.body]


class Client:
    """One connection to the sidecar."""

    def __init__(self, port: int, seconds: float = SECONDS) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), seconds)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        self.buffer = bytearray()
        self.seconds = seconds
        self.end = math.inf

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.socket.close()

    def send(self, raw: bytes) -> None:
        self.socket.sendall(raw)

    def reset(self) -> None:
        """Go away without a word."""
        self.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        self.socket.close()

    def more(self) -> bool:
        """Read on; False at the end. Raises TimeoutError if an answer takes too long."""
        # What keeps a connection alive comes again and again.
        if monotonic() > self.end:
            raise TimeoutError(f"no whole answer in {self.seconds:g} s: {bytes(self.buffer)!r}")
        try:
            chunk = self.socket.recv(CHUNK * 16)
        except ConnectionResetError:
            return False
        self.buffer += chunk
        return bool(chunk)

    def take(self, size: int) -> bytes:
        raw = bytes(self.buffer[:size])
        del self.buffer[:size]
        return raw

    def until(self, raw: bytes) -> bytes:
        """Read up to and with `raw`; raises EOFError."""
        while (at := self.buffer.find(raw)) < 0:
            if not self.more():
                raise EOFError(f"no {raw!r} in {bytes(self.buffer)!r}")
        return self.take(at + len(raw))

    def rest(self) -> bytes:
        while self.more():
            pass
        return self.take(len(self.buffer))

    def head(self) -> RawResponse:
        first, *lines = self.until(b"\r\n\r\n").decode("latin-1").strip().split("\r\n")
        _, status, reason = first.split(" ", 2)
        pairs = [line.partition(": ")[::2] for line in lines]
        return RawResponse(int(status), reason, pairs, b"", False)

    def answer(self, *, bodiless: bool = False) -> RawResponse:
        """Read one whole answer, which has no body if it is `bodiless`."""
        self.end = monotonic() + self.seconds
        response = self.head()
        if bodiless or response.status in (204, 304):
            response.ended = True
        elif response.all("transfer-encoding"):
            response.body, response.ended = self._chunks()
        elif response.all("content-length"):
            size = int(response.one("content-length"))
            while len(self.buffer) < size and self.more():
                pass
            response.ended = len(self.buffer) >= size
            response.body = self.take(size)
        else:
            response.body, response.ended = self.rest(), True
        self.end = math.inf
        return response

    def _chunks(self) -> tuple[bytes, bool]:
        parts: list[bytes] = []
        try:
            while size := int(self.until(b"\r\n"), 16):
                while len(self.buffer) < size + 2:
                    if not self.more():
                        return b"".join(parts), False
                parts.append(self.take(size + 2)[:-2])
            self.until(b"\r\n")
        except EOFError:
            return b"".join(parts), False
        return b"".join(parts), True


class Sidecar(Process):
    """`serve` as a process: the URLs of its routes, the lines of its log, and a raw client of it.

    It listens on a free port of 127.0.0.1 unless told otherwise, and ends on leaving. Every wait
    has a deadline; what was logged so far is in the AssertionError that comes then.
    """

    def __init__(
        self,
        *arguments: str,
        env: Mapping[str, str] | None = None,
        program: Sequence[str] = PROGRAM,
    ) -> None:
        super().__init__(start(command(*arguments, program=program), env))
        self.errors = bytearray()
        self.lines: list[dict[str, Any]] = []
        self.cursor = 0
        self.drain = threading.Thread(target=self._drain, daemon=True)
        self.drain.start()

    def _drain(self) -> None:
        assert self.process.stderr is not None
        with self.process.stderr as stderr:
            for line in stderr:
                self.errors += line
                # Other lines are those of servers.
                if line.startswith(b'{"time":'):
                    self.lines.append(json.loads(line))

    def __enter__(self) -> Self:
        try:
            self.events("serving")
        except AssertionError:
            self.process.kill()
            raise
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            if error is None and self.process.poll() is None:
                children = self.children
                self.process.send_signal(signal.SIGTERM)
                assert self.process.wait(SECONDS) == ENDED, self.errors.decode()
                until(
                    lambda: not children & {pid for pid, _, _ in processes()},
                    LIFE if ENDED else 0,
                )
        finally:
            self.process.kill()
            self.process.wait()
            self.drain.join(SECONDS)

    @cached_property
    def port(self) -> int:
        return urlsplit(self.events("serving")[0]["url"]).port or 0

    def url(self, path: str = "/mcp") -> str:
        """Return the URL of the route with this path, as soon as it is served."""
        [line] = self._await(lambda line: urlsplit(line.get("url", "")).path == path, 1)
        return str(line["url"])

    def client(self, seconds: float = SECONDS) -> Client:
        return Client(self.port, seconds)

    def ask(self, raw: bytes, seconds: float = SECONDS) -> RawResponse:
        """Send one request on a connection of its own and read its whole answer."""
        with self.client(seconds) as client:
            client.send(raw)
            return client.answer()

    def post(self, body: bytes, *headers: str, path: str = "/mcp") -> RawResponse:
        return self.ask(post(body, *headers, path=path))

    def begin(self) -> str:
        """Begin a session and return its header."""
        response = self.post(INITIALIZE)
        assert response.status == 200, response
        return f"Mcp-Session-Id: {response.one('mcp-session-id')}"

    # The log

    def events(self, event: str, count: int = 1, **fields: Any) -> list[dict[str, Any]]:
        """Return the lines of an event with these fields, once there are so many of them."""
        expected = {"event": event, **fields}.items()
        return self._await(lambda line: expected <= line.items(), count)

    def _await(
        self, condition: Callable[[dict[str, Any]], bool], count: int
    ) -> list[dict[str, Any]]:
        lines: list[dict[str, Any]] = []

        def enough() -> bool:
            over = not self.drain.is_alive()
            lines[:] = filter(condition, tuple(self.lines))
            return over or len(lines) >= count

        until(enough, detail=self.errors.decode)
        assert len(lines) >= count, self.errors.decode()
        return lines

    def messages(self) -> list[str]:
        """Return the messages of the log so far."""
        return [line["message"] for line in tuple(self.lines) if "message" in line]

    def requests(self, count: int = 1) -> list[dict[str, Any]]:
        """Return the log's next so many lines about requests."""
        lines = self.events("request", self.cursor + count)[self.cursor : self.cursor + count]
        self.cursor += count
        return lines

    def skip(self) -> None:
        """Let all lines about requests so far be."""
        self.cursor = len(self.events("request", 0))

    def failures(self, count: int = 1) -> list[str]:
        """Return the failures in the log since the last time, at least so many."""
        failures: list[str] = []

        def enough() -> bool:
            lines = self.events("request", 0)[self.cursor :]
            failures[:] = [line["failure"] for line in lines if line.get("failure")]
            self.cursor += len(lines) if len(failures) >= count else 0
            return len(failures) >= count

        until(enough)
        return failures

    # Resources

    @property
    def resources(self) -> Resources:
        """Count the resources now."""
        counts: list[Resources] = []

        def counted() -> bool:
            # Counted while this connection is open, whose end the sidecar may not see at once.
            with self.client() as client:
                client.send(get("/metrics"))
                # If memory is short there may be none for the figures, nor for an error.
                with suppress(EOFError):
                    response = client.answer()
                    requests = re.findall(rf"^{OPEN} (\d+)", response.body.decode(), re.MULTILINE)
                    assert requests or response.status == 500, response
                    counts.extend(
                        Resources(int(number), self.descriptors, len(self.children))
                        for number in requests
                    )
            return bool(counts)

        until(counted)
        return counts[0]

    def settles(self, before: Resources, seconds: float = SECONDS) -> None:
        """Wait until there are no more resources in use than `before`."""
        last = before

        def no_more() -> bool:
            nonlocal last
            last = self.resources
            return all(now <= then for now, then in zip(last, before, strict=True))

        until(no_more, seconds, lambda: f"{last} is left of {before}")


def log_messages(errors: bytes) -> list[str]:
    """Return the messages of a log, each with its level unless that is info."""
    lines = [json.loads(line) for line in errors.split(b"\n") if line.startswith(b'{"time":')]
    return [
        line["message"] if line["level"] == "info" else f"{line['level']}: {line['message']}"
        for line in lines
        if "message" in line
    ]


@contextmanager
def soon(seconds: float = 1.0) -> Iterator[None]:
    """See to it that something takes no longer; `make test` may run where much else does."""
    start = monotonic()
    yield
    took = monotonic() - start
    assert took < seconds * scaled(30, 1), f"it took {took:.3f} seconds, {seconds:g} are promised"


@contextmanager
def serving(
    *arguments: str, env: Mapping[str, str] | None = None, program: Sequence[str] = PROGRAM
) -> Iterator[Sidecar]:
    """Start a sidecar without a ledger, and without rules unless the test brings its own."""
    with Sidecar(*bare(*arguments), env=env, program=program) as sidecar:
        yield sidecar
    assert b"Traceback" not in sidecar.errors, sidecar.errors.decode()


def bare(*arguments: str) -> list[str]:
    own = ["--ledger", "off"]
    own += [] if {"--rules", "--config"} & set(arguments) else ["--rules", "none"]
    return [*own, *arguments]


def command(*arguments: str, program: Sequence[str] = PROGRAM) -> list[str]:
    listen = [] if "--listen" in arguments else ["--listen", "127.0.0.1:0"]
    return [*program, "serve", "--log-format", "json", *listen, *arguments]


_FOLDER = mkdtemp()
atexit.register(shutil.rmtree, _FOLDER)
_NUMBERS = count()


def keys(**top: Any) -> tuple[str, str]:
    """Return the flag for a configuration that has these keys, and rules that touch nothing."""
    file = Path(_FOLDER, f"{next(_NUMBERS)}.yaml")
    file.write_text(json.dumps({"version": 1, "rules": "none", **top}))
    return "--config", str(file)


def request(method: str, path: str, *headers: str, body: bytes | None = None) -> bytes:
    """Return a request; required headers are added if they are missing."""
    names = {header.partition(":")[0].lower() for header in headers}
    lines = [f"{method} {path} HTTP/1.1"]
    if "host" not in names:
        lines.append("Host: localhost")
    if body is not None and not {"content-length", "transfer-encoding"} & names:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, *headers, "", ""]).encode("latin-1") + (body or b"")


def post(body: bytes, *headers: str, path: str = "/mcp") -> bytes:
    names = {header.partition(":")[0].lower() for header in headers}
    more = [BOTH] if "accept" not in names else []
    return request("POST", path, *more, JSON, *headers, body=body)


def get(path: str = "/mcp", *headers: str) -> bytes:
    return request("GET", path, *headers)


def call(id: int | str, name: str = "ok", **params: Any) -> bytes:
    own = {"name": name, **params}
    return compact({"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": own})


def compact(value: Any) -> bytes:
    return json.dumps(value, separators=(",", ":")).encode()


INITIALIZE = compact(
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "raw", "version": "1"},
        },
    }
)
