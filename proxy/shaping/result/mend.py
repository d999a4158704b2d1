"""Adds the copy of a result without which a client fails or shows nothing: see Client.needs."""

from collections.abc import Collection

import msgspec
from msgspec import Raw

from proxy.document.message import members
from proxy.document.tree import compact, encode, text
from proxy.errors import DocumentError
from proxy.ruleset.clients import Need
from proxy.shaping.result.frame import content_of
from proxy.shaping.result.read import is_final, parse

_MEMBER = "result"  # as the SDKs name a value that is no object
_FIRST = '[-0123456789"tfn'  # characters of JSON that is no object


def mended(line: bytes, needs: Collection[Need]) -> bytes:
    """Return a response whose result the client can use; never raises.

    It is `line` itself if nothing is wrong with its result, or if it holds none.
    """
    try:
        response = parse(line, intact=True)
        result = response.members
        more = _missing(result, needs) if is_final(result) else {}
    except (DocumentError, msgspec.DecodeError, UnicodeError, RecursionError):
        return line
    return encode({**response.envelope, "result": {**result, **more}}) if more else line


def _missing(result: dict[str, Raw], needs: Collection[Need]) -> dict[str, Raw]:
    blocks, texts = content_of(result)
    structured = result.get("structuredContent")
    if structured is not None and bytes(structured) != b"null":
        if "text" not in needs or blocks:
            return {}
        block = {"type": "text", "text": bytes(structured).decode()}
        return {"content": Raw(encode([block]))}
    if "object" not in needs or 0 not in texts or text(members(blocks[0])["type"]) != "text":
        return {}
    content = texts[0].strip()
    if content[:1] not in _FIRST:
        return {}
    value = compact(content.encode())  # a line feed would end the message
    return {"structuredContent": Raw(encode({_MEMBER: Raw(value)}))}
