"""A line of a client as one POST, and the requests in it that wait."""

import asyncio

import msgspec
from msgspec import Struct

from mcp_abridge.document import message
from mcp_abridge.document.message import PROTOCOL_VERSION, string_at
from mcp_abridge.transports.correlation import correlate
from mcp_abridge.transports.http.headers import MODERN


class ClientRequest(Struct, eq=False):
    """A message or a batch in flight.

    `waiting` are the methods of its requests without a response, by id; `method` is that of the
    message, or of a batch's first request; `cancels` is the id of the request that it cancels;
    `version` is the protocol version that it names, as stateless requests do (`modern`).
    `upload` is set once it was sent, `over` once it has all responses.
    """

    raw: bytes
    waiting: dict[bytes, str] = {}
    method: str = ""
    cancels: bytes | None = None
    modern: bool = False
    version: str | None = None
    upload: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    over: asyncio.Event = msgspec.field(default_factory=asyncio.Event)
    task: "asyncio.Task[None] | None" = None

    @property
    def begins(self) -> bool:
        """True if it is `initialize`: later messages depend on the response."""
        return "initialize" in self.waiting.values()


def client_request(raw: bytes) -> ClientRequest:
    """Return the facts of a line that are needed to send it; an unreadable line asks nothing.

    >>> post = client_request(b'{"jsonrpc":"2.0","id":"a","method":"tools/list"}')
    >>> post.waiting, post.method, post.modern
    ({b'"a"': 'tools/list'}, 'tools/list', False)
    """
    contents = message.messages(raw)
    waiting = {key: each.verb for each in contents if (key := each.request_key) is not None}
    if raw.lstrip()[:1] == b"[" or not contents:
        return ClientRequest(raw, waiting, next(iter(waiting.values()), ""))
    [single] = contents
    version = string_at(single.params, "_meta", PROTOCOL_VERSION) if waiting else None
    return ClientRequest(
        raw,
        waiting,
        single.verb,
        None if waiting else correlate(raw).cancels,
        (version or "") >= MODERN,
        version,
    )
