"""A CallToolResult around its document: the document's places, and the content beside it.

A result often carries its document twice: as `structuredContent` and as text. A `Copy` is one of
these places, so that both are rewritten and never disagree.
"""

from collections.abc import Callable
from functools import cached_property
from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_abridge.document.javascript import spelled
from mcp_abridge.document.message import members
from mcp_abridge.document.own_names import marked
from mcp_abridge.document.tree import ABSENT, Value, compact, encode, text
from mcp_abridge.errors import DocumentError
from mcp_abridge.query.call import Notice
from mcp_abridge.ruleset.clients import Shows


class _TextBlock(Struct):
    type: Raw = ABSENT
    text: Raw = ABSENT
    resource: Raw = ABSENT


_BLOCKS = msgspec.json.Decoder(list[Raw])
_BLOCK = msgspec.json.Decoder(_TextBlock)


def content_of(result: dict[str, Raw]) -> tuple[list[Raw], dict[int, str]]:
    """Return the blocks of a result, and their texts by position. Raises DocumentError."""
    try:
        blocks = _BLOCKS.decode(result["content"]) if "content" in result else []
    except (msgspec.DecodeError, RecursionError) as error:
        raise DocumentError(f"content: {error}") from error
    texts = ((index, text_of(block)) for index, block in enumerate(blocks))
    return blocks, {index: content for index, content in texts if content is not None}


def structured_of(result: dict[str, Raw]) -> Raw | None:
    """Return the structuredContent of a result, None if there is none or it is null."""
    value = result.get("structuredContent")
    return None if value is None or bytes(memoryview(value)[:5]) == b"null" else value


def text_of(block: Raw) -> str | None:
    """Return the text of a text block or of an embedded text resource, None if it has none.

    Raises DocumentError for a text that cannot be decoded: if it passed as no text, it would keep
    what steps drop from a structuredContent beside it.
    """
    try:
        read = _BLOCK.decode(block)
        kind, value = bytes(read.type), read.text
        if kind == b'"resource"':
            value = members(read.resource).get("text", ABSENT)
    except (msgspec.DecodeError, DocumentError):
        return None
    return text(value) if kind in (b'"text"', b'"resource"') and value is not ABSENT else None


def with_text(block: Raw, content: str) -> Raw:
    """Return a block with another text that is the same in all else."""
    own = members(block)
    if "text" in own or "resource" not in own:
        return Raw(encode({**own, "text": content}))
    return Raw(encode({**own, "resource": {**members(own["resource"]), "text": content}}))


def notice_block(notice: Notice) -> Raw:
    """Return the text block for a notice that the document cannot hold."""
    value: Any = notice.value if notice.bare else {notice.name: notice.value}
    return Raw(encode({"type": "text", "text": compact(encode(value)).decode()}))


_BLOCK_MEMBERS = len(b'{"type":"text","text":},')
_LONG = 64 << 10  # bytes of a copy that is not worth to be spelled anew: no client shows it whole
_MEMBERS = len(b'{"content":[],"structuredContent":,"isError":false,"resultType":"complete"}')


class VisibleSize(Struct, frozen=True, dict=True):
    """Bytes of a result that a model sees, for clients that show one copy or the other.

    `texts` are those of the content blocks, whose escapes some clients show; `value` is the
    structuredContent.
    """

    structured: int | None
    text: int
    texts: tuple[str, ...] = ()
    value: Raw | None = None

    def to(self, shows: Shows) -> int:
        """Return the bytes that a client of this kind shows."""
        structured, text = self.structured or 0, self.text
        match shows:
            case "structured":
                return structured or text
            case "text":
                return text
            case "blocks":
                return self._escaped
            case "result":
                return structured + self._escaped + _MEMBERS
            case "both":
                return structured + text
            case "once" | "once_in_javascript" if not self.equal(shows):
                return structured + text
        return max(structured, text)

    def equal(self, shows: Shows) -> bool:
        """Tell whether a client that shows two equal copies once finds them equal."""
        return self.structured == self.text if shows == "once" else self._equal_in_javascript

    @cached_property
    def _equal_in_javascript(self) -> bool:
        if self.value is None or len(memoryview(self.value)) > _LONG:
            return self.structured == self.text
        return spelled(bytes(self.value)) in self.texts

    @property
    def _escaped(self) -> int:
        return 2 + sum(len(encode(content)) + _BLOCK_MEMBERS for content in self.texts)

    @property
    def most(self) -> int:
        """The bytes of the larger copy."""
        return self.to("either")


def visible_size(result: dict[str, Raw], blocks: list[Raw]) -> VisibleSize:
    """Return the size of a result as a model sees it."""
    structured = structured_of(result)
    texts = (text_of(block) for block in blocks)
    return size_of(structured, tuple(content for content in texts if content is not None))


def size_of(
    structured: Raw | None, texts: tuple[str, ...], total: int | None = None
) -> VisibleSize:
    """Return the size of a result with this structuredContent and these texts.

    `total` is the number of bytes of the texts, if they have been counted.
    """
    if total is None:
        total = sum(len(each) if each.isascii() else len(each.encode()) for each in texts)
    length = None if structured is None else len(memoryview(structured))
    return VisibleSize(length, total, texts, structured)


