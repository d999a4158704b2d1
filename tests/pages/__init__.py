"""The pages of the project: their titles, links and blocks."""

import re
from collections.abc import Iterator
from pathlib import Path

from msgspec import Struct

from tests.reference.markdown import anchor

ROOT = Path(__file__).resolve().parents[2]
_TOPS = ("README.md", "CHANGELOG.md", "CONTRIBUTING.md", "SECURITY.md")
_FENCED = re.compile(r"^```(\w*)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_DATA = ("json", "yaml")


class Block(Struct, frozen=True):
    """A fenced block: the line that its text begins at, its language, and its text."""

    line: int
    language: str
    text: str


def pages() -> list[Path]:
    """Return every page, relative to the root."""
    folders = [path for name in ("examples", "rules") for path in (ROOT / name).rglob("*.md")]
    return [path.relative_to(ROOT) for path in (*(ROOT / name for name in _TOPS), *sorted(folders))]


def blocks(page: Path, language: str) -> Iterator[Block]:
    text = (ROOT / page).read_text()
    for match in _FENCED.finditer(text):
        if match[1] == language:
            yield Block(text.count("\n", 0, match.start(2)) + 1, match[1], match[2])


def files_of(page: Path) -> dict[str, str]:
    """Return the YAML and JSON that a page shows, by the file that the paragraph before names."""
    files: dict[str, str] = {}
    text = (ROOT / page).read_text()
    for match in _FENCED.finditer(text):
        paragraph = text[: match.start()].rstrip().rpartition("\n\n")[2]
        names = re.findall(rf"`([\w-]+\.{match[1]})`", paragraph) if match[1] in _DATA else []
        files |= dict.fromkeys(names[-1:], match[2])
    return files


def prose(page: Path) -> str:
    """Return a page without its fenced blocks."""
    return _FENCED.sub("", (ROOT / page).read_text())


def anchors(page: Path) -> list[str]:
    """List the fragments that links to the titles of a page end with."""
    return [anchor(title) for title in re.findall(r"^#+ (.+)$", prose(page), re.MULTILINE)]
