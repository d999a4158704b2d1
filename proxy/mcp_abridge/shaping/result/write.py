"""Writes a document back into all the places of its result, with everything else unchanged."""

from collections.abc import Collection
from typing import Any, Literal

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from mcp_abridge.document.javascript import spelled
from mcp_abridge.document.message import members
from mcp_abridge.document.own_names import claim
from mcp_abridge.document.tree import Document, Value, compact, encode, text, to_text
from mcp_abridge.errors import DocumentError
from mcp_abridge.query.call import Notice
from mcp_abridge.ruleset.clients import Need, Shows
from mcp_abridge.ruleset.rule import Rule
from mcp_abridge.shaping.result.frame import (
    Copy,
    Frame,
    VisibleSize,
    as_text,
    content_of,
    notice_block,
    structured_of,
    visible_size,
    with_text,
)
from mcp_abridge.shaping.result.read import is_error, is_final, locate, parse

_NO_OBJECT = '[-0123456789"tfn'  # first characters of JSON that is no object

Written = tuple[dict[str, Raw], VisibleSize]
"""The members of a written result, and its size as a model sees it."""


def write(
    frame: Frame,
    document: Document,
    notices: list[Notice],
    copies: Literal["both", "text", "structured"] = "both",
    indent: int = -1,
    shows: Shows = "either",
) -> Written:
    """Return the result with `document` in all its places.

    Notices stand in the document if it is an object; an array becomes the `items` of an object, and
    a text that is a JSON string its `text`, since some clients join the texts of a result or refuse
    an array. Notices of a plain text, and bare ones, stand beside it: in the structuredContent that
    holds the text, and in a further text block. `copies` leaves one of the copies out. A client of
    the kind `shows` that compares the copies as JavaScript writes them gets a text so spelled.
    """
    places = frame.copies
    if notices:
        places, notices = _with_notices(document, places, notices)
    value = document.encode()
    content = text(document.cell[0]) if document.textual else None
    if content is None:
        layout = value if indent < 0 else msgspec.json.format(value, indent=indent)
        whole = any(
            copy.where == "structured"
            and _holder(frame, copy, document.kind, value, "", notices) is None
            for copy in places
        )
        compared = shows == "once_in_javascript" and indent < 0 and copies == "both" and whole
        content = spelled(value) if compared else None
        content = content or layout.decode("utf-8", "surrogatepass")
    result, blocks = dict(frame.members), list(frame.blocks)
    removed: set[int] = set()
    extra: dict[int, list[Raw]] = {}  # blocks that follow the one at a position
    for copy in places:
        if copy.where != "text":
            holder = _holder(frame, copy, document.kind, value, content, notices)
            if holder is not None:
                _add(holder, notices)
            result["structuredContent"] = Raw(value if holder is None else encode(holder))
            continue
        first = copy.blocks[0]
        if copy.each and document.kind == "array":
            extra[first] = _block_each(frame, copy, document)
            removed.add(first)
        else:
            inner = encode(content).decode() if copy.quoted else content
            blocks[first] = with_text(blocks[first], inner)
        removed.update(copy.blocks[1:])
        extra.setdefault(first, []).extend(map(notice_block, notices))
    texts = [copy for copy in frame.copies if copy.where == "text"]
    mirrored = 0 < len(texts) < len(frame.copies)  # other content is no copy
    if copies == "structured" and mirrored:
        removed.update(frame.document_blocks)
        extra.clear()
    if copies == "text" and mirrored:
        result.pop("structuredContent", None)
    if notices and not texts and copies != "structured":
        extra.setdefault(len(blocks) - 1, []).extend(map(notice_block, notices))
    if removed or extra:
        blocks = _arranged(blocks, removed, extra)
    result["content"] = Raw(encode(blocks))
    return result, visible_size(result, blocks)


def _with_notices(
    document: Document, copies: tuple[Copy, ...], notices: list[Notice]
) -> tuple[tuple[Copy, ...], list[Notice]]:
    """Put notices into the document if it can hold them; return its copies and those left over."""
    if not any(notice.bare or copy.each for notice in notices for copy in copies):
        if document.kind == "array":
            document.root.set({"items": document.cell[0]})
        elif document.textual and any(copy.quoted for copy in copies):
            document.root.set({"text": document.cell[0]})
            copies = tuple(replace(copy, quoted=False) for copy in copies)
    if document.kind != "object":
        return copies, notices
    _add(document.root.open(), notices)
    return copies, []


def _add(holder: dict[str, Value], notices: list[Notice]) -> None:
    for notice in notices:
        claim(holder, notice.name)
        holder[notice.name] = notice.value


def _block_each(frame: Frame, copy: Copy, document: Document) -> list[Raw]:
    """Return a block for each element of the document, with the members of that of the server."""
    last = len(copy.blocks) - 1
    return [
        with_text(frame.blocks[copy.blocks[min(index, last)]], to_text(element))
        for index, element in enumerate(document.root.open())
    ]


def _arranged(blocks: list[Raw], removed: set[int], extra: dict[int, list[Raw]]) -> list[Raw]:
    arranged = extra.pop(-1, [])
    for index, block in enumerate(blocks):
        if index not in removed:
            arranged.append(block)
        arranged.extend(extra.get(index, ()))
    return arranged


