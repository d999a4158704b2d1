"""Shortens strings, and appends how much is left out."""

from typing import Annotated, ClassVar

from msgspec import Meta

from mcp_abridge.document.measure import strings
from mcp_abridge.document.paths import ROOT, Path, find
from mcp_abridge.document.tree import Pieces, Slot
from mcp_abridge.query.call import Call
from mcp_abridge.transforms.base import Transform


class Clip(Transform, frozen=True):
    """Keep the first `max_lines` lines or `max_chars` characters of each string at `at`.

    A count of the rest is appended: `… (+N chars)`, or `… (+N lines)` on a line of its own. In an
    array each string is clipped; in a text read as lines or records, each line or record; other
    values stay unchanged. With both bounds, `max_lines` is applied first.

    >>> from mcp_abridge.document.tree import Document
    >>> document = Document.read(b'[{"body": "abcdefghij"}, {"body": null}]')
    >>> Clip(at=Path.parse("body"), max_chars=4)(document.root, Call("list"))
    >>> document.encode().decode()
    '[{"body":"abcd… (+6 chars)"},{"body":null}]'
    """

    name: ClassVar[str] = "clip"
    cuts: ClassVar[bool] = True
    works_on_pages: ClassVar[bool] = True

    at: Path = ROOT
    """The texts, or arrays of texts."""
    max_chars: Annotated[int, Meta(ge=0)] | None = None
    """How many characters stay. This option, the next, or both are required."""
    max_lines: Annotated[int, Meta(ge=0)] | None = None
    """How many lines stay."""

    def __post_init__(self) -> None:
        if self.max_chars is None and self.max_lines is None:
            raise ValueError("say 'max_chars', 'max_lines' or both")

    def __call__(self, root: Slot, call: Call) -> None:
        for slot, text in strings(root, self.at):
            ends = text[len(text.rstrip("\r\n")) :] if isinstance(slot.parent, Pieces) else ""
            clipped = self._clipped(text.removesuffix(ends))
            if clipped is not None:
                slot.set(clipped + ends)
        if find(root, self.at) is None:
            call.missing.append(str(self.at))

    def _clipped(self, text: str) -> str | None:
        head, lines = text, 0
        if self.max_lines is not None:
            head, lines = _first_lines(text, self.max_lines)
        if self.max_chars is not None and len(head) > self.max_chars:
            return f"{head[: self.max_chars]}… (+{len(text) - self.max_chars} chars)"
        return f"{head}… (+{lines} lines)" if lines else None


def _first_lines(text: str, most: int) -> tuple[str, int]:
    end = 0
    for _ in range(most):
        end = text.find("\n", end) + 1
        if end == 0:
            return text, 0
    rest = len(text) - end
    return text[:end], text.count("\n", end) + (rest > 0 and not text.endswith("\n"))
