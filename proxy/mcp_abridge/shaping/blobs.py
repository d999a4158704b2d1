"""Images, sounds and files in a result: without it, one of them takes the room of all answers.

A blob is the base64 of a block. Views name them: `image(0)` is the first image of a kind that
models see, `blob(0)` the first of the others. What an image looks like is not known here: the
transport draws those that a ShapeResult lists anew, in a process of its own, if the extra `images`
is installed; then they are put in place.
"""

import re
from collections.abc import Callable
from math import prod
from typing import Any

import msgspec
from msgspec import Raw, Struct, field
from msgspec.structs import replace

from mcp_abridge.document import message
from mcp_abridge.document.message import members
from mcp_abridge.document.tree import encode
from mcp_abridge.errors import DocumentError, Refusal
from mcp_abridge.query.call import Call, Notice
from mcp_abridge.ruleset.clients import BlobType
from mcp_abridge.shaping.job import Box, Drawing, ShapeJob, ShapeResult
from mcp_abridge.shaping.result.frame import (
    Frame,
    as_text,
    content_of,
    notice_block,
    size_of,
    structured_of,
)
from mcp_abridge.shaping.result.read import ParsedResponse, locate, parse
from mcp_abridge.storage.snapshots import Snapshot
from mcp_abridge.summary.media import kind_of, note_on, opening_of, pixels
from mcp_abridge.transforms.abridge import NAME

LONGEST_SIDE = 1568
"""The most pixels of an image's longer side: models get larger ones scaled down to about that."""
MOST_BYTES = 1_000_000
"""The most bytes of an image."""
MOST_PIXELS = 100_000_000
"""The pixels of an image that can be drawn: more take too much memory."""
IMAGES = {"PNG image": "PNG", "JPEG image": "JPEG", "GIF image": "GIF", "WebP image": "WEBP"}
"""The kinds of images that models see, and their names in Pillow."""

_AT = r"\s*(\d{1,6})\s*"
_PART = re.compile(
    rf"\s*(image|blob)\s*\({_AT}(?:,\s*\[{_AT},{_AT},{_AT},{_AT}\]\s*)?\)\s*", re.ASCII
)
_FORM = "write image(0), image(0, [x, y, width, height]) for a part of it, or blob(0)"
_MIME_TYPE = re.compile(r"[\w.+-]{1,20}/[\w.+-]{1,60}", re.ASCII)
_AS_THEY_CAME = ("failed", "refused", "shadow")


class _File(Struct, frozen=True):
    """The members that a block, or its resource, has for base64."""

    data: str | None = None
    blob: str | None = None
    mime_type: Any = field(default=None, name="mimeType")


class _Block(_File, frozen=True, kw_only=True):
    type: BlobType
    resource: _File = _File()


_BLOCK = msgspec.json.Decoder(_Block)


class Blob(Struct, frozen=True):
    """The base64 of a block, by its place and type: its name in views, its kind, its pixels."""

    index: int
    type: BlobType
    name: str
    data: str
    kind: str
    pixels: tuple[int, int]

    @property
    def size(self) -> int:
        """The bytes that it stands for."""
        return len(self.data.rstrip("=")) * 3 // 4

    @property
    def is_image(self) -> bool:
        return self.kind in IMAGES

    @property
    def is_large(self) -> bool:
        """True for an image to make smaller."""
        return self.is_image and (max(self.pixels) > LONGEST_SIDE or self.size > MOST_BYTES)

    def as_image(self) -> Raw:
        """Return it as a block of its own."""
        mime_type = f"image/{IMAGES[self.kind].lower()}"
        return Raw(encode({"type": "image", "data": self.data, "mimeType": mime_type}))

    def note(self, end: str = "") -> str:
        """Return the words in place of it."""
        return f"{note_on(self.kind or 'data', self.pixels, self.size)} left out{end}]"


def blobs_in(blocks: list[Raw]) -> list[Blob]:
    """Return the blobs in the blocks of a result."""
    blobs: list[Blob] = []
    counts = {"image": 0, "blob": 0}
    for index, raw in enumerate(blocks):
        try:
            block = _BLOCK.decode(raw)
        except (msgspec.DecodeError, UnicodeDecodeError):  # mostly of another type
            continue
        file = block.resource if block.type == "resource" else block
        if not (data := file.data or file.blob):
            continue
        opening = opening_of(data)
        kind = kind_of(opening)
        function = "image" if kind in IMAGES else "blob"
        name = f"{function}({counts[function]})"
        counts[function] += 1
        usual = _MIME_TYPE.fullmatch(str(file.mime_type))
        words = kind or (usual[0] if usual else "")
        blobs.append(Blob(index, block.type, name, data, words, pixels(kind, opening)))
    return blobs


