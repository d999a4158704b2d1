"""A client of HTTP that looks at bytes only: one connection, which it keeps."""

import re
import socket
from http.client import HTTPResponse
from io import BytesIO
from time import perf_counter
from typing import Any, NamedTuple, Self

from tests.benchmarks.raw import INITIALIZE, INITIALIZED, MEMORY, TOOLS_LIST

CHUNK = 1 << 18  # bytes of a socket that asyncio reads at once
LONGEST = 300.0  # seconds
JSON = "application/json"
STREAM = "text/event-stream"
BOTH = f"{JSON}, {STREAM}"
LAST_CHUNK = b"\r\n0\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
ACCEPT = re.compile(rb"\r\nAccept: [^\r]*")


class WrongAnswer(Exception):
    """An answer that is not what was asked for: its status, or its beginning."""


class Answer(NamedTuple):
    """The answer to a request: `raw` is good until the next one, `first` when its body began."""

    raw: memoryview
    first: float

    def read(self) -> HTTPResponse:
        """Return the response, of which the body is to be read."""
        source: Any = type("Source", (), {"makefile": lambda _, mode: BytesIO(self.raw)})()
        response = HTTPResponse(source)
        response.begin()
        return response

    def message(self) -> bytes:
        """Return the last message of the body. Raises ValueError or HTTPException if it is cut."""
        response = self.read()
        body = response.read()
        if STREAM not in response.getheader("Content-Type", ""):
            return body
        if not body.endswith(b"\n\n"):
            raise ValueError(f"an event without its end: {body[-100:]!r}")
        events = [event for event in body.split(b"\n\n") if b"data: {" in event]
        return events[-1].partition(b"data: ")[2]


class HttpClient:
    """A connection to a port of this machine, and the session that it is in.

    Answers are read into `memory`: two threads must not share it. Raises EOFError if the
    connection ends before an answer does, and WrongAnswer.
    """

    def __init__(self, port: int, accept: str = BOTH, memory: memoryview = MEMORY) -> None:
        self.socket = socket.create_connection(("127.0.0.1", port), timeout=LONGEST)
        self.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        lines = [
            "POST /mcp HTTP/1.1",
            f"Host: 127.0.0.1:{port}",
            f"Accept: {accept}",
            "Content-Type: application/json",
            "User-Agent: benchmark",
        ]
        self.head = ("\r\n".join(lines) + "\r\nContent-Length: ").encode()
        self.memory = memory

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    def connect(self) -> None:
        session = self.ask(INITIALIZE).read().getheader("Mcp-Session-Id")
        own = "Mcp-Protocol-Version: 2025-11-25\r\n"
        own += f"Mcp-Session-Id: {session}\r\n" if session else ""
        self.head = self.head.replace(b"Content-Length: ", own.encode() + b"Content-Length: ")
        self.call(INITIALIZED)
        self.call(TOOLS_LIST)

    def wants(self, accept: str) -> None:
        self.head = ACCEPT.sub(f"\r\nAccept: {accept}".encode(), self.head, count=1)

    def call(self, request: bytes) -> memoryview:
        return self.ask(request).raw

    def fetch(self, request: bytes) -> bytes:
        return self.ask(request).message().strip()

    def ask(self, request: bytes) -> Answer:
        self.socket.sendall(b"%s%d\r\n\r\n%s" % (self.head, len(request), request))
        memory, size, head, first, ends = self.memory, 0, 0, 0.0, None
        while True:
            come = self.socket.recv_into(memory[size : size + CHUNK])
            if not come:
                raise EOFError(f"the connection ended after {size} bytes of an answer")
            size += come
            if not head:
                head = bytes(memory[:size]).find(b"\r\n\r\n") + 4
                if head < 4:
                    head = 0
                    continue
                length = LENGTH.search(memory[:head])
                ends = None if length is None else head + int(length[1])
                if length is None and CHUNKED.search(memory[:head]) is None:
                    ends = head  # as an answer of status 204
            if not first and size > head:
                first = perf_counter()
            if size == ends or (ends is None and memory[size - 7 : size] == LAST_CHUNK):
                if not 200 <= (status := int(memory[9:12])) < 300:
                    raise WrongAnswer(f"HTTP {status}")
                return Answer(memory[:size], first or perf_counter())

    def close(self) -> None:
        self.socket.close()
