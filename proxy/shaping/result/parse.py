"""Takes a response line apart: the members around its result, and those in it.

It decodes no more than needed: every other part stays the bytes that the server sent.
"""

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from proxy.document.message import members, outer_members
from proxy.document.tree import ABSENT, Value, encode, text
from proxy.errors import DocumentError


class ParsedResponse(Struct):
    """A response line taken apart: the members around the result, and those of the result.

    `content` has the blocks, and the texts of text blocks by position; a text that was decoded is
    no longer in its block.
    """

    envelope: dict[str, Raw]
    members: dict[str, Raw]
    content: tuple[list[Raw], dict[int, str]] | None = None


class _OneText(Struct, forbid_unknown_fields=True, omit_defaults=True):
    type: Literal["text"]
    text: str
    annotations: Raw = ABSENT
    meta: Raw = msgspec.field(default=ABSENT, name="_meta")


class _OneTextResult(Struct, forbid_unknown_fields=True):
    content: tuple[_OneText]
    structured: Raw = msgspec.field(default=ABSENT, name="structuredContent")
    is_error: Raw = msgspec.field(default=ABSENT, name="isError")
    meta: Raw = msgspec.field(default=ABSENT, name="_meta")
    kind: Raw = msgspec.field(default=ABSENT, name="resultType")


class _OneTextLine(Struct, forbid_unknown_fields=True):
    jsonrpc: Raw
    id: Raw
    result: _OneTextResult


_ONE_TEXT = msgspec.json.Decoder(_OneTextLine)


def take_apart(line: bytes, *, intact: bool = False) -> ParsedResponse:
    """Decode a response line as far as a rule needs it.

    The response of nearly every server, one text block and nothing unknown, is decoded in one pass;
    any other line level by level, and so is every line if the blocks must stay `intact`. Raises
    DocumentError for a line without a result object.
    """
    if intact:
        return _level_by_level(line)
    try:
        found = _ONE_TEXT.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return _level_by_level(line)
    [block] = found.result.content
    kept = [("jsonrpc", found.jsonrpc), ("id", found.id)]
    first = line[:32].lstrip().startswith((b'{"result"', b'{ "result"'))
    envelope = dict([("result", ABSENT), *kept] if first else [*kept, ("result", ABSENT)])
    held = found.result
    others = {
        name: value
        for name, value in (
            ("_meta", held.meta),
            ("content", Raw(b"[]")),
            ("structuredContent", held.structured),
            ("isError", held.is_error),
            ("resultType", held.kind),
        )
        if value is not ABSENT
    }
    said, block.text = block.text, ""
    beside = [("annotations", block.annotations), ("_meta", block.meta)]
    emptied: dict[str, Value] = {"type": "text", "text": ""}
    emptied.update((name, value) for name, value in beside if value is not ABSENT)
    return ParsedResponse(envelope, others, ([Raw(encode(emptied))], {0: said}))


def _level_by_level(line: bytes) -> ParsedResponse:
    envelope = outer_members(line)
    if "result" not in envelope or "error" in envelope:
        raise DocumentError("not a result alone")
    return ParsedResponse(envelope, members(envelope["result"]))


def complete(raw: dict[str, Raw]) -> bool:
    """Return True if a result is final: no task handle, no input request (MCP 2026-07-28 MRTR)."""
    kind = raw.get("resultType")
    return (kind is None or text(kind) == "complete") and "task" not in raw


def failed(raw: dict[str, Raw]) -> bool:
    """Return True if a result is marked as an error."""
    return "isError" in raw and bytes(raw["isError"]) == b"true"
