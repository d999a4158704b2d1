"""A read of a resource as the call of a tool: without it, each step would exist twice.

The result of resources/read is shaped as one of a tool whose blocks are embedded resources. Both
have the same members (MCP: Resources, Reading Resources; Tools, Embedded Resources).
"""

from typing import Any

from msgspec import Raw
from msgspec.structs import replace

from mcp_abridge.document import message
from mcp_abridge.document.message import members, outer_members
from mcp_abridge.document.tree import encode, level, text
from mcp_abridge.errors import DocumentError
from mcp_abridge.shaping.job import ShapeJob, ShapeResult
from mcp_abridge.shaping.result.frame import content_of
from mcp_abridge.shaping.result.read import is_error

_HEAD = b'{"type":"resource","resource":'
_JSON, _TEXT = "application/json", "text/plain"
_UNCACHED = {"ttlMs": 0, "cacheScope": "private"}  # what a stateless result must say of itself


def as_tool_result(line: bytes) -> bytes:
    """Return a response to a read as a tool's response; any other response as it is.

    Each content becomes a block. Raises DocumentError if the line is no JSON object.

    >>> as_tool_result(b'{"id":1,"result":{"contents":[{"uri":"a:b","text":"c"}]}}')
    b'{"id":1,"result":{"content":[{"type":"resource","resource":{"uri":"a:b","text":"c"}}]}}'
    """
    outer = outer_members(line)
    try:
        result = members(outer.get("result", Raw(b"null")))
        if "content" in result:
            return line
        contents = level(result.pop("contents"))
        blocks = b",".join(_HEAD + bytes(each) + b"}" for each in contents)
    except (DocumentError, KeyError, TypeError):
        return line
    return encode({**outer, "result": {**result, "content": Raw(b"[" + blocks + b"]")}})


def as_resource(job: ShapeJob, result: ShapeResult) -> ShapeResult:
    """Return the result of shaping a tool's response as that of a read, if it is another one.

    A notice beside a text follows in that text, since some clients read the first content alone.
    The type of a content that became JSON, or is JSON no more, says so. An error of a tool is one
    of the protocol, since a read has no other; but why a view is refused is a text, since opencode
    shows its model no error.
    """
    if result.raw is job.raw:
        return result
    outer = outer_members(result.raw)
    if "result" not in outer:
        return result
    parts = members(outer["result"])
    blocks, texts = content_of(parts)
    if is_error(parts) and job.view is None:
        line = message.error(job.id, message.PROXY_ERROR, "\n".join(texts.values()))
        return replace(result, raw=line)
    contents: list[Any] = []
    for index, block in enumerate(blocks):
        own, last = members(block).get("resource"), contents[-1:]
        if own is not None:
            contents.append(_typed(own, texts.get(index)))
        elif last and isinstance(last[0], dict):
            last[0]["text"] = f"{text(last[0]['text'])}\n{texts[index]}"
        else:
            kind = _JSON if texts[index].startswith("{") else _TEXT
            contents.append({"uri": job.uri, "mimeType": kind, "text": texts[index]})
    rest = {name: each for name, each in parts.items() if name not in ("content", "isError")}
    whole = {**(_UNCACHED if job.modern else {}), **rest, "contents": contents}
    return replace(result, raw=encode({**outer, "result": whole}))


def _typed(content: Raw, value: str | None) -> Any:
    if value is None:
        return content
    own: dict[str, Any] = {**members(content)}
    kind = text(own.get("mimeType")) or ""
    if "json" in kind and value[:1] not in '{["':
        own["mimeType"] = _TEXT
    elif kind and "json" not in kind and value.startswith('{"'):
        own["mimeType"] = _JSON
    return own
