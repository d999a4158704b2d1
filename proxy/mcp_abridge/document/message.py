"""Raw JSON-RPC messages, of which just the envelope is decoded.

The values inside stay the bytes that were received. An id is identified by its spelling: `5`, `"5"`
and `5.0` are three ids.
"""

import re
from itertools import islice
from typing import Any

import msgspec
from msgspec import Raw, Struct

from mcp_abridge.document.surrogates import replace_lone
from mcp_abridge.document.tree import ABSENT, TOO_DEEP, compact, encode, level, text
from mcp_abridge.errors import DocumentError

# Keys in `_meta` of a stateless request and its response (MCP 2026-07-28).
CLIENT_INFO = "io.modelcontextprotocol/clientInfo"
SERVER_INFO = "io.modelcontextprotocol/serverInfo"
PROTOCOL_VERSION = "io.modelcontextprotocol/protocolVersion"
CLIENT_CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"

APPS = "io.modelcontextprotocol/ui"
"""The extension of clients that show the widgets of tools (MCP Apps, SEP-1865)."""

PROGRESS_TOKEN = "progressToken"
"""The key of the token that pairs progress notifications with their request."""

READ = "resources/read"
"""The method that stands for a tool where reads of resources are counted, tested and explained."""

LISTEN = "subscriptions/listen"
"""The method of a request whose response comes only when the client needs no more messages."""

ENDS = 512
"""The number of first and of last bytes of a message that usually suffice to classify it."""

LONGEST_NAME = 200
"""The number of characters that are kept of the name of a client, a server or a tool."""

# Error codes of JSON-RPC 2.0, of MCP, and of the proxy itself.
PARSE_ERROR = -32700
INVALID_REQUEST = -32600
METHOD_NOT_FOUND = -32601
INVALID_PARAMS = -32602
CANCELLED = -32800
HEADER_MISMATCH = -32020
PROXY_ERROR = -1


class Message(Struct, gc=False):
    """The envelope of one message; members that are absent are ABSENT."""

    id: Raw = ABSENT
    method: Raw = ABSENT
    params: Raw = ABSENT
    result: Raw = ABSENT
    error: Raw = ABSENT

    @property
    def key(self) -> bytes | None:
        """The key that pairs a request with its response; None without an id."""
        return None if self.id is ABSENT else id_key(bytes(self.id))

    @property
    def request_key(self) -> bytes | None:
        """The key of a request; None for any other message."""
        return None if not self.verb or self.key == b"null" else self.key

    @property
    def verb(self) -> str:
        """The method's name; empty for a response, or if it is no string."""
        if self.method is ABSENT:
            return ""
        if bytes(self.method) == b'"tools/call"':  # nearly every request
            return "tools/call"
        try:
            name = level(self.method)
        except DocumentError:
            return ""
        return name if isinstance(name, str) else ""

    @property
    def responds(self) -> bool:
        return self.method is ABSENT and (self.result is not ABSENT or self.error is not ABSENT)

    @property
    def is_message(self) -> bool:
        """True for a request, a notification or a response; other objects are no messages."""
        return self.method is not ABSENT or self.responds


_MESSAGE = msgspec.json.Decoder(Message)
_BATCH = msgspec.json.Decoder(list[Raw])
_MEMBERS = msgspec.json.Decoder(dict[str, Raw])
_ID = rb'("(?:[^"\\]|\\.){0,256}"|-?\d[\d.eE+-]{0,64})'
_MEMBER = rb'(?:"jsonrpc"\s*+:\s*+"2\.0"|"id"\s*+:\s*+%b)' % _ID
# The members may come in any order: some servers sort them by name, or write the id last.
_HEAD = re.compile(rb'\s*+\{\s*+(?:%b\s*+,\s*+){0,2}"(result|error|method)"\s*+:' % _MEMBER)
_OF_REQUESTS, _OF_RESPONSES = (b"method",), (b"result", b"error")
_TAIL = re.compile(rb"\}\s*+(?:,\s*+%b\s*+){1,2}\}\s*+\Z" % _MEMBER)
BROKE_OFF = (  # no part of it may be shown: it could not be told apart from the other message
    "the server's answer broke off after {} bytes, and another message follows on its line; the "
    "server must write each message whole, on a line of its own"
)
_TRAILING = re.compile(r"trailing characters \(byte (\d+)\)")
_TRIES = 32  # places that are tried for the start of a message after noise
_TRIED = 32 << 20  # bytes that these are read in all, as far as more than four places are tried
_BEGINS = re.compile(rb'\{\s*"(?:jsonrpc|id|method|params|result|error)"\s*:')
_USUAL_STARTS = (b'{"jsonrpc"', b'{"result"')
_START = re.compile(rb'\s*+(\{\s*+"\w++")')
_ONE_LINE = bytes(0x20 if byte in b"\r\n" else byte for byte in range(256))


def read(raw: bytes) -> Message | list[Raw]:
    """Decode the envelope of a message, or the elements of a batch. Raises DocumentError."""
    try:
        return _read(raw)
    except msgspec.ValidationError:
        raise DocumentError("neither an object nor an array") from None
    except msgspec.DecodeError as error:
        repaired = replace_lone(raw)
        if repaired is raw:
            raise DocumentError(f"not JSON: {error}") from error
        return read(repaired)
    except RecursionError as error:
        raise DocumentError(TOO_DEEP) from error