class Copy(Struct, frozen=True):
    """One place of the document.

    `member` is empty for structuredContent itself, else it names the string member that holds the
    text; `as_block`: an array of one text block that does. `blocks` are the text blocks that hold
    it: the first is written, the others are removed (`each`: one element of an array in each).
    `quoted`: the text is itself one JSON string.
    """

    where: Literal["structured", "member", "text"]
    member: str = ""
    as_block: bool = False
    blocks: tuple[int, ...] = ()
    quoted: bool = False
    each: bool = False


class Frame(Struct):
    """A CallToolResult with its document taken out.

    `members` holds every member as the server sent it, `blocks` the elements of `content`. `bare`:
    the result had no document, and all its texts serve as one. `error`: the document is an error,
    to which no step of the rule applies but its bound. `facts`, in a snapshot, are the guard's
    facts of the call.
    """

    members: dict[str, Raw]
    blocks: list[Raw]
    copies: tuple[Copy, ...] = ()
    bare: bool = False
    error: bool = False
    facts: Raw = ABSENT

    @property
    def document_blocks(self) -> set[int]:
        """The positions of the blocks that hold the document."""
        return {index for copy in self.copies for index in copy.blocks}

    @property
    def structured(self) -> Raw | None:
        """The structuredContent, None if there is none or it is null."""
        return structured_of(self.members)

    def encode(self, facts: dict[str, Value] | None = None) -> bytes:
        """Return the frame as bytes, without the copies of the document, but with `facts`."""
        emptied = dict(self.members)
        blocks = list(self.blocks)
        for copy in self.copies:
            if copy.where == "text":
                for index in copy.blocks:
                    blocks[index] = with_text(blocks[index], "")
            else:
                first = bytes(memoryview(emptied["structuredContent"])[:1])
                emptied["structuredContent"] = Raw(_EMPTIED.get(first, b"0"))
        emptied["content"] = Raw(b"[]")
        return encode(replace(self, members=emptied, blocks=blocks, facts=Raw(encode(facts or {}))))

    @classmethod
    def decode(cls, raw: bytes) -> "Frame":
        """Return the frame that `encode` wrote."""
        return msgspec.json.decode(raw, type=cls)


_EMPTIED = {b"{": b"{}", b"[": b"[]", b'"': b'""'}  # by the first byte of a value


def as_text(frame: Frame) -> Frame:
    """Return the frame without structuredContent: its document is in a text block alone."""
    members = {name: value for name, value in frame.members.items() if name != "structuredContent"}
    copies = tuple(copy for copy in frame.copies if copy.where == "text")
    if copies:
        return replace(frame, members=members, copies=copies)
    blocks = [*frame.blocks, Raw(encode({"type": "text", "text": ""}))]
    copies = (Copy("text", blocks=(len(blocks) - 1,)),)
    return replace(frame, members=members, blocks=blocks, copies=copies)


def as_structure(frame: Frame) -> Frame:
    """Return the frame in which the document is structure, no text in a member or in quotes."""
    copies = (
        Copy("structured") if copy.where == "member" else replace(copy, quoted=False)
        for copy in frame.copies
    )
    return replace(frame, copies=tuple(copies))


def without_blocks(frame: Frame, kinds: tuple[str, ...]) -> tuple[Frame, dict[str, int]]:
    """Return the frame without other blocks of these types, and the number removed of each."""
    stays = frame.document_blocks
    dropped: dict[str, int] = {}

    def change(index: int, block: Raw) -> list[Raw]:
        kind = text(members(block).get("type", Raw(b'""'))) or ""
        if kind not in kinds or index in stays:
            return [block]
        dropped[kind] = dropped.get(kind, 0) + 1
        return []

    return _with_blocks(frame, change), dropped


def other_texts(frame: Frame) -> dict[int, str]:
    """Return the texts beside the document, by position."""
    skip = frame.document_blocks
    texts = ((i, text_of(block)) for i, block in enumerate(frame.blocks) if i not in skip)
    return {index: content for index, content in texts if content is not None}


def with_marked_texts(frame: Frame) -> Frame:
    """Return the frame with texts beside the document that look like notices marked as others'."""
    blocks = list(frame.blocks)
    for index, content in other_texts(frame).items():
        raw = Raw(content.encode("utf-8", "surrogatepass"))
        if content.lstrip().startswith("{") and (own := marked(raw)) != raw:
            blocks[index] = with_text(blocks[index], bytes(own).decode("utf-8", "surrogatepass"))
    return replace(frame, blocks=blocks)


def with_other_texts(frame: Frame, texts: dict[int, str], notices: list[Notice]) -> Frame:
    """Return the frame with only these texts beside the document, and notices behind the last."""
    removed = other_texts(frame).keys() - texts.keys()

    def change(index: int, block: Raw) -> list[Raw]:
        if index not in texts:
            return [] if index in removed else [block]
        behind = notices if index == max(texts) else []
        return [with_text(block, texts[index]), *map(notice_block, behind)]

    return _with_blocks(frame, change)


def _with_blocks(frame: Frame, change: Callable[[int, Raw], list[Raw]]) -> Frame:
    """Return the frame with each block changed to some; a block of the document stays one."""
    blocks: list[Raw] = []
    moves: dict[int, int] = {}
    for index, block in enumerate(frame.blocks):
        moves[index] = len(blocks)
        blocks += change(index, block)
    copies = [replace(copy, blocks=tuple(moves[i] for i in copy.blocks)) for copy in frame.copies]
    return replace(frame, blocks=blocks, copies=tuple(copies))
