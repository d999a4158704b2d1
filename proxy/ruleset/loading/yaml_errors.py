"""Composes YAML, and explains common mistakes in plain words.

If a value contains a character that YAML reserves, the mistake is recorded and the value is read as
the intended text, so that the rest of the file is checked too.
"""

import re
from typing import Any

import yaml

from proxy.document.paths import Path
from proxy.errors import AbridgeError, PathError, did_you_mean

MAX_DEPTH = 60
MAX_PROBLEMS = 200
"""The number of problems after which reading of a file stops."""
_MAX_ADVICE = 300  # characters of a text that advice repeats


class SourceError(AbridgeError):
    """A problem and its position; also recorded, not raised, if reading can continue."""

    def __init__(self, message: str, line: int = 1, column: int = 1) -> None:
        super().__init__(message)
        self.line = line
        self.column = column


def error_at(mark: yaml.Mark, message: str) -> SourceError:
    """Return the error with this message at the position of `mark`."""
    return SourceError(message, mark.line + 1, mark.column + 1)


def quote(text: str) -> str:
    """Return `text` as YAML writes it in single quotes."""
    return "'" + text.replace("'", "''") + "'"


def too_many() -> SourceError:
    """Return the error that replaces all further problems of a file."""
    return SourceError(f"more than {MAX_PROBLEMS} problems; mend these first", 0, 0)


class SourceErrors(list[SourceError]):
    """The problems so far; `append` raises SourceError if there are too many."""

    def append(self, error: SourceError) -> None:
        super().append(error)
        if len(self) == MAX_PROBLEMS:
            raise too_many()


class InvalidScalar(str):
    """The text of a scalar whose problem was reported when it was scanned."""

    __slots__ = ()


