"""Reads a response: its line is parsed, and the document inside of its CallToolResult located.

It decodes no more than needed: every other part stays the bytes that the server sent.
"""

import re
from typing import Literal

import msgspec
from msgspec import Raw, Struct

from mcp_abridge.document.message import members, outer_members, string_at
from mcp_abridge.document.surrogates import replace_lone
from mcp_abridge.document.tree import ABSENT, Document, Value, compact, encode, level, loads, text
from mcp_abridge.errors import DocumentError
from mcp_abridge.shaping.result.frame import (
    Copy,
    Frame,
    VisibleSize,
    content_of,
    size_of,
    structured_of,
    text_of,
)

Kind = Literal["auto", "structured", "text", "blocks"]
DocumentPlace = tuple[Document, tuple[Copy, ...]]
"""A document, and the copies of it in its result."""


class ParsedResponse(Struct):
    """A response line: the members around the result, and those of the result.

    `content` has the blocks, and the texts of text blocks by position; a text that was decoded is
    no longer in its block.
    """

    envelope: dict[str, Raw]
    members: dict[str, Raw]
    content: tuple[list[Raw], dict[int, str]] | None = None


_NEARLY_ALL = 0.98  # of the characters of all texts
_RECORD = re.compile(r"\s*([A-Za-z@_][^:\n]{0,40}:)\s[^\n]*\n\s*[A-Za-z@_][^:\n]{0,40}:(?:\s|$)")
_FEWEST = 3  # records


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


def parse(line: bytes, *, intact: bool = False) -> ParsedResponse:
    """Decode a response line as far as a rule needs it.

    The response of nearly every server, one text block and nothing unknown, is decoded in one pass;
    any other line level by level, and so is every line if the blocks must stay `intact`. Raises
    DocumentError for a line without a result object.
    """
    if intact:
        return _level_by_level(line)
    try:
        read = _ONE_TEXT.decode(line)
    except (msgspec.DecodeError, RecursionError):
        return _level_by_level(line)
    result, [block] = read.result, read.result.content
    ends = [("jsonrpc", read.jsonrpc), ("id", read.id)]
    first = line[:32].lstrip().startswith((b'{"result"', b'{ "result"'))
    envelope = dict([("result", ABSENT), *ends] if first else [*ends, ("result", ABSENT)])
    others = {
        "_meta": result.meta,
        "content": Raw(b"[]"),
        "structuredContent": result.structured,
        "isError": result.is_error,
        "resultType": result.kind,
    }
    emptied: dict[str, Value] = {"type": "text", "text": ""}
    if block.annotations is not ABSENT:
        emptied["annotations"] = block.annotations
    if block.meta is not ABSENT:
        emptied["_meta"] = block.meta
    return ParsedResponse(
        envelope,
        {name: value for name, value in others.items() if value is not ABSENT},
        ([Raw(encode(emptied))], {0: block.text}),
    )


def _level_by_level(line: bytes) -> ParsedResponse:
    envelope = outer_members(line)
    if "result" not in envelope or "error" in envelope:
        raise DocumentError("not a result alone")
    return ParsedResponse(envelope, members(envelope["result"]))


def is_final(result: dict[str, Raw]) -> bool:
    """Return True if a result is final: no task handle, no input request (MCP 2026-07-28 MRTR)."""
    kind = result.get("resultType")
    return (kind is None or text(kind) == "complete") and "task" not in result


def is_error(result: dict[str, Raw]) -> bool:
    """Return True if a result is marked as an error."""
    return "isError" in result and bytes(result["isError"]) == b"true"


class LocatedDocument(Struct):
    """A parsed result: its frame, its document, and the bytes that a model would see."""

    frame: Frame
    document: Document
    size: VisibleSize


def locate(
    result: dict[str, Raw], kind: Kind, content: tuple[list[Raw], dict[int, str]] | None = None
) -> LocatedDocument | None:
    """Return the located document of a result, None if it has none of this kind.

    `content` is the content that `parse` has already decoded. Raises DocumentError if the result is
    no CallToolResult that can be read.
    """
    blocks, texts = content_of(result) if content is None else content
    structured = structured_of(result)
    # Encoded once, to be read and to be counted; a text in ASCII takes no time.
    raws = {index: each.encode() for index, each in texts.items() if not each.isascii()}
    place = _find(texts, structured, kind, raws)
    if place is None:
        return None
    document, copies = place
    total = sum(len(raws.get(index, content)) for index, content in texts.items())
    size = size_of(structured, tuple(texts.values()), total)
    return LocatedDocument(Frame(result, blocks, copies), document, size)


