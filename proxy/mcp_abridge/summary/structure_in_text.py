r"""Reads structure that fills a text as structure, although no rule says that it is there.

Without it, the rows of CSV, of NDJSON or of JSON after a line of prose are cut as any text is, and
no view can filter them. A text of doubtful form stays a text: it is read only if all of it fits.
"""

import re
from collections.abc import Callable, Iterator
from functools import partial

import msgspec
from msgspec import Raw

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.measure import TextFrame, TextWriteback, line_bounds
from mcp_abridge.document.paths import ROOT
from mcp_abridge.document.tree import Document, Value, encode
from mcp_abridge.errors import DocumentError
from mcp_abridge.summary import notations

_PROSE = 1000  # characters before JSON, or before a fenced block
_LONGEST_HEAD = 10_000
_FEWEST = 3  # rows of CSV below the head
_PLACES = 4  # places at which JSON may begin
_LONGEST_YAML = 1 << 18  # characters: the C parser takes about 0.3 s for them
_LONGEST_PYTHON = 1 << 21
_BEGINNING = re.compile(r"(?:^|: )(?=[\[{])", re.MULTILINE)
_FENCE = re.compile(r"^```([\w+-]*)[ \t]*\r?\n", re.MULTILINE)
_KEY = r"""(?:[\w./$@-]+|"[^"\n]+"|'[^'\n]+')"""
_YAML = re.compile(rf"(?:[ \t]*(?:#[^\n]*|---)?\r?\n)*(?:- )?{_KEY}:(?: |\r?\n)")
_NESTED = re.compile(r":[ \t]*\r?\n[ ]*(?:- |[ ])", re.MULTILINE)
_JSON = msgspec.json.Decoder(Raw)
_NO_JSON = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)


def read_structure(document: Document, fuel: Fuel) -> None:
    """Read a text as structure if it clearly is; unchanged, the text is restored at the end."""
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
    start = text[:4000]
    if len(text) > _LONGEST_YAML or not (_YAML.match(start) and _NESTED.search(start)):
        return None
    return _converted(text, "YAML", partial(notations.yaml, strict=True))


def _converted(text: str, form: str, read: Callable[[str], tuple[str, int]]) -> Reading | None:
    try:
        return _json(read(text)[0], form)
    except (DocumentError, ValueError, RecursionError):
        return None


def _table(text: str) -> Reading | None:
    first = next(_lines(text), "")
    if not any(each in first[:_LONGEST_HEAD] for each in "\t,;"):
        return None
    form = "TSV" if "\t" in first else "CSV"
    return _converted(text, form, partial(notations.csv, fewest=_FEWEST))
