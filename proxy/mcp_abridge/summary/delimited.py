r"""Conversion of CSV and TSV to JSON: an array of objects, a few thousand rows at a time.

Without it, no view can filter the rows of a table in a text. Rows are never all in memory as Python
values: each batch is encoded, and read again if a later one shows that a column was no number.
"""

import csv
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from io import BytesIO
from itertools import chain, islice, starmap
from typing import Any

from msgspec import Raw
from msgspec.json import Encoder

from mcp_abridge.document.garbage import uncollected
from mcp_abridge.document.measure import line_bounds
from mcp_abridge.document.rows import row_type
from mcp_abridge.document.tree import Value
from mcp_abridge.errors import DocumentError
from mcp_abridge.query.heads import form_of, is_head, names_columns
from mcp_abridge.summary.notations import JSON_NUMBER
from mcp_abridge.system import allocator

Rows = Callable[[], Iterator[list[str]]]
"""Reads the rows of a table from its beginning."""

_BATCH = 1024  # rows
_SAMPLE = 1000  # rows by which it is told if the first one is a head
_ENCODER = Encoder()
_FIRST = 50  # rows that show of most texts that they are none
_SEPARATORS = "\t,;"
_PREAMBLE = 10  # lines before a head
_COMMENTS = 500  # lines that are looked at for a head, with those that begin with #
_INDEX = ["1"]  # the name of a first column without one
_FEWEST = 3  # rows below the head of a text that may be no CSV at all
_LONGEST_HEAD = 10_000
_LARGE = 4 << 20  # characters of a text from which memory counts more than time
_QUOTED_NUMBER = re.compile(r'(?:^|[\t,;]) ?"-?[0-9][0-9.eE+-]*"(?=[\t,;\r\n]|\Z)', re.MULTILINE)
_TIME = re.compile(r":[0-5]\d:[0-5]\d\Z")
_FRACTION = re.compile(r"\d{3,6}(?!\d|\Z)")  # of a second behind it, and a message: a log


def from_csv(text: str) -> tuple[str, int]:
    r"""Return the rows of CSV or TSV below its head as a JSON array of objects, and its end.

    A column of numbers becomes numbers with all their digits, its empty cells null; all other cells
    stay strings.

    >>> from_csv('id,note\n1.50,"a, b"\n,\n')[0]
    '[{"id":1.50,"note":"a, b"},{"id":null,"note":""}]'
    >>> from_csv("")[0]
    '[]'

    A blank text has no rows. Raises DocumentError if the head is none, or a row has more or fewer
    cells than the head.
    """
    end = len(text.rstrip())
    if not end:
        return "[]", end
    first = text.partition("\n")[0]
    rows = partial(_rows, text, next((each for each in _SEPARATORS if each in first), ","))
    with _errors():
        head = next(rows(), [])
        unnamed = _unnamed(head)
        if not is_head(head[unnamed:]):
            raise DocumentError(
                f"a head of {len(head)} columns without a name each: {first[:80]!r}"
            )
        names = _INDEX * unnamed + head[unnamed:]
        return as_json(names, lambda: islice(rows(), 1, None), end).decode(), end


def table(text: str) -> tuple[bytes, int, str] | None:
    r"""Return the rows of a text that is CSV or TSV in all its lines; None for any other text.

    Given are the rows as JSON, where they begin (a few lines, or comments, may precede the head),
    and the form. The first line is the head only if something says so (see `names_columns`);
    without a head, the columns are called 1, 2 and so on. Numbers in quotes make all columns texts.
    In TSV, quotes are part of the cells, unless cells would be torn by that.

    >>> table("id,name\n1,a\n2,b\n3,c\n")
    (b'[{"id":1,"name":"a"},{"id":2,"name":"b"},{"id":3,"name":"c"}]', 0, 'CSV')
    >>> table("M\ta.py\nM\tb.py\nA\tc.py\nM\td.py\n")[0][:22]
    b'[{"1":"M","2":"a.py"},'
    """
    lines = [*_first_lines(text)]
    for start, separator in _beginnings(lines):
        quotes = '"' in text
        literal = quotes and separator == "\t" and not lines[0].startswith('"')
        content = text[start:] if start else text
        for quoting in ("literal", "csv") if literal else ("csv",):
            try:
                rows = _table(content, separator, quoting == "literal", quotes, first=not start)
            except DocumentError:
                continue
            if rows is not None:
                return rows, start, "TSV" if separator == "\t" else "CSV"
    return None


def _table(text: str, separator: str, literal: bool, quotes: bool, *, first: bool) -> bytes | None:
    line = text[: text.find("\n") + 1 or None]
    spaced = separator != "\t" and line.count(separator) == line.count(f"{separator} ")
    rows = partial(_rows, text, separator, literal=literal, spaced=spaced)
    with _errors():
        head, *sample = islice(rows(), _FIRST)
        if len(head) < 2 or len(sample) < _FEWEST:
            return None
        columns, unnamed = [*zip(*sample, strict=True)], _unnamed(head)
        if not (is_head(head[unnamed:]) or (first and _is_regular(head, columns, separator))):
            return None
        columns = [*zip(*islice(rows(), 1, _SAMPLE), strict=True)]
        has_head = names_columns(head[unnamed:], columns[unnamed:])
        if not (has_head or (first and _is_regular(head, columns, separator))):
            return None
        names = [str(number) for number in range(1, len(head) + 1)]
        names = _INDEX * unnamed + head[unnamed:] if has_head else names
        as_texts = quotes and not literal and _QUOTED_NUMBER.search(text) is not None
        return as_json(
            names, lambda: islice(rows(), int(has_head), None), len(text), texts=as_texts
        )


