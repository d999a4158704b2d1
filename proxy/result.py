"""Finds the document inside a CallToolResult and writes it back, with everything else as it came.

A result often carries its document twice: as `structuredContent` and as text. A `Copy` says where
one of them stands, so that both are rewritten and never disagree.
"""

from typing import Any, Literal

import msgspec
from msgspec import Raw, Struct

from proxy.clients import Shows
from proxy.document import ABSENT, Document, Pieces, Value, compact, encode, level, loads, text
from proxy.errors import DocumentError
from proxy.message import members
from proxy.notes import free
from proxy.surrogates import mask, masks, unmask
from proxy.transforms.base import Notice

Kind = Literal["auto", "structured", "text", "blocks"]


class Copy(Struct, frozen=True):
    """One place of the document.

    `member` is empty for structuredContent itself, else it names the string member that holds the
    text. `blocks` are the text blocks that hold it: the first is written, the others give way
    (`each`: one element of an array in each). `quoted`: the text is itself one JSON string.
    """

    where: Literal["structured", "member", "text"]
    member: str = ""
    blocks: tuple[int, ...] = ()
    quoted: bool = False
    each: bool = False


class Frame(Struct):
    """A CallToolResult with its document taken out.

    `members` holds every member as it came, `blocks` the elements of `content`; `masked` is true
    where lone surrogates are masked in them. `facts` are what a guard has found out before the call
    whose result it is, in a snapshot.
    """

    members: dict[str, Raw]
    blocks: list[Raw]
    copies: tuple[Copy, ...] = ()
    masked: bool = False
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
                    blocks[at] = _with_text(blocks[at], "")
            else:
                held = bytes(memoryview(emptied["structuredContent"])[:1])
                emptied["structuredContent"] = Raw(_EMPTIED.get(held, b"0"))
        emptied["content"] = Raw(b"[]")
        found = Raw(encode(facts or {}))
        return encode(Frame(emptied, blocks, self.copies, self.masked, found))

    @classmethod
    def decode(cls, raw: bytes) -> "Frame":
        """Read what `encode` wrote."""
        return msgspec.json.decode(raw, type=cls)


class _TextBlock(Struct):
    type: Raw = ABSENT
    text: Raw = ABSENT
    resource: Raw = ABSENT


_EMPTIED = {b"{": b"{}", b"[": b"[]", b'"': b'""'}  # by how a value begins
_BLOCK = msgspec.json.Decoder(_TextBlock)
_BLOCKS = msgspec.json.Decoder(list[Raw])


class Reading(Struct):
    """A result that was looked into: its frame, its document, how many bytes a model would see."""

    frame: Frame
    document: Document
    shown: "Shown"


class Shown(Struct, frozen=True):
    """Bytes that a model sees of a result: of clients that show the one copy or the other."""

    structured: int | None
    text: int

    def to(self, shows: Shows) -> int:
        """Return the bytes that a client of this kind shows."""
        structured = self.structured or 0
        if shows == "structured":
            return structured or self.text
        if shows == "text":
            return self.text
        return structured + self.text if shows == "both" else max(structured, self.text)

    @property
    def most(self) -> int:
        """The larger of both copies."""
        return self.to("either")


class Line(Struct):
    """A response line taken apart: the members around the result, and those of the result.

    `content` has the text blocks' texts by position, and the blocks; a text that was decoded on
    the way is no longer in its block. `masked`: lone surrogates were masked (see surrogates).
    """

    envelope: dict[str, Raw]
    members: dict[str, Raw]
    content: tuple[list[Raw], dict[int, str]] | None = None
    masked: bool = False


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