class Composer(yaml.BaseLoader):
    """Composes nodes; reads values with reserved characters as text, and records the mistakes."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.errors = SourceErrors()
        self.anchor_names: list[str] = []
        self.brackets: list[str] = []
        self.depth = 0

    def compose_node(self, parent: Any, index: Any) -> Any:
        self.depth += 1
        if self.depth > MAX_DEPTH:
            mark = self.peek_event().start_mark  # type: ignore[no-untyped-call]
            raise error_at(mark, f"nested more than {MAX_DEPTH} levels deep")
        node = super().compose_node(parent, index)
        self.depth -= 1
        return node

    def report(self, mark: yaml.Mark, message: str) -> None:
        self.errors.append(error_at(mark, message))

    def fetch_anchor(self) -> None:
        super().fetch_anchor()
        self.anchor_names.append(self.tokens[-1].value)

    def fetch_alias(self) -> None:
        # The name that the scanner would read as the alias, and what must follow it.
        match = re.match(r"\*([0-9A-Za-z_-]+)(?=[\0\s?:,\]}%@`])", self._ahead())
        if match and match[1] in self.anchor_names:
            super().fetch_alias()
            return
        mark = self.get_mark()
        self.fetch_plain()
        text = self.tokens[-1].value
        self.tokens[-1].value = InvalidScalar(text)
        advice = did_you_mean(text, [f"*{name}" for name in self.anchor_names])
        advice = advice or f"; quote the glob: {quote(text)}"
        message = f"a leading '*' is a YAML alias, and no anchor has that name{advice}"
        self.report(mark, message)

    def fetch_tag(self) -> None:
        self.report(self.get_mark(), "'!' starts a YAML tag; quote the expression")
        self.fetch_plain()

    def check_plain(self) -> bool:
        sign = self.peek()
        if sign not in "%@`":
            return bool(super().check_plain())
        self.report(self.get_mark(), f"{sign!r} cannot begin a value in YAML; quote it")
        return True

    def fetch_flow_collection_start(self, token: Any) -> None:
        self.brackets.append(self.peek())
        super().fetch_flow_collection_start(token)

    def fetch_flow_collection_end(self, token: Any) -> None:
        self.brackets = self.brackets[:-1]
        super().fetch_flow_collection_end(token)

    def scan_plain(self) -> Any:
        token = super().scan_plain()
        mark, sign, closes = None, "", True
        while self.flow_level and self.index == token.end_mark.index and self.peek() in "[{?":
            # YAML 1.2 allows '?' inside a plain text; the library, which knows 1.1, does not.
            length = 1
            if self.peek() != "?":
                if mark is None:
                    mark, sign = self.get_mark(), self.peek()
                # If one bracket does not close, no later one does.
                length = _bracketed(self._ahead()) if closes else 1
                closes = length > 1
            inside = self.prefix(length)
            self.forward(length)
            more = super().scan_plain()
            token.value += inside + more.value
            token.end_mark = more.end_mark
        if mark is not None:
            around = "a list in [ ]" if self.brackets[-1:] == ["["] else "a mapping in { }"
            message = f"{sign!r} cannot stand inside {around}; {_advice(token.value)}"
            self.report(mark, message)
        return token

    def _ahead(self) -> str:
        return str(self.buffer[self.pointer : self.pointer + 1024])


def _bracketed(text: str) -> int:
    """Return the length of the bracketed part at the start of `text`; 1 if it does not close."""
    pairs = {"[": "]", "{": "}"}
    closing: list[str] = []
    for index, sign in enumerate(text):
        if sign in pairs:
            closing.append(pairs[sign])
        elif sign == closing[-1]:
            closing.pop()
            if not closing:
                return index + 1
        elif sign in "\0\r\n":
            break
    return 1


def _advice(text: str) -> str:
    if len(text) > _MAX_ADVICE:
        return "quote the whole of it"
    shorter = text.replace("[]", "").replace("[*]", "")
    try:
        if "{" in text:
            raise PathError(text)
        Path.parse(text)
        whole = not Path.parse(shorter).plain
    except PathError:
        return f"quote the expression: {quote(text)}"
    return f"quote the path: {quote(text)}" if whole else f"write {shorter}, or quote the path"


def explain(error: yaml.MarkedYAMLError, text: str) -> SourceError:
    """Return the library's error about `text` in plain words."""
    here = error.problem_mark or error.context_mark
    if here is None:
        return SourceError(str(error))
    opening = error.context_mark or here
    line = text.split("\n")[here.line][: here.column] if here.line <= text.count("\n") else ""
    reason = f"{error.context or ''}: {error.problem or ''}"
    for pattern, before, message in _WORDINGS:
        match = re.search(pattern, reason)
        if match and re.search(before, line):
            mark = opening if message in _AT_OPENING else here
            return error_at(mark, message.format(line=opening.line + 1, **match.groupdict()))
    return error_at(here, " ".join(reason.removeprefix(": ").split()))


_AT_OPENING = (
    "expected 'key: value'; the ':' and the space after it are missing",
    "this quote is not closed",
)
"""The messages about something that began before the library met the problem."""

# The library's message, the text before it in its line, and our message. The first match counts.
_WORDINGS = (
    ("could not find expected ':'", "", _AT_OPENING[0]),
    ("quoted scalar: found unexpected", "", _AT_OPENING[1]),
    (
        "mapping values are not allowed",
        r"[:-] .*\S",
        "a ':' before a space cannot stand in an unquoted value; quote the value",
    ),
    (
        "mapping values are not allowed",
        "",
        "a ':' where no value can begin; check the indentation of this line and the one above",
    ),
    (
        "expected <block end>, but found '(<scalar>|.)'",
        r"[:-] +['\"\]}].*\S *$|[:-] +.*['\"\]}] *$",
        "nothing can follow a closed quote, list or mapping; quote the whole value",
    ),
    (
        "expected <block end>, but found",
        "",
        "this line is not indented like the lines from {line} on that it belongs to",
    ),
    (
        "expected ',' or '(?P<end>[]}])', but got (?P<token>.+)",
        "",
        "expected ',' or '{end}' after the value, found {token}; it opens in line {line}",
    ),
    ("the node content, but found (?P<token>.+)", "", "expected a value, found {token}"),
    (r"character '\\t'", "", "a tab cannot indent YAML; use spaces"),
    (
        "unknown escape character '(?P<sign>.+)'",
        "",
        "'\\{sign}' is no escape in double quotes; use single quotes",
    ),
)