def _unnamed(head: list[str]) -> int:
    """Return 1 if the first column has no name, as that of an index in pandas and in R, else 0."""
    return int(len(head) > 2 and not head[0])


def _first_lines(text: str) -> Iterator[str]:
    """Yield the lines in which a table has to begin: a few, but for comments before it."""
    others = 0
    for start, end in islice(line_bounds(text), _COMMENTS):
        yield text[start:end]
        others += not text.startswith("#", start)
        if others == _PREAMBLE + _FEWEST:
            return


def _beginnings(lines: list[str]) -> Iterator[tuple[int, str]]:
    """Yield where a table may begin, and its separator: the first line, or one after a preamble."""
    first = lines[0][:_LONGEST_HEAD] if lines else ""
    yield from ((0, each) for each in _SEPARATORS if each in first)
    start = 0
    for before, *some in zip(lines, lines[1:], lines[2:], lines[3:], strict=False):
        start += len(before)
        if some[1].startswith("#"):
            continue
        for each in (each for each in _SEPARATORS if each in some[0]):
            widths = {_width(line, each) for line in some}
            above = 1 if before.startswith("#") else _width(before, each)
            if len(widths) == 1 and widths.isdisjoint((1, above)):
                yield start, each
                if not some[0].startswith("#"):  # which may be a comment above the head
                    return


def _width(line: str, separator: str) -> int:
    try:
        return len(next(csv.reader([line], delimiter=separator), []))
    except csv.Error:
        return 0


def _rows(
    text: str, separator: str, *, literal: bool = False, spaced: bool = False
) -> Iterator[list[str]]:
    """Yield the rows, all of one width. Raises DocumentError, csv.Error."""
    lines = (text[start:end] for start, end in line_bounds(text))
    quoting: Any = csv.QUOTE_NONE if literal else csv.QUOTE_MINIMAL
    rows = csv.reader(
        lines, delimiter=separator, strict=True, quoting=quoting, skipinitialspace=spaced
    )
    width = blank = 0
    for row in rows:
        if not row:
            blank = rows.line_num
            continue
        width = width or len(row)
        if blank or len(row) != width:
            ragged = f"line {rows.line_num} has {len(row)} cells, the head has {width}"
            raise DocumentError(f"line {blank} is empty" if blank else ragged)
        yield row


@contextmanager
def _errors() -> Iterator[None]:
    try:
        yield
    except csv.Error as error:
        raise DocumentError(f"not CSV: {error}") from error


def as_json(names: Sequence[str], rows: Rows, size: int = 0, *, texts: bool = False) -> bytes:
    """Return rows as a JSON array of objects; `texts`: no cell is a number.

    `size` is that of the text that they are read from: a buffer without room for all of it would
    grow, move, and leave as much memory behind as it takes.

    >>> as_json(["a", "b"], lambda: iter([["1", ""], ["", "x"]]))
    b'[{"a":1,"b":""},{"a":null,"b":"x"}]'
    """
    row, kinds = row_type(names), ["text" if texts else ""] * len(names)
    if row is None:
        raise DocumentError("a column with a name that no head has")
    output, source = BytesIO(), rows()
    if size >= _LARGE:
        allocator.trim()  # what decoding the text took meanwhile, as much as the text, would stay
    with uncollected():
        while batch := [*islice(source, _BATCH)]:
            columns = [*zip(*batch, strict=True)]
            before, kinds = kinds, [*map(_kind, columns, kinds)]
            if output.tell() and any(map(_contradicts, before, kinds)):
                output, source = BytesIO(), rows()
                continue
            cells = map(_cells, columns, kinds)
            part = _ENCODER.encode([*starmap(row, zip(*cells, strict=True))])
            if not output.tell():
                read = sum(map(len, chain.from_iterable(batch))) + len(batch) * len(names)
                output.seek(size * len(part) * 65 // (64 * read))
                output.write(b"]")
                output.seek(0)
            output.write(b"," if output.tell() else b"[")
            output.write(memoryview(part)[1:-1])
    output.write(b"]" if output.tell() else b"[]")
    output.truncate()
    return output.getvalue()


def _kind(cells: Sequence[str], before: str) -> str:
    """Return the kind of a column by some more of its cells: "" if all of them are empty."""
    if before == "text" or not any(cells):
        return before
    return "number" if all(map(JSON_NUMBER.fullmatch, filter(None, cells))) else "text"


def _contradicts(before: str, kind: str) -> bool:
    """Return True if cells that were written by one kind must be written by another."""
    return before != kind and "number" in (before, kind)


def _cells(cells: Sequence[str], kind: str) -> Sequence[Value]:
    """Return the cells of a column as JSON has them.

    >>> _cells(("007", "8"), "text"), [bytes(cell) for cell in _cells(("1.50", "-2"), "number")]
    (('007', '8'), [b'1.50', b'-2'])
    """
    if kind != "number":
        return cells
    return [Raw(cell.encode()) if cell else None for cell in cells]


def _is_regular(head: Sequence[str], columns: Sequence[Sequence[str]], separator: str) -> bool:
    """Return True if rows without a head are a table and no text in lines of one kind."""
    forms = [form_of([cell, *cells]) for cell, cells in zip(head, columns, strict=True)]
    if "" in forms or (_TIME.search(head[0]) and _FRACTION.match(head[1])):
        return False
    return separator == "\t" or any(each in ("number", "hash") for each in forms)
