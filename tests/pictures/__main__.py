"""`python -m tests.pictures`: writes the table of examples/pictures.md."""

from io import BytesIO

from PIL import Image, ImageOps

from tests.pictures.results import blocks, drawn, image, job, picture
from tests.pictures.samples import SAMPLES
from tests.reference.markdown import rendered, table
from tests.wrapped import ROOT

PAGE = ROOT / "examples" / "pictures.md"
COLUMNS = ("picture", "pixels", "bytes", "tokens", "pixels after", "bytes", "tokens")


def cells(raw: bytes, opened: Image.Image) -> list[str]:
    """Return the pixels and the bytes of an image, and the tokens if no vendor scales it."""
    width, height = opened.size
    return [
        f"{width:,} x {height:,}",
        f"{len(raw):,} {opened.format}",
        f"{width * height // 750:,}",
    ]


def row(name: str, raw: bytes) -> list[str]:
    opened = Image.open(BytesIO(raw))
    upright = ImageOps.exif_transpose(opened)
    upright.format = opened.format
    after = blocks(drawn(job(image(raw))))
    if len(after) == 1:
        return [name, *cells(raw, upright), "as it came", "", ""]
    smaller = picture(after[0])
    return [name, *cells(raw, upright), *cells(len(after[0]["data"]) * 3 // 4 * b"-", smaller)]


def rows() -> list[list[str]]:
    return [row(sample.name, sample.make()[0]) for sample in SAMPLES]


if __name__ == "__main__":
    PAGE.write_text(rendered(PAGE.read_text(), {"pictures": table(COLUMNS, rows())}))