def take_apart(line: bytes, *, intact: bool = False) -> Line:
    """Decode a response line as far as a rule needs it.

    What nearly every server sends, one text block and nothing unknown, is decoded in one pass;
    anything else level by level, and so is all where the blocks must stay `intact`. Raises
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
    return Line(envelope, others, ([Raw(encode(emptied))], {0: said}))


def _level_by_level(line: bytes) -> Line:
    masked = False
    try:
        envelope = members(line)
    except DocumentError:
        envelope, masked = members(mask(line)), True
    if "result" not in envelope or "error" in envelope:
        raise DocumentError("not a result alone")
    return Line(envelope, members(envelope["result"]), None, masked)


def complete(raw: dict[str, Raw]) -> bool:
    """Say whether a result is final: no task handle, no request for input (MCP 2026-07-28 MRTR)."""
    kind = raw.get("resultType")
    return (kind is None or text(kind) == "complete") and "task" not in raw


def failed(raw: dict[str, Raw]) -> bool:
    """Say whether a result is marked as an error."""
    return "isError" in raw and bytes(raw["isError"]) == b"true"


def read(
    raw: dict[str, Raw], kind: Kind, content: tuple[list[Raw], dict[int, str]] | None = None
) -> Reading | None:
    """Find the document of a result, or None where it has none of this kind.

    `content` is what `take_apart` has decoded of it already. Raises DocumentError where the result
    is no CallToolResult that can be read.
    """
    blocks, texts = _content(raw) if content is None else content
    structured = raw.get("structuredContent")
    if structured is not None and bytes(memoryview(structured)[:4]) == b"null":
        structured = None
    shown = Shown(
        None if structured is None else len(memoryview(structured)),
        sum(len(found) if found.isascii() else len(found.encode()) for found in texts.values()),
    )
    placed = _find(texts, structured, kind)
    if placed is None:
        return None
    document, copies = placed
    return Reading(Frame(raw, blocks, copies), document, shown)


def write(
    frame: Frame,
    document: Document,
    notices: list[Notice],
    copies: Literal["both", "text", "structured"] = "both",
    indent: int = -1,
) -> tuple[dict[str, Raw], Shown]:
    """Return the result with `document` in all its places, and what a model sees of it.

    Notices stand in the document where it is an object, else beside it: in the structuredContent
    that holds the text, and in a further text block. `copies` leaves one of the copies out.
    """
    root = document.root.open()
    if notices and isinstance(root, dict):
        for notice in notices:
            root[free(root, notice.name)] = notice.value
        notices = []
    written = document.encode()
    said = text(document.cell[0]) if document.textual else None
    if said is None:
        laid = written if indent < 0 else msgspec.json.format(written, indent=indent)
        said = laid.decode("utf-8", "surrogatepass")
    raw, blocks = dict(frame.members), list(frame.blocks)
    gone: set[int] = set()
    extra: dict[int, list[Raw]] = {}
    for copy in frame.copies:
        if copy.where != "text":
            held = _held(frame, copy, root, written, said, notices)
            if held is not None:
                held.update((notice.name, notice.value) for notice in notices)
            raw["structuredContent"] = Raw(written if held is None else encode(held))
        else:
            first = copy.blocks[0]
            if copy.each and isinstance(root, list) and not isinstance(root, Pieces):
                last = len(copy.blocks) - 1
                extra[first] = [
                    _with_text(frame.blocks[copy.blocks[min(at, last)]], _said(element, document))
                    for at, element in enumerate(root)
                ]
                gone.add(first)
            else:
                content = encode(said).decode() if copy.quoted else said
                blocks[first] = _with_text(blocks[first], content)
            gone.update(copy.blocks[1:])
            extra.setdefault(first, []).extend(_notice_block(notice) for notice in notices)
    places = [copy for copy in frame.copies if copy.where == "text"]
    mirrored = 0 < len(places) < len(frame.copies)  # what else stands there is no copy
    if copies == "structured" and mirrored:
        gone.update(at for copy in places for at in copy.blocks)
        extra.clear()
    if copies == "text" and mirrored:
        raw.pop("structuredContent", None)
    if notices and not places and copies != "structured":
        extra.setdefault(len(blocks) - 1, []).extend(_notice_block(notice) for notice in notices)
    content_blocks = extra.pop(-1, [])
    for at, block in enumerate(blocks):
        if at not in gone:
            content_blocks.append(block)
        content_blocks.extend(extra.get(at, ()))
    raw["content"] = Raw(encode(content_blocks))
    return raw, visible(raw, content_blocks)


def promised(
    frame: Frame, document: Document, notices: list[Notice], indent: int = -1
) -> tuple[dict[str, Raw], Shown]:
    """Do what `write` does, and put the document into a structuredContent that did not come.

    It is the document where that is an object, else all texts as `text`; and it has the notices.
    """
    if isinstance(document.root.open(), dict):
        members = {**frame.members, "structuredContent": Raw(b"{}")}
        copies = (*frame.copies, Copy("structured"))
        return write(
            Frame(members, frame.blocks, copies, frame.masked), document, notices, indent=indent
        )
    _, texts = _content(write(frame, document, [], indent=indent)[0])
    raw, _ = write(frame, document, notices, indent=indent)
    held: dict[str, Value] = {"text": "\n".join(texts.values())}
    held.update((notice.name, notice.value) for notice in notices)
    raw["structuredContent"] = Raw(encode(held))
    return raw, visible(raw, _BLOCKS.decode(raw["content"]))


def _held(
    frame: Frame, copy: Copy, root: Value, written: bytes, said: str, notices: list[Notice]
) -> dict[str, Value] | None:
    """Return what holds a document in structuredContent that cannot be that itself.

    A client that was sent an object takes nothing else there (MCP, up to revision 2025-11-25).
    """
    if copy.member:
        return {copy.member: said}
    was = memoryview(frame.members["structuredContent"])[0]
    needed = was == 0x7B or root is None or (isinstance(root, str) and notices)
    if isinstance(root, dict) or not needed:
        return None
    return {"items": Raw(written)} if isinstance(root, list) else {"text": said}


def as_text(frame: Frame) -> Frame:
    """Return the frame without structuredContent: its document stands in a text block alone."""
    members = {name: held for name, held in frame.members.items() if name != "structuredContent"}
    places = tuple(copy for copy in frame.copies if copy.where == "text")
    if places:
        return Frame(members, frame.blocks, places, frame.masked)
    blocks = [*frame.blocks, Raw(encode({"type": "text", "text": ""}))]
    return Frame(members, blocks, (Copy("text", blocks=(len(blocks) - 1,)),), frame.masked)


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


def structured(line: bytes, *, itself: bool = False) -> tuple[bytes, Shown] | None:
    """Return a response with its document as structuredContent too, and what a model sees of it.

    A document that is no object stands there as `{text}`. None for an error, for what is not
    complete, and where there is one already; `itself`: unless the document, an object, is there
    only as the text of a member. Raises DocumentError for what cannot be read.
    """
    parts = _level_by_level(line)
    raw = parts.members
    held = raw.get("structuredContent")
    there = held is not None and bytes(held) != b"null"
    if failed(raw) or not complete(raw) or (there and not itself):
        return None
    blocks, texts = _content(raw)
    reading = read(raw, "auto", (blocks, texts))
    document = None if reading is None else reading.document
    if there and (
        reading is None
        or not any(copy.member for copy in reading.frame.copies)
        or not isinstance(reading.document.root.open(), dict)
    ):
        return None
    if document is not None and isinstance(document.root.open(), dict):
        value, masked = Raw(document.encode()), document.masked
    else:
        value, masked = Raw(encode({"text": "\n".join(texts.values())})), False
    whole = {**raw, "structuredContent": value}
    written = encode({**parts.envelope, "result": whole})
    return unmask(written) if parts.masked or masked else written, visible(whole, blocks)


def visible(raw: dict[str, Raw], blocks: list[Raw]) -> Shown:
    """Count what a model sees of a result."""
    structured = raw.get("structuredContent")
    return Shown(
        None if structured is None else len(memoryview(structured)),
        sum(len(found.encode()) for block in blocks if (found := text_of(block)) is not None),
    )


def without(frame: Frame, kinds: tuple[str, ...]) -> tuple[Frame, dict[str, int]]:
    """Return the frame without blocks of these types, and how many of each went.

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
    return Frame(frame.members, kept, _moved(frame.copies, places), frame.masked), dropped


