"""Images that a process of its own draws: smaller, in parts, and whatever a server may send."""

import os
import struct
import sys
import time
import zlib
from base64 import b64decode, b64encode
from collections.abc import Callable
from io import BytesIO
from subprocess import run

import pytest
from mcp_abridge.shaping.blobs import Picture
from mcp_abridge.transports.workers import pictures
from mcp_abridge.transports.workers.drawing import MEMORY
from mcp_abridge.transports.workers.pictures import draw
from PIL import Image, ImageDraw

from tests.builders import result, rule, texts
from tests.faults.scale import scaled
from tests.pictures.results import blocks, drawn, image, job, notes, picture, resource, view
from tests.pictures.samples import file, photo, screen
from tests.platforms import on_posix


def chunk(kind: bytes, data: bytes) -> bytes:
    return struct.pack(">I", len(data)) + kind + data + struct.pack(">I", zlib.crc32(kind + data))


def png(width: int, height: int, color: int = 0, *more: bytes, data: bytes | None = None) -> bytes:
    """Return a black PNG file without the memory of its pixels; `color` is PNG's number."""
    packer, depth = zlib.compressobj(9), {0: 1, 2: 3, 4: 2, 6: 4}[color]
    if data is None:
        row = bytes(1 + width * depth)
        data = b"".join(packer.compress(row) for _ in range(height)) + packer.flush()
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", width, height, 8, color, 0, 0, 0))
    return b"".join((b"\x89PNG\r\n\x1a\n", head, *more, chunk(b"IDAT", data), chunk(b"IEND", b"")))


def smaller(raw: bytes, box: tuple[int, int, int, int] | None = None) -> Picture:
    outcome = draw(b64encode(raw).decode(), box)
    assert isinstance(outcome, Picture), outcome
    return outcome


def test_a_screenshot_is_made_smaller_and_its_note_says_how_to_see_a_part() -> None:
    raw = file(screen(2560, 1440, 26, 1)[0], "PNG")
    own = job({"type": "text", "text": "Done."}, image(raw))

    outcome = drawn(own)

    caption, block, _ = blocks(outcome)
    assert caption["text"] == "Done."
    assert picture(block).size == (1568, 882)
    size = f"{len(block['data']) * 3 // 4:,}"
    assert notes(outcome)["image(0)"].startswith(f"1568 x 882 of 2560 x 1440 pixels, {size[:3]}")
    assert notes(outcome)["more"] == (
        "call again with view='image(0, [0, 0, 1568, 1440])' for a part [x, y, width, height] in "
        "the original's pixels"
    )
    assert outcome.outcome == "shaped"


def test_a_part_has_the_pixels_of_the_original() -> None:
    screenshot, _ = screen(2560, 1440, 26, 1)
    own = job(image(file(screenshot, "PNG")))

    outcome = view(own, "image(0, [500, 200, 400, 300])")

    [block, _] = blocks(outcome)
    part = picture(block).convert("RGB")
    expected = screenshot.crop((500, 200, 900, 500))
    assert part.size == expected.size
    differences = zip(part.tobytes(), expected.tobytes(), strict=True)
    assert sum(abs(a - b) for a, b in differences) / len(part.tobytes()) < 3
    assert notes(outcome) == {"image(0)": "the part [500, 200, 400, 300] of 2560 x 1440 pixels"}


def test_a_large_part_is_made_smaller_and_one_beyond_the_edge_ends_there() -> None:
    own = job(image(png(3000, 2000)))

    large, edge = (view(own, f"image(0, {box})") for box in ([0, 0, 9000, 2000], [2990, 0, 50, 9]))
    outside = view(own, "image(0, [3000, 0, 5, 5])")

    of = "of 3000 x 2000 pixels"
    assert notes(large)["image(0)"] == f"the part [0, 0, 3000, 2000] {of}, made 1568 x 1045"
    assert notes(edge)["image(0)"] == f"the part [2990, 0, 10, 9] {of}"
    assert texts(outside.raw) == ["view: image(0): that is no part of its 3000 x 2000 pixels"]
    assert result(outside.raw)["isError"] is True


def test_an_embedded_image_stays_embedded() -> None:
    raw = file(photo(2000, 1000, 1), "JPEG")

    [block, _] = blocks(drawn(job(resource(raw, "image/jpeg", "file:///a.jpg"))))

    assert block["resource"]["uri"] == "file:///a.jpg"
    assert picture(block).size == (1568, 784)


RED = [255, 0, 0]


