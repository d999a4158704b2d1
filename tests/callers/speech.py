"""The sources of all that comes to callers: every byte of it is kept."""

import json
import re
import select
import socket
from contextlib import suppress
from time import monotonic
from typing import Any, NamedTuple

from tests.callers.server import Json
from tests.raw_http import parsed
from tests.wire import Wire

_CHUNK = 1 << 20
_LOOK = 0.02  # seconds for each of several sources


class Spoken:
    """The output of a wrapper."""

    def __init__(self, wire: Wire) -> None:
        self.over = False
        self._wire = wire
        self._lines = bytearray()

    def raw(self) -> bytes:
        return bytes(self._lines + self._wire.buffer + self._wire.errors)

    def read(self, seconds: float) -> bool:
        """Wait for more; return False if there is none."""
        line = b""
        if not self.over:
            with suppress(TimeoutError):
                line = self._wire.line(seconds)
                self.over = not line
        self._lines += line
        return bool(line)

    def messages(self) -> list[Json]:
        return _messages(self._lines.splitlines())

    def close(self) -> None:
        self.over = True
        self._wire.kill()


class Response(NamedTuple):
    """An answer over HTTP so far: status 0 before its head, `whole` if it came to its end."""

    status: int
    headers: dict[str, str]
    body: bytes
    whole: bool


class Exchange:
    """A request over HTTP, on a connection of its own, and what came for it."""

    def __init__(self, port: int, request: bytes) -> None:
        self.over = False
        self._bytes = b""
        self._socket = socket.create_connection(("127.0.0.1", port))
        self._socket.sendall(request)

    def raw(self) -> bytes:
        return self._bytes + self.response().body  # chunks may cut a word

    def read(self, seconds: float) -> bool:
        """Wait for more; return False if there is none."""
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
        head, end, rest = self._bytes.partition(b"\r\n\r\n")
        if not end:
            return Response(0, {}, b"", False)
        first, headers = parsed(head)
        status = int(first.split()[1])
        if "chunked" not in headers.get("transfer-encoding", ""):
            size = int(headers.get("content-length", 0 if status == 204 else 1 << 60))
            return Response(status, headers, rest, len(rest) >= size)
        body, whole = b"", False
        while not whole and (match := re.match(rb"([0-9a-fA-F]+)\r\n", rest)):
            start, size = match.end(), int(match[1], 16)
            body += rest[start : start + size]
            rest, whole = rest[start + size + 2 :], not size
        return Response(status, headers, body, whole)

    def events(self, field: str) -> list[bytes]:
        """Return the values of a field in the whole events so far."""
        events, _, _ = self.response().body.replace(b"\r\n", b"\n").rpartition(b"\n\n")
        return re.findall(rb"^%b: (.+)$" % field.encode(), events, re.MULTILINE)

    def messages(self) -> list[Json]:
        return _messages(self.events("data") or [self.response().body])

    def close(self) -> None:
        self.over = True
        self._socket.close()


Source = Spoken | Exchange


def _messages(parts: list[Any]) -> list[Json]:
    messages = []
    for part in parts:
        try:
            messages.append(json.loads(part))
        except ValueError:
            continue
    return [message for message in messages if isinstance(message, dict)]


def answer_in(sources: list[Source], id: Any, seconds: float) -> Json | None:
    """Wait for the answer to a request, or its refusal; None if there is none in time."""
    end = monotonic() + seconds
    first = sources[0]
    while True:
        for source in sources:
            while source.read(0):
                pass
        messages = [each for source in sources for each in source.messages()]
        answers = [each for each in messages if {"result", "error"} & each.keys()]
        # An answer to nobody may be all that came.
        for number in (id, None) if first.over and len(sources) == 1 else (id,):
            for answer in answers:
                if answer.get("id") == number:
                    return answer
        if isinstance(first, Exchange) and first.response().status >= 400 and first.over:
            return {"error": {"message": f"status {first.response().status}"}}
        if isinstance(first, Spoken) and first.over:
            return {"error": {"message": "the wrapper ended"}}
        if monotonic() >= end or (first.over and len(sources) == 1):
            return None
        for source in sources:
            source.read(_LOOK)