def _holder(
    frame: Frame, copy: Copy, kind: str, value: bytes, content: str, notices: list[Notice]
) -> dict[str, Value] | None:
    """Return the object for a document that cannot be the structuredContent itself, else None.

    If the server sent an object, clients accept nothing else (MCP, up to revision 2025-11-25).
    """
    if copy.as_block:
        [first, *_] = frame.document_blocks
        return {copy.member: [with_text(frame.blocks[first], content)]}
    if copy.member:
        return {copy.member: content}
    first = memoryview(frame.members["structuredContent"])[0]
    needs_object = first == 0x7B or kind == "null" or (kind == "string" and notices)
    if kind == "object" or not needs_object:
        return None
    return {"items": Raw(value)} if kind == "array" else {"text": content}


def own_result(document: Any, *, structured: bool = False, error: bool = False) -> dict[str, Any]:
    """Return a result of the proxy's own that holds `document`: plain values, or a text."""
    content = document if isinstance(document, str) else encode(document).decode()
    value: dict[str, Any] = {"content": [{"type": "text", "text": content}]}
    if structured:
        value["structuredContent"] = document if isinstance(document, dict) else {"text": content}
    return {**value, "isError": True} if error else value


def write_for(
    rule: Rule,
    frame: Frame,
    document: Document,
    notices: list[Notice],
    indent: int = -1,
    shows: Shows = "either",
    *,
    unfit: bool = False,
) -> Written:
    """Write the result of a rule, with structuredContent if the rule's schema promises it.

    If the server sent none, it is the document if that is an object, else all texts as `text`; it
    includes the notices. If the document is `unfit` for the schema, it is that in any case.
    """
    frame = as_text(frame) if unfit else frame
    if not rule.structures or frame.structured is not None:
        return write(frame, document, notices, rule.copies, indent, shows)
    if document.kind == "object" and not unfit:
        both = {**frame.members, "structuredContent": Raw(b"{}")}
        copies = (*frame.copies, Copy("structured"))
        frame = replace(frame, members=both, copies=copies)
        return write(frame, document, notices, indent=indent, shows=shows)
    _, texts = content_of(write(frame, document, [], indent=indent)[0])
    result, _ = write(frame, document, notices, indent=indent)
    value: dict[str, Value] = {"text": "\n".join(texts.values())}
    value.update((notice.name, notice.value) for notice in notices)
    result["structuredContent"] = Raw(encode(value))
    return result, visible_size(result, content_of(result)[0])


def add_structured(
    line: bytes, *, replaces: bool = False, textual: bool = False
) -> tuple[bytes, VisibleSize] | None:
    """Return a response with structuredContent added, and its size as a model sees it.

    A document that is no object becomes `{text}`. None for an error, for an incomplete result, and
    if there is structuredContent already. `replaces`: structuredContent is replaced if it has the
    document, an object, only as the text of a member. `textual`: it is `{text}` in any case.
    Raises DocumentError for an unreadable line.
    """
    parsed = parse(line, intact=True)
    result = parsed.members
    own = structured_of(result)
    has_own = own is not None and not textual
    if is_error(result) or not is_final(result) or (has_own and not replaces):
        return None
    blocks, texts = content_of(result)
    located = None if textual else locate(result, "auto", (blocks, texts))
    if located is None or located.document.kind != "object":
        if has_own:
            return None
        alone = () if own is None or texts else (bytes(own).decode(),)
        value = Raw(encode({"text": "\n".join((*texts.values(), *alone))}))
    elif has_own and not any(copy.member for copy in located.frame.copies):
        return None
    else:
        value = Raw(located.document.encode())
    whole = {**result, "structuredContent": value}
    return encode({**parsed.envelope, "result": whole}), visible_size(whole, blocks)


def mended(line: bytes, needs: Collection[Need]) -> bytes:
    """Return a response with the copy of its result without which a client fails or shows nothing.

    It is `line` itself if the client needs no other copy, or if it holds no result. Never raises.
    """
    if "object" not in needs and b'"structuredContent"' not in line:
        return line
    try:
        response = parse(line, intact=True)
        result = response.members
        more = _missing(result, needs) if is_final(result) else {}
    except (DocumentError, msgspec.DecodeError, UnicodeError, RecursionError):
        return line
    return encode({**response.envelope, "result": {**result, **more}}) if more else line


def _missing(result: dict[str, Raw], needs: Collection[Need]) -> dict[str, Raw]:
    blocks, texts = content_of(result)
    structured = structured_of(result)
    if structured is not None:
        if blocks or not {"text", "block"} & {*needs}:
            return {}
        content = bytes(structured).decode() if "text" in needs else ""
        return {"content": Raw(encode([{"type": "text", "text": content}]))}
    if "object" not in needs or 0 not in texts or text(members(blocks[0])["type"]) != "text":
        return {}
    content = texts[0].strip()
    if content[:1] not in _NO_OBJECT:
        return {}
    value = compact(content.encode())  # a line feed would end the message
    return {"structuredContent": Raw(encode({"result": Raw(value)}))}  # as the SDKs name it