def bounded(job: ShapeJob, result: ShapeResult) -> ShapeResult:
    """Return the result with notes in place of base64 that is too long to be read.

    An image in a resource whose base64 would be read becomes an image block, if images are seen.
    Large images are listed as drawings.
    """
    rule = job.rule
    if result.outcome in _AS_THEY_CAME or job.asks_for_blob:
        return result
    try:
        response = parse(result.raw, intact=True)
        blocks, texts = content_of(response.members)
    except DocumentError:
        return result
    blobs = blobs_in(blocks)
    readable = [each for each in blobs if each.type in job.base64]
    read = sum(len(each.data) for each in readable)
    # No blob has more than all of them.
    bound = read if rule.max_bytes is None or rule.mode == "shadow" else rule.max_bytes
    own = (each for each in readable if rule.images or not each.is_image)
    long = [each for each in own if len(each.data) > bound]
    unseen = [each for each in long if not each.is_image or "image" in job.base64]
    if rule.images and rule.mode != "shadow":
        large = [each for each in blobs if each.is_large and each not in unseen]
        result = replace(result, drawings=tuple(Drawing(each.index, each.name) for each in large))
    before, after = result.visible_before, result.visible_after
    if result.raw is job.raw:  # of one without texts, all bytes were counted
        size = size_of(structured_of(response.members), tuple(texts.values()))
        before = after = size.to(job.shows)
    after += read - sum(len(each.data) for each in long)
    result = replace(result, visible_before=before + read, visible_after=after)
    if not long:
        return result
    result = with_snapshot(job, result, response)
    for each in long:
        question = question_for(job, each.name)
        note = each.note(f"; {question} for it" if question else "")
        old = blocks[each.index]
        blocks[each.index] = with_note(old, note) if each in unseen else each.as_image()
    return with_blocks(result, response, blocks)


def question_for(job: ShapeJob, view: str) -> str:
    """Return how to ask for a blob, "" if nobody can."""
    viewable = job.viewable and job.rule.snapshot_step.viewable and (job.keep or job.reader)
    return Call(job.tool, names=job.names, reader=job.reader).next_question(view) * bool(viewable)


def with_note(block: Raw, note: str) -> Raw:
    """Return a block with a note in place of its blob; a resource keeps its URI."""
    own = members(block)
    if "resource" not in own:
        return Raw(encode({"type": "text", "text": note}))
    resource = {**members(own["resource"]), "mimeType": "text/plain", "text": note}
    resource.pop("blob", None)
    return Raw(encode({**own, "resource": resource}))


def with_blocks(result: ShapeResult, response: ParsedResponse, blocks: list[Raw]) -> ShapeResult:
    """Return the result with other blocks."""
    inner = {**response.members, "content": Raw(encode(blocks))}
    outcome = "shaped" if result.outcome == "untouched" else result.outcome
    return replace(result, raw=encode({**response.envelope, "result": inner}), outcome=outcome)


def with_snapshot(job: ShapeJob, result: ShapeResult, response: ParsedResponse) -> ShapeResult:
    """Return the result with a snapshot of its response, unless it has one, or nobody can ask."""
    rule = job.rule
    asks = job.keep and job.raw is not None and rule.snapshot_step.viewable
    if not asks or result.snapshot is not None:
        return result
    located = locate(response.members, rule.document)
    if located is not None:
        frame, document = located.frame, located.document.encode()
    else:
        blocks, _ = content_of(response.members)
        frame = as_text(Frame(response.members, blocks, bare=True))
        document = encode("\n".join(f"{each.name}: {each.note()}" for each in blobs_in(blocks)))
    return replace(result, snapshot=Snapshot(frame.encode(), document))


