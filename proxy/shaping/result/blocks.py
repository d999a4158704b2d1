"""The blocks of a result's `content`, and the text of a block."""

from typing import Any

import msgspec
from msgspec import Raw, Struct

from proxy.document.message import members
from proxy.document.tree import ABSENT, compact, encode, text
from proxy.errors import DocumentError
from proxy.transforms.base import Notice


class _TextBlock(Struct):
    type: Raw = ABSENT
    text: Raw = ABSENT
    resource: Raw = ABSENT


BLOCKS = msgspec.json.Decoder(list[Raw])
_BLOCK = msgspec.json.Decoder(_TextBlock)


def content_of(raw: dict[str, Raw]) -> tuple[list[Raw], dict[int, str]]:
    """Return the blocks of a result, and the texts in them by position.

    Raises DocumentError if they cannot be read.
    """
    try:
        blocks = BLOCKS.decode(raw["content"]) if "content" in raw else []
    except (msgspec.DecodeError, RecursionError) as error:
        raise DocumentError(f"content: {error}") from error
    return blocks, {
        at: found for at, block in enumerate(blocks) if (found := text_of(block)) is not None
    }


def text_of(block: Raw) -> str | None:
    """Return the text of a text block or of an embedded text resource, None if it has none."""
    try:
        read = _BLOCK.decode(block)
        if read.type is ABSENT:
            return None
        if bytes(read.type) == b'"text"':
            return None if read.text is ABSENT else text(read.text)
        if bytes(read.type) == b'"resource"' and read.resource is not ABSENT:
            inner = members(read.resource).get("text")
            return None if inner is None else text(inner)
    except (msgspec.DecodeError, DocumentError):
        pass
    return None


def with_text(block: Raw, said: str) -> Raw:
    """Return a block with the text `said` that is the same in all else."""
    held = members(block)
    if "text" in held or "resource" not in held:
        return Raw(encode({**held, "text": said}))
    return Raw(encode({**held, "resource": {**members(held["resource"]), "text": said}}))


def of_notice(notice: Notice) -> Raw:
    """Return the text block for a notice that the document cannot hold."""
    value: Any = notice.value if notice.bare else {notice.name: notice.value}
    return Raw(encode({"type": "text", "text": compact(encode(value)).decode()}))
