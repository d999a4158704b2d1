"""Writes a document back into all the places of its result, with everything else unchanged."""

from typing import Any, Literal

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from proxy.document.tree import Document, Value, compact, encode, text
from proxy.shaping.result.blocks import of_notice, with_text
from proxy.shaping.result.frame import Copy, Frame
from proxy.shaping.result.visible import VisibleSize, visible
from proxy.transforms.base import Notice, unused_name


def write(
    frame: Frame,
    document: Document,
    notices: list[Notice],
    copies: Literal["both", "text", "structured"] = "both",
    indent: int = -1,
) -> tuple[dict[str, Raw], VisibleSize]:
    """Return the result with `document` in all its places, and its size as a model sees it.

    Notices stand in the document if it is an object; an array becomes the `items` of an object, and
    a text that is a JSON string its `text`, since some clients join the texts of a result or refuse
    an array. Notices of a plain text, and bare ones, stand beside it: in the structuredContent that
    holds the text, and in a further text block. `copies` leaves one of the copies out.
    """
    copied = frame.copies
    beside = any(notice.bare or copy.each for notice in notices for copy in copied)
    if notices and not beside and document.kind == "array":
        document.root.set({"items": document.cell[0]})
    elif notices and not beside and document.textual and any(copy.quoted for copy in copied):
        document.root.set({"text": document.cell[0]})
        copied = tuple(replace(copy, quoted=False) for copy in copied)
    if notices and document.kind == "object":
        root = document.root.open()
        for notice in notices:
            root[unused_name(root, notice.name)] = notice.value
        notices = []
    written = document.encode()
    said = text(document.cell[0]) if document.textual else None
    if said is None:
        laid = written if indent < 0 else msgspec.json.format(written, indent=indent)
        said = laid.decode("utf-8", "surrogatepass")
    raw, blocks = dict(frame.members), list(frame.blocks)
    gone: set[int] = set()
    extra: dict[int, list[Raw]] = {}
    for copy in copied:
        if copy.where != "text":
            held = _held(frame, copy, document.kind, written, said, notices)
            if held is not None:
                held.update((notice.name, notice.value) for notice in notices)
            raw["structuredContent"] = Raw(written if held is None else encode(held))
        else:
            first = copy.blocks[0]
            if copy.each and document.kind == "array":
                last = len(copy.blocks) - 1
                extra[first] = [
                    with_text(frame.blocks[copy.blocks[min(at, last)]], _said(element))
                    for at, element in enumerate(document.root.open())
                ]
                gone.add(first)
            else:
                content = encode(said).decode() if copy.quoted else said
                blocks[first] = with_text(blocks[first], content)
            gone.update(copy.blocks[1:])
            extra.setdefault(first, []).extend(of_notice(notice) for notice in notices)
    places = [copy for copy in frame.copies if copy.where == "text"]
    mirrored = 0 < len(places) < len(frame.copies)  # other content is no copy
    if copies == "structured" and mirrored:
        gone.update(at for copy in places for at in copy.blocks)
        extra.clear()
    if copies == "text" and mirrored:
        raw.pop("structuredContent", None)
    if notices and not places and copies != "structured":
        extra.setdefault(len(blocks) - 1, []).extend(of_notice(notice) for notice in notices)
    content_blocks = extra.pop(-1, [])
    for at, block in enumerate(blocks):
        if at not in gone:
            content_blocks.append(block)
        content_blocks.extend(extra.get(at, ()))
    raw["content"] = Raw(encode(content_blocks))
    return raw, visible(raw, content_blocks)


def _held(
    frame: Frame, copy: Copy, kind: str, written: bytes, said: str, notices: list[Notice]
) -> dict[str, Value] | None:
    """Return the object for a document that cannot be the structuredContent itself, else None.

    If the server sent an object, clients accept nothing else (MCP, up to revision 2025-11-25).
    """
    if copy.member:
        return {copy.member: said}
    was = memoryview(frame.members["structuredContent"])[0]
    needed = was == 0x7B or kind == "null" or (kind == "string" and notices)
    if kind == "object" or not needed:
        return None
    return {"items": Raw(written)} if kind == "array" else {"text": said}


def _said(element: Value) -> str:
    found = text(element)
    return compact(encode(element)).decode() if found is None else found


def made(document: Any, *, structured: bool = False, error: bool = False) -> dict[str, Any]:
    """Return a result of the proxy's own that holds `document`: plain values, or a text.

    >>> made({"status": "blocked"})
    {'content': [{'type': 'text', 'text': '{"status":"blocked"}'}]}
    """
    said = document if isinstance(document, str) else encode(document).decode()
    value: dict[str, Any] = {"content": [{"type": "text", "text": said}]}
    if structured:
        value["structuredContent"] = document if isinstance(document, dict) else {"text": said}
    return {**value, "isError": True} if error else value
