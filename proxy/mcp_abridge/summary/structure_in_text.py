r"""Reads structure that fills a text as structure, although no rule says that it is there.

Without it, the rows of CSV, of NDJSON or of JSON after a line of prose are cut as any text is, and
no view can filter them. A text of doubtful form stays a text: it is read only if all of it fits.

Such a text has two forms. If the structure says all that the text does, it is what is shown, and
views can ask for `text`. If it says less (without the comments of YAML, say), the text is shown,
and views can ask for `rows`, or for members by their names.
"""

import re
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from json import JSONDecodeError, JSONDecoder

import msgspec
from msgspec import Raw
from msgspec.structs import replace

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.line_numbers import are_numbered
from mcp_abridge.document.measure import Structure, TextFrame, text_in
from mcp_abridge.document.tree import Document, compact, encode
from mcp_abridge.errors import DocumentError
from mcp_abridge.summary import notations
from mcp_abridge.summary.access_log import access_log
from mcp_abridge.summary.delimited import table
from mcp_abridge.summary.markup import from_xml
from mcp_abridge.summary.repeated import repeated

_FEWEST_DOCUMENTS = 8  # lines of JSON by which a log with other lines is told
_OTHERS = 3  # places of them that are told
_PROSE = 1000  # characters before JSON, and after it
_PLACES = 4  # places at which JSON may begin, and at which it may end
_SAMPLE = 4000  # characters by which it is told if JSON goes on
_LONGEST_YAML = 1 << 18  # characters: the C parser takes about 0.3 s for them
_LONGEST_PYTHON = 1 << 21
_BEGINNING = re.compile(r"(?:^[ \t]*|[:=] ?|>)(?=[\[{])", re.MULTILINE)
_FENCE = re.compile(r"^```([\w+-]*)[ \t]*\r?$\n?", re.MULTILINE)
_NO_NUMBER = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*"|-?Infinity\b|NaN\b', re.DOTALL)
_KEY = r"""(?:[\w./$@-]+|"[^"\n]+"|'[^'\n]+')"""
_WORDS = r"[\w./$@-]+(?: [\w./$@-]+){1,5}"  # which may also be a heading, or prose
_YAML = re.compile(rf"(?:[ \t]*(?:#[^\n]*|---)?\r?\n)*(?:- )?(?:{_KEY}:(?: |\r?\n)|{_WORDS}:\r?\n)")
_COMMENTS = re.compile(r"(?:[ \t]*#[^\n]*\n)+")
_NESTED = re.compile(rf":[ \t]*\r?\n[ ]*(?:- |[ ])|^[ ]*- {_KEY}:[^\n]*\n[ ]+{_KEY}:", re.MULTILINE)
_CALL = re.compile(r"\b[A-Z]\w*\(\s*[A-Za-z_]\w*=(?!=)")
_JSON = msgspec.json.Decoder(Raw)
_NO_JSON = (msgspec.DecodeError, UnicodeEncodeError, RecursionError)
_NOTHING = (DocumentError, ValueError, RecursionError)
_BOM = "\ufeff"
_ACCESS_LOG = "an access log"
_COMPACT = ("CSV", "TSV", _ACCESS_LOG)  # whose reader writes no blank

TextStructure = tuple[Raw, TextFrame]


def read_structure(
    document: Document,
    fuel: Fuel,
    *,
    records: bool = False,
    sample: bool = False,
    beside: bool = False,
) -> Structure | None:
    """Read a text as structure if it clearly is, and return that, which can be put into it again.

    The text is the document, or nearly all of an object, also of one in an object. Unchanged, it is
    restored at the end. If it is made of `records` that were a text each, its rows say all of them.
    With `sample`, of what stays a text in what is shown only the beginning may be read. With
    `beside`, such a text in an object is read, too, if it has rows.
    """
    names, source = text_in(document)
    if source is None:
        return None
    fuel.burn(len(source) >> 4)
    content = source.removeprefix(_BOM)
    reading = _repeated(content) if records else _read(content, sample=sample)
    if reading is None:
        return None
    value, frame = reading
    if source.startswith(_BOM):
        frame = replace(frame, before=_BOM + frame.before)
    if records:
        frame = replace(frame, loses=False)
    if names and frame.loses and not (beside and memoryview(value)[0] == 0x5B):
        return None
    if not frame.form.startswith(_COMPACT):
        value = Raw(compact(value))
    structure = Structure(value, frame, names)
    structure.put_into(document)
    return structure