def color(raw: bytes, x: int, y: int) -> list[int]:
    """Return a pixel, each of its parts as 0 or 255."""
    pixel = Image.open(BytesIO(raw)).convert("RGB").crop((x, y, x + 1, y + 1)).tobytes()
    return [255 * (part > 127) for part in pixel]


@pytest.mark.parametrize("turn", [6, 3, 1, 2, 4, 5, 7, 8][: scaled(1, 8)])
def test_a_photo_stands_upright_as_its_exif_says(turn: int) -> None:
    upright = Image.new("RGB", (2000, 1000), "white")
    ImageDraw.Draw(upright).rectangle((0, 0, 500, 250), fill="red")  # its top left
    inverse = {
        1: [], 2: [0], 3: [3], 4: [1], 5: [5], 6: [2], 7: [6], 8: [4],
    }[turn]  # fmt: skip
    stored = upright
    for method in inverse:
        stored = stored.transpose(Image.Transpose(method))
    exif = Image.Exif()
    exif[0x0112] = turn
    raw = file(stored, "JPEG", exif=exif)

    whole, part = smaller(raw), smaller(raw, (0, 0, 400, 200))

    assert (whole.size, whole.original) == ((1568, 784), (2000, 1000))
    assert color(whole.data, 100, 50) == color(part.data, 200, 100) == RED
    assert color(whole.data, 1400, 50) == color(whole.data, 100, 700) == [255, 255, 255]


def test_what_is_transparent_stays_png_and_an_alpha_channel_alone_does_not() -> None:
    glass = Image.new("RGBA", (1600, 1600), (0, 90, 0, 90))
    solid = photo(1600, 400, 1).convert("RGBA")

    assert Image.open(BytesIO(smaller(file(glass, "PNG")).data)).mode == "RGBA"
    assert smaller(file(solid, "PNG")).mime_type == "image/jpeg"
    assert smaller(png(2000, 2000)).mime_type == "image/png"  # shorter


def test_gray_of_sixteen_bits_and_a_palette_keep_their_colors() -> None:
    row = b"\0" + b"".join(struct.pack(">H", x * 32) for x in range(2000))
    head = chunk(b"IHDR", struct.pack(">IIBBBBB", 2000, 9, 16, 0, 0, 0, 0))
    data = chunk(b"IDAT", zlib.compress(row * 9)) + chunk(b"IEND", b"")
    palette = file(Image.new("RGB", (2000, 9), "red").quantize(8), "PNG")

    gray = Image.open(BytesIO(smaller(b"\x89PNG\r\n\x1a\n" + head + data).data))

    assert gray.getextrema()[1] == pytest.approx(250, abs=4)
    assert color(smaller(palette).data, 784, 3) == RED


@pytest.mark.parametrize("form", ["GIF", "WEBP", "PNG"][: scaled(1, 3)])
def test_of_an_animation_the_first_frame_is_shown_and_the_note_says_so(form: str) -> None:
    frames = [Image.new("RGB", (2000, 500), color) for color in ("red", "green", "blue")]
    raw = file(frames[0], form, save_all=True, append_images=frames[1:])

    outcome = drawn(job(image(raw)))

    assert color(b64decode(blocks(outcome)[0]["data"]), 700, 200) == RED
    assert notes(outcome)["image(0)"].endswith(", the first of 3 frames")


def test_no_image_has_more_than_its_bytes() -> None:
    glass = Image.effect_noise((640, 640), 90).convert("RGBA")
    glass.putalpha(Image.effect_noise((640, 640), 90))
    assert len(file(glass, "PNG")) > 1_100_000

    result = smaller(file(glass, "PNG"))

    assert len(result.data) <= 1_000_000
    assert Image.open(BytesIO(result.data)).size == result.size


BLACK = png(2000, 2000)
# Made in the test alone: each worker of a run would make them all.
BROKEN: dict[str, Callable[[], bytes]] = {
    "cut in its head": lambda: BLACK[:40],
    "cut in its data": lambda: file(photo(2000, 1000, 1), "PNG")[:30_000],
    "a wrong sum": lambda: BLACK[:29] + bytes(4) + BLACK[33:],
    "no data": lambda: png(2000, 2000, data=b""),
    "data of another form": lambda: png(2000, 2000, data=b"\x78\x9c" + bytes(99)),
    "no pixels": lambda: png(0, 2000),
    "a photo cut short": lambda: file(photo(2000, 1000, 1), "JPEG")[:9_000],
    "a photo of zeros": lambda: b"\xff\xd8\xff\xe0" + bytes(2_000_000),
    "an animation cut short": lambda: file(Image.effect_noise((2000, 900), 50), "GIF")[:900],
    "a WebP file cut short": lambda: file(photo(2000, 1000, 1), "WEBP")[:900],
    "a head in front of noise": lambda: (
        b"GIF89a" + struct.pack("<HH", 2000, 2000) + os.urandom(4000)
    ),
    "a compressed profile of 500 MB": lambda: png(
        2000, 2000, 0, chunk(b"iCCP", b"a\0\0" + zlib.compress(bytes(500 * 10**6), 9))
    ),
}


