"""An HTTP server that a test writes the answers of, byte by byte: no library in between."""

import json
import socket
import ssl
import threading
from collections.abc import Callable, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any, Self

import msgspec

CHUNK = 1 << 16
SECONDS = 60.0


class RawRequest(msgspec.Struct):
    """A request as it came; the names of its headers in lower case."""

    method: str
    path: str
    headers: dict[str, str]
    body: bytes
    connection: socket.socket

    @property
    def message(self) -> dict[str, Any]:
        """The body as JSON; {} without one."""
        return dict(json.loads(self.body)) if self.body else {}

    @property
    def id(self) -> bytes:
        """The id of the message, as it is spelled by json.dumps."""
        return json.dumps(self.message.get("id")).encode()

    def closed_by_client(self) -> bool:
        """Wait until the client closes the connection; False if it does not."""
        self.connection.settimeout(SECONDS)
        try:
            return self.connection.recv(1) == b""
        except ConnectionResetError:
            return True
        except TimeoutError:
            return False


Answer = Callable[[RawRequest], Iterator[bytes]]


class RawServer:
    """Serves on a free port of 127.0.0.1, or the one given; a thread for each connection.

    Each piece of `answer` is sent as it is. After `Connection: close` among the headers, or an
    empty piece, the connection is closed; an exception resets it. With a certificate it speaks TLS.
    """

    def __init__(self, answer: Answer, port: int = 0, certificate: Path | None = None) -> None:
        self.answer = answer
        self.requests: list[RawRequest] = []
        self.failures: list[BaseException] = []
        self.listening = socket.create_server(("127.0.0.1", port))
        self.port = self.listening.getsockname()[1]
        if certificate is not None:
            context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
            context.load_cert_chain(certificate)
            self.listening = context.wrap_socket(self.listening, server_side=True)
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        self.connections: list[socket.socket] = []
        self.arrived = threading.Condition()
        self.accepting = threading.Thread(target=self._accept, daemon=True)
        self.accepting.start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        closed(self.listening)
        for connection in self.connections:
            connection.close()
        self.accepting.join(SECONDS)
        if error is None:
            assert self.failures == []

    def wait(self, count: int, method: str = "") -> list[RawRequest]:
        """Return the requests of a method, or all, once there are so many of them."""
        with self.arrived:
            there = self.arrived.wait_for(lambda: len(self.of(method)) >= count, SECONDS)
            assert there, self.requests
            return self.of(method)

    def of(self, method: str) -> list[RawRequest]:
        return [request for request in self.requests if method in ("", request.method)]

    def _accept(self) -> None:
        for connection in accepted(self.listening):
            self.connections.append(connection)
            threading.Thread(target=self._serve, args=(connection,), daemon=True).start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            while (request := _read(connection)) is not None:
                with self.arrived:
                    self.requests.append(request)
                    self.arrived.notify_all()
                closing = False
                for piece in self.answer(request):
                    connection.sendall(piece)
                    closing |= not piece or b"connection: close" in piece[:4096].lower()
                if closing:
                    break
        except Reset:
            connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        except OSError:
            pass
        except BaseException as error:
            self.failures.append(error)
            raise
        finally:
            connection.close()


class Reset(Exception):
    """Raised by an answer: the connection is reset."""


def accepted(listening: socket.socket) -> Iterator[socket.socket]:
    """Yield connections until the listening socket is closed."""
    while True:
        try:
            yield listening.accept()[0]
        except OSError:
            return


def closed(end: socket.socket) -> None:
    """Close a socket so that whoever waits for it in another thread wakes up."""
    with suppress(OSError):
        end.shutdown(socket.SHUT_RDWR)
    end.close()


