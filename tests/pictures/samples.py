"""Twenty pictures as tools return them: screenshots with words that OCR can count, and photos."""

import random
from collections.abc import Callable
from io import BytesIO
from typing import NamedTuple

from PIL import Image, ImageDraw, ImageFilter, ImageFont

_WORDS = """
account address amount answer apple archive article author balance basket before billing browser
button calendar camera cancel capital caption center change channel chapter citizen climate closed
coffee column comment company contact content copper corner country course credit culture current
customer dashboard database december delete delivery design detail device direct discount display
document dollar download draft economy editor effect email energy engine error event example export
factor family feature figure filter finance follow format forward future garden general global
ground group growth habit harbor health height history holiday image inbox income index industry
invoice island january journal kitchen language launch leader letter library license light limit
location machine manager margin market measure meeting member memory message method minute mobile
model moment monday month morning mountain movie music network notice number object office option
orange order owner package paper partner password pattern payment people period person phone photo
picture planet player policy popular position price printer private problem process product profile
project quality quarter question radio random reason record region reminder report request result
review river sample school science screen search season second section secure select series server
service session settings shadow share shipping signal simple single silver social source spring
standard station status storage street string student subject summer supply support survey system
target teacher theme thread ticket today token total travel update value vendor version video view
village visitor volume weather website weekend window winter world writer yellow
"""
WORDS = _WORDS.split()


Made = tuple[bytes, str]
"""A file, and the words that one can read in it."""


class Sample(NamedTuple):
    name: str
    make: Callable[[], Made]
    has_words: bool = False


def file(image: Image.Image, form: str, **options: object) -> bytes:
    raw = BytesIO()
    image.save(raw, form, **options)
    return raw.getvalue()


def text(seed: int, count: int = 4000) -> str:
    """Return words in random order, the same ones each time."""
    chooser = random.Random(seed)
    return " ".join(chooser.choice(WORDS) for _ in range(count))


def screen(
    width: int, height: int, size: int, seed: int, *, dark: bool = False, columns: int = 1
) -> tuple[Image.Image, str]:
    """Draw a window with a bar, a sidebar and words of `size` pixels; return it with its words."""
    back, front, side = ("#0d1117", "#e6edf3", "#161b22") if dark else ("white", "black", "#eeeeee")
    image = Image.new("RGB", (width, height), back)
    draw, font = ImageDraw.Draw(image), ImageFont.load_default(size)
    draw.rectangle((0, 0, width, 2 * size), fill="#24292f")
    draw.rectangle((0, 2 * size, width // 6, height), fill=side)
    words, drawn = iter(text(seed, 20_000).split()), []
    room = (width * 5 // 6 - size) // columns
    for y in range(3 * size, height - 2 * size, size * 8 // 5):
        for column in range(columns):
            x = width // 6 + size + column * room
            line: list[str] = []
            for word in words:
                if draw.textlength(" ".join([*line, word]), font) > room - size:
                    break
                line.append(word)
            draw.text((x, y), " ".join(line), front, font)
            drawn += line
    return image, " ".join(drawn)


def scan(width: int, height: int, size: int, seed: int) -> tuple[Image.Image, str]:
    """Return a page of paper as a scanner sees it: gray, with noise."""
    image, words = screen(width, height, size, seed)
    paper = Image.effect_noise(image.size, 12)
    return Image.blend(image.convert("L"), paper, 0.15), words


def photo(width: int, height: int, seed: int) -> Image.Image:
    """Return something with the smooth parts, the edges and the noise of a photo."""
    chooser = random.Random(seed)
    image = Image.merge("RGB", [
        Image.linear_gradient("L").rotate(90 * turn).resize((width, height))
        for turn in (0, 1, 2)
    ])  # fmt: skip
    draw = ImageDraw.Draw(image)
    for _ in range(80):
        x, y, r = (chooser.randrange(most) for most in (width, height, width // 6))
        color = tuple(chooser.randrange(256) for _ in range(3))
        draw.ellipse((x - r, y - r, x + r, y + r // 2), fill=color)
    noise = Image.effect_noise((width, height), 30).convert("RGB")
    return Image.blend(image.filter(ImageFilter.GaussianBlur(width / 800)), noise, 0.12)


def shot(
    width: int, height: int, size: int, *, dark: bool = False, columns: int = 1
) -> Callable[[], Made]:
    def make() -> Made:
        image, words = screen(width, height, size, width + height, dark=dark, columns=columns)
        return file(image, "PNG"), words

    return make


def picture(width: int, height: int, form: str, **options: object) -> Callable[[], Made]:
    return lambda: (file(photo(width, height, width), form, **options), "")


def opaque() -> Made:
    image, words = screen(2880, 1800, 32, 3)
    return file(image.convert("RGBA"), "PNG"), words


def jpeg() -> Made:
    image, words = screen(1920, 1200, 22, 5)
    return file(image, "JPEG", quality=90), words


def paper() -> Made:
    image, words = scan(2480, 3508, 50, 6)
    return file(image, "PNG"), words


def chart() -> Made:
    image, font = Image.new("RGB", (2000, 1200), "white"), ImageFont.load_default(14)
    draw = ImageDraw.Draw(image)
    for n, word in enumerate(WORDS[:24]):
        x = 60 + 80 * n
        draw.rectangle((x, 1100 - 40 * (n * 7 % 25), x + 60, 1100), fill=(n * 10, 90, 200))
        draw.text((x, 1120), word, "black", font)
    return file(image.quantize(64), "PNG"), ""


def logo() -> Made:
    image = Image.new("RGBA", (2000, 2000))
    ImageDraw.Draw(image).ellipse((200, 200, 1800, 1800), fill=(200, 40, 40, 180))
    return file(image, "PNG"), ""


def turned() -> Made:
    exif = Image.Exif()
    exif[0x0112] = 6  # lies on its left side
    return file(photo(4032, 3024, 1), "JPEG", quality=92, exif=exif), ""


def animation() -> Made:
    frames = [photo(1800, 1000, n).quantize(64) for n in range(4)]
    return file(frames[0], "GIF", save_all=True, append_images=frames[1:]), ""


SAMPLES = (
    Sample("a small window", shot(1280, 800, 16), has_words=True),
    Sample("a desktop of 1,080 lines", shot(1920, 1080, 20), has_words=True),
    Sample("a desktop of 1,440 lines", shot(2560, 1440, 26), has_words=True),
    Sample("a desktop of 2,160 lines", shot(3840, 2160, 40), has_words=True),
    Sample("a desktop with an alpha channel", opaque, has_words=True),
    Sample("a desktop as JPEG", jpeg, has_words=True),
    Sample("a dark terminal", shot(2400, 1350, 24, dark=True), has_words=True),
    Sample("a table of four columns", shot(2200, 1400, 22, columns=4), has_words=True),
    Sample("a phone", shot(1170, 2532, 40), has_words=True),
    Sample("a whole page, scrolled", shot(1280, 6000, 18), has_words=True),
    Sample("a scan of a page", paper, has_words=True),
    Sample("a chart of few colours", chart),
    Sample("a logo, partly transparent", logo),
    Sample("a photo of 1 megapixel", picture(1200, 900, "JPEG", quality=88)),
    Sample("a photo of 2 megapixels", picture(1600, 1200, "JPEG", quality=88)),
    Sample("a photo of a phone, turned", turned),
    Sample("a photo of 24 megapixels", picture(6000, 4000, "JPEG", quality=92)),
    Sample("a photo as PNG", picture(1500, 1000, "PNG")),
    Sample("a photo as WebP", picture(3000, 2000, "WEBP", quality=90)),
    Sample("an animation", animation),
)
