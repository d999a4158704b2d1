r"""Tables that stand to the right below their names, as pandas and R print them, as rows.

Without it, no view can filter what a server of data sends as `DataFrame.to_string()`.
"""

import re
from itertools import pairwise, takewhile

from mcp_abridge.query.heads import is_head, names_columns
from mcp_abridge.summary.rows import Rows

SIGN = re.compile(r"\A(?:[^\n]*\n){0,5}?[^\n]*\w *\n(?=\S| {2,}\S)")
"""A line above another one, near the beginning of a text."""

_BEGINNING = 4000  # characters by which such a table is told
_HEADS = 6  # lines of which one may be the head
_FEWEST = 3  # rows
_TELLING = 100  # rows that tell if the first line is a head, if they have no labels
_INDEX = "index"  # the name of labels of rows, if they have none
_NULL = {"NaN", "NaT", "<NA>", "None"}
_WORD = re.compile(r"\S+")
_DOTS = re.compile(r"[. ]+")


def printed(text: str) -> Rows | None:
    r"""Return the rows of a table; None if not all lines are of one length, and in columns.

    Names of the labels of rows may stand on the line below the others. A label stands once above
    the rows that share it, if each has another one, too. A row lacks what is null.

    >>> printed("     x    y\n0  a b  1.5\n1    c -2.0\n2    d  NaN\n").rows[1:]
    [{'index': '1', 'x': 'c', 'y': '-2.0'}, {'index': '2', 'x': 'd'}]
    >>> printed("       n\na b     \nx 1  3.0\n  2  4.0\ny 1  5.0\n").rows[1]
    {'a': 'x', 'b': '2', 'n': '4.0'}
    """
    sample = text[:_BEGINNING].splitlines()
    sample = sample[:-1] if len(text) > _BEGINNING else sample
    for start in range(min(_HEADS, len(sample) - _FEWEST)):
        body = _of_one_length(sample[start], sample[start + 1 :])
        if body and _rows(sample[start], body):
            break
    else:
        return None
    lines = text.splitlines()
    body = _of_one_length(lines[start], lines[start + 1 :])
    rows = _rows(lines[start], body) if body else None
    if rows is None:
        return None
    before = "".join(f"{line}\n" for line in lines[:start])
    after = "".join(f"\n{line}" for line in lines[start + 1 + len(body) :])
    return Rows(rows, "a table", before, after)


def _of_one_length(head: str, lines: list[str]) -> list[str]:
    """Return the lines up to an empty one, if they are as long as the head, and enough."""
    body = [*takewhile(str.strip, lines)]
    lengths = {*map(len, body)}
    return body if len(body) >= _FEWEST and lengths == {len(head)} else []


def _rows(head: str, body: list[str]) -> list[dict[str, str]] | None:
    below = _names_below(head, body)
    rows = body[1:] if below else body
    blank = [not any(map(str.strip, column)) for column in zip(*rows, strict=True)]
    ends = [word.end() for word in _WORD.finditer(head) if _is_end(rows, word.end(), blank)]
    if not ends or ends[-1] < len(head) or len(rows) < _FEWEST:
        return None
    starts, first = _labels(below, rows, blank, len(head) - len(head.lstrip()))
    columns = [*pairwise([first, *ends])]
    spans = [*pairwise([*starts, first]), *columns]
    labels = [below[slice(*span)].strip() or _INDEX for span in spans[: len(starts)]]
    names = labels + [head[slice(*span)].strip() for span in columns]
    table = [[row[slice(*span)].strip() for span in spans] for row in rows]
    sample = [*zip(*table[:_TELLING], strict=True)]
    telling = is_head(names) if starts else names_columns(names, sample)
    beside = any(row[end - 1] == " " and row[at:end].strip() for row in rows for at, end in columns)
    if not telling or beside or any(_is_no_row(cells, names) for cells in table):
        return None
    for upper, cells in pairwise(table):
        for level in range(len(starts) - 1):
            cells[level] = cells[level] or upper[level]
    return [
        {name: cell for name, cell in zip(names, cells, strict=True) if cell not in _NULL}
        for cells in table
    ]


def _names_below(head: str, body: list[str]) -> str:
    """Return the line below the head if it has the names of the labels of rows: before all else."""
    first = _WORD.search(head)
    return body[0] if first and len(body[0].rstrip()) < first.end() else ""


def _is_no_row(cells: list[str], names: list[str]) -> bool:
    """Return True for dots in place of rows left out, and for a line that is like the head."""
    dots = _DOTS.fullmatch("".join(cells)) is not None
    return dots or any(name == cell for name, cell in zip(names, cells, strict=True))


def _is_end(rows: list[str], end: int, blank: list[bool]) -> bool:
    """Return True if the cells of most rows end there, and in none goes on."""
    column = [row[end - 1] for row in rows]
    return blank[end : end + 1] != [False] and 2 * column.count(" ") < len(rows)


def _labels(below: str, rows: list[str], blank: list[bool], end: int) -> tuple[list[int], int]:
    """Return the places at which the labels of rows begin, and the first column that has none.

    `end` is the beginning of the first name. A blank in all labels, as in times, is one of two.
    """
    starts = [word.start() for word in _WORD.finditer(below)] or [0]
    starts = [at for at in starts if not at or blank[at - 1]]
    gaps = [at for at in range(starts[-1] + 1, end) if blank[at]]
    first = next((at for at in gaps if at + 1 in gaps), max(gaps, default=0))
    last = slice(starts[-1], first if below else 1)
    return (starts, first) if first and all(row[last].strip() for row in rows) else ([], 0)