def _read(connection: socket.socket) -> RawRequest | None:
    raw = b""
    while b"\r\n\r\n" not in raw:
        chunk = connection.recv(CHUNK)
        if not chunk:
            return None
        raw += chunk
    head, _, body = raw.partition(b"\r\n\r\n")
    first, headers = parsed(head)
    method, path, _ = first.split(" ")
    while len(body) < int(headers.get("content-length", 0)):
        chunk = connection.recv(CHUNK)
        if not chunk:
            return None
        body += chunk
    return RawRequest(method, path, headers, body, connection)


def parsed(head: bytes) -> tuple[str, dict[str, str]]:
    """Return the first line of a head, and its headers with names in lower case."""
    first, *lines = head.decode("latin-1").split("\r\n")
    pairs = (line.partition(":") for line in lines)
    return first, {name.lower(): value.strip() for name, _, value in pairs}


def whole(body: bytes = b"", status: str = "200 OK", *headers: str) -> bytes:
    """Return an answer with its length, JSON unless a header says otherwise."""
    kind = [] if any("content-type" in header.lower() for header in headers) else [_JSON]
    lines = [f"HTTP/1.1 {status}", *(kind if body else []), *headers]
    return "\r\n".join([*lines, f"Content-Length: {len(body)}", "", ""]).encode() + body


_JSON = "Content-Type: application/json"
ACCEPTED = whole(b"", "202 Accepted")
STREAM = b"HTTP/1.1 200 OK\r\nContent-Type: text/event-stream\r\nConnection: close\r\n\r\n"
"""The head of an event stream, which ends with the connection."""


def event(data: bytes, *fields: str) -> bytes:
    """Return an event of a stream."""
    return "".join(f"{field}\n" for field in fields).encode() + b"data: " + data + b"\n\n"


def result(id: bytes, text: str = "ok") -> bytes:
    """Return the answer to a call."""
    block = json.dumps({"type": "text", "text": text}).encode()
    return b'{"jsonrpc":"2.0","id":' + id + b',"result":{"content":[' + block + b"]}}"


def initialized(id: bytes) -> bytes:
    """Return the answer to `initialize`."""
    server = {"name": "raw", "version": "1"}
    document = {"protocolVersion": "2025-11-25", "capabilities": {}, "serverInfo": server}
    return b'{"jsonrpc":"2.0","id":' + id + b',"result":' + json.dumps(document).encode() + b"}"


def always(piece: bytes) -> Answer:
    """Answer every request with the same."""

    def answer(request: RawRequest) -> Iterator[bytes]:
        yield piece

    return answer


def answering(request: RawRequest) -> Iterator[bytes]:
    """Answer a request with a result."""
    yield whole(result(request.id))


def session(rest: Answer = answering) -> Answer:
    """Answer the handshake and what else belongs to a session, and the rest by `rest`."""

    def answer(request: RawRequest) -> Iterator[bytes]:
        method = request.message.get("method")
        if method == "initialize":
            yield whole(initialized(request.id), "200 OK", "Mcp-Session-Id: s-1")
        elif method == "notifications/initialized":
            yield ACCEPTED
        elif request.method == "DELETE":
            yield whole()
        elif request.method == "GET" and "last-event-id" not in request.headers:
            yield whole(b"", "405 Method Not Allowed")
        else:
            yield from rest(request)

    return answer


INITIALIZE = b'{"jsonrpc":"2.0","id":0,"method":"initialize","params":{}}'
INITIALIZED = b'{"jsonrpc":"2.0","method":"notifications/initialized"}'
META = json.dumps({"io.modelcontextprotocol/protocolVersion": "2026-07-28"}).encode()


def call(id: bytes, name: str = "x", *, modern: bool = False) -> bytes:
    """Return a call of a tool, of either era."""
    meta = b',"_meta":' + META if modern else b""
    return b'{"jsonrpc":"2.0","id":%s,"method":"tools/call","params":{"name":"%s"%s}}' % (
        id,
        name.encode(),
        meta,
    )


def cancel(id: int) -> bytes:
    """Return the notification that a request is cancelled."""
    note = b'{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":%d}}'
    return note % id
