"""Stands beside a conversation of a client and a server that are both real.

It learns of the steps of the server and holds them if a test says so, and it sees, and cuts, the
connections of the client.
"""

import json
import re
import socket
import threading
from collections.abc import Callable
from typing import Any, NamedTuple, Self

from tests.raw_http import accepted, closed, parsed

SECONDS = 60.0
RESET = b"\1\0\0\0\0\0\0\0"  # SO_LINGER: close means reset
CHUNK = 1 << 16


class Witness:
    """Listens at `port` of 127.0.0.1; each connection says one line of JSON and waits for its end.

    `{"tell": what}` is remembered, `{"hold": key}` waits for `release(key)`, and `{"do": name}`
    calls what `does` has under that name.
    """

    def __init__(self) -> None:
        self.reports: list[str] = []
        self.does: dict[str, Callable[[], object]] = {}
        self._released: set[str] = set()
        self._news = threading.Condition()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        closed(self._listening)

    def release(self, key: str) -> None:
        """Let go on whoever is held by `key`, or will be."""
        with self._news:
            self._released.add(key)
            self._news.notify_all()

    def hears(self, what: str) -> bool:
        """Wait until `what` was told; False if it is not."""
        with self._news:
            return self._news.wait_for(lambda: what in self.reports, SECONDS)

    def _accept(self) -> None:
        for connection in accepted(self._listening):
            threading.Thread(target=self._listen, args=(connection,), daemon=True).start()

    def _listen(self, connection: socket.socket) -> None:
        with connection, connection.makefile("rb") as lines:
            message: dict[str, Any] = json.loads(lines.readline())
            if "do" in message:
                self.does[message["do"]]()
                return
            with self._news:
                if "tell" in message:
                    self.reports.append(message["tell"])
                    self._news.notify_all()
                else:
                    self._news.wait_for(lambda: message["hold"] in self._released, SECONDS)


class RelayedRequest(NamedTuple):
    """A request that passed; its answer begins with its status line, or is empty so far."""

    method: str
    headers: dict[str, str]
    answer: bytes

    @property
    def status(self) -> int | None:
        return int(self.answer.split(maxsplit=2)[1]) if self.answer else None


class _Connection:
    """Both ends of a connection that passes through, and what passed."""

    def __init__(self, client: socket.socket, server: socket.socket) -> None:
        self.ends = client, server
        self.request_bytes = bytearray()
        self.response_bytes = bytearray()


class Relay:
    """Passes connections on to a port, sees what is asked, and can cut them all.

    It reads HTTP/1.1 only as far as to find where requests and answers begin.
    """

    def __init__(self, port: int) -> None:
        self._to = port
        self._connections: list[_Connection] = []
        self._news = threading.Condition()
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port: int = self._listening.getsockname()[1]
        self.url = f"http://127.0.0.1:{self.port}/mcp"
        threading.Thread(target=self._accept, daemon=True).start()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        closed(self._listening)
        self.cut()

    def cut(self) -> None:
        """Reset every connection, at both ends."""
        with self._news:
            for connection in self._connections:
                for end in connection.ends:
                    if end.fileno() >= 0:
                        end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, RESET)
                        closed(end)

    def requests(self, method: str) -> list[RelayedRequest]:
        """Return the requests of a method, in order of their connections."""
        with self._news:
            return [each for all in map(_requests, self._connections) for each in all
                    if each.method == method]  # fmt: skip

    def resumed(self, text: bytes) -> RelayedRequest | None:
        """Return the request that resumed a stream on which `said` then came, None without one."""
        for each in self.requests("GET"):
            if "last-event-id" in each.headers and text in each.answer:
                return each
        return None

    def listens(self) -> None:
        """Wait until a GET was answered, so that there is a stream; raises TimeoutError."""
        with self._news:
            if not self._news.wait_for(
                lambda: any(each.status == 200 for each in self.requests("GET")), SECONDS
            ):
                raise TimeoutError("no GET stream was opened")

    def _accept(self) -> None:
        for client in accepted(self._listening):
            server = socket.create_connection(("127.0.0.1", self._to))
            connection = _Connection(client, server)
            with self._news:
                self._connections.append(connection)
            for args in (
                (client, server, connection.request_bytes),
                (server, client, connection.response_bytes),
            ):
                threading.Thread(target=self._pass, args=args, daemon=True).start()

    def _pass(self, source: socket.socket, target: socket.socket, log: bytearray) -> None:
        try:
            while chunk := source.recv(CHUNK):
                with self._news:
                    log += chunk
                    self._news.notify_all()
                target.sendall(chunk)
            target.shutdown(socket.SHUT_WR)
        except OSError:
            for end in source, target:
                closed(end)


_REQUEST = re.compile(rb"(GET|POST|DELETE) /mcp HTTP/1\.1\r\n(.*?)\r\n\r\n", re.DOTALL)
_ANSWERS = re.compile(rb"(?=HTTP/1\.1 [2-5]\d\d )")


def _requests(connection: _Connection) -> list[RelayedRequest]:
    """Return the requests of a connection; answers come in the same order."""
    requests = _REQUEST.findall(connection.request_bytes)
    _, *answers = _ANSWERS.split(bytes(connection.response_bytes))
    answers += [b""] * (len(requests) - len(answers))
    return [
        RelayedRequest(method.decode(), parsed(b"\r\n" + head)[1], answer)
        for (method, head), answer in zip(requests, answers, strict=True)
    ]
