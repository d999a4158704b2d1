"""A forward proxy on loopback, as companies have one: CONNECT, and requests with an absolute URL.

Every name is this machine to it, so that a server may have a name that nobody else can resolve.
"""

import json
import socket
import threading
from collections.abc import Iterator
from typing import Self
from urllib.parse import urlsplit

from tests.raw_http import (
    CHUNK,
    SECONDS,
    RawRequest,
    RawServer,
    accepted,
    closed,
    parsed,
    session,
    whole,
)

HOST = "mcp.example.test"
"""A name that only the proxy can resolve."""


class ForwardProxy:
    """Takes requests on a free port of 127.0.0.1; `refusal`, a status, is its answer to each."""

    def __init__(self, refusal: str = "") -> None:
        self.refusal = refusal
        self.requests: list[tuple[str, dict[str, str]]] = []
        """The first line of each request, and its headers with names in lower case."""
        self.listening = socket.create_server(("127.0.0.1", 0))
        self.port = self.listening.getsockname()[1]
        self.ends: list[socket.socket] = []
        threading.Thread(target=self._accept, daemon=True).start()

    def url(self, user: str = "") -> str:
        return f"http://{user}127.0.0.1:{self.port}"

    @property
    def targets(self) -> set[str]:
        """The methods and targets that it was asked for."""
        return {line.rpartition(" ")[0] for line, _ in self.requests}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for end in (self.listening, *self.ends):
            closed(end)

    def _accept(self) -> None:
        for client in accepted(self.listening):
            self.ends.append(client)
            threading.Thread(target=self._serve, args=(client,), daemon=True).start()

    def _serve(self, client: socket.socket) -> None:
        server = None
        try:
            raw = b""
            while True:
                while b"\r\n\r\n" not in raw:
                    raw += (chunk := client.recv(CHUNK))
                    if not chunk:
                        return
                head, _, rest = raw.partition(b"\r\n\r\n")
                first, headers = parsed(head)
                self.requests.append((first, headers))
                method, target, version = first.split(" ")
                if self.refusal:
                    client.sendall(whole(b"blocked by policy", self.refusal, "Connection: close"))
                    return
                url = urlsplit(f"//{target}" if method == "CONNECT" else target)
                if server is None:
                    server = socket.create_connection(("127.0.0.1", url.port or 80), SECONDS)
                    self.ends.append(server)
                    threading.Thread(target=_pump, args=(server, client), daemon=True).start()
                if method == "CONNECT":
                    client.sendall(b"HTTP/1.1 200 OK\r\n\r\n")
                    server.sendall(rest)
                    _pump(client, server)
                    return
                path = url._replace(scheme="", netloc="").geturl()
                others = [line for line in head.split(b"\r\n")[1:] if line[:6].lower() != b"proxy-"]
                size = int(headers.get("content-length", 0))
                while len(rest) < size:
                    rest += client.recv(CHUNK)
                start = f"{method} {path} {version}".encode()
                server.sendall(b"\r\n".join([start, *others, b"", b""]) + rest[:size])
                raw = rest[size:]
        except OSError:
            pass
        finally:
            for end in filter(None, (client, server)):
                closed(end)


def _pump(source: socket.socket, target: socket.socket) -> None:
    try:
        while chunk := source.recv(CHUNK):
            target.sendall(chunk)
    except OSError:
        pass
    finally:
        closed(target)


def tools(request: RawRequest) -> Iterator[bytes]:
    """Answer a session, with no tools."""
    if request.message.get("method") == "tools/list":
        answer = {"jsonrpc": "2.0", "id": request.message["id"], "result": {"tools": []}}
        yield whole(json.dumps(answer).encode())
    else:
        yield from session()(request)


def at(server: RawServer, scheme: str = "http") -> str:
    """Return the URL of a server by a name that only the proxy knows."""
    return f"{scheme}://{HOST}:{server.port}/mcp"