@pytest.mark.parametrize("name", [*BROKEN][:: scaled(6, 1)])
def test_a_broken_image_passes_as_it_came_and_the_log_says_why(name: str) -> None:
    raw = BROKEN[name]()
    own = job(image(raw), image(BLACK))

    outcome = drawn(own)

    broken, whole, _ = blocks(outcome)
    assert broken == image(raw)
    assert picture(whole).size == (1568, 1568)
    assert [*notes(outcome)] == ["image(1)", "more"]
    if "no pixels" not in name:  # which is not large
        assert (outcome.log_line or "").startswith("budget: t: left as it came: image(0): ")


LARGEST: dict[str, tuple[Callable[[], bytes], tuple[int, int]]] = {
    "30,000 pixels wide": (lambda: png(30_000, 3_000), (1568, 157)),
    "RGBA": (lambda: png(10_000, 10_000, 6), (1568, 1568)),
    "a photo of 108 megapixels": (
        lambda: file(Image.new("RGB", (12_000, 9_000), "gray"), "JPEG"),
        (1568, 1176),
    ),
    "gray with alpha": (lambda: png(10_000, 10_000, 4), (1568, 1568)),
}


@pytest.mark.slow
@pytest.mark.parametrize("name", [*LARGEST][: scaled(1, len(LARGEST))])
def test_the_largest_images_are_drawn_within_the_bounds(name: str) -> None:
    make, size = LARGEST[name]
    raw = make()
    start = time.monotonic()

    assert smaller(raw).size == size
    assert time.monotonic() - start < pictures.SECONDS


def test_an_image_of_too_many_pixels_is_a_note_since_no_model_takes_it() -> None:
    bomb = image(png(30_000, 30_000, data=zlib.compress(bytes(10**6))))

    outcome = drawn(job(bomb))

    [block, _] = blocks(outcome)
    assert block["text"].startswith("[PNG image, 30000 x 30000 pixels, ")
    reason = "30000 x 30000 pixels are more than 100,000,000 in all"
    assert notes(outcome) == {"image(0)": reason}
    assert texts(view(job(bomb), "image(0, [0, 0, 9, 9])").raw) == [f"view: image(0): {reason}"]


def test_an_image_that_takes_too_long_passes_as_it_came(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "SECONDS", 0.01)

    own = job(image(BLACK), image(BLACK))
    outcome = drawn(own)

    assert outcome.raw is own.raw
    assert "image(0): it takes more than" in (outcome.log_line or "")


@on_posix("Wine has no limits of memory and time")
@pytest.mark.parametrize(
    ("code", "end"),
    [(f"bytearray({MEMORY})", "MemoryError"), ("while True: pass", "")],
    ids=["memory", "time"],
)
def test_the_process_has_limits_of_its_own(code: str, end: str) -> None:
    limited = f"from mcp_abridge.system import platform; platform.limit({MEMORY}, 1)\n{code}"

    ended = run([sys.executable, "-c", limited], capture_output=True, text=True, check=False)

    assert ended.returncode != 0
    assert ended.stderr.strip().endswith(end)


def test_the_process_has_no_secret_of_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret")
    tell = (
        "import os, msgspec, sys; sys.stdout.buffer.write(msgspec.msgpack.encode(str(os.environ)))"
    )
    monkeypatch.setattr(pictures, "_START", tell)

    environment = str(draw("", None))

    assert environment.startswith("environ(")
    assert "secret" not in environment


def test_a_process_that_dies_is_named_with_its_last_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(pictures, "_START", "raise SystemExit('out of luck')")

    assert draw("", None) == "its process ended with code 1: out of luck"


def test_a_rule_decides_for_its_tools() -> None:
    raw = image(png(2000, 20))

    changed = drawn(job(raw, rule=rule("response: [{keep: a}]")))
    as_it_came = drawn(job(raw, rule=rule("images: false\nresponse: [{keep: a}]")))

    assert picture(blocks(changed)[0]).size == (1568, 16)
    assert [*notes(changed)] == ["image(0)"]  # the tool has no view
    assert blocks(as_it_came) == [raw]
