"""The ways from a client to the server, each with nothing between the two and with the proxy."""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Literal, Protocol

from tests.benchmarks import raw, services, web_client
from tests.benchmarks.commands import direct, wrapped
from tests.conformance.suite import free_port

Way = Literal["stdio to stdio", "HTTP to stdio", "stdio to HTTP", "HTTP to HTTP"]
"""How the server speaks, and how the client does. HTTP on either side has HTTP for its equal."""


class Client(Protocol):
    """A client that is measured, with all that it talks to running."""

    def connect(self) -> None:
        """Do what comes before a call of a tool."""

    def call(self, request: bytes) -> memoryview:
        """Send one request; return what came for it, which is good until the next call."""

    def answer(self, request: bytes) -> bytes:
        """Send one request; return the message that answers it."""


@contextmanager
def pair(
    way: Way, rules: str, server: Sequence[str], accept: str = web_client.BOTH, headers: str = ""
) -> Iterator[tuple[Client, Client]]:
    """Start the server with these options, and a client of it without and with the proxy."""
    with ExitStack() as stack:
        enter = stack.enter_context
        if way == "stdio to stdio":
            yield enter(raw.Client(direct(server))), enter(raw.Client(wrapped(rules, server)))
            return
        origin, port = free_port(), free_port()
        enter(services.service(services.web_server(origin, server), origin))
        one = enter(web_client.Client(origin, accept, headers))
        if way == "HTTP to stdio":
            yield one, enter(raw.Client(services.remote(rules, services.url(origin))))
            return
        enter(services.service(services.sidecar(port, rules, *upstream(way, origin, server)), port))
        yield one, enter(web_client.Client(port, accept, headers))


@contextmanager
def through(
    rules: str, server: Sequence[str], accepts: Sequence[str]
) -> Iterator[list[web_client.Client]]:
    """Start a server over HTTP, a sidecar, and a client of that for each Accept header."""
    with ExitStack() as stack:
        enter = stack.enter_context
        origin, port = free_port(), free_port()
        enter(services.service(services.web_server(origin, server), origin))
        enter(services.service(services.sidecar(port, rules, services.url(origin)), port))
        yield [enter(web_client.Client(port, accept)) for accept in accepts]


def upstream(way: Way, origin: int, server: Sequence[str]) -> Sequence[str]:
    """Return what a sidecar stands before."""
    return ["--", *direct(server)] if way == "stdio to HTTP" else [services.url(origin)]
