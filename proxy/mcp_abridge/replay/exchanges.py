"""A call of a tool and the server's response, as raw lines: recorded, or made for a test."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from mcp_abridge.document import message
from mcp_abridge.document.message import READ, Message
from mcp_abridge.document.tree import compact, encode, loads, plain, text
from mcp_abridge.errors import AbridgeError, DocumentError
from mcp_abridge.query.fragment import split
from mcp_abridge.replay.differences import to_json
from mcp_abridge.shaping.result.frame import content_of


class ExchangeError(AbridgeError):
    """A recording without a call of a tool: what was found, and what is expected."""


class RecordedExchange(Struct, frozen=True):
    """A call and its response; `request` and `response` are lines without their newline."""

    tool: str
    arguments: dict[str, Any]
    request: bytes
    response: bytes

    @property
    def saved(self) -> bytes:
        """The bytes of a file that `recorded` reads."""
        return encode({"request": Raw(self.request), "response": Raw(self.response)})

    def masked(self, request: bytes, response: bytes) -> "RecordedExchange":
        return RecordedExchange(*_recorded_call(request), request, response)


def make(tool: str, arguments: dict[str, Any], result: Raw) -> RecordedExchange:
    """Return the exchange in which a call of `tool` is answered with `result`.

    READ in place of a tool reads a resource, whose contents are the texts of the result.
    """
    if tool == READ and "contents" not in (own := message.members(result)):
        texts = content_of(own)[1].values()
        contents = [{"uri": split(arguments["uri"])[0], "text": each} for each in texts]
        result = Raw(encode({"contents": contents}))
    response = encode({"jsonrpc": "2.0", "id": 1, "result": result})
    return RecordedExchange(tool, arguments, request(1, tool, arguments), response)


def request(id: Any, tool: str, arguments: dict[str, Any]) -> bytes:
    """Return the line that calls `tool`, or reads; an `id` that is Raw keeps its spelling."""
    params: dict[str, Any] = {"name": tool, "arguments": arguments}
    call = {"jsonrpc": "2.0", "id": None, "method": "tools/call", "params": params}
    if tool == READ:
        call |= {"method": READ, "params": arguments}
    return message.replaced(to_json(call), id=id)


def text_result(text: str, **members: bool) -> Raw:
    """Return a result with one text block, and these further members."""
    return Raw(to_json({"content": [{"type": "text", "text": text}], **members}))


def as_json(raw: bytes) -> bytes:
    """Return a file as JSON: a file that is none is the text of a result. Raises ExchangeError."""
    try:
        loads(raw)
    except DocumentError:
        try:
            return bytes(text_result(raw.decode()))
        except UnicodeDecodeError as error:
            raise ExchangeError(f"neither JSON nor a text in UTF-8: {error}") from None
    return raw


def recorded(
    raw: bytes,
    tool: str | None = None,
    arguments: dict[str, Any] | None = None,
    otherwise: str | None = None,
) -> RecordedExchange:
    """Read a recording: {request, response}, a response, a result, or any JSON. ExchangeError.

    `tool` and `arguments` replace the recorded ones; `otherwise` is the tool if none is recorded.
    """
    try:
        source, value = raw.decode(), loads(raw)
        members = message.members(raw) if isinstance(value, dict) else {}
    except (DocumentError, UnicodeDecodeError) as error:
        raise ExchangeError(f"neither a recorded exchange nor JSON: {error}") from error
    if "request" in members and "response" in members:
        call, response = _line(members["request"]), _line(members["response"])
        before = _recorded_call(call)
        tool = before[0] if tool is None else tool
        arguments = before[1] if arguments is None else arguments
        if before != (tool, arguments):
            call = request(message.members(call).get("id", Raw(b"null")), tool, arguments)
        return RecordedExchange(tool, arguments, call, response)
    tool, arguments = tool or otherwise, arguments or {}
    if tool is None:
        raise ExchangeError("no call is recorded here; name its tool: --tool, or tool in a test")
    if "jsonrpc" in members and ("result" in members or "error" in members):
        call = request(members.get("id", Raw(b"null")), tool, arguments)
        return RecordedExchange(tool, arguments, call, compact(raw))
    return make(tool, arguments, Raw(compact(raw)) if _is_result(members) else text_result(source))


def _line(value: Raw) -> bytes:
    line = text(value)
    return compact(bytes(value)) if line is None else line.strip().encode()


def _recorded_call(line: bytes) -> tuple[str, dict[str, Any]]:
    try:
        call = message.read(line)
        verb = call.verb if isinstance(call, Message) else ""
        if not isinstance(call, Message) or verb not in ("tools/call", READ):
            raise ExchangeError(f"the recorded request is {verb or 'no'!r}, not 'tools/call'")
        params = message.members(call.params)
        if verb == READ:
            return READ, {"uri": plain(params["uri"])}
        name = text(params["name"])
        values = loads(bytes(params["arguments"])) if "arguments" in params else {}
    except (DocumentError, KeyError, TypeError) as error:
        raise ExchangeError(f"the recorded request cannot be read: {error}") from error
    if name is None or not isinstance(values, dict):
        raise ExchangeError("the recorded request names no tool, or its arguments are no object")
    return name, values


def _is_result(members: dict[str, Raw]) -> bool:
    if "structuredContent" in members or "contents" in members:
        return True
    try:
        blocks = msgspec.json.decode(members["content"], type=list[dict[str, Raw]])
    except (KeyError, msgspec.DecodeError):
        return False
    return all("type" in block for block in blocks)
