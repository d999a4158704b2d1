"""Locates the document inside of a CallToolResult."""

from typing import Literal

import msgspec
from msgspec import Raw, Struct

from proxy.document.message import members
from proxy.document.surrogates import replace_lone
from proxy.document.tree import Document, compact, encode, level, loads, text
from proxy.errors import DocumentError
from proxy.shaping.result.blocks import content_of
from proxy.shaping.result.frame import Copy, Frame
from proxy.shaping.result.visible import VisibleSize

Kind = Literal["auto", "structured", "text", "blocks"]


class LocatedDocument(Struct):
    """A parsed result: its frame, its document, and the bytes that a model would see."""

    frame: Frame
    document: Document
    shown: VisibleSize


def read(
    raw: dict[str, Raw], kind: Kind, content: tuple[list[Raw], dict[int, str]] | None = None
) -> LocatedDocument | None:
    """Return the located document of a result, None if it has none of this kind.

    `content` is the content that `take_apart` has already decoded. Raises DocumentError if the
    result is no CallToolResult that can be read.
    """
    blocks, texts = content_of(raw) if content is None else content
    structured = raw.get("structuredContent")
    if structured is not None and bytes(memoryview(structured)[:4]) == b"null":
        structured = None
    shown = VisibleSize(
        None if structured is None else len(memoryview(structured)),
        sum(len(found) if found.isascii() else len(found.encode()) for found in texts.values()),
    )
    placed = _find(texts, structured, kind)
    if placed is None:
        return None
    document, copies = placed
    return LocatedDocument(Frame(raw, blocks, copies), document, shown)


def _find(
    texts: dict[int, str], structured: Raw | None, kind: Kind
) -> tuple[Document, tuple[Copy, ...]] | None:
    """Return the document and its places: the first interpretation that fits, in fixed order."""
    if structured is not None and kind != "blocks":
        if kind != "text":
            for at, found in texts.items():
                if _mirrors(found, structured):
                    return Document.read(bytes(structured)), (
                        Copy("structured"),
                        Copy("text", blocks=(at,)),
                    )
            if (placed := _text_itself(texts, structured)) is not None:
                return placed
        if (placed := _alone(texts, structured, kind)) is not None:
            return placed
        if kind != "text":
            return Document.read(bytes(structured)), (Copy("structured"),)
    if kind == "structured" or not texts:
        return None
    parsed = {} if kind == "text" else {at: _json(found) for at, found in texts.items()}
    readable = {at: document for at, document in parsed.items() if document is not None}
    if kind == "auto" and len(readable) == 1:
        [(at, document)] = readable.items()
        return document, (Copy("text", blocks=(at,)),)
    if kind == "blocks" or len(readable) == len(texts) > 1:
        whole = Document(
            [
                Raw(encode(found)) if (element := parsed[at]) is None else element.cell[0]
                for at, found in texts.items()
            ]
        )
        return whole, (Copy("text", blocks=tuple(texts), each=True),)
    if len(texts) == 1:
        [(at, found)] = texts.items()
        if found[:1] == '"' and (inner := _quoted(found)) is not None:
            return _json(inner) or Document(inner), (Copy("text", blocks=(at,), quoted=True),)
        return Document(found), (Copy("text", blocks=(at,)),)
    return None


def _text_itself(
    texts: dict[int, str], structured: Raw
) -> tuple[Document, tuple[Copy, ...]] | None:
    """Return the document of a structuredContent that is itself a text (MCP 2026-07-28)."""
    try:
        held = text(structured)
    except DocumentError:  # a lone surrogate
        return None
    if held is None:
        return None
    for at, found in texts.items():
        if found == held or (found[:1] == '"' and _quoted(found) == held):
            copy = Copy("text", blocks=(at,), quoted=found != held)
            return Document(held), (Copy("structured"), copy)
    return None


def _alone(
    texts: dict[int, str], structured: Raw, kind: Kind
) -> tuple[Document, tuple[Copy, ...]] | None:
    """Return the document in the only member of a structuredContent, if a text repeats it."""
    holder = members(structured) if memoryview(structured)[0] == 0x7B else {}
    if len(holder) != 1:
        return None
    [(member, value)] = holder.items()
    held = text(value)
    if held is not None:
        for at, found in texts.items():
            if found == held:
                document = Document(held) if kind == "text" else _json(held) or Document(held)
                return document, (Copy("member", member), Copy("text", blocks=(at,)))
        return None
    if kind == "text":
        return None
    # Some servers wrap a value that is no object, but only in structuredContent.
    mirrors = next((at for at, found in texts.items() if _mirrors(found, value)), None)
    blocks = tuple(texts) if mirrors is None else (mirrors,)
    if mirrors is None and not _mirrored_by_elements(list(texts.values()), value):
        return None
    return Document.read(bytes(structured)), (Copy("structured"), Copy("text", blocks=blocks))


def _json(found: str) -> Document | None:
    """Return the JSON object or array in a text, None if the text is none."""
    if (found[:64].lstrip() or found.lstrip())[:1] not in ("{", "["):
        return None
    try:
        return Document.read(found.strip().encode())
    except (DocumentError, UnicodeEncodeError):
        return None


def _quoted(found: str) -> str | None:
    try:
        return text(Document.read(found.strip().encode()).cell[0])
    except (DocumentError, UnicodeEncodeError):
        return None


def _mirrors(found: str, structured: Raw) -> bool:
    """Return True if a text is the JSON of `structured`: by bytes, by format, by value."""
    if not found or found[0] not in "{[ \n\t":
        # A number or a word; quoted texts are handled elsewhere.
        alike = len(found) == len(memoryview(structured)) and found[:1] != '"'
        return alike and found.encode("utf-8", "surrogatepass") == bytes(structured)
    raw = found.encode("utf-8", "surrogatepass")
    if raw == bytes(structured):
        return True
    raw = replace_lone(raw)  # as in `structured`
    try:
        if compact(raw) == compact(bytes(structured)):
            return True
    except msgspec.DecodeError:
        pass
    if not 0.3 < len(raw) / len(memoryview(structured)) < 12:
        return False
    try:
        same: bool = loads(raw) == loads(bytes(structured))
        return same
    except DocumentError:
        return False


def _mirrored_by_elements(texts: list[str], value: Raw) -> bool:
    """Return True if each text block is one element of the array `value`, in order."""
    elements = level(value)
    if not isinstance(elements, list) or not elements or len(elements) != len(texts):
        return False
    return all(
        found == text(element) or found.encode() == bytes(element) or _mirrors(found, element)
        for found, element in zip(texts, elements, strict=True)
    )
