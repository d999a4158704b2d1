"""HTTP+SSE of 2024-11-05 before an upstream: one stream of answers, and the endpoint it names.

The client is given an endpoint of ours instead, on the path that it asked for, which is good as
long as the stream is open.
"""

import asyncio

import msgspec
from msgspec import Struct
from yarl import URL

from proxy.errors import AbridgeError
from proxy.sse import Event, replaced
from proxy.transports.driver import Driver
from proxy.transports.http.answer import Answer
from proxy.transports.http.callers import Exchange

ENDPOINT = "endpoint"
"""The event that names the endpoint."""

QUERY = "mcp-abridge-endpoint"
"""What says in the query of ours which one is meant."""


class Elsewhere(AbridgeError):
    """A stream that names an endpoint of another origin, which is not to be used."""


class Stream(Struct):
    """An open stream: where messages of its client go, and on what it gets the answers.

    `held` are the calls that wait for the proxy's own questions.
    """

    url: URL
    exchange: Exchange
    answer: Answer
    held: "set[asyncio.Task[None]]" = msgspec.field(default_factory=set)

    @property
    def driver(self) -> Driver:
        """What drives its session."""
        return self.exchange.driver


def named(event: Event, asked: URL) -> URL:
    """Return the endpoint that an event of a stream at `asked` names; raises Elsewhere."""
    try:
        url = asked.join(URL((event.data or b"").decode()))
        same = url.origin() == asked.origin()
    except ValueError:
        raise Elsewhere("the server names an endpoint that is no URL") from None
    if not same:
        raise Elsewhere("the server names an endpoint of another origin; that is refused")
    return url


def announcement(event: Event, name: str) -> Event:
    """Return the event that names our endpoint in place of the server's."""
    data = f"?{QUERY}={name}".encode()
    return Event(replaced(event, data), data, event.id, event.event, event.retry)
