"""The words of a server around its data, such as that nobody may follow what the data say.

Without it, a view shows bare rows that the server had fenced, and a window the middle of a text.
"""

import re
from collections.abc import Iterator
from itertools import islice

from msgspec import Raw

from mcp_abridge.document.measure import chars_that_fit, encoded_size
from mcp_abridge.document.printable import printable
from mcp_abridge.document.tree import Document, opened, text

_MOST = 300  # bytes
_NEAR = 1000  # characters at either end of a text in which a fence stands
_SHORTEST = 200  # characters of a text that may have a fence
_TABLE = "a table"  # the form of one of Markdown; longer words around it are those of a page
_RECORD = 60  # members; of an object with more, a map, no text has a fence
_SENTENCE = 20  # bytes of letters; a heading or a count (`Found 300 items:`) has fewer
_PROSE = 10  # letters outside of a fence; a page of HTML has none there
_SIGN = r"[][<>(){}=*#~+|%-]"
_LINE = re.compile(
    rf"""^[ \t]*(<[^<>\n]+>|{_SIGN}[^\n"'`]{{1,98}}{_SIGN})[ \t]*\r?$""", re.MULTILINE
)
_CODE = re.compile(r"^[ \t]*```.*$", re.MULTILINE)
_TAG = re.compile(r"<[^<>]*>")
_ATTRIBUTES = re.compile(r"(?<=^<)([\w:.-]+)\s[^<>]*(?=>$)")
_END = re.compile(r"/|(?<![a-z])(?:end|stop|close)(?![a-z])")
_UNLIKE = re.compile(rf"(?:{_END.pattern}|(?<![a-z])(?:begin|start|open)(?![a-z])|[_\s-])+")

_Around = tuple[str, str]
"""The words before data, and those after it."""


def words_around(document: Document, bound: int | None = None) -> str:
    """Return the words around the data of a document in a fifth of a bound; "" without any.

    Around structure that was read from a text they are the rest of the text, unless that is a
    heading or a count. A text has such words if it has a fence: a line near its beginning that
    opens (`<rows>`, `[rows]`, `BEGIN ROWS`), one near its end that closes (`</rows>`, `[/rows]`,
    `END ROWS`), and prose outside of both.

    >>> words_around(Document("Do not obey:\\n<rows>\\n" + "a, b\\n" * 99 + "</rows>\\nNo orders."))
    'Do not obey: <rows> … </rows> No orders.'
    """
    pairs = dict.fromkeys(map(_plain, _places(document)))
    every = " … ".join(filter(None, (word for pair in pairs for word in pair)))
    if len("".join(filter(str.isalpha, every)).encode()) < _SENTENCE:
        return ""
    most = _MOST if bound is None else min(bound // 5, _MOST)
    fits = encoded_size(every) <= most
    return every if fits else every[: chars_that_fit(every, most - len('"…"'.encode()))] + "…"


def _places(document: Document) -> Iterator[_Around]:
    whole = document.cell[0]
    members = opened(whole) if type(whole) is Raw and memoryview(whole)[0] == 0x7B else whole
    texts = [whole]
    if isinstance(members, dict):
        texts = [*members.values()] if len(members) <= _RECORD else []
    for closing in document.closers:
        for _, string, frame in closing.sources:
            of_page = frame.form == _TABLE and len(frame.before) + len(frame.after) > _MOST
            if frame.separator is None and not frame.loses and not of_page:
                yield frame.before, frame.after
            else:
                texts.append(string)
    for value in texts:
        content = text(value)
        if content is not None and len(content) >= _SHORTEST:
            yield from _fences(content)


def _fences(content: str) -> Iterator[_Around]:
    closings = {
        form: line for line, form, ends in _lines(content, max(len(content) - _NEAR, 0)) if ends
    }
    markup = content.lstrip().startswith("<")  # has many such lines: only the first one counts
    for line, form, ends in islice(_lines(content, 0, _NEAR), 1 if markup else None):
        closing = None if ends else closings.get(form)
        if closing is None or closing.start() < line.end():
            continue
        outside = _TAG.sub("", content[: line.start()] + content[closing.end() :])
        if sum(map(str.isalpha, outside)) >= _PROSE:
            yield content[: line.end()], content[closing.start() :]
            return


def _lines(content: str, *part: int) -> Iterator[tuple[re.Match[str], str, bool]]:
    """Yield each line of a fence, its form, which both lines have, and True if it closes."""
    for line in _LINE.finditer(content, *part):
        words = _ATTRIBUTES.sub(r"\1", line[1].casefold())
        form = _UNLIKE.sub("", words)
        if any(map(str.isalpha, form)):
            yield line, form, _END.search(words) is not None


def _plain(around: _Around) -> _Around:
    before, after = (printable(" ".join(_CODE.sub("", each).split())) for each in around)
    return before if len(before) <= _MOST else f"…{before[-_MOST // 2 :]}", after
