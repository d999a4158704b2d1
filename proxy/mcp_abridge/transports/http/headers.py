"""The MCP headers of one request body (MCP 2026-07-28: Streamable HTTP, Request Metadata).

A server refuses a mismatch with the body, so they are made from the body that is really sent.
"""

import base64
import binascii
import re
from collections.abc import Iterator, Mapping
from typing import Any

import msgspec
from msgspec import Raw

from mcp_abridge.document import message
from mcp_abridge.document.message import PROTOCOL_VERSION, string_at, value_at
from mcp_abridge.session.tracing import CONTEXT

SESSION = "Mcp-Session-Id"
VERSION = "Mcp-Protocol-Version"
METHOD = "Mcp-Method"
NAME = "Mcp-Name"
PARAMETER = "Mcp-Param-"
MODERN = "2026"
"""The first stateless protocol version; versions sort as text."""

ParameterHeaders = tuple[tuple[tuple[str, ...], str], ...]
"""Pairs: the path of a value in a tool's arguments, and the header that repeats the value."""

Parameters = dict[str, ParameterHeaders]
"""The parameter headers of each known tool, by name."""

# The member of the params that Mcp-Name repeats; the tasks extension defines it for tasks/*.
_NAMES = {"tools/call": "name", "prompts/get": "name", "resources/read": "uri"}
_TASKS = "tasks/"

_MAX_TOOLS = 10_000  # tools whose headers are remembered; the oldest are dropped first
_ANNOTATION = "x-mcp-header"
_SENTINEL = re.compile(r"=\?base64\?(.*)\?=", re.DOTALL)
_SAFE = re.compile(r"[\x20-\x7e]*")
_TOKEN = re.compile(r"[!#$%&'*+\-.^_`|~0-9A-Za-z]+")
_TYPES = ("string", "integer", "boolean")


def request_headers(raw: bytes, parameters: Mapping[str, ParameterHeaders]) -> dict[str, str]:
    r"""Return the MCP headers of a request that names its protocol version; {} for any other body.

    >>> body = b'{"id": 1, "method": "tools/call", "params": {"name": "say", "arguments":'
    >>> body += b'{"to": "Zo\\u00eb"}, "_meta": {"io.modelcontextprotocol/protocolVersion":'
    >>> request_headers(body + b'"2026-07-28"}}}', {"say": ((("to",), "Mcp-Param-To"),)})
    {'Mcp-Protocol-Version': '2026-07-28', 'Mcp-Method': 'tools/call', 'Mcp-Name': 'say',
    'Mcp-Param-To': '=?base64?Wm/Dqw==?='}
    """
    read = message.envelope(raw)
    method, version = read.verb, string_at(read.params, "_meta", PROTOCOL_VERSION)
    if not method or version is None or version < MODERN:
        return {}
    headers = {VERSION: encoded(version), METHOD: encoded(method)}
    member = "taskId" if method.startswith(_TASKS) else _NAMES.get(method)
    name = None if member is None else string_at(read.params, member)
    if name is not None:
        headers[NAME] = encoded(name)
        if method == "tools/call" and (parameter_headers := parameters.get(name)):
            headers.update(_values(read.params, parameter_headers))
    return headers


def trace_headers(raw: bytes) -> dict[str, str]:
    r"""Return the headers with the trace context that a message has in its `_meta`.

    >>> trace_headers(b'{"params": {"_meta": {"traceparent": "00-a-b-01", "baggage": "a\\nb"}}}')
    {'traceparent': '00-a-b-01'}
    """
    meta = value_at(message.envelope(raw).params, "_meta")
    values = {name: string_at(meta, name) or "" for name in CONTEXT}
    return {name: value for name, value in values.items() if value and _SAFE.fullmatch(value)}


def parameter_headers(input_schema: Any) -> ParameterHeaders:
    """Return the path of each `x-mcp-header` in a decoded inputSchema, with the full header name.

    Empty if one of them violates the specification: then no client may use the tool's headers,
    and no server may read them.

    >>> parameter_headers({"properties": {"to": {"type": "string", "x-mcp-header": "To"}}})
    ((('to',), 'Mcp-Param-To'),)
    """
    headers: dict[tuple[str, ...], str] = {}
    waiting: list[tuple[tuple[str, ...], Any]] = [((), input_schema)]
    while waiting:
        path, schema = waiting.pop()
        if not isinstance(schema, dict):
            continue
        if _ANNOTATION in schema and path:
            token = schema[_ANNOTATION]
            if not isinstance(token, str) or not _TOKEN.fullmatch(token):
                return ()
            name = PARAMETER + token
            if schema.get("type") not in _TYPES or name.lower() in map(str.lower, headers.values()):
                return ()
            headers[path] = name
        properties = schema.get("properties")
        if isinstance(properties, dict):
            waiting += [((*path, name), below) for name, below in properties.items()]
    return tuple(headers.items())


def learn(parameters: Parameters, raw: bytes) -> None:
    """Add the headers that a response to tools/list declares; each may name other tools."""
    if _ANNOTATION.encode() not in raw:
        return
    tools = _decode(value_at(message.envelope(raw).result, "tools"))
    for tool in tools if isinstance(tools, list) else ():
        if isinstance(tool, dict) and isinstance(name := tool.get("name"), str):
            parameters.pop(name, None)
            parameters[name] = parameter_headers(tool.get("inputSchema"))
            if len(parameters) > _MAX_TOOLS:
                del parameters[next(iter(parameters))]


def encoded(value: str) -> str:
    """Return `value` as a header value, in base64 if a header cannot hold it unchanged.

    >>> encoded("a b"), encoded(" a"), encoded("é")
    ('a b', '=?base64?IGE=?=', '=?base64?w6k=?=')
    """
    if _SAFE.fullmatch(value) and value == value.strip() and not _SENTINEL.fullmatch(value):
        return value
    raw = base64.b64encode(value.encode("utf-8", "surrogatepass"))
    return f"=?base64?{raw.decode()}?="


def decoded(text: str) -> str | None:
    """Return the value that a header holds; None if its base64 is invalid.

    >>> decoded("=?base64?w6k=?="), decoded("plain"), decoded("=?base64?w6l?=")
    ('é', 'plain', None)
    """
    match = _SENTINEL.fullmatch(text)
    if match is None:
        return text
    try:
        raw = base64.b64decode(match[1], validate=True)
        # Several spellings decode to the same bytes; only one is canonical.
        return raw.decode() if base64.b64encode(raw).decode() == match[1] else None
    except (binascii.Error, UnicodeError, ValueError):
        return None


def _values(params: Raw, headers: ParameterHeaders) -> Iterator[tuple[str, str]]:
    arguments = _decode(value_at(params, "arguments"))
    for path, header in headers:
        value = arguments
        for name in path:
            value = value.get(name) if isinstance(value, dict) else None
        if isinstance(value, bool):
            yield header, "true" if value else "false"
        elif isinstance(value, str | int | float):
            yield header, encoded(str(value))


def _decode(raw: Raw) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, ValueError, RecursionError):
        return None