def _read(text: str, *, sample: bool = False) -> TextStructure | None:
    bracket = text[:64].lstrip()[:1] in ("{", "[")
    for read in _OF_BRACKETS if bracket else _OF_LINES:
        reading = _repeated(text, sample=sample) if read is _repeated else read(text)
        if reading is not None:
            return reading
    return None


def _json(text: str) -> TextStructure | None:
    try:
        value = _JSON.decode(text)
    except _NO_JSON:
        return _with_words_for_numbers(text)
    return (value, TextFrame(form="JSON")) if memoryview(value)[0] in b"[{" else None


def _with_words_for_numbers(text: str) -> TextStructure | None:
    """Read JSON with NaN and Infinity, which become strings."""
    if "NaN" not in text and "Infinity" not in text:
        return None
    quoted = _NO_NUMBER.sub(lambda m: m[0] if m[0][0] == '"' else f'"{m[0]}"', text)
    try:
        return _JSON.decode(quoted), TextFrame(form="JSON with NaN")
    except _NO_JSON:
        return None


def _documents(text: str) -> TextStructure | None:
    """Read several objects or arrays, each of which begins on a line of its own."""
    try:
        parts = _JSON.decode_lines(text)
    except _NO_JSON:
        return None
    one_kind = len({memoryview(part)[0] for part in parts}) == 1
    if not (one_kind and 1 < len(parts) <= text.count("\n") + 1):
        return None
    return Raw(encode(parts)), TextFrame(form="NDJSON")


def _documents_among_lines(text: str) -> TextStructure | None:
    """Read NDJSON with a few other lines, as a program prints beside its log: rows of one text."""
    # One sign is looked for at once, two take a third of a millisecond in 500 kB.
    count = text.count("\n{") + text.startswith("{") if "{" in text else 0
    if count < _FEWEST_DOCUMENTS or 5 * count < 4 * text.count("\n"):
        return None
    name = next((each for each in ("text", "line") if f'"{each}"' not in text), "other line")
    rows, others, places = list[Raw | dict[str, str]](), 0, list[str]()
    for line in filter(None, map(str.rstrip, text.split("\n"))):
        document = _object(line)
        if document is not None:
            rows.append(document)
            continue
        others += 1
        if rows and isinstance(last := rows[-1], dict):
            last[name] += f"\n{line}"
        else:
            places.append(f"[{len(rows)}]")
            rows.append({name: line})
    documents = len(rows) - len(places)
    if documents < _FEWEST_DOCUMENTS or documents < 4 * others:
        return None
    return Raw(encode(rows)), TextFrame(form=_form_among("NDJSON", others, places))


def _form_among(form: str, others: int, places: list[str]) -> str:
    more = ["…"] * (len(places) > _OTHERS)
    at = ", ".join(places[:_OTHERS] + more)
    return f"{form} and {others} other line{'s' * (others > 1)} at {at}" if others else form


def _object(line: str) -> Raw | None:
    try:
        value = _JSON.decode(line)
    except _NO_JSON:
        return None
    return value if memoryview(value)[0] == 0x7B else None


def _enclosed(text: str) -> TextStructure | None:
    """Read JSON with a few lines of prose before or after it, or in tags; most of the text."""
    for begin in _beginnings(text):
        for stop in _ends(text, begin):
            reading = _json(text[begin:stop])
            if reading is not None:
                if stop - begin < len(text) // 2:
                    return None
                frame = TextFrame(before=text[:begin], after=text[stop:], form=reading[1].form)
                return reading[0], frame
    return None


def _ends(text: str, begin: int) -> Iterator[int]:
    """Yield the places at which JSON may end: the last brackets, or else its end."""
    yield len(text)
    least, closing, stop = max(begin, len(text) - _PROSE), "}" if text[begin] == "{" else "]", None
    for _ in range(_PLACES):
        stop = text.rfind(closing, least, stop) + 1
        if not stop:
            return
        yield stop
        stop -= 1
    # There are more brackets in what follows, such as in code.
    if len(text) - begin <= _LONGEST_PYTHON:
        with suppress(ValueError, RecursionError):
            yield JSONDecoder().raw_decode(text, begin)[1]


