"""The process that draws one image, and ends: without its limits, one could take all memory.

On stdin it gets base64 and a box or null, in MessagePack; on stdout it answers with a Picture, or
the reason why there is none.
"""

import sys
from base64 import b64decode
from contextlib import suppress
from io import BytesIO
from typing import Any

import msgspec
from PIL import Image, ImageOps

from mcp_abridge.shaping.blobs import IMAGES, LONGEST_SIDE, MOST_BYTES, MOST_PIXELS, Picture
from mcp_abridge.shaping.job import Box
from mcp_abridge.system import platform

MEMORY = 1 << 30
"""The bytes of memory of the process."""
SECONDS = 20
"""The seconds of a processor that it has."""

_PHOTOS = ("JPEG", "MPO")
_SCALABLE = ("L", "LA", "RGB", "RGBA", "CMYK")
_GRAY = ("1", "I;16")
_SCALING = Image.Resampling.LANCZOS, 3.0


def serve() -> None:
    """Answer the request on stdin."""
    platform.limit(MEMORY, SECONDS)
    data, box = msgspec.msgpack.decode(sys.stdin.buffer.read(), type=tuple[str, Box | None])
    try:
        answer: Picture | str = picture(b64decode(data), box)
    except Exception as error:  # Pillow raises any for what is broken
        answer = f"{type(error).__name__}: {error}"[:200]
    sys.stdout.buffer.write(msgspec.msgpack.encode(answer))


def picture(data: bytes, box: Box | None) -> Picture | str:
    """Return an image made smaller, or the part of it in `box`; the reason if there is none."""
    Image.MAX_IMAGE_PIXELS = None
    with Image.open(BytesIO(data), formats=tuple(IMAGES.values())) as image:
        original, photo = image.size, image.format in _PHOTOS
        frames = 1 if photo else getattr(image, "n_frames", 1)
        if box is None:
            image.draft("RGB", (LONGEST_SIDE, LONGEST_SIDE))  # decodes few of a JPEG's pixels
        if image.width * image.height > MOST_PIXELS:
            return f"{image.width} x {image.height} pixels are more than {MOST_PIXELS:,} in all"
        image.load()
        size = image.size
        with suppress(Exception):  # broken EXIF is no broken image
            ImageOps.exif_transpose(image, in_place=True)
        if image.size != size:
            original = original[1], original[0]
        part: Image.Image = image
        if box is not None:
            x, y, width, height = box
            box = x, y, min(width, image.width - x), min(height, image.height - y)
            if min(box[2:]) <= 0:
                return f"that is no part of its {image.width} x {image.height} pixels"
            part = image.crop((x, y, x + box[2], y + box[3]))
        part = _scalable(part)
        part.thumbnail((LONGEST_SIDE, LONGEST_SIDE), *_SCALING)
        file = _file_of(_opaque(part), photo=photo)
    return Picture(*file, original, box, frames)


def _scalable(image: Image.Image) -> Image.Image:
    """Return an image of a mode that can be scaled; a copy takes its memory once more."""
    if image.mode in _SCALABLE and "transparency" not in image.info:
        return image
    if image.has_transparency_data:
        return image.convert("RGBA")
    if image.mode == "I;16":
        image = image.point(lambda value: value / 256)
    return image.convert("L" if image.mode in _GRAY else "RGB")


def _opaque(image: Image.Image) -> Image.Image:
    """Return an image without transparency, unless a part of it is transparent."""
    if image.mode in ("LA", "RGBA") and image.getchannel("A").getextrema()[0] == 255:
        return image.convert(image.mode.removesuffix("A"))
    return image.convert("RGB") if image.mode == "CMYK" else image


def _file_of(image: Image.Image, *, photo: bool) -> tuple[bytes, str, tuple[int, int]]:
    """Return the shorter one of a PNG and a JPEG file, its type and pixels; no long one."""
    files: dict[str, bytes] = {}
    if image.mode not in ("LA", "RGBA"):
        files["image/jpeg"] = _file(image, "JPEG", quality=85, subsampling=0, optimize=True)
    if not (photo and files):
        files["image/png"] = _file(image, "PNG")
    mime_type, raw = min(files.items(), key=lambda pair: len(pair[1]))
    if len(raw) > MOST_BYTES:
        side = max(image.size) * 3 // 4
        image.thumbnail((side, side), *_SCALING)
        return _file_of(image, photo=photo)
    return raw, mime_type, image.size


def _file(image: Image.Image, form: str, **options: Any) -> bytes:
    raw = BytesIO()
    image.save(raw, form, **options)
    return raw.getvalue()
