"""Composes YAML, and explains common mistakes in plain words.

If a value contains a character that YAML reserves, the mistake is recorded and the value is read as
the intended text, so that the rest of the file is checked too.
"""

import re
from typing import Any

import yaml

from mcp_abridge.errors import AbridgeError, did_you_mean

MAX_DEPTH = 60
MAX_PROBLEMS = 200
"""The number of problems after which reading of a file stops."""


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


class Composer(yaml.BaseLoader):
    """Composes nodes; reads values with reserved characters as text, and records the mistakes."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.errors: list[SourceError] = []
        self.anchor_names: list[str] = []
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
        """Record a problem; raises SourceError if there are too many."""
        self.errors.append(error_at(mark, message))
        if len(self.errors) == MAX_PROBLEMS:
            raise too_many()

    def fetch_anchor(self) -> None:
        super().fetch_anchor()
        self.anchor_names.append(self.tokens[-1].value)

    def fetch_alias(self) -> None:
        # The name that the scanner would read as the alias, and what must follow it.
        match = re.match(r"\*([0-9A-Za-z_-]+)(?=[\0\s?:,\]}%@`])", self.prefix(256))
        if match and match[1] in self.anchor_names:
            super().fetch_alias()
            return
        mark = self.get_mark()
        self.fetch_plain()
        text = self.tokens[-1].value
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

    def scan_plain(self) -> Any:
        token = super().scan_plain()
        while self.flow_level and self.index == token.end_mark.index and self.peek() in "[{?":
            if self.peek() != "?":
                sign, advice = self.peek(), "quote it, or write items.id for items[].id"
                message = f"{sign!r} cannot stand inside a value in [ ] or {{ }}; {advice}"
                raise error_at(self.get_mark(), message)
            # YAML 1.2 allows '?' inside a plain text; the library, which knows 1.1, does not.
            self.forward()
            more = super().scan_plain()
            token.value += "?" + more.value
            token.end_mark = more.end_mark
        return token


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
            return error_at(mark, message.format(line=opening.line + 1))
    return error_at(here, " ".join(reason.removeprefix(": ").split()))


# The messages about something that began before the library met the problem.
_AT_OPENING = (
    "expected 'key: value'; the ':' and the space after it are missing",
    "this quote is not closed",
)
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
        "<block end>",
        "",
        "this line is not indented like the lines from {line} on that it belongs to",
    ),
    ("',' or", "", "expected ',' or the closing bracket after the value; it opens in line {line}"),
    (r"character '\\t'", "", "a tab cannot indent YAML; use spaces"),
    (
        "unknown escape character",
        "",
        "a backslash in double quotes begins an escape, and YAML has none such; use single quotes",
    ),
)