def _read(raw: bytes) -> Message | list[Raw]:
    return _BATCH.decode(raw) if raw.lstrip()[:1] == b"[" else _MESSAGE.decode(raw)


def envelope(raw: bytes) -> Message:
    """Return the envelope of a message: an empty one for a batch, and for what cannot be read.

    >>> envelope(b'{"id": 1, "method": "ping"}').verb, envelope(b"{").is_message
    ('ping', False)
    """
    try:
        content = read(raw)
    except DocumentError:
        return Message()
    return content if isinstance(content, Message) else Message()


def elements(raw: bytes) -> list[bytes]:
    """Return the messages of a batch, or `raw` itself if it is not a batch."""
    if raw.lstrip()[:1] != b"[":
        return [raw]
    try:
        content = read(raw)
    except DocumentError:
        return [raw]
    return [raw] if isinstance(content, Message) else [bytes(each) for each in content]


def messages(raw: bytes) -> list[Message]:
    """Return the message in `raw`, or those of a batch; what cannot be read is left out.

    >>> [each.key for each in messages(b'[{"id":1,"method":"a"},5,[],{"id":2,"result":{}}]')]
    [b'1', b'2']
    """
    return [each for each in map(envelope, elements(raw)) if each.is_message]


def members(raw: bytes | Raw) -> dict[str, Raw]:
    """Decode the outermost level of a JSON object. Raises DocumentError if `raw` is none."""
    try:
        return _MEMBERS.decode(raw)
    except RecursionError:
        raise DocumentError(TOO_DEEP) from None
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise DocumentError(f"not a JSON object: {error}") from error


def outer_members(raw: bytes) -> dict[str, Raw]:
    """Decode a message's outermost level; lone surrogates become U+FFFD. Raises DocumentError."""
    try:
        return members(raw)
    except DocumentError:
        repaired = replace_lone(raw)
        if repaired is raw:
            raise
        return members(repaired)


def string_at(raw: Raw, *names: str) -> str | None:
    """Return the string at the end of a chain of members, None if there is none.

    >>> string_at(Raw(b'{"clientInfo": {"name": "x"}}'), "clientInfo", "name")
    'x'
    """
    value = value_at(raw, *names)
    try:
        return None if value is ABSENT else text(value)
    except DocumentError:
        return None


def value_at(raw: Raw, *names: str) -> Raw:
    """Return the value at the end of a chain of members, ABSENT if there is none."""
    try:
        for name in names:
            raw = members(raw)[name]
    except (DocumentError, KeyError):
        return ABSENT
    return raw


def id_key(raw: bytes) -> bytes:
    """Return the key of an id: its spelling, with escapes that JSON allows in two ways unified."""
    if raw[:1] != b'"' or b"\\" not in raw:
        return raw
    try:
        return compact(encode(level(Raw(replace_lone(raw)))))
    except DocumentError:
        return raw


def responds_to(raw: bytes) -> bytes | None:
    """Return the id of the request that `raw` responds to, if its two ends show it; else None."""
    return response_key(raw[:ENDS], raw[-ENDS:])


def response_key(start: bytes, end: bytes) -> bytes | None:
    """Read the id of a response off the first and last bytes of its line, or None if unsure.

    A server's own request may carry the same id, so the head must show `result` or `error`.
    """
    id = _id_at_an_end(start, end, _OF_RESPONSES)
    return None if id is None else id_key(id)


def request_id(start: bytes, end: bytes) -> bytes | None:
    """Read the id of a request off the first and last bytes of its line, or None if unsure.

    >>> request_id(b'{"jsonrpc":"2.0","id":7,"method":"tools/call","params":{', b'}}')
    b'7'
    >>> request_id(b'{"jsonrpc":"2.0","id":7,"result":{', b'}}') is None
    True
    """
    return _id_at_an_end(start, end, _OF_REQUESTS)


def _id_at_an_end(start: bytes, end: bytes, members: tuple[bytes, ...]) -> bytes | None:
    match = _HEAD.match(start)
    if match is None or match[2] not in members:
        return None
    if match[1] is None:
        match = _TAIL.search(end)
    return None if match is None else match[1]


def _member_at(start: bytes) -> bytes | None:
    match = _HEAD.match(start)
    return None if match is None else match[2]


def asks(start: bytes) -> bool:
    """Return True if a line that begins with `start` is surely a request or a notification."""
    return _member_at(start) == b"method"


def answers(start: bytes) -> bool:
    """Return True if a line that begins with `start` is surely a response, its id at either end."""
    return _member_at(start) in _OF_RESPONSES


def succeeds(start: bytes) -> bool:
    """Return True if a response that begins with `start` carries a result, not an error."""
    return _member_at(start) == b"result"


def one_line(raw: bytes) -> bytes:
    r"""Return a message as one line: JSON has line ends only between tokens.

    >>> one_line(b'{"jsonrpc":\r\n  "2.0"}\n')
    b'{"jsonrpc":    "2.0"} '
    """
    return raw.translate(_ONE_LINE) if b"\n" in raw or b"\r" in raw else raw


