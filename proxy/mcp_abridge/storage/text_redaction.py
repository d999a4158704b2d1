"""Secrets in texts that are no JSON: cut JSON, YAML, CSV, Markdown, variables, command lines.

Which names have secret values is decided elsewhere; the end of a value is found here.
"""

import re
from collections.abc import Callable, Iterator
from typing import Any

from mcp_abridge.document.masks import MASK

Hides = Callable[[str], bool]

# Between a name and its value: `": `, `\": `, `=`, `:** `. A flag has blanks only.
SEPARATOR = r"""(?:(\\*["'])?[*`]*[ \t]*(?:=>|:=|[:=])[*`]*[ \t]*|[ \t]+)"""
# After `name: ` and a secret name: `, value: `.
LABEL = r"""(?i)\b(?:name|key|field|header|variable)\\*["']?[ \t]*[:=][ \t]*\\*["']?"""
VALUE = r"""(\\*["'])?[\s,;]*\\*["']?(?:values?|val|content|default)\\*["']?[ \t]*[:=][ \t]*"""

_QUOTE = re.compile(r"""(\\*)(["'])""")
# Only the first of many backslashes begins a match, or their number would count twice.
_TOKEN = re.compile(r"""(?<!\\)(\\*)"|[\[\]{}]""")
_CLOSING = re.compile(r"""\n|(?<!\\)(\\*)(["'])""")
_BARE = re.compile(r"[^\n\r&]*")
_BARE_IN_JSON = re.compile(r"[^,}\]\n\r]*")
_WORD = re.compile(r"\S*")
_NUMBER = re.compile(r"[\d.,_]+\s*")
_BLOCK = re.compile(r"([|>][-+0-9]*)?[ \t]*\r?\n")
_BEFORE_KEY = re.compile(r"""[ \t]*(?:-[ \t]+)*["']?""")
_LINE = re.compile(r"([ \t]*)(.*)(?:\n|\Z)")
_HEADING = re.compile(r"[\w .()/#*`-]*")
_RULE = re.compile(r"[-+:=| \t]*")
_CELL = r"""[ ]*"(?:[^"]|"")*(?:"[ ]*(?=%s|\r?\n|\Z)|\Z)|(?:\\.|[^%s\\\n\r]|\\(?=\n|\r|\Z))*"""
_CELLS = {each: re.compile(_CELL % (re.escape(each), re.escape(each))) for each in "|\t,;"}
_LONGEST_HEADING = 4_000  # characters of a line
_IN_CELL = re.compile(r"""(\s*["'`]?)(.*?)(["'`]?\s*)""", re.DOTALL)


def mask_members(text: str, matches: Iterator[Any], hides: Hides) -> str:
    """Mask the values after names; at the end of each of `matches` one may begin.

    Its groups are the name and the quote after it. `hides` decides on the name.
    """
    parts: list[str] = []
    end = 0
    for match in matches:
        start, value = match.span()
        if start < end or not hides(match[1]):
            continue
        is_flag = match[0][-1] in " \t" and not re.search("[:=]", match[0][len(match[1]) :])
        if is_flag and not match[1].startswith("-"):
            continue
        value_end, mask = _masked(text, start, value, match[2] or "", is_flag=is_flag)
        count = match[1].endswith(("s", "S")) and _NUMBER.fullmatch(text[value:value_end])
        if value_end > value and not count:
            parts += text[end:value], mask
            end = value_end
    return "".join(parts) + text[end:]


def _masked(text: str, key: int, at: int, quote: str, *, is_flag: bool) -> tuple[int, str]:
    """Return the end of the value at a position, and what stands in its place."""
    if (opening := _QUOTE.match(text, at)) is not None:
        end = _end_of_string(text, opening)
        closed = text.endswith(opening[2], opening.end(), end)
        if not closed and (block := _BLOCK.match(text, end)) is not None:
            # A long text of YAML goes on in lines that are indented more.
            end = max(end, _end_of_block(text, key, block)[0])
            end -= text.endswith("\n", 0, end)
        return end, f"{opening[0]}{MASK}{opening[0] if closed else ''}"
    if is_flag:
        return _end(_WORD, text, at), MASK
    if text[at : at + 1] in ("{", "["):
        return _end_of_brackets(text, at, len(quote) - 1 if quote else 0), f"{quote}{MASK}{quote}"
    if quote and not quote.endswith("'"):
        return _end(_BARE_IN_JSON, text, at), f"{quote}{MASK}{quote}"
    if (block := _BLOCK.match(text, at)) is not None:
        return _end_of_block(text, key, block)
    return _end(_BARE, text, at), MASK


