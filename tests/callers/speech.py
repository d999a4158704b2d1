"""What callers send, and whatever comes to them: every byte of it is kept."""

import json
import re
import select
import socket
from typing import Any, NamedTuple, Protocol

from tests.callers.server import Json
from tests.raw_http import parsed
from tests.wire import Wire

_CHUNK = 1 << 20


class Source(Protocol):
    """Where something can come to a caller from."""

    def raw(self) -> bytes:
        """Return all that has come."""

    def read(self, seconds: float) -> bool:
        """Wait for more; return False if there is none."""

    def messages(self) -> list[Json]:
        """Return the whole messages of it."""

    def close(self) -> None: ...


class Spoken:
    """The output of a wrapper."""

    def __init__(self, wire: Wire) -> None:
        self.wire = wire
        self._lines = bytearray()

    def raw(self) -> bytes:
        return b"%b%b%b" % (self._lines, self.wire.buffer, self.wire.errors)

    def read(self, seconds: float) -> bool:
        try:
            line = self.wire.line(seconds)
        except TimeoutError:
            return False
        self._lines += line
        return bool(line)

    def messages(self) -> list[Json]:
        return [message for line in self._lines.splitlines() for message in _messages(line)]

    def close(self) -> None:
        self.wire.kill()


class Response(NamedTuple):
    """An answer so far: status 0 before its head, `whole` once it has ended as it should."""

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool


class Exchange:
    """A request over HTTP, on a connection of its own."""

    def __init__(self, port: int, request: bytes) -> None:
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._bytes = bytearray()
        self.over = False
        self._socket.sendall(request)

    def raw(self) -> bytes:
        # Chunks may cut a word.
        return bytes(self._bytes) + self.response().body

    def read(self, seconds: float) -> bool:
        if self.over or not select.select([self._socket], [], [], seconds)[0]:
            return False
        try:
            chunk = self._socket.recv(_CHUNK)
        except ConnectionResetError:
            chunk = b""
        self._bytes += chunk
        self.over = not chunk or self.response().whole
        return bool(chunk)

    def response(self) -> Response:
        head, end, rest = bytes(self._bytes).partition(b"\r\n\r\n")
        if not end:
            return Response(0, {}, b"", False)
        first, headers = parsed(head)
        status = int(first.split()[1])
        if "chunked" not in headers.get("transfer-encoding", ""):
            size = int(headers.get("content-length", 0 if status == 204 else 1 << 60))
            return Response(status, headers, rest, len(rest) >= size)
        body = b""
        while (match := re.match(rb"([0-9a-f]+)\r\n", rest, re.IGNORECASE)) is not None:
            start, size = match.end(), int(match[1], 16)
            body += rest[start : start + size]
            if not size or len(rest) < start + size + 2:
                return Response(status, headers, body, not size)
            rest = rest[start + size + 2 :]
        return Response(status, headers, body, False)

    def events(self, field: str) -> list[bytes]:
        """Return the values of a field in the whole events so far."""
        events, _, _ = self.response().body.replace(b"\r\n", b"\n").rpartition(b"\n\n")
        return re.findall(rb"^%b: (.+)$" % field.encode(), events, re.MULTILINE)

    def messages(self) -> list[Json]:
        return [
            message
            for raw in self.events("data") or [self.response().body]
            for message in _messages(raw)
        ]

    def close(self) -> None:
        self.over = True
        self._socket.close()


def _messages(raw: bytes) -> list[Any]:
    try:
        value = json.loads(raw)
    except ValueError:
        return []
    return [each for each in (value if isinstance(value, list) else [value]) if each]