def offset_after_noise(raw: bytes) -> int | None:
    """Return the offset in `raw` of a message after noise; None if there is just noise.

    >>> offset_after_noise(b'oh {1} {"method":"ping"}'), offset_after_noise(b'{"a":{"result":1}')
    (7, None)
    >>> offset_after_noise(b'{"id":1,"result":{"a": "b{"jsonrpc":"2.0","id":2,"result":{}}')
    25
    """
    tries = min(_TRIES, max(4, _TRIED // len(raw)))
    offsets = [begins.start() for begins in islice(_BEGINS.finditer(raw, 1), tries)]
    offsets += sorted(raw.rfind(start, 1) for start in _starts(raw))  # one that broke off has many
    for offset in dict.fromkeys(each for each in offsets if each > 0):
        try:
            content = read(raw[offset:])
        except DocumentError:
            continue
        if isinstance(content, Message) and content.is_message:
            if content.responds and content.id is ABSENT:
                continue  # a part of it
            return offset
    return None


def end_of_first(raw: bytes) -> int | None:
    """Find the end of the JSON text at the start of a line, None if it does not begin with one.

    >>> end_of_first(b'{"id":1,"result":{}} {"id":2}'), end_of_first(b'{"id":1}')
    (21, 8)
    >>> end_of_first(b'{"id":1,"result":{"a": "b{"jsonrpc":"2.0","id":2,"result":{}}')
    """
    try:
        _read(raw)
    except (msgspec.DecodeError, RecursionError) as error:
        match = _TRAILING.search(str(error))
        return None if match is None else int(match[1]) - 1  # it counts the next byte too
    return len(raw)


def texts(raw: bytes) -> list[bytes]:
    """Return the JSON texts that a line begins with, and the rest of it; the line if they are many.

    >>> texts(b'{"id":1} {"id":2}x'), texts(b"x{}")
    ([b'{"id":1} ', b'{"id":2}', b'x'], [b'x{}'])
    """
    parts, rest = list[bytes](), raw
    while (end := end_of_first(rest)) is not None and end < len(rest):
        parts, rest = [*parts, rest[:end]], rest[end:]
        if len(parts) > _TRIES:
            return [raw]
    return [*parts, rest]


def may_hold_another(raw: bytes) -> bool:
    """Return True if another message may follow the first one of a long line (a quick check)."""
    # `rfind` skips more of a text than `find` does: a third of the time.
    if raw.startswith(_USUAL_STARTS[0]):  # all of this server have it; in a text it is escaped
        return raw.rfind(_USUAL_STARTS[0][1:], 2) > 0
    return any(raw.rfind(start, 1) > 0 for start in _starts(raw))


def _starts(raw: bytes) -> set[bytes]:
    """Return how a message may begin that follows on a line: a server spells all of them alike."""
    own = _START.match(raw)
    return {*_USUAL_STARTS, *(() if own is None else own.groups())}


def may_hold_blobs(raw: bytes) -> bool:
    """Return True if a response may have blocks with base64; False is certain."""
    inline = b'"data"' in raw and (b'"image"' in raw or b'"audio"' in raw)
    return inline or b'"blob"' in raw


def fails(raw: bytes) -> bool:
    """Return True if a message is a response that carries an error, and no result beside it.

    >>> fails(b'{"id":null,"error":{"code":1}}'), fails(b'{"id":1,"result":{}}'), fails(b'null')
    (True, False, False)
    """
    content = envelope(raw)
    return content.error is not ABSENT and content.result is ABSENT


def replaced(raw: bytes, **values: Any) -> bytes:
    """Return the object `raw` with these members set, every other member unchanged."""
    return encode({**outer_members(raw), **values})


def with_arguments(raw: bytes, params: Raw, arguments: dict[str, Any]) -> bytes:
    """Return the call `raw`, which has these `params`, with other arguments."""
    changed = replaced(bytes(params), arguments=Raw(encode(arguments)))
    return replaced(raw, params=Raw(changed))


def result(id: bytes | Raw, value: Any) -> bytes:
    """Return a response that carries `value`."""
    return encode({"jsonrpc": "2.0", "id": Raw(bytes(id)), "result": value})


def error(id: bytes | Raw, code: int, text: str) -> bytes:
    """Return an error response."""
    body = {"code": code, "message": text}
    return encode({"jsonrpc": "2.0", "id": Raw(bytes(id)), "error": body})


def refusal(id: bytes | Raw, text: str, modern: bool) -> bytes:
    """Return a tool result with `isError` and `text` (MCP: Tools, Error Handling).

    `modern` is true for requests of revision 2026-07-28, whose results name their `resultType`.
    """
    return completed(id, {"content": [{"type": "text", "text": text}], "isError": True}, modern)


def completed(id: bytes | Raw, value: dict[str, Any], modern: bool) -> bytes:
    """Return a response with a tool result that the proxy made; `modern` as in `refusal`."""
    return result(id, {"resultType": "complete", **value} if modern else value)
