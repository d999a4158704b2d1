"""The body of a client's POST: its messages, their protocol era and the accepted media types."""

import json
import re

from aiohttp import web
from msgspec import Struct

from mcp_abridge.document import message
from mcp_abridge.document.message import CLIENT_INFO, PROTOCOL_VERSION, Message, string_at
from mcp_abridge.errors import DocumentError
from mcp_abridge.ruleset.loading.config_model import LimitsSpec
from mcp_abridge.session.tracing import CONTEXT, TRACEPARENT
from mcp_abridge.transports.aio import give_way
from mcp_abridge.transports.http import body, negotiation
from mcp_abridge.transports.http.headers import MODERN, SESSION, VERSION
from mcp_abridge.transports.sidecar.caller import digest
from mcp_abridge.transports.sidecar.refusal import INVALID, NOT_JSON, RequestRefused
from mcp_abridge.transports.sidecar.route import Request, Route

_TRACEPARENT = re.compile(r"[0-9a-f]{2}-([0-9a-f]{32})-[0-9a-f]{16}-[0-9a-f]{2}(?:-.*)?")
_BY_RULES = frozenset(("tools/call", "tools/list", message.READ))


class PostedBody(Struct):
    """The contents of one POST; without `messages`, JSON that cannot be read as such."""

    raw: bytes = b""
    messages: list[Message] = []
    batch: bool = False
    ids: tuple[bytes, ...] = ()
    accepts: negotiation.Wanted = "either"
    modern: bool = False

    @property
    def first(self) -> Message | None:
        """The only message of a POST that is no batch."""
        return self.messages[0] if self.messages and not self.batch else None

    @property
    def method(self) -> str:
        """The method of `first`; an empty text for a response, a batch or an unreadable message."""
        return "" if self.first is None else self.first.verb

    @property
    def accepts_from_command(self) -> negotiation.Wanted:
        """The form that the client accepts, if the server is a command, which chooses none."""
        return "prefer json" if self.accepts == "either" else self.accepts

    @property
    def keeps_alive(self) -> bool:
        """True if the answer may become an event stream only to break a long silence."""
        return self.accepts in ("stream", "either")

    @property
    def initializes(self) -> bool:
        """True for the request that begins a session of the handshake era."""
        return self.method == "initialize"


NOTHING = PostedBody(accepts="stream")
"""The PostedBody of a request that has no message and wants a stream."""


async def read_body(request: web.BaseRequest, limits: LimitsSpec) -> bytes:
    """Return the body of a request, decompressed; raises RequestRefused."""
    too_large = RequestRefused(413, INVALID, f"the body is over the limit of {limits.body} bytes")
    if (request.content_length or 0) > limits.body:
        raise too_large
    encoding = request.headers.get("Content-Encoding")
    try:
        return await body.whole(request.content, encoding, limits.body)
    except body.TooLarge:
        raise too_large from None
    except body.Unreadable as cause:
        raise RequestRefused(400, NOT_JSON, f"the body cannot be read: {cause}") from None


async def read_post(request: Request, route: Route, limits: LimitsSpec) -> PostedBody:
    """Read a POST, and note in its record what it is; raises RequestRefused."""
    record = request.record
    raw = await read_body(request, limits)
    messages, batch = _messages(raw, route)
    version = request.headers.get(VERSION)
    declared = [string_at(each.params, "_meta", PROTOCOL_VERSION) or "" for each in messages]
    ids = tuple(key for each in messages if (key := each.request_key) is not None)
    post = PostedBody(
        raw=raw,
        messages=messages,
        batch=batch,
        ids=ids if messages else (b"null",),
        accepts=negotiation.negotiate(", ".join(request.headers.getall("Accept", []))),
        modern=any(each >= MODERN for each in (version or "", *declared)),
    )
    record.method, record.protocol = post.method, version
    record.peer, record.route = request.remote, route.path
    record.http = f"{request.version.major}.{request.version.minor}"
    record.session = digest(request.headers[SESSION]) if SESSION in request.headers else ""
    record.headers = {name: request.headers[name] for name in CONTEXT if name in request.headers}
    inner = None if post.first is None else string_at(post.first.params, "_meta", TRACEPARENT)
    for context in (record.headers.get(TRACEPARENT), inner):
        if match := _TRACEPARENT.fullmatch(context or ""):
            record.trace_id = match[1]
    if post.first is not None and post.method == "tools/call":
        record.tool = string_at(post.first.params, "name") or ""
    if post.ids and post.accepts == "nothing":
        raise RequestRefused(406, NOT_JSON, f"Acceptable media types: {negotiation.MEDIA_TYPES}")
    record.id = post.ids[0] if post.ids else b"null"
    await give_way(len(raw))
    if route.refresh is not None and (post.batch or post.method in _BY_RULES):
        await route.refresh()
    return post


def client_name(post: PostedBody) -> str | None:
    """Return the client's name in a request of the stateless era, truncated if it is long."""
    if post.first is None:
        return None
    name = string_at(post.first.params, "_meta", CLIENT_INFO, "name")
    return name and name[: message.LONGEST_NAME]


def _messages(raw: bytes, route: Route) -> tuple[list[Message], bool]:
    try:
        content = message.read(raw)
        if isinstance(content, Message):
            return [content], False
        objects = [bytes(each) for each in content if bytes(each)[:1] == b"{"]
        return [each for each in map(message.read, objects) if isinstance(each, Message)], True
    except DocumentError as cause:
        try:
            # JSON that only some parsers accept (NaN, for example) is left to the upstream.
            json.loads(raw)
        except (ValueError, RecursionError):
            parts = "the body is nested too deeply" if "deeply" in str(cause) else "Parse error"
            raise RequestRefused(route.malformed_status, NOT_JSON, parts) from None
    return [], False
