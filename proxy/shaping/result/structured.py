"""Puts a document into the structuredContent that the tool's schema promises."""

from msgspec import Raw
from msgspec.structs import replace

from proxy.document.tree import Document, Value, encode
from proxy.shaping.result.blocks import BLOCKS, content_of
from proxy.shaping.result.frame import Copy, Frame
from proxy.shaping.result.locate import read
from proxy.shaping.result.parse import complete, failed, take_apart
from proxy.shaping.result.visible import VisibleSize, visible
from proxy.shaping.result.write import write
from proxy.transforms.base import Notice


def promised(
    frame: Frame, document: Document, notices: list[Notice], indent: int = -1
) -> tuple[dict[str, Raw], VisibleSize]:
    """Do what `write` does, and add the structuredContent that the server did not send.

    It is the document if that is an object, else all texts as `text`; it includes the notices.
    """
    if document.kind == "object":
        members = {**frame.members, "structuredContent": Raw(b"{}")}
        copies = (*frame.copies, Copy("structured"))
        return write(
            replace(frame, members=members, copies=copies), document, notices, indent=indent
        )
    _, texts = content_of(write(frame, document, [], indent=indent)[0])
    raw, _ = write(frame, document, notices, indent=indent)
    held: dict[str, Value] = {"text": "\n".join(texts.values())}
    held.update((notice.name, notice.value) for notice in notices)
    raw["structuredContent"] = Raw(encode(held))
    return raw, visible(raw, BLOCKS.decode(raw["content"]))


def structured(line: bytes, *, itself: bool = False) -> tuple[bytes, VisibleSize] | None:
    """Return a response with structuredContent added, and its size as a model sees it.

    A document that is no object becomes `{text}`. None for an error, for an incomplete result, and
    if there is structuredContent already; `itself`: unless that holds the document, an object, only
    as the text of a member. Raises DocumentError if the line cannot be read.
    """
    parts = take_apart(line, intact=True)
    raw = parts.members
    held = raw.get("structuredContent")
    there = held is not None and bytes(held) != b"null"
    if failed(raw) or not complete(raw) or (there and not itself):
        return None
    blocks, texts = content_of(raw)
    reading = read(raw, "auto", (blocks, texts))
    document = None if reading is None else reading.document
    if there and (
        reading is None
        or not any(copy.member for copy in reading.frame.copies)
        or reading.document.kind != "object"
    ):
        return None
    if document is not None and document.kind == "object":
        value = Raw(document.encode())
    else:
        value = Raw(encode({"text": "\n".join(texts.values())}))
    whole = {**raw, "structuredContent": value}
    return encode({**parts.envelope, "result": whole}), visible(whole, blocks)
