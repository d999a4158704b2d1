"""Composes YAML, and explains common mistakes in plain words.

If a value contains a character that YAML reserves, the mistake is recorded and the value is read as
the intended text, so that the rest of the file is checked too.
"""

import re
from typing import Any

import yaml

from proxy.document.paths import Path
from proxy.errors import AbridgeError, PathError, did_you_mean

MOST_DEPTH = 60
MOST_PROBLEMS = 200
"""The number of problems after which reading of a file stops."""
_READ = 300  # characters of a text that advice repeats


class SourceError(AbridgeError):
    """A problem and its position; also recorded, not raised, if reading can continue."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def at(mark: yaml.Mark, message: str) -> SourceError:
    """Return the error with this message at the position of `mark`."""
    return SourceError(message, mark.line + 1, mark.column + 1)


def quoted(text: str) -> str:
    """Return `text` as YAML writes it in single quotes."""
    return "'" + text.replace("'", "''") + "'"


def too_many() -> SourceError:
    """Return the error that replaces all further problems of a file."""
    return SourceError(f"more than {MOST_PROBLEMS} problems; mend these first", 0, 0)


class Slips(list[SourceError]):
    """The problems so far; `append` raises SourceError if there are too many."""

    def append(self, slip: SourceError) -> None:
        super().append(slip)
        if len(self) == MOST_PROBLEMS:
            raise too_many()


class InvalidScalar(str):
    """The text of a scalar whose problem was reported when it was scanned."""

    __slots__ = ()


class Composer(yaml.BaseLoader):
    """Composes nodes; reads values with reserved characters as text, and records the mistakes."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.slips = Slips()
        self.known: list[str] = []
        self.brackets: list[str] = []
        self.depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.depth += 1
        if self.depth > MOST_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise at(mark, f"nested more than {MOST_DEPTH} levels deep")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def slip(self, message: str) -> None:
        self.slips.append(at(self.get_mark(), message))

    def fetch_anchor(self) -> None:
        super().fetch_anchor()
        self.known.append(self.tokens[-1].value)

    def fetch_alias(self) -> None:
        # The name that the scanner would read as the alias, and what must follow it.
        found = re.match(r"\*([0-9A-Za-z_-]+)(?=[\0\s?:,\]}%@`])", self._ahead())
        if found and found[1] in self.known:
            super().fetch_alias()
            return
        stop = at(self.get_mark(), "")
        self.fetch_plain()
        text = self.tokens[-1].value
        self.tokens[-1].value = InvalidScalar(text)
        advice = did_you_mean(text, [f"*{name}" for name in self.known])
        advice = advice or f"; quote the glob: {quoted(text)}"
        stop.args = (f"a leading '*' is a YAML alias, and no anchor has that name{advice}",)
        self.slips.append(stop)

    def fetch_tag(self) -> None:
        self.slip("'!' starts a YAML tag; quote the expression")
        self.fetch_plain()

    def check_plain(self) -> bool:
        sign = self.peek()
        if sign in "%@`":
            self.slip(f"{sign!r} cannot begin a value in YAML; quote it")
            return True
        return bool(super().check_plain())

    def fetch_flow_collection_start(self, token: Any) -> None:
        self.brackets.append(self.peek())
        super().fetch_flow_collection_start(token)

    def fetch_flow_collection_end(self, token: Any) -> None:
        if self.brackets:
            self.brackets.pop()
        super().fetch_flow_collection_end(token)

    def scan_plain(self) -> Any:
        token = super().scan_plain()
        start, sign = None, ""
        closes = True
        while self.flow_level and self.index == token.end_mark.index and self.peek() in "[{?":
            # YAML 1.2 allows '?' inside a plain text; the library, which knows 1.1, does not.
            length = 1
            if self.peek() != "?":
                start, sign = start or self.get_mark(), sign or self.peek()
                # If one bracket does not close, no later one does.
                length = _enclosed(self._ahead()) if closes else 1
                closes = length > 1
            inside = self.prefix(length)
            self.forward(length)
            more = super().scan_plain()
            token.value += inside + more.value
            token.end_mark = more.end_mark
        if start is not None:
            where = "a list in [ ]" if self.brackets[-1:] == ["["] else "a mapping in { }"
            advice = _advice(token.value)
            self.slips.append(at(start, f"{sign!r} cannot stand inside {where}; {advice}"))
        return token

    def _ahead(self) -> str:
        return str(self.buffer[self.pointer : self.pointer + 1024])