def _beginnings(text: str) -> Iterator[int]:
    """Yield the places at which JSON begins that goes on far enough to be most of the text."""
    for match in islice(_BEGINNING.finditer(text, 0, _PROSE), _PLACES):
        sample = text[match.end() : match.end() + _SAMPLE]
        try:
            end = JSONDecoder().raw_decode(sample)[1]
        except JSONDecodeError as error:
            cut = error.pos > len(sample) // 2 or sample[error.pos : error.pos + 1] == '"'
            end = len(text) if cut else 0
        except RecursionError:
            end = len(text)
        if 2 * end >= len(text):
            yield match.end()


def _fenced(text: str) -> TextStructure | None:
    """Read fenced blocks that are most of the text: one as what is in it, several as an array."""
    marks = [*_FENCE.finditer(text)] if "```" in text[:_PROSE] else []
    pairs = [*zip(marks[::2], marks[1::2], strict=False)]
    inside = sum(closing.start() - opening.end() for opening, closing in pairs)
    if len(marks) % 2 or 2 * inside < len(text) or any(closing[1] for _, closing in pairs):
        return None
    blocks = [
        (opening, closing, reading)
        for opening, closing in pairs
        if (reading := _read_block(text[opening.end() : closing.start()])) is not None
    ]
    size = sum(closing.start() - opening.end() for opening, closing, _ in blocks)
    if not blocks or 2 * size < len(text):
        return None
    opening, closing, (value, frame) = blocks[0]
    if len(pairs) > 1:
        values = [value for _, _, (value, _) in blocks]
        return Raw(encode(values)), TextFrame(form=f"{len(pairs)} fenced blocks", loses=True)
    if frame.loses:
        return value, TextFrame(form=frame.form, loses=True)
    before = f"{text[: opening.start()]}```json\n"
    return value, TextFrame(before=before, after="\n" + text[closing.start() :], form=frame.form)


def _read_block(content: str) -> TextStructure | None:
    content = content.rstrip("\r\n")
    try:
        return _JSON.decode(content), TextFrame(form="JSON")
    except _NO_JSON:
        return _read(content)


def _table(text: str) -> TextStructure | None:
    rows_and_form = None if are_numbered(text) else table(text)
    if rows_and_form is None:
        return None
    rows, start, form = rows_and_form
    return Raw(rows), TextFrame(before=text[:start], form=form)


def _requests(text: str) -> TextStructure | None:
    log = access_log(text)
    if log is None:
        return None
    rows, others = log
    places = [f"[{at}]" for at in others]
    return rows, TextFrame(form=_form_among(_ACCESS_LOG, len(others), places), loses=True)


def _repeated(text: str, *, sample: bool = False) -> TextStructure | None:
    rows = repeated(text, sample=sample)
    if rows is None:
        return None
    frame = TextFrame(before=rows.before, after=rows.after, form=rows.form, loses=rows.loses)
    return Raw(rows.as_json()), replace(frame, sample=rows.sample)


def _python(text: str) -> TextStructure | None:
    if len(text) > _LONGEST_PYTHON:
        return None
    try:
        value = _JSON.decode(notations.from_python(text, objects=True)[0])
        loses = "(" in text and _CALL.search(text) is not None  # the names of classes
        return value, TextFrame(form="Python", loses=loses)
    except _NOTHING:
        return None


def _yaml(text: str) -> TextStructure | None:
    start = text[:4000]
    if len(text) > _LONGEST_YAML or not (_YAML.match(start) and _NESTED.search(start)):
        return None
    comments = _COMMENTS.match(text)
    before = comments[0] if comments else ""
    try:
        value, loses = notations.nested_yaml(text[len(before) :])
        frame = TextFrame(before="" if loses else before, form="YAML", loses=loses)
        return _JSON.decode(value), frame
    except _NOTHING:
        return None


def _yaml_documents(text: str) -> TextStructure | None:
    """Read several documents of YAML, of which blocks of fields have what is nested as texts."""
    return _yaml(text) if "\n---" in text[:_SAMPLE] else None


def _xml(text: str) -> TextStructure | None:
    if text[:64].lstrip()[:1] != "<":
        return None
    try:
        value, loses = from_xml(text.strip())
        return Raw(value), TextFrame(form="XML", loses=loses)
    except _NOTHING:
        return None


_OF_BRACKETS = (_documents, _documents_among_lines, _enclosed, _python, _repeated)
_OF_LINES = (
    *(_fenced, _enclosed, _documents_among_lines, _requests, _table),
    *(_yaml_documents, _repeated, _yaml, _xml),
)
