r"""Blocks of `name: value` lines that begin with the same name, as rows: mails, describes, results.

Without it, no view can tell which of the pods of `kubectl describe` is pending.
"""

import re
from itertools import islice, takewhile
from textwrap import dedent

from mcp_abridge.summary.origin import BLOCKS
from mcp_abridge.summary.rows import Rows

_FEWEST = 3  # fields before a text
_MOST_FIELDS = 60
_NUMBER = re.compile(r"\d+")
_TEXT = "text"  # the member for what follows the fields of a record
_PROSE = {"message", "description", "content", "contents", "body", "summary", "snippet", "comment"}
_FIELD = re.compile(
    r"^([A-Za-z@_][\w./()-]*(?: [\w./()-]+){0,3})[ \t]*:(?=\s|$)[ \t]*(.*)$", re.MULTILINE
)

SIGN = re.compile(
    rf"\A(?:[^\n]*\n){{0,2}}?{_FIELD.pattern}\n(?:{_FIELD.pattern}|[ \t])", re.MULTILINE
)
"""A field before another, or before an indented line, near the beginning of a text."""


def blocks(text: str) -> Rows | None:
    """Read records of `name: value` lines, each of which begins with the same name.

    Other lines belong to the value before them if they are indented, or if that value is the last
    one of its record; behind an empty line, as in a mail, they are the member `text` of it, unless
    that value is called a message, or such. A line above each record, as in an mbox, is `heading`.
    """
    fields = [*islice(_FIELD.finditer(text), 2)]
    names = [text.count(f"\n{field[1]}:") for field in fields]
    if len(fields) == 2 and (not fields[0][2] or names[0] + 1 < names[1]):
        fields.pop(0)  # a heading
    if not fields or text.count("\n", 0, start := fields[0].start()) > 2:
        return None
    parts = re.split(rf"\n(?={re.escape(fields[0][1])}[ \t]*:\s)", text[start:])
    headings = _lines_above(before := text[:start], parts)
    if headings:
        before, *parts = [_without_last_line(part) for part in (before, *parts[:-1])] + parts[-1:]
    read = _fields_of_one_line([part.splitlines() for part in parts])
    rows = read or _fields_before_a_text(parts)
    if rows is None or min(map(len, rows)) < 2:
        return None
    plain = read is not None and not any("\n" in cell for row in rows for cell in row.values())
    if len({*headings}) > 1:
        rows = [{**row, "heading": line} for line, row in zip(headings, rows, strict=True)]
    return Rows(rows, BLOCKS, before, loses=not plain)


def _lines_above(before: str, parts: list[str]) -> list[str]:
    """Return the line above each record, if these begin with the same word but for its number."""
    lines = [part.rstrip().rpartition("\n")[2] for part in (before, *parts[:-1])]
    words = {_NUMBER.sub("", line.partition(" ")[0]) for line in lines}
    return lines if all(lines) and len(words) == 1 else []


def _without_last_line(part: str) -> str:
    lines, end, _ = part.rstrip().rpartition("\n")
    return lines + end


def _fields_of_one_line(parts: list[list[str]]) -> list[dict[str, str]] | None:
    rows: list[dict[str, str]] = []
    for lines in parts:
        row, cell = dict[str, list[str]](), list[str]()
        for line in lines:
            if line[:1] in (" ", "\t") and line.strip():
                cell.append(line.rstrip())
            elif (match := _FIELD.match(line)) is not None:
                if match[1] in row or len(row) > _MOST_FIELDS:
                    return None
                cell = row[match[1]] = [match[2].strip()]
            elif line.strip("-= \t"):
                return None
        rows.append({name: _cell(*lines) for name, lines in row.items()})
    return rows


def _cell(first: str, *others: str) -> str:
    """Return a value with the lines indented below it, which may be so below one another."""
    return "\n".join([first, *([dedent("\n".join(others))] if others else ())])


def _fields_before_a_text(parts: list[str]) -> list[dict[str, str]] | None:
    rows, names = list[dict[str, str]](), list[str]()
    for part in parts:
        lines = part.splitlines()
        fields = [*takewhile(bool, map(_FIELD.match, lines))]
        own = [match[1] for match in fields if match is not None]
        names = names or own
        if own != names or len(set(own)) < len(own) or len(own) < _FEWEST:
            return None
        row = {match[1]: match[2].strip() for match in fields if match is not None}
        rest = "\n".join(lines[len(own) :])
        # In a mail, what follows the empty line is no part of its subject.
        apart = rest.startswith("\n") and own[-1].lower() not in _PROSE
        name = _TEXT if apart and _TEXT not in row else own[-1]
        if rest.strip():
            row[name] = f"{row.get(name, '')}\n{rest}".strip()
        rows.append(row)
    return rows
