"""Check the headers of a stateless request against its body.

MCP 2026-07-28: Streamable HTTP, Request Metadata and Server Validation.
"""

import re
from collections.abc import Mapping

from mcp_abridge.document import message
from mcp_abridge.document.message import PROTOCOL_VERSION, Message, string_at, value_at
from mcp_abridge.document.tree import ABSENT
from mcp_abridge.transports.http import headers
from mcp_abridge.transports.http.headers import METHOD, NAME, VERSION, ParameterHeaders
from mcp_abridge.transports.http.hop_headers import Headers
from mcp_abridge.transports.sidecar.refusal import RequestRefused
from mcp_abridge.transports.sidecar.request import PostedBody

# HTTP statuses of error responses by error code, if not 200.
_STATUS = {
    b"%d" % message.PARSE_ERROR: 400,
    b"%d" % message.INVALID_REQUEST: 400,
    b"%d" % message.INVALID_PARAMS: 400,
    b"%d" % message.HEADER_MISMATCH: 400,
    b"-32021": 400,  # MissingRequiredClientCapability
    b"-32022": 400,  # UnsupportedProtocolVersion
    b"%d" % message.METHOD_NOT_FOUND: 404,
}

_WHOLE = re.compile(r"\A(-?\d{1,30})\.0{1,30}\Z")  # a number that may also be spelled without .0


def status_of(response: bytes) -> int:
    """Return the HTTP status for a response."""
    # The usual case, and the response may be very long.
    if message.succeeds(response[: message.ENDS]):
        return 200
    code = value_at(message.envelope(response).error, "code")
    return _STATUS.get(bytes(code), 200)


def check(post: PostedBody, received: Headers, parameters: Mapping[str, ParameterHeaders]) -> None:
    """Check headers and envelope, given the known parameters of tools; raises RequestRefused."""
    first = post.first
    if first is None or not first.is_message or first.responds:
        reason = "the body must be a single request or notification"
        raise RequestRefused(400, message.INVALID_REQUEST, reason)
    if not post.ids:
        return
    names = PROTOCOL_VERSION, message.CLIENT_CAPABILITIES
    missing = [name for name in names if value_at(first.params, "_meta", name) is ABSENT]
    if missing:
        reason = f"params._meta must have {' and '.join(missing)}"
        raise RequestRefused(400, message.INVALID_PARAMS, reason)
    mismatch = _mismatch(first, post, received, parameters)
    if mismatch is not None:
        raise RequestRefused(400, message.HEADER_MISMATCH, mismatch)
    if post.initializes:
        # Not for a server that clients share: it would begin a session.
        raise RequestRefused(404, message.METHOD_NOT_FOUND, "Method not found")


def _mismatch(
    first: Message, post: PostedBody, received: Headers, parameters: Mapping[str, ParameterHeaders]
) -> str | None:
    expected = {VERSION: string_at(first.params, "_meta", PROTOCOL_VERSION) or "", METHOD: ""}
    expected |= headers.request_headers(post.raw, parameters)
    for name, value in expected.items():
        values = received.getall(name, [])
        if not values and name == NAME and post.method.startswith("tasks/"):
            continue  # of an extension that not every client implements
        if len(values) != 1:
            return f"the header {name} is {'given twice' if values else 'missing'}"
        text = headers.decoded(values[0])
        if text is None:
            return f"the header {name} holds broken base64"
        if _WHOLE.sub(r"\1", text) != _WHOLE.sub(r"\1", headers.decoded(value) or ""):
            return f"the header {name} does not match the body"
    tool = string_at(first.params, "name") if post.method == "tools/call" else None
    for _, name in parameters.get(tool or "", ()):
        if name in received and name not in expected:
            return f"the header {name} is given, and its value is not in the body"
    return None
