"""A CallToolResult around its document: the document's places, and the content beside it.

A result often carries its document twice: as `structuredContent` and as text. A `Copy` is one of
these places, so that both are rewritten and never disagree.
"""

from typing import Literal

import msgspec
from msgspec import Raw, Struct
from msgspec.structs import replace

from proxy.document.message import members
from proxy.document.tree import ABSENT, Value, encode, text
from proxy.shaping.result.blocks import of_notice, text_of, with_text
from proxy.transforms.base import Notice


class Copy(Struct, frozen=True):
    """One place of the document.

    `member` is empty for structuredContent itself, else it names the string member that holds the
    text. `blocks` are the text blocks that hold it: the first is written, the others are removed
    (`each`: one element of an array in each). `quoted`: the text is itself one JSON string.
    """

    where: Literal["structured", "member", "text"]
    member: str = ""
    blocks: tuple[int, ...] = ()
    quoted: bool = False
    each: bool = False


class Frame(Struct):
    """A CallToolResult with its document taken out.

    `members` holds every member as the server sent it, `blocks` the elements of `content`.
    `bare`: the result had no document, and all its
    texts serve as one. `error`: the document is an error, to which no step of the rule applies but
    its bound. `facts`, in a snapshot, are the guard's facts of the call.
    """

    members: dict[str, Raw]
    blocks: list[Raw]
    copies: tuple[Copy, ...] = ()
    bare: bool = False
    error: bool = False
    facts: Raw = ABSENT

    @property
    def held(self) -> set[int]:
        """The positions of the blocks that hold the document."""
        return {at for copy in self.copies for at in copy.blocks}

    def encode(self, facts: dict[str, Value] | None = None) -> bytes:
        """Return the frame as bytes, without the copies of the document, but with `facts`."""
        emptied = dict(self.members)
        blocks = list(self.blocks)
        for copy in self.copies:
            if copy.where == "text":
                for at in copy.blocks:
                    blocks[at] = with_text(blocks[at], "")
            else:
                held = bytes(memoryview(emptied["structuredContent"])[:1])
                emptied["structuredContent"] = Raw(_EMPTIED.get(held, b"0"))
        emptied["content"] = Raw(b"[]")
        found = Raw(encode(facts or {}))
        return encode(replace(self, members=emptied, blocks=blocks, facts=found))

    @classmethod
    def decode(cls, raw: bytes) -> "Frame":
        """Return the frame that `encode` wrote."""
        return msgspec.json.decode(raw, type=cls)


_EMPTIED = {b"{": b"{}", b"[": b"[]", b'"': b'""'}  # by the first byte of a value


def as_text(frame: Frame) -> Frame:
    """Return the frame without structuredContent: its document is in a text block alone."""
    members = {name: held for name, held in frame.members.items() if name != "structuredContent"}
    places = tuple(copy for copy in frame.copies if copy.where == "text")
    if places:
        return replace(frame, members=members, copies=places)
    blocks = [*frame.blocks, Raw(encode({"type": "text", "text": ""}))]
    copies = (Copy("text", blocks=(len(blocks) - 1,)),)
    return replace(frame, members=members, blocks=blocks, copies=copies)


def without(frame: Frame, kinds: tuple[str, ...]) -> tuple[Frame, dict[str, int]]:
    """Return the frame without blocks of these types, and the number removed of each.

    Blocks that hold the document stay.
    """
    if not kinds:
        return frame, {}
    held = frame.held
    dropped: dict[str, int] = {}
    kept: list[Raw] = []
    places: dict[int, int] = {}
    for at, block in enumerate(frame.blocks):
        kind = text(members(block).get("type", Raw(b'""'))) or ""
        if kind in kinds and at not in held:
            dropped[kind] = dropped.get(kind, 0) + 1
        else:
            places[at] = len(kept)
            kept.append(block)
    return replace(frame, blocks=kept, copies=_moved(frame.copies, places)), dropped


def beside(frame: Frame) -> dict[int, str]:
    """Return the texts beside the document, by position."""
    held = frame.held
    return {
        at: found
        for at, block in enumerate(frame.blocks)
        if at not in held and (found := text_of(block)) is not None
    }


def shortened(frame: Frame, texts: dict[int, str], notices: list[Notice]) -> Frame:
    """Return the frame with only these texts beside the document, and notices behind the last."""
    gone = beside(frame).keys() - texts.keys()
    kept: list[Raw] = []
    places: dict[int, int] = {}
    for at, block in enumerate(frame.blocks):
        if at in gone:
            continue
        places[at] = len(kept)
        kept.append(with_text(block, texts[at]) if at in texts else block)
        if at == max(texts, default=-1):
            kept.extend(of_notice(notice) for notice in notices)
    return replace(frame, blocks=kept, copies=_moved(frame.copies, places))


def _moved(copies: tuple[Copy, ...], places: dict[int, int]) -> tuple[Copy, ...]:
    return tuple(replace(copy, blocks=tuple(places[at] for at in copy.blocks)) for copy in copies)
