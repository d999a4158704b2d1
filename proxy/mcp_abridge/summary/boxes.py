r"""Tables drawn with lines, as DuckDB, polars, SQLite and rich print them, as rows.

Without it, what a query gave is a text that no view can filter, count or add up.
"""

import re
from itertools import groupby

from mcp_abridge.summary.rows import Rows

_RULED = r"[ \t]*[┌┏╭╔][─━═┄╌┬┳╤╦]+[┐┓╮╗][ \t]*\r?\n"
SIGN = re.compile(rf"\A(?:[^\n]*\n){{0,3}}?{_RULED}")
"""The upper edge of a table near the beginning of a text."""

_EDGE = re.compile(rf"^{_RULED}", re.MULTILINE)
_RULE = re.compile(r"\s*[├┠┡┢┣┞┟╞╟╠╰└┗╚┕╘╙][^\w│┃┆║]*")
_LINES = re.compile(r"[│┃┆║]")
_BLANKS = re.compile(" {2,}")
_LEFT_OUT = {"·", "…", "...", ":"}
"""Cells of a line that stands for others."""


def boxes(text: str) -> Rows | None:
    r"""Return the rows of a table; None if it is not whole, or if it cannot be told what a row is.

    Kinds of columns below their names stand before the rows, a count below these after them. Lines
    belong to one row if each row has a rule below it.

    >>> boxes("┌────┬───┐\n│ id │ n │\n├────┼───┤\n│ a  │ 1 │\n│ b  │ 2 │\n└────┴───┘\n").rows[1]
    {'id': 'b', 'n': '2'}
    """
    edge = _EDGE.search(text)
    if edge is None:
        return None
    lines = text[edge.end() :].splitlines()
    parts = [
        [*some] for ruled, some in groupby(lines, lambda line: bool(_RULE.match(line))) if not ruled
    ]
    [names, *_], *tables = ([*map(_cells, part)] for part in parts)
    footer = 0
    while tables and len(tables[-1][0]) != len(names):
        tables.pop()
        footer += 1
    every = [cells for some in tables for cells in some]
    if not every or len({*names}) < len(names) or not all(names) or len(names) < 2:
        return None
    if any(len(cells) != len(names) or _LEFT_OUT.issuperset(cells) for cells in every):
        return None
    if any("" in cells for some in tables for cells in some[1:]):  # lines of one row, perhaps
        if len(tables) > 1:
            every = [
                [" ".join(filter(None, cells)) for cells in zip(*some, strict=True)]
                for some in tables
            ]
        elif not all(cells[0] for cells in every):
            return None
    rows = [dict(zip(names, cells, strict=True)) for cells in every]
    kinds, below = parts[0][1:], [line for part in parts[len(parts) - footer :] for line in part]
    before, after = (
        _BLANKS.sub(" ", "".join(f"{line}\n" for line in some)) for some in (kinds, below)
    )
    return Rows(rows, "a table", text[: edge.start()] + before, "\n" * bool(after) + after)


def _cells(line: str) -> list[str]:
    return [cell.strip() for cell in _LINES.split(line.strip())[1:-1]]