def _end(pattern: re.Pattern[str], text: str, at: int) -> int:
    match = pattern.match(text, at)
    return at if match is None else at + len(match[0].rstrip())


def _closes(backslashes: str, level: int) -> bool:
    """Return True if a quote after these ends a string whose quotes have `level` backslashes."""
    return len(backslashes) % (2 * (level + 1)) == level


def _end_of_string(text: str, opening: re.Match[str]) -> int:
    for match in _CLOSING.finditer(text, opening.end()):
        if match[0] == "\n":
            return match.start()
        if match[2] == opening[2] and _closes(match[1], len(opening[1])):
            return match.end()
    return len(text)


def _end_of_brackets(text: str, at: int, level: int) -> int:
    depth, inside = 0, False
    for match in _TOKEN.finditer(text, at):
        if match[0].endswith('"'):
            inside ^= _closes(match[1], level)
        elif not inside:
            depth += 1 if match[0] in "[{" else -1
            if depth == 0:
                return match.end()
    return len(text)


def _end_of_block(text: str, key: int, block: re.Match[str]) -> tuple[int, str]:
    """Return the end of the lines of YAML that belong to a key, which are indented more."""
    line = _start_of_line(text, key)
    before = None if line is None else _BEFORE_KEY.match(text, line)
    if line is None or before is None or before.end() != key:
        return block.start(), ""
    indent = key - line
    at = end = block.end()
    while at < len(text) and (match := _LINE.match(text, at)):
        item = block[1] is None and match[2].startswith("- ") and len(match[1]) == indent
        if match[2].strip() and len(match[1]) <= indent and not item:
            break
        at = match.end()
        end = at if match[2].strip() else end
    if end == block.end():
        return block.start(), ""
    return end, f" {MASK}\n" if text[end - 1] == "\n" else f" {MASK}"


def _start_of_line(text: str, at: int) -> int | None:
    """Return the start of the line at a position; None if that is far away."""
    far = max(0, at - _LONGEST_HEADING)
    line = text.rfind("\n", far, at) + 1
    return line if line or far == 0 else None


def mask_columns(text: str, names: Iterator[Any], hides: Hides) -> str:
    """Mask the cells below headings; each of `names` may stand in one."""
    parts: list[str] = []
    end, seen_line = 0, -1
    for match in names:
        start = _start_of_line(text, match.start())
        if start is None or start < end or start == seen_line:
            continue
        seen_line = start
        for cells in _CELLS.values():
            heading, at = _row(text, start, cells)
            texts = [text[slice(*span)].strip(" \t\"'`*") for span in heading]
            columns = [number for number, each in enumerate(texts) if each and hides(each)]
            if len(texts) > 1 and columns and all(map(_HEADING.fullmatch, texts)):
                parts.append(text[end:at])
                end = at
                while end < len(text):
                    row, at = _row(text, end, cells)
                    line = text[end:at]
                    if len(row) != len(heading) and not _RULE.fullmatch(line.strip()):
                        break
                    if not _RULE.fullmatch(line.strip()):
                        line = _masked_row(text, end, row, columns) + text[row[-1][1] : at]
                    parts.append(line)
                    end = at
                break
    return "".join(parts) + text[end:]


def _row(text: str, at: int, cells: re.Pattern[str]) -> tuple[list[tuple[int, int]], int]:
    row: list[tuple[int, int]] = []
    while match := cells.match(text, at):
        row.append(match.span())
        at = match.end() + 1
        if text[match.end() : at] in ("", "\n", "\r"):
            break
    if text[at - 1 : at + 1] == "\r\n":
        at += 1
    return row, min(at, len(text))


def _masked_row(text: str, start: int, row: list[tuple[int, int]], columns: list[int]) -> str:
    parts: list[str] = []
    for number in columns:
        first, last = row[number]
        match = _IN_CELL.fullmatch(text[first:last])
        if match is not None and match[2]:
            parts += text[start:first], f"{match[1]}{MASK}{match[3]}"
            start = last
    return "".join(parts) + text[start : row[-1][1]]
