"""The headings of a text in Markdown or HTML."""

import re
from collections.abc import Iterator

from msgspec import Struct

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.query.patterns import Pattern

_FENCED = "^```(?s:.*?)^```"  # a `#` in code is a comment
_HEADING = rf"(?m){_FENCED}|^(?:#{{1,6}} .*|.*<[hH][1-6][ >].*)$"
_LEVEL = re.compile(r"(#+) |.*?<[hH]([1-6])")
_TAG = re.compile(r"<[^<>]*>")
_READ = 1200  # characters of a line
_SHOWN = 120  # characters of a heading


class Heading(Struct, frozen=True):
    """A heading: its offset, its line (the first is 1), its level (1 to 6), and its words."""

    offset: int
    line: int
    level: int
    text: str


def headings(text: str, fuel: Fuel) -> Iterator[Heading]:
    r"""Yield the headings of a text. Raises OutOfFuel if the search takes too long."""
    if "#" not in text and "<" not in text:
        return
    line, counted = 1, 0
    for start, end in Pattern(_HEADING).spans(text, fuel):
        line += text.count("\n", counted, start)
        counted = start
        line_text = text[start : min(end, start + _READ)]
        if level := _LEVEL.match(line_text):
            words = " ".join(_TAG.sub(" ", line_text).split())
            yield Heading(start, line, len(level[1] or "") or int(level[2]), words[:_SHOWN])
