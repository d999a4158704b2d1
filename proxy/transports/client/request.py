"""A line of a client as an HTTP server gets it: one POST, and the requests in it that wait.

Pure except for the events that signal its progress.
"""

import asyncio

import msgspec
from msgspec import Raw, Struct

from proxy.document import message
from proxy.document.message import PROTOCOL_VERSION, Message, string_at
from proxy.document.tree import ABSENT
from proxy.errors import DocumentError
from proxy.transports.http.headers import MODERN

_NULL = b"null"


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

    @property
    def lasts(self) -> bool:
        """True if its response is not waited for, since it comes only at the very end."""
        return self.method == message.LISTEN


def read(raw: bytes) -> ClientRequest:
    """Return the facts of a line that are needed to send it; an unreadable line asks nothing.

    >>> post = read(b'{"jsonrpc":"2.0","id":"a","method":"tools/list"}')
    >>> post.waiting, post.method, post.modern
    ({b'"a"': 'tools/list'}, 'tools/list', False)
    """
    try:
        found = message.read(raw)
        if not isinstance(found, Message):
            batch = [each for each in map(_element, found) if each is not None and _asks(each)]
            asked = {each.key or _NULL: each.verb or "" for each in batch}
            return ClientRequest(raw, asked, next(iter(asked.values()), ""))
        method = found.verb or ""
    except DocumentError:
        return ClientRequest(raw)
    if _asks(found):
        version = None
        if found.params is not ABSENT:
            version = string_at(found.params, "_meta", PROTOCOL_VERSION)
        modern = version is not None and version >= MODERN
        return ClientRequest(raw, {found.key or _NULL: method}, method, None, modern, version)
    return ClientRequest(
        raw, {}, method, _cancelled(found) if method == "notifications/cancelled" else None
    )


def answered(raw: bytes) -> list[bytes]:
    """Return the ids of the responses in a message; b"null" for a response without an id.

    >>> answered(b'[{"id":1,"result":{}},{"method":"x"},{"error":{"code":1,"message":""}}]')
    [b'1', b'null']
    """
    key = message.responds_to(raw)
    if key is not None:
        return [key]
    try:
        found = message.read(raw)
    except DocumentError:
        return []
    single = [found] if isinstance(found, Message) else [_element(each) for each in found]
    return [each.key or _NULL for each in single if each is not None and each.responds]


def refuses(raw: bytes, key: bytes) -> bool:
    """Return True if the body of a refusal is a JSON-RPC error about the request with this id.

    It may have no id: the server need not have read the request.
    """
    try:
        found = message.read(raw)
    except DocumentError:
        return False
    if not isinstance(found, Message) or found.key not in (key, None, _NULL):
        return False
    try:
        # Other formats have an `error` too, of another meaning (OAuth, RFC 6749 section 5.2).
        int(bytes(message.members(found.error)["code"]))
    except (DocumentError, KeyError, ValueError):
        return False
    return b'"jsonrpc"' in raw


def negotiated(raw: bytes) -> str | None:
    """Return the protocol version that the response to `initialize` names."""
    try:
        found = message.read(raw)
    except DocumentError:
        return None
    return string_at(found.result, "protocolVersion") if isinstance(found, Message) else None


def _asks(found: Message) -> bool:
    return found.method is not ABSENT and found.key not in (None, _NULL)


def _element(raw: Raw) -> Message | None:
    try:
        found = message.read(bytes(raw))
        if isinstance(found, Message):
            found.verb  # noqa: B018  (a method that is no text raises DocumentError)
            return found
    except DocumentError:
        pass
    return None


def _cancelled(found: Message) -> bytes | None:
    try:
        id = message.members(found.params).get("requestId")
    except DocumentError:
        return None
    return None if id is None else message.id_key(bytes(id))
