"""A call of a tool and the server's response, as raw lines: recorded, or made for a test."""

import json
from typing import Any

import msgspec
from msgspec import Raw, Struct

from proxy.document import message
from proxy.document.message import Message
from proxy.document.tree import compact, encode, loads, text
from proxy.errors import AbridgeError, DocumentError


class ExchangeError(AbridgeError):
    """A recording without a call of a tool: what was found, and what is expected."""


class RecordedExchange(Struct, frozen=True):
    """A call and its response; `request` and `response` are lines without their newline."""

    tool: str
    arguments: dict[str, Any]
    request: bytes
    response: bytes


def made(tool: str, arguments: dict[str, Any], result: Raw) -> RecordedExchange:
    """Return the exchange in which a call of `tool` is answered with `result`.

    >>> made("t", {}, Raw(b'{"content":[]}')).response
    b'{"jsonrpc":"2.0","id":1,"result":{"content":[]}}'
    """
    response = encode({"jsonrpc": "2.0", "id": 1, "result": result})
    return RecordedExchange(tool, arguments, asked(1, tool, arguments), response)


def asked(id: Any, tool: str, arguments: dict[str, Any]) -> bytes:
    """Return the line that calls `tool`; an `id` that is Raw keeps its spelling."""
    params = {"name": tool, "arguments": arguments}
    call = {"jsonrpc": "2.0", "id": None, "method": "tools/call", "params": params}
    return message.replaced(written(call), id=id)


def under(line: bytes, id: Raw) -> bytes:
    """Return `line` as the response to the request with this id."""
    same = message.members(line).get("id", Raw(b"")) == id
    return line if same else message.replaced(line, id=id)


def of_text(said: str) -> Raw:
    """Return a result with one text block.

    >>> of_text("a")
    <msgspec.Raw object at ...>
    """
    return Raw(written({"content": [{"type": "text", "text": said}]}))


def failing(said: str) -> Raw:
    """Return an error result with one text block.

    >>> bytes(failing("a"))
    b'{"content":[{"type":"text","text":"a"}],"isError":true}'
    """
    return Raw(written({"content": [{"type": "text", "text": said}], "isError": True}))


def written(value: Any) -> bytes:
    """Return plain values as JSON; lone surrogates, which YAML allows, as escapes.

    >>> written({"a": "\\ud800"})
    b'{"a":"\\\\ud800"}'
    """
    try:
        return encode(value)
    except UnicodeEncodeError:
        return json.dumps(value, separators=(",", ":")).encode()


def recorded(
    raw: bytes,
    tool: str | None = None,
    arguments: dict[str, Any] | None = None,
    otherwise: str | None = None,
) -> RecordedExchange:
    """Read a recording in any of its forms.

    These are: an object with `request` and `response`, each a message or its raw line; a response;
    a CallToolResult; or any other JSON, which is then the text of the result. `tool` and
    `arguments` replace the recorded ones; `otherwise` is the tool if none is recorded. Raises
    ExchangeError.
    """
    try:
        said = raw.decode()
        held = loads(raw)
        held = message.members(raw) if isinstance(held, dict) else {}
    except (DocumentError, UnicodeDecodeError) as error:
        raise ExchangeError(f"neither a recorded exchange nor JSON: {error}") from error
    if "request" in held and "response" in held:
        request, response = _line(held["request"]), _line(held["response"])
        tool, arguments = _recorded_call(request, tool, arguments)
        return _replayed(request, response, tool, arguments)
    tool, arguments = tool or otherwise, arguments or {}
    if tool is None:
        raise ExchangeError("no call is recorded here; name its tool: --tool, or tool in a test")
    if "jsonrpc" in held and ("result" in held or "error" in held):
        request = asked(held.get("id", Raw(b"null")), tool, arguments)
        return RecordedExchange(tool, arguments, request, compact(raw))
    return made(tool, arguments, Raw(compact(raw)) if _is_result(held) else of_text(said))


def _line(held: Raw) -> bytes:
    """Return a message as a line: the recorded line, or the message on one line."""
    said = text(held)
    return compact(bytes(held)) if said is None else said.strip().encode()


def _recorded_call(
    request: bytes, tool: str | None, arguments: dict[str, Any] | None
) -> tuple[str, dict[str, Any]]:
    try:
        read = message.read(request)
        verb = read.verb if isinstance(read, Message) else None
        if not isinstance(read, Message) or verb != "tools/call":
            raise ExchangeError(f"the recorded request is {verb or 'no'!r}, not 'tools/call'")
        params = message.members(read.params)
        name = text(params["name"])
        given = loads(bytes(params["arguments"])) if "arguments" in params else {}
    except (DocumentError, KeyError, TypeError) as error:
        raise ExchangeError(f"the recorded request cannot be read: {error}") from error
    if name is None or not isinstance(given, dict):
        raise ExchangeError("the recorded request names no tool, or its arguments are no object")
    return (name if tool is None else tool), (given if arguments is None else arguments)


def _replayed(
    request: bytes, response: bytes, tool: str, arguments: dict[str, Any]
) -> RecordedExchange:
    """Return the recorded lines; the request is rewritten if its tool or arguments changed."""
    if _recorded_call(request, None, None) != (tool, arguments):
        try:
            id = message.members(request)["id"]
        except (DocumentError, KeyError) as error:
            raise ExchangeError(f"the recorded request cannot be read: {error}") from error
        request = asked(id, tool, arguments)
    return RecordedExchange(tool, arguments, request, response)


def _is_result(held: dict[str, Raw]) -> bool:
    if "structuredContent" in held:
        return True
    try:
        blocks = msgspec.json.decode(held["content"], type=list[dict[str, Raw]])
    except (KeyError, msgspec.DecodeError):
        return False
    return all("type" in block for block in blocks)
