r"""Sections of Markdown that repeat the same fields, as rows.

Without it, a list of issues as headings with `**Status**: open` lines below has no columns, and no
view can count or filter it.
"""

import re
from collections import Counter
from typing import NamedTuple

from mcp_abridge.summary.rows import Rows

_NAME = r"[A-Za-z][^*\n:]{0,40}"
_VALUE = r"(?=\s|$)[ \t]*([^\n]*)"
_FIELD = rf"(?:[ \t]*(?:[-*+] +)?\*\*({_NAME})(?::\*\*|\*\*:)|[-*+] +({_NAME}):){_VALUE}"
_HEADING = re.compile(r"^(#{1,6}) +(.+?)[ \t#]*$", re.MULTILINE)
_LINE = re.compile(_FIELD)
_LINES = re.compile(rf"^{_FIELD}", re.MULTILINE)
_PARAGRAPH = re.compile(r"^(?:[ \t]*\r?$|```|~~~)", re.MULTILINE)  # the beginning of another one
_TEXT = "text"  # the member for what is no field
_PREAMBLE = 20  # lines

SIGN = re.compile(rf"\A(?:[^\n]*\n){{0,{_PREAMBLE}}}?{_FIELD}\n\s*?(?:#|{_FIELD})")
"""A field before another or a heading, near the beginning of a text."""


def sections(text: str) -> Rows | None:
    r"""Return the sections of a text, if each has the field that the first one begins with.

    `heading` is that of a section. Lines right below a field belong to it; other text is `text`.

    >>> sections("# All\n## A-1\n**State:** open\n## A-2\n**State:** closed\n").rows
    [{'heading': 'A-1', 'State': 'open'}, {'heading': 'A-2', 'State': 'closed'}]
    >>> sections("- Title: a\n- Stars: 1\n---\n- Title: b\n- Stars: 2\n").rows[1]
    {'Title': 'b', 'Stars': '2'}
    """
    fields = [*_LINES.finditer(text)]
    counts = Counter(map(_name, fields))
    if not counts:
        return None
    most = max(counts.values())
    first = next(each for each in fields if counts[_name(each)] == most)
    opening = _name(first)
    headings = [*_HEADING.finditer(text, 0, first.start())]
    start = re.escape(text[first.start() : text.index(opening, first.start()) + len(opening)])
    begin = f"{headings[-1][1]} " if headings else start
    before, *parts = re.split(rf"^(?={begin})", text, flags=re.MULTILINE)
    read = [_section(part) for part in parts]
    closing = ""
    while len(read) > 1 and opening not in read[-1].row:  # what to do next, say
        closing = f"{parts.pop()}{closing}"
        read.pop()
    if any(opening not in each.row or len(each.row) < 2 for each in read):
        return None
    *others, last = read
    if last.apart or any(each.apart or each.rest for each in others):
        return Rows([each.with_rest() for each in read], "sections", loses=True)
    after = "".join(f"\n\n{each}" for each in (last.rest, closing.strip()) if each)
    return Rows([each.row for each in read], "sections", before, after)


def _name(field: re.Match[str]) -> str:
    return field[1] or field[2]


class _Section(NamedTuple):
    """The fields of a section, and the text after the last one; `apart` if there is more text."""

    row: dict[str, str]
    rest: str
    apart: bool

    def with_rest(self) -> dict[str, str]:
        row = _with_text(self.row, self.rest)
        text = {_TEXT: row.pop(_TEXT)} if self.apart and _TEXT in row else {}
        return row | text


def _section(part: str) -> _Section:
    row, rest, apart = dict[str, str](), "", False
    heading = _HEADING.match(part)
    if heading is not None:
        row["heading"], part = heading[2], part[heading.end() :].removeprefix("\n")
    for line in part.splitlines(keepends=True):
        field = _LINE.match(line)
        if field is not None and _name(field) not in row:
            if rest.strip():
                row, apart = _with_text(row, rest), True
            row[_name(field)], rest = field[3].strip(), ""
        else:
            rest += line if line.strip("-=_* \t\r\n") else "\n"
    return _Section(row, rest.rstrip(), apart)


def _with_text(row: dict[str, str], text: str) -> dict[str, str]:
    """Return a row with the text below its last field.

    Up to an empty line or a fence it belongs to that, and all of it to a field without a value;
    else, as below a heading, it is the member `text`.
    """
    name = next(reversed(row), "heading")
    ends = 0 if name in ("heading", _TEXT) else len(text) if not row[name] else None
    if ends is None:
        ends = next((end.start() for end in _PARAGRAPH.finditer(text)), len(text))
    for member, more, between in ((name, text[:ends], "\n"), (_TEXT, text[ends:], "\n\n")):
        if more := more.strip():
            row = row | {member: f"{row[member]}{between}{more}" if row.get(member) else more}
    return row
