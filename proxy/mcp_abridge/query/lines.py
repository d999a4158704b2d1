"""The search of `grep` in a text: lines with a match, or the parts of long ones around it."""

import re
from collections import Counter
from collections.abc import Callable, Iterator
from itertools import islice
from typing import Any

from mcp_abridge.document.escapes import without_escapes
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.query.headings import MOST, Heading, heading_above, headings
from mcp_abridge.query.hits import COUNTED, FIRST, LISTED, PLACES, Hits
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.query.places import FEW

_LINE = 240  # characters of a line that is shown whole
_BESIDE = 3  # lines on either side of each of a few hits
_ABOVE = 20_000  # characters in which the lines are that another one stands under
_HEADINGS = 4  # such lines that are shown
_BLOCK = 15  # lines that stand indented below one, which are shown beside it
_LARGEST_MARKDOWN = 1 << 20  # characters of a text whose headings are read for that
_LARGEST_BLOCK = 2000  # characters in which the first line of a block is looked for
SNIPPET = 160  # characters around a match in a longer one
_WINDOW = 2000  # characters around a match in a long line
_DIGITS = re.compile(r"\d+")
_ESCAPE = re.compile(r"\x1b|\\x\{?0*1b|\\0?33", re.IGNORECASE)


def in_text(text: str, pattern: Pattern, context: int, fuel: Fuel) -> Hits:
    """Return the lines of a text with a match, and `context` lines around each.

    They have no escape codes, unless the pattern asks for such.
    """
    offset: Callable[[int], int] = int
    if not _ESCAPE.search(pattern.text):
        text, offset = without_escapes(text)
    matches, number, counted, visible_end = 0, 1, 0, -1
    numbers: list[int] = []  # of the lines with a match
    lines: list[dict[str, Any]] = []
    beyond: list[int] = []  # lines of matches that are not among the first hits
    spans: list[tuple[int, int]] = []  # of the hits, as they are shown
    sections: list[Heading] | None = None
    for at, end in islice(pattern.spans(text, fuel), COUNTED):
        matches += 1
        number += text.count("\n", counted, at)
        counted = at
        if not numbers or numbers[-1] != number:
            numbers.append(number)
            if len(lines) > FIRST or (len(lines) == FIRST and at >= visible_end):
                beyond.append(number)
        fuel.burn(2)
        if at < visible_end or len(lines) == LISTED:
            continue
        start, visible_end = around(text, at, end)
        hit: dict[str, Any] = {"line": number}
        if context:
            start, visible_end = _lines_around(text, start, visible_end, context)
            hit["from"] = number - text.count("\n", start, at)
        hit["text"] = marked(text, start, visible_end)  # first: what is behind it is cut before it
        if len(lines) < FIRST:
            sections = _of_markdown(text, fuel) if sections is None else sections
            if above := _lines_above(text, at, sections, fuel):
                hit["under"] = above
        if not context and hit["text"] != text[start:visible_end]:
            hit["more"] = window(offset(at))
        fuel.burn(8 + (visible_end - start) // 16)
        lines.append(hit)
        spans.append((start, visible_end))
    least = "_at_least" if matches == COUNTED else ""
    result = Hits({f"matches{least}": matches, f"matched_lines{least}": len(numbers)})
    result["lines"] = lines
    if not context and len(spans) <= FEW and not any("more" in hit for hit in lines):
        result.beside = dict(zip([hit["line"] for hit in lines], _beside(text, spans), strict=True))
    if beyond:
        result["others"] = _by_lines(beyond)
    return result


def around(text: str, at: int, match_end: int) -> tuple[int, int]:
    """Return the start and the end of the line at `at`; of the part around it if it is long."""
    start = text.rfind("\n", max(0, at - _LINE), at) + 1
    end = text.find("\n", at, at + _LINE)
    end = len(text) if end < 0 and at + _LINE >= len(text) else end
    if (start or at <= _LINE) and 0 <= end <= start + _LINE:
        return start, end
    first = max(start, at - max(SNIPPET - (match_end - at), SNIPPET // 3) // 2)
    last = first + SNIPPET
    if 0 <= end < last:
        first, last = max(start, end - SNIPPET), end
    return first, min(last, len(text))


def marked(text: str, start: int, end: int) -> str:
    """Return a part of a text, with marks if it begins or ends inside of a line."""
    before = "…" if start and text[start - 1] != "\n" else ""
    after = "…" if end < len(text) and text[end] != "\n" else ""
    return f"{before}{text[start:end]}{after}"


def _lines_around(text: str, start: int, end: int, count: int) -> tuple[int, int]:
    for _ in range(count):
        start = around(text, start - 1, start)[0] if start > 0 else 0
        end = around(text, end + 1, end + 1)[1] if end + 1 < len(text) else end
    return start, end


def _beside(text: str, spans: list[tuple[int, int]]) -> Iterator[dict[str, str]]:
    """Yield the lines before and after each part of a text, as far as they are in no other.

    What stands indented below a line belongs to it, such as what an option of a manual means.
    """
    least, stops = 0, [*(start - 1 for start, _ in spans), len(text)][1:]
    for (start, end), stop in zip(spans, stops, strict=True):
        first, last = _lines_around(text, start, end, _BESIDE)
        first, last = max(first, least), min(max(last, _end_of_block(text, start, end)), stop)
        parts = {"before": (first, max(start - 1, 0)), "after": (end + 1, last)}
        least = last + 1
        yield {
            name: marked(text, *part) for name, part in parts.items() if text[slice(*part)].strip()
        }


def _end_of_block(text: str, start: int, end: int) -> int:
    """Return the end of the lines that stand indented below one."""
    indent, last = _indent(text[start:end]), end
    for _ in range(_BLOCK):
        stop = text.find("\n", end + 1, end + _LINE)
        line = text[end + 1 : stop]
        if stop < 0 or (line.strip() and _indent(line) <= indent):
            break
        last, end = (stop if line.strip() else last), stop
    return last


def _indent(line: str) -> int:
    return len(line) - len(line.lstrip())


def _of_markdown(text: str, fuel: Fuel) -> list[Heading]:
    """Return the headings of Markdown; none of a text that is no Markdown, or has too many."""
    if len(text) > _LARGEST_MARKDOWN or not (text.startswith("#") or "\n#" in text):
        return []
    every = headings(text, fuel)
    markdown = len(every) < MOST and all(text[each.offset] == "#" for each in every)
    return every if markdown else []


def _lines_above(text: str, at: int, sections: list[Heading], fuel: Fuel) -> str:
    """Return the lines that a line stands under: such as keys of YAML, or the first of its block.

    Of lines that open nothing, the one that the line is indented below counts. In Markdown, the
    heading is the first of its block.
    """
    end = text.rfind("\n", 0, at) + 1
    line, least = text[end : end + _LINE], max(end - _ABOVE, 0)
    indent, openers = _indent(line), list[str]()
    section = heading_above(text, sections, end)
    block = "" if indent or sections else _first_of_block(text, end)
    fuel.burn(1)
    while indent and end > least:
        start = text.rfind("\n", least, end - 1) + 1
        if least and not start:
            break  # a part of a line
        line = text[start : end - 1]
        end = start
        fuel.burn(1)
        if _indent(line) < indent and line.strip():
            indent = _indent(line)
            opens = line.endswith((":", "{", "[", "("))
            if len(line) <= _LINE and (opens or not openers):
                openers.append(line.strip())
    above = [section] if section else []
    return " > ".join(above + openers[::-1][-_HEADINGS:]) or block


def _first_of_block(text: str, end: int) -> str:
    """Return the first line after the last empty one, if it stands some lines above `end`.

    If others begin as it does, but for digits, it is none that they stand under.
    """
    start = text.rfind("\n\n", max(end - _LARGEST_BLOCK, 0), end) + 2
    lines = text[start:end].splitlines()
    if start < 2 or len(lines) <= _BESIDE:
        return ""
    word, *words = [_DIGITS.sub("", line.partition(" ")[0]) for line in lines]
    return "" if word in words else lines[0].strip()


def window(at: int) -> str:
    """Return the slice that shows what is around a place."""
    start = max(0, at - _WINDOW // 2)
    return f"[{start}:{start + _WINDOW}]"


def _by_lines(numbers: list[int]) -> dict[str, int]:
    """Count lines by parts of the text, each named by the view that shows it.

    >>> _by_lines([40, 41, 230, 1000])
    {'lines(40, 160)': 2, 'lines(161, 281)': 1, 'lines(887, 1007)': 1}
    """
    first = numbers[0]
    size = max(-(-(numbers[-1] - first + 1) // PLACES), 10)
    parts = Counter((number - first) // size for number in numbers)
    return {
        f"lines({first + part * size}, {first + (part + 1) * size - 1})": count
        for part, count in parts.items()
    }
