"""The first lines of blocks: of indented lines, or of paragraphs that begin with one word.

Without them, a report on each host, interface or resource has no outline.
"""

import re
from collections import Counter
from collections.abc import Iterator
from functools import cache
from operator import itemgetter

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.query.patterns import Pattern

_HEAD = r"""(?m)^(?:[\pL_"'.@]|\d{1,4}: )[^\n]*\n[ \t]+\S"""
SIGN = rf"{_HEAD}|\n[ \t]*\r?\n"
"""A line with an indented one below, or an empty one."""
_PARAGRAPH = re.compile(r"(?:\A|\n[ \t\r]*\n)(?=\S)")
_SEVERAL_LINES = re.compile(r"[^\n]+\n[ \t]*\S")
_FEWEST = 5  # paragraphs
_MOSTLY = 0.6  # of the lines that are not indented, or of the paragraphs
_DIFFERENT = 0.8  # of their heads, at least: else these are speakers, or tracebacks
_READ = 400  # characters


def block_heads(text: str, fuel: Fuel) -> Iterator[tuple[int, str]]:
    """Yield the offset and the words of each head; of lines first, else of paragraphs.

    >>> text = "".join(f"eth{n}: flags={n}\\n  inet 10.0.0.{n}\\n\\n" for n in range(3))
    >>> [*block_heads(text, Fuel())]
    [(0, 'eth0: flags=0'), (31, 'eth1: flags=1'), (62, 'eth2: flags=2')]
    """
    fuel.burn(len(text) >> 6)
    yield from _of_lines(text, fuel) or _of_paragraphs(text)


def _of_lines(text: str, fuel: Fuel) -> list[tuple[int, str]]:
    starts = [start for start, _ in _pattern().spans(text, fuel)]
    lines = [line for line in text.split("\n") if line[:1].strip() and line.strip("{}[]();,\r")]
    return _if_most(text, starts, len(lines))


def _of_paragraphs(text: str) -> list[tuple[int, str]]:
    starts = [each.end() for each in _PARAGRAPH.finditer(text)]
    longer = [at for at in starts if _SEVERAL_LINES.match(text, at)]
    words = Counter(text[at : at + _READ].split(None, 1)[0] for at in longer)
    word, count = max(words.items(), key=itemgetter(1), default=("", 0))
    heads = [at for at in longer if text.startswith(f"{word} ", at)]
    return _if_most(text, heads, len(starts)) if count >= _FEWEST else []


def _if_most(text: str, starts: list[int], count: int) -> list[tuple[int, str]]:
    """Return heads with their words if they are most of so many, and differ."""
    heads = [(at, text[at : at + _READ].partition("\n")[0].rstrip("{: \r*")) for at in starts]
    different = len({words for _, words in heads})
    return heads if len(heads) >= _MOSTLY * count and different >= _DIFFERENT * len(heads) else []


@cache
def _pattern() -> Pattern:
    return Pattern(_HEAD)