def locate_texts(
    result: dict[str, Raw], content: tuple[list[Raw], dict[int, str]] | None = None
) -> LocatedDocument | None:
    """Return the document of a result that has none: its texts, or the one that is nearly all.

    Without it, a long text after a line of greeting would never be read as what it is. Records of
    `name: value` lines, one in each text, are one text. Arguments and errors are those of `locate`.
    """
    blocks, texts = content_of(result) if content is None else content
    index = max(texts, key=lambda each: len(texts[each]), default=-1)
    size = size_of(structured_of(result), tuple(texts.values()))
    if index == -1 or len(texts[index]) < _NEARLY_ALL * sum(map(len, texts.values())):
        records = _records([*texts.values()])
        if records is None:
            return locate(result, "blocks", (blocks, texts))
        copies = (Copy("text", blocks=tuple(texts)),)
        return LocatedDocument(Frame(result, blocks, copies), Document(records), size)
    frame = Frame(result, blocks, (Copy("text", blocks=(index,)),))
    return LocatedDocument(frame, Document(texts[index]), size)


def _records(texts: list[str]) -> str | None:
    """Return texts as one, if each but the first is read as a record that begins as the last."""
    heads = [match and match[1] for match in map(_RECORD.match, texts)]
    if len(heads) <= _FEWEST or heads[-1] is None or {*heads[1:]} != {heads[-1]}:
        return None
    from mcp_abridge.summary.repeated import repeated

    joined = "\n\n".join(map(str.strip, texts))
    rows = repeated(joined)
    return joined if rows and len(rows.rows) == len(texts) - (heads[0] != heads[-1]) else None


def locate_links(result: dict[str, Raw], least: int) -> LocatedDocument | None:
    """Return the list of a result's links to resources as its document, each a text block then.

    None if they have fewer than `least` bytes, or beside a structuredContent.
    """
    blocks, texts = content_of(result)
    links = {
        index: compact(bytes(block)).decode()
        for index, block in enumerate(blocks)
        if string_at(block, "type") == "resource_link"
    }
    if sum(map(len, links.values())) < least or structured_of(result) is not None:
        return None
    empty = Raw(encode({"type": "text", "text": ""}))
    blocks = [empty if index in links else block for index, block in enumerate(blocks)]
    located = locate(result, "blocks", (blocks, links))
    if located is not None:
        located.size = size_of(None, (*texts.values(), *links.values()))
    return located


def _find(
    texts: dict[int, str], structured: Raw | None, kind: Kind, raws: dict[int, bytes]
) -> DocumentPlace | None:
    """Return the document and its copies: the first interpretation that fits, in fixed order.

    `raws` are those texts that are not in ASCII, encoded.
    """
    if structured is not None and kind != "blocks":
        place = _of_structured(texts, structured, kind)
        if place is not None:
            return place
    if kind == "structured" or not texts:
        return None
    some = {} if kind == "text" else texts
    parsed = {index: _json(each, raws.get(index)) for index, each in some.items()}
    readable = {index: document for index, document in parsed.items() if document is not None}
    if kind == "auto" and len(readable) == 1:
        [(index, document)] = readable.items()
        return document, (Copy("text", blocks=(index,)),)
    if kind == "auto" and len(readable) > 1 and [*readable] in ([*texts], [*texts][1:]):
        texts, kind = {index: texts[index] for index in readable}, "blocks"
    if kind == "blocks":
        elements = [
            Raw(encode(content)) if (element := parsed[index]) is None else element.cell[0]
            for index, content in texts.items()
        ]
        return Document(elements), (Copy("text", blocks=tuple(texts), each=True),)
    if len(texts) > 1:
        return None
    [(index, content)] = texts.items()
    if content[:1] == '"' and (inner := _quoted(content)) is not None:
        return _json(inner) or Document(inner), (Copy("text", blocks=(index,), quoted=True),)
    return Document(content), (Copy("text", blocks=(index,)),)


