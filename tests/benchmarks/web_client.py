"""A client of HTTP that looks at bytes only: one connection, which it keeps."""

import re
import socket
from time import perf_counter
from typing import Self

from tests.benchmarks.raw import INITIALIZE, INITIALIZED, LONGEST, MEMORY, TOOLS_LIST

CHUNK = 1 << 18  # bytes of a socket that asyncio reads at once
BOTH = "application/json, text/event-stream"
JSON = "application/json"
STREAM = "text/event-stream"
LAST_CHUNK = b"\r\n0\r\n\r\n"
LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
CHUNKED = re.compile(rb"\r\ntransfer-encoding: *chunked", re.IGNORECASE)
ACCEPT = re.compile(rb"\r\nAccept: [^\r]*")
SESSION = re.compile(rb"\r\nmcp-session-id: *([^\r]+)", re.IGNORECASE)


class WrongAnswer(Exception):
    """An answer that is not what was asked for: its status, or its beginning."""


class Answer:
    """What came for one request: `raw` is good until the next one, `first` when its body began."""

    def __init__(self, raw: memoryview, head: int, first: float) -> None:
        self.raw = raw
        self.first = first
        self._head = head

    @property
    def status(self) -> int:
        return int(self.raw[9:12])

    @property
    def head(self) -> bytes:
        return bytes(self.raw[: self._head])

    def message(self) -> bytes:
        """Return the last message of the body. Raises ValueError where its frame is broken."""
        body = bytes(self.raw[self._head :])
        if CHUNKED.search(self.head):
            body = unchunked(body)
        if STREAM.encode() not in self.head:
            return body
        if not body.endswith(b"\n\n"):
            raise ValueError(f"an event without its end: {body[-100:]!r}")
        events = [event for event in body.split(b"\n\n") if b"data: {" in event]
        return events[-1].partition(b"data: ")[2]


def unchunked(body: bytes) -> bytes:
    """Return what is in the chunks of a body. Raises ValueError where they are broken."""
    pieces: list[bytes] = []
    at = 0
    while True:
        size, found, _ = body[at : at + 20].partition(b"\r\n")
        length = int(size, 16)
        start = at + len(size) + len(found)
        at = start + length + 2
        if body[at - 2 : at] != b"\r\n":
            raise ValueError(f"a chunk without its end: {body[at - 20 : at]!r}")
        if not length:
            return b"".join(pieces)
        pieces.append(body[start : start + length])


class Client:
    """A connection to a port of this machine, and the session that it is in.

    Answers are read into `memory`: two threads must not share it. Raises EOFError where the
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
        answer = self.ask(INITIALIZE)
        said = b"Mcp-Protocol-Version: 2025-11-25\r\n"
        found = SESSION.search(answer.head)
        if found is not None:
            said += b"Mcp-Session-Id: " + found[1] + b"\r\n"
        self.head = self.head.replace(b"Content-Length: ", said + b"Content-Length: ")
        self.call(INITIALIZED)
        self.call(TOOLS_LIST)

    def wants(self, accept: str) -> None:
        self.head = ACCEPT.sub(f"\r\nAccept: {accept}".encode(), self.head, count=1)

    def call(self, request: bytes) -> memoryview:
        return self.ask(request).raw

    def answer(self, request: bytes) -> bytes:
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
                found = LENGTH.search(memory[:head])
                ends = None if found is None else head + int(found[1])
                if found is None and CHUNKED.search(memory[:head]) is None:
                    ends = head  # as an answer of status 204
            if not first and size > head:
                first = perf_counter()
            if size == ends or (ends is None and memory[size - 7 : size] == LAST_CHUNK):
                answer = Answer(memory[:size], head, first or perf_counter())
                if not 200 <= answer.status < 300:
                    raise WrongAnswer(f"HTTP {answer.status}")
                return answer

    def close(self) -> None:
        self.socket.close()
