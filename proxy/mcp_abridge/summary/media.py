"""Replaces base64 data and data URIs by a note: kind, size, and the pixels of an image.

A model can read nothing in them, and one image takes the room of all other content.
"""

import re
from collections.abc import Iterable
from typing import Any

from msgspec import Raw

from mcp_abridge.document.possessive import possessive
from mcp_abridge.document.tree import encode, level
from mcp_abridge.summary.cuts import NOTE_END
from mcp_abridge.summary.cutter import DEEPEST
from mcp_abridge.summary.omissions import CHARACTERS, Omission
from mcp_abridge.summary.place import UNSHOWN, Place, element_place, member_place
from mcp_abridge.summary.shares import HANDLE

_SHORTEST = 512  # characters
_OPENING = re.compile(rb'"(?:data:|(?:[\w+/-]|\\[/rn]){64})', re.ASCII)
_STEP = _SHORTEST - 66  # bytes: data of the shortest length, its `==` aside, has a place in it
_RUN = r'[^\s"]{64}'
_UP_TO_RUN = re.compile((possessive(rf"(?s:(?!{_RUN}).{{{_STEP}}})") + f"(?={_RUN})").encode())
_BASE64 = re.compile(r"[\w-]+={0,2}", re.ASCII)
_DATA_URI = re.compile(r"data:([\w.+-]{1,20}/[\w.+-]{1,19})?((?:;[\w.=+-]+)*),(\S*)", re.ASCII)
_PLAIN = str.maketrans("+/", "-_", "\r\n")
_VARIED = 32  # different characters in the first 512; a repetitive text has fewer
_READ = 128 << 10  # characters of base64 in which the pixels of an image are looked up

WEBP = "WebP image"
_KINDS = {
    b"\x89PNG\r\n\x1a\n": "PNG image",
    b"\xff\xd8\xff": "JPEG image",
    b"GIF8": "GIF image",
    b"%PDF": "PDF",
    b"PK\x03\x04": "ZIP",
    b"\x1f\x8b": "gzip",
}
_START_OF_FRAME = {*range(0xC0, 0xD0)} - {0xC4, 0xC8, 0xCC}  # markers of a JPEG file


def _may_hold_data(raw: memoryview) -> bool:
    """Return True if JSON may have base64 data or a data URI, by looking at parts of it."""
    at = 0
    while match := _UP_TO_RUN.match(raw, at):
        before, at = max(match.end() - _STEP, 0), match.end() + _STEP
        quote = bytes(raw[before : match.end() + 1]).rfind(b'"')
        if quote >= 0 and _OPENING.match(raw, before + quote):
            return True
    return False


def without_data(
    raw: Raw,
    at: Place,
    omissions: list[Omission],
    *,
    numbered: bool = False,
    exempt: str | None = None,
    depth: int = 0,
) -> Raw:
    """Return `raw`, the value at a place, with notes in place of data.

    `omissions` gains one for each, shown or not. `numbered`: each element of the array has a path
    of its own. The value at the place `exempt` stays: a view shows it.
    """
    if len(raw) < _SHORTEST or depth > DEEPEST:
        return raw
    if depth == 0 and not _may_hold_data(memoryview(raw)):
        return raw  # to open all takes four times as long
    head = memoryview(raw)[0]
    if head == 0x22:
        total = len(text := level(raw)) if _OPENING.match(memoryview(raw)) else 0
        note = description(text) if total and at[1] != exempt else None
        if note is None:
            return raw
        # Nobody wants the next thousand characters: no view is advised.
        path = at[0] or "@"
        omissions.append(Omission(path, CHARACTERS, UNSHOWN, 0, total, total, 0, total))
        return Raw(encode(note))
    if head not in b"{[":
        return raw
    inner, changed = level(raw), False
    parts: Iterable[tuple[Any, Raw]] = inner.items() if head == 0x7B else enumerate(inner)
    for key, part in parts:
        # A later call may have to pass some members back.
        if len(part) < _SHORTEST or (head == 0x7B and HANDLE.search(key)):
            continue
        below = member_place(at, key) if head == 0x7B else element_place(at, key, numbered)
        inner[key] = without_data(part, below, omissions, exempt=exempt, depth=depth + 1)
        changed = changed or inner[key] is not part
    return Raw(encode(inner)) if changed else raw


