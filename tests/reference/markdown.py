"""Fills the generated blocks of a reference page; the prose around them is written by hand.

A block stands between `<!-- generated: NAME -->` and `<!-- end -->`.
"""

import inspect
import re
import textwrap
from collections.abc import Iterable, Mapping

WIDTH = 120
_BLOCK = re.compile(r"(?<=<!-- generated: )(\w+) -->\n.*?(?=<!-- end -->)", re.DOTALL)


def rendered(page: str, blocks: Mapping[str, str]) -> str:
    """Return a page with new blocks, and a table of contents in the block `contents`."""
    titles = re.findall(r"^## (.+)$", page, re.MULTILINE)
    contents = "\n".join(f"- [{title}](#{anchor(title)})" for title in titles)
    texts = {**blocks, "contents": contents}
    return _BLOCK.sub(lambda match: f"{match[1]} -->\n\n{texts[match[1]]}\n\n", page)


def anchor(title: str) -> str:
    """Return the fragment of a link to a title, without its #."""
    return re.sub(r"[^\w\- ]", "", title.lower()).replace(" ", "-")


def table(titles: Iterable[str], rows: Iterable[Iterable[str]]) -> str:
    head = list(titles)
    lines = [head, ["---"] * len(head), *rows]
    return "\n".join(f"| {' | '.join(cells).rstrip()} |" for cells in lines)


def filled(text: str) -> str:
    """Return Markdown with paragraphs and list items filled; code, tables and titles unchanged."""
    return "\n\n".join(map(_block, inspect.cleandoc(text).strip().split("\n\n")))


def _block(block: str) -> str:
    if block.startswith(("```", "|", "#")):
        return block
    items = re.split(r"\n(?=(?:- |\d+\. ))", block)
    marks = [re.match(r"- |\d+\. |", item) for item in items]
    return "\n".join(
        "\n".join(wrapped(" ".join(item.split()), len(mark[0]) if mark else 0))
        for item, mark in zip(items, marks, strict=True)
    )


def wrapped(line: str, indent: int) -> list[str]:
    """Return a long line wrapped into lines, all but the first indented."""
    return textwrap.wrap(
        line,
        WIDTH,
        subsequent_indent=" " * indent,
        break_long_words=False,
        break_on_hyphens=False,
    )
