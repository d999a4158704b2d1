"""What listens, and the ways from a client to the server, without and with the proxy between."""

import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Literal

from tests.benchmarks import raw, web_client
from tests.benchmarks.commands import direct, environment, options, wrapped
from tests.conformance.suite import free_port, serving

Way = Literal["stdio to stdio", "HTTP to stdio", "stdio to HTTP", "HTTP to HTTP"]
"""How the server speaks, and how the client does. HTTP on either side has HTTP for its equal."""


def web_server(port: int, server: Sequence[str] = ()) -> list[str]:
    return [sys.executable, "-m", "tests.benchmarks.web_server", f"--port={port}", *server]


def sidecar(port: int, rules: str, *upstream: str) -> list[str]:
    listen = f"127.0.0.1:{port}"
    serve = [sys.executable, "-m", "proxy", "serve", "--listen", listen]
    return [*serve, *options(rules), *upstream]


def remote(rules: str, url: str) -> list[str]:
    return [sys.executable, "-m", "proxy", "run", *options(rules), url]


def url(port: int) -> str:
    return f"http://127.0.0.1:{port}/mcp"


@contextmanager
def service(command: Sequence[str], port: int) -> Iterator["subprocess.Popen[bytes]"]:
    """Have a command running that listens at a port; what it logs goes to a file, as in use."""
    with (
        TemporaryDirectory(prefix="mcp-abridge-bench-") as folder,
        serving(command, port, Path(folder) / "log", environment()) as process,
    ):
        yield process


Client = raw.Client | web_client.Client
"""A client that is measured, with all that it talks to running."""


@contextmanager
def pair(
    way: Way, rules: str, server: Sequence[str], accept: str = web_client.BOTH
) -> Iterator[tuple[Client, Client]]:
    with ExitStack() as stack:
        enter = stack.enter_context
        if way == "stdio to stdio":
            yield enter(raw.Client(direct(server))), enter(raw.Client(wrapped(rules, server)))
            return
        origin, port = free_port(), free_port()
        enter(service(web_server(origin, server), origin))
        one = enter(web_client.Client(origin, accept))
        if way == "HTTP to stdio":
            yield one, enter(raw.Client(remote(rules, url(origin))))
            return
        enter(service(sidecar(port, rules, *upstream(way, origin, server)), port))
        yield one, enter(web_client.Client(port, accept))


def upstream(way: Way, origin: int, server: Sequence[str]) -> Sequence[str]:
    return ["--", *direct(server)] if way == "stdio to HTTP" else [url(origin)]