def _of_structured(texts: dict[int, str], structured: Raw, kind: Kind) -> DocumentPlace | None:
    """Return the document of a structuredContent; for `text`, only one that is a text as well."""
    if kind == "text":
        return _in_only_member(texts, structured, kind)
    for index, content in texts.items():
        if _mirrors(content, structured):
            copy = Copy("text", blocks=(index,))
            return Document.read(bytes(structured)), (Copy("structured"), copy)
    place = _text_itself(texts, structured) or _in_only_member(texts, structured, kind)
    return place or (Document.read(bytes(structured)), (Copy("structured"),))


def _text_itself(texts: dict[int, str], structured: Raw) -> DocumentPlace | None:
    """Return the document of a structuredContent that is itself a text (MCP 2026-07-28)."""
    try:
        value = text(structured)
    except DocumentError:  # a lone surrogate
        return None
    if value is None:
        return None
    for index, content in texts.items():
        if content == value or (content[:1] == '"' and _quoted(content) == value):
            copy = Copy("text", blocks=(index,), quoted=content != value)
            return Document(value), (Copy("structured"), copy)
    return None


def _in_only_member(texts: dict[int, str], structured: Raw, kind: Kind) -> DocumentPlace | None:
    """Return the document in the only member of a structuredContent, if a text repeats it."""
    holder = members(structured) if memoryview(structured)[0] == 0x7B else {}
    if len(holder) != 1:
        return None
    [(member, value)] = holder.items()
    own = text(value)
    as_block = own is None
    if as_block:
        # The text of an array of one text block: what FastMCP makes of a list of blocks.
        blocks = level(value)
        own = text_of(blocks[0]) if isinstance(blocks, list) and len(blocks) == 1 else None
    for index, content in texts.items():
        if content == own:
            document = Document(own) if kind == "text" else _json(own) or Document(own)
            copy = Copy("member", member, as_block=as_block)
            return document, (copy, Copy("text", blocks=(index,)))
    if not as_block or kind == "text":
        return None
    # Some servers wrap a value that is no object, but only in structuredContent.
    mirror = next((index for index, each in texts.items() if _mirrors(each, value)), None)
    if mirror is None and not _mirrored_by_elements(list(texts.values()), value):
        return None
    copy = Copy("text", blocks=tuple(texts) if mirror is None else (mirror,))
    return Document.read(bytes(structured)), (Copy("structured"), copy)


def _json(content: str, raw: bytes | None = None) -> Document | None:
    """Return the JSON object or array in a text, None if the text is none; `raw`: encoded."""
    if (content[:64].lstrip() or content.lstrip())[:1] not in ("{", "["):
        return None
    stripped = content.strip()
    try:
        return Document.read(raw if raw and stripped == content else stripped.encode())
    except (DocumentError, UnicodeEncodeError):
        return None


def _quoted(content: str) -> str | None:
    try:
        return text(Document.read(content.strip().encode()).cell[0])
    except (DocumentError, UnicodeEncodeError):
        return None


def _mirrors(content: str, structured: Raw) -> bool:
    """Return True if a text is the JSON of `structured`: by bytes, by format, by value."""
    length = len(memoryview(structured))
    if not content or content[0] not in "{[ \n\t":
        # A number or a word; quoted texts are handled elsewhere.
        alike = len(content) == length and content[:1] != '"'
        return alike and content.encode("utf-8", "surrogatepass") == bytes(structured)
    raw = content.encode("utf-8", "surrogatepass")
    if raw == bytes(structured):
        return True
    raw = replace_lone(raw)  # as in `structured`
    try:
        same = compact(raw) == compact(bytes(structured))
        comparable = 0.3 < len(raw) / length < 12
        return same or (comparable and bool(loads(raw) == loads(bytes(structured))))
    except (msgspec.DecodeError, DocumentError):
        return False


def _mirrored_by_elements(texts: list[str], value: Raw) -> bool:
    """Return True if each text block is one element of the array `value`, in order."""
    elements = level(value)
    if not isinstance(elements, list) or not elements or len(elements) != len(texts):
        return False
    return all(
        content == text(element) or content.encode() == bytes(element) or _mirrors(content, element)
        for content, element in zip(texts, elements, strict=True)
    )