def answer(job: ShapeJob, blocks: list[Raw], *, structured: bool) -> ShapeResult:
    """Return the result of a view that asks for a blob in these blocks. Raises Refusal.

    `structured`: there is a structuredContent beside them.
    """
    match = _PART.fullmatch(job.view or "")
    if match is None or (match[1] == "blob" and match[3]):
        raise Refusal(f"view: {job.view!r} is no question; {_FORM}")
    name, blobs = f"{match[1]}({int(match[2])})", blobs_in(blocks)
    blob = next((each for each in blobs if each.name == name), None)
    if blob is None:
        names = ", ".join(each.name for each in blobs) or "none that a view can show"
        raise Refusal(f"view: there is no {name}: the answer has {names}")
    hidden = blob.is_image and blob.type in job.base64 and "image" not in job.base64
    block = blob.as_image() if hidden else blocks[blob.index]
    drawings: tuple[Drawing, ...] = ()
    if match[3]:
        x, y, width, height = map(int, match.groups()[2:])
        drawings = (Drawing(0, name, (x, y, width, height)),)
    value: dict[str, Any] = {"content": [block]}
    if structured:  # clients refuse a result without it
        value["structuredContent"] = {"view": name}
    return ShapeResult(
        raw=message.completed(job.id, value, job.modern), outcome="view", drawings=drawings
    )


def answer_first(job: ShapeJob, response: ParsedResponse) -> ShapeResult:
    """Return the blob that the view of a first call asks for; all is kept for later views."""
    structured = structured_of(response.members) is not None
    result = answer(job, content_of(response.members)[0], structured=structured)
    return with_snapshot(job, result, response)


class Picture(Struct, frozen=True):
    """An image that was drawn: its bytes and type, and its pixels.

    `original` are those of all of the original, which has so many `frames`; `box` is the part of it
    that the picture shows.
    """

    data: bytes
    mime_type: str
    size: tuple[int, int]
    original: tuple[int, int]
    box: Box | None = None
    frames: int = 1


Draw = Callable[[str, Box | None], Picture | str]
"""Draw base64 smaller, or a part of it; or return the reason why that is not possible."""


def drawn(job: ShapeJob, result: ShapeResult, draw: Draw) -> ShapeResult:
    """Return the result with its drawings made.

    An image that cannot be drawn stays as it came, one of too many pixels becomes a note: no model
    takes it. A view that asks for either is refused.
    """
    response = parse(result.raw, intact=True)
    blocks, _ = content_of(response.members)
    blobs = {each.index: each for each in blobs_in(blocks)}
    notes: dict[str, str] = {}
    reasons: list[str] = []
    example = ""
    for drawing in result.drawings:
        blob = blobs[drawing.index]
        picture = draw(blob.data, drawing.box)
        if isinstance(picture, Picture):
            blocks[blob.index] = _with_picture(blocks[blob.index], picture)
            notes[drawing.name] = _words(blob, picture)
            width, height = (min(each, LONGEST_SIDE) for each in picture.original)
            example = example or f"{drawing.name.removesuffix(')')}, [0, 0, {width}, {height}])"
        elif job.view is not None:
            line = message.refusal(job.id, f"view: {drawing.name}: {picture}", job.modern)
            return replace(result, raw=line, outcome="refused", drawings=())
        elif prod(blob.pixels) > MOST_PIXELS:
            blocks[blob.index] = with_note(blocks[blob.index], blob.note())
            notes[drawing.name] = picture
        else:
            reasons.append(f"{drawing.name}: {picture}")
    reason = f"{job.rule.at(job.tool)}: left as it came: {'; '.join(reasons)}" if reasons else None
    result = replace(result, drawings=(), log_line=result.log_line or reason)
    if not notes:
        return result
    if job.view is None and example and (question := question_for(job, example)):
        notes["more"] = f"{question} for a part [x, y, width, height] in the original's pixels"
    result = with_snapshot(job, result, response)
    return with_blocks(result, response, [*blocks, notice_block(Notice(NAME, notes))])


def _with_picture(block: Raw, picture: Picture) -> Raw:
    from base64 import b64encode

    data, own = b64encode(picture.data).decode(), members(block)
    if "resource" not in own:
        return Raw(encode({**own, "data": data, "mimeType": picture.mime_type}))
    inner = {**members(own["resource"]), "blob": data, "mimeType": picture.mime_type}
    return Raw(encode({**own, "resource": inner}))


def _words(blob: Blob, picture: Picture) -> str:
    size, original = (f"{width} x {height}" for width, height in (picture.size, picture.original))
    if picture.box is not None:
        smaller = f", made {size}" * (picture.size != picture.box[2:])
        words = f"the part {[*picture.box]} of {original} pixels{smaller}"
    else:
        of = f" of {original}" * (picture.size != picture.original)
        words = f"{size}{of} pixels, {len(picture.data):,} of {blob.size:,} bytes"
    return words + f", the first of {picture.frames} frames" * (picture.frames > 1)