def beside(frame: Frame) -> dict[int, str]:
    """Return the texts that stand beside the document, by position."""
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
        kept.append(_with_text(block, texts[at]) if at in texts else block)
        if at == max(texts, default=-1):
            kept.extend(_notice_block(notice) for notice in notices)
    return Frame(frame.members, kept, _moved(frame.copies, places), frame.masked)


def _moved(copies: tuple[Copy, ...], places: dict[int, int]) -> tuple[Copy, ...]:
    return tuple(
        msgspec.structs.replace(copy, blocks=tuple(places[at] for at in copy.blocks))
        for copy in copies
    )


def _content(raw: dict[str, Raw]) -> tuple[list[Raw], dict[int, str]]:
    try:
        blocks = _BLOCKS.decode(raw["content"]) if "content" in raw else []
    except (msgspec.DecodeError, RecursionError) as error:
        raise DocumentError(f"content: {error}") from error
    return blocks, {
        at: found for at, block in enumerate(blocks) if (found := text_of(block)) is not None
    }


def _find(
    texts: dict[int, str], structured: Raw | None, kind: Kind
) -> tuple[Document, tuple[Copy, ...]] | None:
    """Walk down the ladder of what the document is; the first rung that holds."""
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
            ],
            masked=any(document.masked for document in readable.values()),
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
    """Find the document in a structuredContent that is itself a text (MCP 2026-07-28)."""
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
    """Find the document in the one member of a structuredContent, where a text repeats it."""
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
    """Return the JSON object or array that a text is, else None."""
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
    """Say whether a text is the JSON of `structured`: by bytes, by format, by value."""
    if not found or found[0] not in "{[ \n\t":
        # A number or a word; what may be quoted is looked at elsewhere.
        alike = len(found) == len(memoryview(structured)) and found[:1] != '"'
        return alike and found.encode("utf-8", "surrogatepass") == bytes(structured)
    raw = found.encode("utf-8", "surrogatepass")
    if raw == bytes(structured):
        return True
    try:
        # What is masked in the one must be in the other.
        raw = mask(raw) if masks(bytes(structured)) else raw
    except DocumentError:
        return False
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
    """Say whether each text block is one element of the array `value`, in order."""
    elements = level(value)
    if not isinstance(elements, list) or not elements or len(elements) != len(texts):
        return False
    return all(
        found == text(element) or found.encode() == bytes(element) or _mirrors(found, element)
        for found, element in zip(texts, elements, strict=True)
    )


def text_of(block: Raw) -> str | None:
    """Return the text of a text block or of an embedded text resource."""
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


def _with_text(block: Raw, content: str) -> Raw:
    held = members(block)
    if "text" in held or "resource" not in held:
        return Raw(encode({**held, "text": content}))
    return Raw(encode({**held, "resource": {**members(held["resource"]), "text": content}}))


def _said(element: Value, document: Document) -> str:
    found = text(element)
    if found is not None:
        return found
    raw = compact(encode(element))
    return (unmask(raw) if document.masked else raw).decode()


def _notice_block(notice: Notice) -> Raw:
    value: Any = notice.value if notice.bare else {notice.name: notice.value}
    return Raw(encode({"type": "text", "text": compact(encode(value)).decode()}))