def _enclosed(text: str) -> int:
    """Return the length of the bracketed part at the start of `text`; 1 if it does not close."""
    closing = {"[": "]", "{": "}"}
    open_: list[str] = []
    for position, sign in enumerate(text):
        if sign in closing:
            open_.append(closing[sign])
        elif open_ and sign == open_[-1]:
            open_.pop()
            if not open_:
                return position + 1
        elif sign in "\0\r\n":
            break
    return 1


def _advice(text: str) -> str:
    if len(text) > _READ:
        return "quote the whole of it"
    shorter = text.replace("[]", "").replace("[*]", "")
    try:
        if "{" in text:
            raise PathError(text)
        Path.parse(text)
        whole = not Path.parse(shorter).plain
    except PathError:
        return f"quote the expression: {quoted(text)}"
    return f"quote the path: {quoted(text)}" if whole else f"write {shorter}, or quote the path"


def explained(error: yaml.MarkedYAMLError, text: str) -> SourceError:
    """Return the library's error about `text` in plain words."""
    here = error.problem_mark or error.context_mark
    if here is None:
        return SourceError(str(error))
    opened = error.context_mark or here
    line = text.split("\n")[here.line][: here.column] if here.line <= text.count("\n") else ""
    for pattern, before, place, words in _WORDINGS:
        found = re.search(pattern, f"{error.context or ''}: {error.problem or ''}")
        if found and re.search(before, line):
            values = {"line": opened.line + 1, **found.groupdict()}
            return at(opened if place == "opening" else here, words.format(**values))
    return at(here, " ".join(f"{error.context or ''} {error.problem or ''}".split()))


# The library's message, the text before it in its line, which of its two positions to report, and
# our message. The first match counts.
_WORDINGS = (
    (
        "mapping values are not allowed",
        r"[:-] .*\S",
        "here",
        "a ':' before a space cannot stand in an unquoted value; quote the value",
    ),
    (
        "mapping values are not allowed",
        "",
        "here",
        "a ':' where no value can begin; check the indentation of this line and the one above",
    ),
    (
        "expected <block end>, but found '<scalar>'",
        r"\]$",
        "here",
        "a value that begins with '[' is a list, nothing can follow it; quote the path",
    ),
    (
        "expected <block end>, but found '(<scalar>|.)'",
        r"[:-] +['\"\]}].*\S *$|[:-] +.*['\"\]}] *$",
        "here",
        "nothing can follow a closed quote, list or mapping; quote the whole value",
    ),
    (
        "expected <block end>, but found",
        "",
        "here",
        "this line is not indented like the lines from {line} on that it belongs to",
    ),
    (
        "but got '(?P<found>[{[])'",
        "",
        "here",
        "{found!r} cannot stand in an unquoted value inside [ ] or {{ }}; quote the value",
    ),
    (
        "but got '<scalar>'",
        r"\]$",
        "here",
        "a value that begins with '[' is a list, nothing can follow it; quote the path",
    ),
    (
        "expected ',' or '(?P<end>[]}])', but got (?P<found>.+)",
        "",
        "here",
        "expected ',' or '{end}' after the value, found {found}; it opens in line {line}",
    ),
    (
        "could not find expected ':'",
        "",
        "opening",
        "expected 'key: value'; the ':' and the space after it are missing",
    ),
    ("the node content, but found (?P<found>.+)", "", "here", "expected a value, found {found}"),
    (
        "sequence entries are not allowed",
        "",
        "here",
        "'-' begins an item of a list, which needs a line of its own; or quote the value",
    ),
    (
        "block scalar",
        "",
        "opening",
        "after '|' or '>' a text begins in the next line; quote a value that begins with them",
    ),
    ("scanning an anchor", "", "opening", "'&' starts a YAML anchor; quote the value"),
    (r"character '\\t'", "", "here", "a tab cannot indent YAML; use spaces"),
    ("quoted scalar: found unexpected", "", "opening", "this quote is not closed"),
    (
        "unknown escape character '(?P<found>.+)'",
        "",
        "here",
        "'\\{found}' is no escape in double quotes; use single quotes",
    ),
    ("duplicate anchor '(?P<found>.+)'", "", "here", "line {line} has the anchor '{found}' too"),
    ("expected a single document", "", "here", "a second document; a rule file holds one"),
)
