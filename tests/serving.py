"""Servers over HTTP and the sidecar in front of them: real processes on free ports, and their ends.

`upstream` starts a server that takes `--http PORT`, `Sidecar` the proxy: it listens on port 0, and
the real one is read from the line that it says when it starts. `ask` speaks HTTP to either.
`FRONTS` are the ways to put the proxy before a server's command, stdio among them.
"""

import json
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, closing, contextmanager, suppress
from functools import partial
from http.client import HTTPConnection, HTTPResponse
from pathlib import Path
from typing import Any, Self
from urllib.parse import urlsplit

import msgspec

from tests.conformance import suite
from tests.faults.processes import until
from tests.python_client import Mode, PythonClient, connected, reaching
from tests.wrapped import START, wrapped

SECONDS = 60.0


@contextmanager
def upstream(command: Sequence[str], log: Path) -> Iterator[str]:
    """Start a server with `--http` and a free port; yield its origin. It writes to `log`."""
    port = suite.free_port()
    with suite.serving([*command, "--http", str(port)], port, log, os.environ):
        yield f"http://127.0.0.1:{port}"


class Sidecar:
    """`serve` as a process: where its routes are, and what it has logged. It ends on leaving.

    It listens on a free port of 127.0.0.1 unless told otherwise. Every wait has a deadline; what
    was logged so far is in the AssertionError that comes then.
    """

    def __init__(self, *arguments: str, env: Mapping[str, str] | None = None) -> None:
        options = ["--log-format", "json", "--listen", "127.0.0.1:0"]
        self.process = subprocess.Popen(
            [sys.executable, "-c", START, "serve", *options, *arguments],
            env={**os.environ, **(env or {})},
            stdin=subprocess.DEVNULL,
            stderr=subprocess.PIPE,
            start_new_session=True,
        )
        self._lines: list[bytes] = []
        self._drain = threading.Thread(target=self._read, daemon=True)
        self._drain.start()

    def _read(self) -> None:
        assert self.process.stderr
        with self.process.stderr as said:
            for line in said:
                self._lines.append(line)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, kind: object, error: object, trace: object) -> None:
        try:
            self.process.send_signal(signal.SIGTERM)
            code = self.process.wait(SECONDS)
        finally:
            with suppress(ProcessLookupError):  # nothing is left of the group, as it should be
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
            self._drain.join(SECONDS)
        if error is None:
            assert code == 0, self.log.decode()

    @property
    def log(self) -> bytes:
        """All that it has said so far."""
        return b"".join(self._lines)

    def said(self, event: str, count: int = 1, **fields: Any) -> list[dict[str, Any]]:
        """Return the lines of an event with these fields, once there are so many of them."""
        return self._await(lambda line: {"event": event, **fields}.items() <= line.items(), count)

    def url(self, path: str = "/mcp") -> str:
        """Return where the route with this path is, as soon as it is served."""
        [line] = self._await(lambda line: urlsplit(line.get("url", "")).path == path, 1)
        return str(line["url"])

    def _await(self, wanted: Callable[[dict[str, Any]], bool], count: int) -> list[dict[str, Any]]:
        found: list[dict[str, Any]] = []

        def enough() -> bool:
            found[:] = filter(wanted, map(json.loads, tuple(self._lines)))
            return len(found) >= count or not self._drain.is_alive()

        until(enough, said=lambda: self.log.decode())
        assert len(found) >= count, self.log.decode()
        return found


class Told(msgspec.Struct, frozen=True):
    """An answer as it came: names of headers in lower case."""

    status: int
    headers: dict[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


JSON = {"Content-Type": "application/json"}


def ask(
    url: str, body: bytes | None = None, method: str = "", headers: Mapping[str, str] = JSON
) -> Told:
    """Send one request with these headers and no others; return the whole answer.

    Without a body it is a GET.
    """
    with asked(url, body, method, headers) as response:
        named = {name.lower(): value for name, value in response.getheaders()}
        return Told(response.status, named, response.read())


@contextmanager
def asked(
    url: str, body: bytes | None = None, method: str = "", headers: Mapping[str, str] = JSON
) -> Iterator[HTTPResponse]:
    """Send one request; yield its answer as it begins. Leaving closes the connection."""
    to = urlsplit(url)
    with closing(HTTPConnection(to.netloc, timeout=SECONDS)) as connection:
        verb = method or ("GET" if body is None else "POST")
        connection.putrequest(verb, to.path, skip_accept_encoding=True)
        length = {} if body is None else {"Content-Length": str(len(body))}
        for name, value in {**headers, **length}.items():
            connection.putheader(name, value)
        connection.endheaders(body)
        with connection.getresponse() as response:
            yield response


class Front(msgspec.Struct, frozen=True):
    """The proxy before a server: how clients connect, and where the server itself is, if it is.

    Over stdio each client has a proxy and a server of its own.
    """

    connect: Callable[[Mode], AbstractContextManager[PythonClient]]
    direct: str | None = None


@contextmanager
def over_stdio(
    server: Sequence[str], rules: Sequence[Path], folder: Path, *options: str
) -> Iterator[Front]:
    """Wrap the server's command."""

    def connect(mode: Mode) -> AbstractContextManager[PythonClient]:
        return connected(wrapped(server, *_rules(rules), *options), mode=mode)

    yield Front(connect)


@contextmanager
def over_http(
    server: Sequence[str], rules: Sequence[Path], folder: Path, *options: str
) -> Iterator[Front]:
    """Put the sidecar before the server's own HTTP."""
    with (
        upstream(server, folder / "server.log") as origin,
        Sidecar(*_rules(rules), *options, f"{origin}/mcp") as sidecar,
    ):
        yield Front(partial(_reaching, sidecar.url()), f"{origin}/mcp")


@contextmanager
def over_http_to_a_command(
    server: Sequence[str], rules: Sequence[Path], folder: Path, *options: str
) -> Iterator[Front]:
    """Let the sidecar start the server's command."""
    with Sidecar(*_rules(rules), *options, "--", *server) as sidecar:
        yield Front(partial(_reaching, sidecar.url()))


def _reaching(url: str, mode: Mode) -> AbstractContextManager[PythonClient]:
    return reaching(url, mode=mode)


def _rules(rules: Sequence[Path]) -> list[str]:
    return [word for path in rules for word in ("--rules", str(path))]


FRONTS = {
    "stdio": over_stdio,
    "http": over_http,
    "http to a command": over_http_to_a_command,
}
