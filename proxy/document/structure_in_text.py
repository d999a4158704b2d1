r"""Reads structure that fills a text as structure, although no rule says that it is there.

Without it, the rows of CSV, of NDJSON or of JSON after a line of prose are cut as any text is, and
no view can filter them. A text of doubtful form stays a text: it is read only if all of it fits.
"""

import re
from collections.abc import Callable, Iterator

import msgspec
from msgspec import Raw

from proxy.document import notations
from proxy.document.fuel import Fuel
from proxy.document.measure import TextFrame, TextWriteback, line_bounds
from proxy.document.paths import ROOT
from proxy.document.tree import Document, Value, encode, row_type, uncollected
from proxy.errors import DocumentError

_PROSE = 1000  # characters before JSON, or before a fenced block
_PLACES = 4  # places at which JSON may begin
_FEWEST = 3  # rows of CSV below the head
_LONGEST_YAML = 1 << 18  # characters: the C parser takes about 0.3 s for them
_LONGEST_PYTHON = 1 << 21
_BEGINNING = re.compile(r"(?:^|: )(?=[\[{])", re.MULTILINE)
_FENCE = re.compile(r"^```([\w+-]*)[ \t]*\r?\n", re.MULTILINE)
_NAME = re.compile(r"[^\W\d](?:[\w./()%#:-]| (?! ))*(?<! )")
_NUMBER = re.compile(r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][-+]?[0-9]+)?")
_KEY = r"""(?:[\w./$@-]+|"[^"\n]+"|'[^'\n]+')"""
_YAML = re.compile(rf"(?:\s*(?:#[^\n]*|---)?\n)*(?:- )?{_KEY}:(?: |\r?\n)")
_NESTED = re.compile(r":[ \t]*\r?\n[ ]*(?:- |[ ])", re.MULTILINE)
_JSON = msgspec.json.Decoder(Raw)
_NO_JSON = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)


def read_structure(document: Document, fuel: Fuel) -> None:
    r"""Read the text that `document` is as structure if that is clear; else leave it.

    The text is restored at the end unless a step changes the structure.

    >>> document = Document("Found 2:\n[1, 2]")
    >>> read_structure(document, Fuel())
    >>> document.encode()
    b'[1,2]'
    >>> document.close()
    >>> document.encode()
    b'"Found 2:\\n[1, 2]"'
    """
    source = document.cell[0]
    if not isinstance(source, str):
        return
    fuel.burn(len(source) >> 4)
    reading = _fenced(source) or _after_prose(source) or _whole(source)
    if reading is None:
        return
    value, frame = reading
    document.closers.append(TextWriteback(document, ROOT, [(source, source, frame)], among=False))
    document.cell[0] = value


Reading = tuple[Value, TextFrame]


def _fenced(text: str) -> Reading | None:
    """Read the content of the one fenced block that ends a text."""
    opening = _FENCE.search(text, 0, _PROSE)
    end = -1 if opening is None else text.rfind("\n```")
    if opening is None or text[end:].strip() != "```":
        return None
    content = text[opening.end() : end]
    if "\n```" in content or content.startswith("```"):
        return None
    reading = _json(content) or _whole(content)
    if reading is None:
        return None
    value, frame = reading
    before = f"{text[: opening.start()]}```json\n"
    return value, TextFrame(before=before, after=text[end:], form=frame.form)


def _after_prose(text: str) -> Reading | None:
    """Read JSON that follows a few lines of prose and ends with the text."""
    if text[:64].lstrip()[:1] in ("", "{", "["):
        return None
    for number, match in enumerate(_BEGINNING.finditer(text, 0, _PROSE)):
        if number == _PLACES:
            break
        reading = _json(text[match.end() :])
        if reading is not None:
            return reading[0], TextFrame(before=text[: match.end()], form="JSON")
    return None


def _whole(text: str) -> Reading | None:
    head = text[:64].lstrip()[:1]
    if head == "{" and (reading := _json_lines(text)) is not None:
        return reading
    readers = (_python,) if head in ("{", "[") else (_table, _yaml)
    return next((reading for read in readers if (reading := read(text)) is not None), None)


def _json(text: str, form: str = "JSON") -> Reading | None:
    try:
        value = _JSON.decode(text)
    except _NO_JSON:
        return None
    return (value, TextFrame(form=form)) if memoryview(value)[0] in b"[{" else None


def _json_lines(text: str) -> Reading | None:
    """Read two or more lines, each of them an object."""
    lines = (line for line in _lines(text) if line.strip())
    if not all(next(lines, "").strip()[-1:] == "}" for _ in range(2)):
        return None
    try:
        objects = [_JSON.decode(line) for line in _lines(text) if line.strip()]
    except _NO_JSON:
        return None
    if any(memoryview(each)[0] != 0x7B for each in objects):
        return None
    return Raw(encode(objects)), TextFrame(form="NDJSON")


def _lines(text: str) -> Iterator[str]:
    return (text[start:end] for start, end in line_bounds(text))


def _python(text: str) -> Reading | None:
    return _converted(text, "Python", notations.python) if len(text) <= _LONGEST_PYTHON else None


def _yaml(text: str) -> Reading | None:
    """Read YAML: a mapping with nested values, or a list of mappings."""
    start = text[:4000]
    if len(text) > _LONGEST_YAML or not (_YAML.match(start) and _NESTED.search(start)):
        return None
    return _converted(text, "YAML", notations.strict_yaml)


def _converted(text: str, form: str, read: Callable[[str], tuple[str, int]]) -> Reading | None:
    try:
        return _json(read(text)[0], form)
    except (DocumentError, ValueError, RecursionError):
        return None


def _table(text: str) -> Reading | None:
    """Read CSV or TSV: a head of names, and at least three rows of as many cells.

    A column of numbers becomes numbers with all their digits, its empty cells null, so that views
    can compare them; all other cells stay strings.
    """
    import csv
    from io import StringIO
    from itertools import islice, starmap

    first = next(_lines(text), "")
    if len(first) > 10_000:
        return None
    separator = next((each for each in "\t,;" if each in first), None)
    if separator is None:
        return None
    rows = csv.reader(StringIO(text, newline=""), delimiter=separator, strict=True)
    try:
        head, *start = islice(rows, _FEWEST + 1)
        if not _is_head(head) or any(len(row) != len(head) for row in start):
            return None
        with uncollected():
            body = [*start, *rows]
            while body and not body[-1]:
                body.pop()
            if len(body) < _FEWEST or any(len(row) != len(head) for row in body):
                return None
            columns = [_column(cells) for cells in zip(*body, strict=True)]
            raw = Raw(encode([*starmap(row_type(head), zip(*columns, strict=True))]))
            return raw, TextFrame(form="TSV" if separator == "\t" else "CSV")
    except (csv.Error, ValueError):  # a lone surrogate is a ValueError
        return None


def _is_head(cells: list[str]) -> bool:
    names = {cell for cell in cells if len(cell) <= 60 and _NAME.fullmatch(cell)}
    return len(cells) > 1 and len(names) == len(cells)


def _column(cells: tuple[str, ...]) -> list[Value]:
    """Return the cells of a column: numbers as they are spelled if all but the empty are numbers.

    >>> _column(("007", "8")), [bytes(cell) for cell in _column(("1.50", "-2"))]
    (['007', '8'], [b'1.50', b'-2'])
    """
    numbers = False
    for cell in cells:
        if cell:
            if not _NUMBER.fullmatch(cell):
                return [*cells]
            numbers = True
    if not numbers:
        return [*cells]
    return [Raw(cell.encode()) if cell else None for cell in cells]