def description(text: str) -> str | None:
    """Return the note on a text that is base64 or a data URI; None if it is any other text."""
    if len(text) < _SHORTEST or not _OPENING.match(encode(text[:_SHORTEST])):
        return None
    uri = _DATA_URI.fullmatch(text)
    if uri and not uri[2].endswith(";base64"):
        return f"[{uri[1] or 'data URI'}, {len(text):,} characters{NOTE_END}"
    data = (uri[3] if uri else text).translate(_PLAIN)
    content = data.rstrip("=")
    if len(content) % 4 == 1 or not _BASE64.fullmatch(data):
        return None
    opening = opening_of(content)
    kind = kind_of(opening) or (uri[1] if uri else "")
    if not (uri or kind or _is_varied(content[:_SHORTEST])):
        return None
    return note_on(kind, pixels(kind, opening), len(content) * 3 // 4) + NOTE_END


def opening_of(data: str) -> bytes:
    """Return the first bytes of base64 in either alphabet, none if it is broken."""
    from base64 import urlsafe_b64decode

    try:
        return urlsafe_b64decode(data[: min(_READ, len(data) // 4 * 4)])
    except ValueError:
        return b""


def note_on(kind: str, area: tuple[int, int], size: int) -> str:
    """Return the beginning of a note on base64 of so many bytes: its kind, width and height."""
    width, height = area
    words = f"{width} x {height} pixels" if width and height else ""
    return "[" + ", ".join(filter(None, (kind, words, f"{size:,} bytes of base64 data")))


def _is_varied(text: str) -> bool:
    """Return True if a text has all sorts of letters: no hexadecimal digits, no sequence of DNA."""
    sorts = ("[a-z]", "[A-Z]", "[0-9]")
    return len({*text}) >= _VARIED and all(re.search(sort, text) for sort in sorts)


def kind_of(data: bytes) -> str:
    """Return the kind of a file by its first bytes, "" if it is none of the usual ones."""
    if data[:4] == b"RIFF" and data[8:12] == b"WEBP":
        return WEBP
    return next((kind for magic, kind in _KINDS.items() if data.startswith(magic)), "")


def pixels(kind: str, data: bytes) -> tuple[int, int]:
    """Return the width and height of an image by its first bytes, (0, 0) if they do not tell."""
    import struct

    if kind == "PNG image" and len(data) >= 24:
        width, height = struct.unpack(">II", data[16:24])
        return width, height
    if kind == "GIF image" and len(data) >= 10:
        width, height = struct.unpack("<HH", data[6:10])
        return width, height
    if kind == WEBP and len(data) >= 30:
        return _pixels_of_webp(data)
    at = 2
    while kind == "JPEG image" and at + 9 <= len(data) and data[at] == 0xFF:
        if data[at + 1] in _START_OF_FRAME:
            height, width = struct.unpack(">HH", data[at + 5 : at + 9])
            return width, height
        at += 2 + int.from_bytes(data[at + 2 : at + 4], "big")
    return 0, 0


def _pixels_of_webp(data: bytes) -> tuple[int, int]:
    """Return the size in the first chunk (RFC 9649, sections 2.5 to 2.7)."""
    if data[12:16] == b"VP8X":
        width, height = (int.from_bytes(data[at : at + 3], "little") for at in (24, 27))
        return width + 1, height + 1
    if data[12:16] == b"VP8L":
        bits = int.from_bytes(data[21:25], "little")
        return (bits & 0x3FFF) + 1, (bits >> 14 & 0x3FFF) + 1
    if data[12:16] != b"VP8 " or data[23:26] != b"\x9d\x01\x2a":
        return 0, 0
    width, height = (int.from_bytes(data[at : at + 2], "little") for at in (26, 28))
    return width & 0x3FFF, height & 0x3FFF
