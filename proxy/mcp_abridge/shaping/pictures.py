"""Images that a transport has drawn anew are put in place: without it, a model gets none smaller.

What an image looks like is not known here: the transport draws what a ShapeResult lists, in a
process of its own, if the extra `images` is installed.
"""

from collections.abc import Callable

from msgspec import Raw, Struct
from msgspec.structs import replace

from mcp_abridge.document import message
from mcp_abridge.document.message import members
from mcp_abridge.document.tree import encode
from mcp_abridge.query.call import Notice
from mcp_abridge.shaping.blobs import (
    LONGEST_SIDE,
    Blob,
    blobs_in,
    question_for,
    with_blocks,
    with_note,
    with_snapshot,
)
from mcp_abridge.shaping.job import Box, ShapeJob, ShapeResult
from mcp_abridge.shaping.result.frame import content_of, notice_block
from mcp_abridge.shaping.result.read import parse
from mcp_abridge.transforms.abridge import NAME

MOST_PIXELS = 100_000_000
"""The pixels of an image that can be drawn: more take too much memory."""


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


Draw = Callable[[bytes, Box | None], Picture | str]
"""Draw an image smaller, or a part of it; or return the reason why that is not possible."""


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
        picture = _picture(blob, drawing.box, draw)
        if isinstance(picture, Picture):
            blocks[blob.index] = _with_picture(blocks[blob.index], picture)
            notes[drawing.name] = _words(blob, picture)
            width, height = (min(each, LONGEST_SIDE) for each in picture.original)
            part = f"{drawing.name.removesuffix(')')}, [0, 0, {width}, {height}])"
            example = example or part
        elif job.view is not None:
            line = message.refusal(job.id, f"view: {drawing.name}: {picture}", job.modern)
            return replace(result, raw=line, outcome="refused", drawings=())
        elif _too_many_pixels(blob):
            blocks[blob.index] = with_note(blocks[blob.index], blob.note())
            notes[drawing.name] = picture
        else:
            reasons.append(f"{drawing.name}: {picture}")
    log_line = result.log_line
    if reasons:
        log_line = log_line or f"{job.rule.at(job.tool)}: left as it came: {'; '.join(reasons)}"
    result = replace(result, drawings=(), log_line=log_line)
    if not notes:
        return result
    if job.view is None and example and (question := question_for(job, example)):
        notes["more"] = f"{question} for a part [x, y, width, height] in the original's pixels"
    result = with_snapshot(job, result, response)
    return with_blocks(result, response, [*blocks, notice_block(Notice(NAME, notes))])


def _picture(blob: Blob, box: Box | None, draw: Draw) -> Picture | str:
    from base64 import b64decode

    if _too_many_pixels(blob):
        width, height = blob.pixels
        return f"{width} x {height} pixels are more than {MOST_PIXELS:,} in all"
    try:
        return draw(b64decode(blob.data), box)
    except ValueError as error:
        return f"broken base64: {error}"


def _too_many_pixels(blob: Blob) -> bool:
    return blob.pixels[0] * blob.pixels[1] > MOST_PIXELS


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
