"""Servers over HTTP and the sidecar in front of them: real processes on free ports, and their ends.

`upstream` starts a server that takes `--http PORT`; `ask` speaks HTTP to it or to a sidecar.
`FRONTS` are the ways to put the proxy before a server's command, stdio among them.
"""

import os
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, contextmanager
from functools import partial
from pathlib import Path
from urllib.parse import urlsplit

import msgspec

from tests.conformance import suite
from tests.faults.sidecar import Client, RawResponse, Sidecar, request
from tests.python_client import Mode, PythonClient, connected, reaching
from tests.wrapped import wrapped


@contextmanager
def upstream(command: Sequence[str], log: Path) -> Iterator[str]:
    """Start a server with `--http` and a free port; yield its origin. It writes to `log`."""
    port = suite.free_port()
    with suite.serving([*command, "--http", str(port)], port, log, os.environ):
        yield f"http://127.0.0.1:{port}"


JSON = {"Content-Type": "application/json"}


def ask(url: str, body: bytes | None = None, headers: Mapping[str, str] = JSON) -> RawResponse:
    """Send one request with these headers and no others; return the whole answer.

    Without a body it is a GET.
    """
    with open_request(url, body, headers) as client:
        return client.answer()


@contextmanager
def open_request(url: str, body: bytes | None, headers: Mapping[str, str]) -> Iterator[Client]:
    """Send one request; yield the client that its answer comes to."""
    to = urlsplit(url)
    method = "GET" if body is None else "POST"
    lines = [f"{name}: {value}" for name, value in {"Host": to.netloc, **headers}.items()]
    target = to._replace(scheme="", netloc="").geturl()
    with Client(to.port or 80) as client:
        client.send(request(method, target, *lines, body=body))
        yield client


class Front(msgspec.Struct, frozen=True):
    """The proxy before a server: how clients connect, the server's URL, and the proxy's sidecar.

    Over stdio each client has a proxy and a server of its own.
    """

    connect: Callable[[Mode], AbstractContextManager[PythonClient]]
    direct: str | None = None
    sidecar: Sidecar | None = None


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
        yield Front(partial(_reaching, sidecar.url()), f"{origin}/mcp", sidecar)


@contextmanager
def over_http_to_a_command(
    server: Sequence[str], rules: Sequence[Path], folder: Path, *options: str
) -> Iterator[Front]:
    """Let the sidecar start the server's command."""
    with Sidecar(*_rules(rules), *options, "--", *server) as sidecar:
        yield Front(partial(_reaching, sidecar.url()), None, sidecar)


def _reaching(url: str, mode: Mode) -> AbstractContextManager[PythonClient]:
    return reaching(url, mode=mode)


def _rules(rules: Sequence[Path]) -> list[str]:
    return [word for path in rules for word in ("--rules", str(path))]


FRONTS = {
    "stdio": over_stdio,
    "http": over_http,
    "http to a command": over_http_to_a_command,
}
