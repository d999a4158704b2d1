r"""Entries of a bibliography in BibTeX, as Zotero exports it, as rows.

Without it, a model pages through a library to find its oldest work.
"""

import re

from mcp_abridge.document.possessive import possessive
from mcp_abridge.summary.rows import Rows

SIGN = re.compile(r"\A(?:\s|%[^\n]*\n)*@\w+\s*\{\s*[^\s,{}]+\s*,")
"""The first entry of a bibliography."""

_ENTRY = re.compile(r"@(\w+)\s*\{\s*([^\s,{}]+)\s*,\s*")
_PART = r"[^{}]|\{(?:[^{}]|\{[^{}]*\})*\}"  # of a value in braces
_FIELD = re.compile(
    r"([A-Za-z][\w:-]*)\s*=\s*"
    rf"(?:\{{({possessive(_PART)})\}}|\"([^\"]*)\"|([\w.-]+))\s*,?\s*"
)
_BETWEEN = re.compile(r"\}(?:\s|%[^\n]*\n)*")


def bibliography(text: str) -> Rows | None:
    r"""Return the entries with their kind and key; None if a part of the text is none.

    >>> bibliography("@book{a1,\n title = {The {DNA} code},\n year = 1968\n}\n").rows
    [{'entry': 'book', 'key': 'a1', 'title': 'The {DNA} code', 'year': '1968'}]
    """
    rows, at = list[dict[str, str]](), len(text) - len(text.lstrip())
    while at < len(text):
        entry = _ENTRY.match(text, at)
        if entry is None:
            return None
        row = {"entry": entry[1], "key": entry[2]}
        at = entry.end()
        while field := _FIELD.match(text, at):
            row[field[1].lower()] = next(filter(None, field.groups()[1:]), "")
            at = field.end()
        end = _BETWEEN.match(text, at)
        if end is None:
            return None
        rows.append(row)
        at = end.end()
    return Rows(rows, "BibTeX")
