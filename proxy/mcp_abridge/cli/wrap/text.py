"""Edits of JSON and TOML as text: without it, a client's file would lose its comments and layout.

A path is the names from the root of a file to one value; an element of a list is found by the
`name` that it has. JSON may have comments and trailing commas, as the files of VS Code, Zed,
opencode and others do.
"""

import json  # orjson rounds long integers, and refuses lone surrogates
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any, Protocol

import tomlkit
from tomlkit.exceptions import ParseError, TOMLKitError

from mcp_abridge.cli.terminal import json_text
from mcp_abridge.document.possessive import possessive
from mcp_abridge.errors import AbridgeError

EntryPath = tuple[str, ...]
Span = tuple[int, int, int, bool]
"""Where a member starts, where its value starts and ends, and if commas part it from others."""

# What is not closed goes on to the end, or the rest would be searched from each of its parts.
_STRING = '"' + possessive(r'[^"\\]++|\\.') + r'(?:"|\\?\Z)'
# All that is not blank is one match: one for each string would take a second for some megabytes.
_NO_COMMENT = rf'[^"/]++|{_STRING}|/(?![/*])'
_COMMENT = re.compile(
    rf"(?>{_NO_COMMENT}){possessive(_NO_COMMENT)}|(?P<blank>//[^\n]*|/\*.*?\*/)|/\*.*", re.DOTALL
)
_NO_COMMA = rf'[^",]++|{_STRING}|,(?!\s*+[}}\]])'
_TRAILING = re.compile(rf"(?>{_NO_COMMA}){possessive(_NO_COMMA)}|(?P<blank>,)", re.DOTALL)
_SPACE = re.compile(r"\s*")
_COMMA = re.compile(r"\s*,")
_BLANK = re.compile(r"[ \t]*(?:\r?\n)?[ \t]*")
_VISIBLE = re.compile(r"[^\r\n]")
_GAP = re.compile(r"(?:\s|(?://|#)[^\n]*\n|/\*.*?\*/)*", re.DOTALL)
_MARK = "\N{OBJECT REPLACEMENT CHARACTER}"


class SyntaxProblem(AbridgeError):
    """A file that does not parse: `line` and `column` say where."""

    def __init__(self, line: int, column: int, reason: str) -> None:
        super().__init__(reason)
        self.line, self.column = line, column


class NotPossible(AbridgeError):
    """A server that is left as it is; the text is the reason, and what to do by hand."""


def entry_at(document: Any, path: EntryPath) -> Any:
    """Return the value at a path of a document; None if there is none."""
    for name in path:
        key = key_of(document, name)
        document = None if key is None else document[key]
    return document


def key_of(container: Any, name: str) -> Any:
    """Return the key or the index of a member with a name; None if there is none."""
    if isinstance(container, list):
        names = (each.get("name") if isinstance(each, dict) else None for each in container)
        return next((at for at, each in enumerate(names) if each == name), None)
    return name if isinstance(container, dict) and name in container else None


class Syntax(Protocol):
    """Reads and edits the text of a file, or of the part of it that an edit needs."""

    assign, quote = ": ", ""

    def read(self, text: str) -> Any:
        """Return the document. Raises SyntaxProblem, and ValueError if no place is known."""

    def locate(self, text: str, path: EntryPath) -> Span:
        """Return where the member at a path is. Raises LookupError without one."""

    def literal(self, value: Any) -> str:
        """Return a value in one line."""
        return json_text(value)

    def text_of(self, value: Any, path: EntryPath) -> str:
        """Return the value at a path for people to read; in a list, it is an element of one."""

    def remove(self, text: str, path: EntryPath) -> str:
        """Return the text without the member at a path."""

    def alone(self, text: str, path: EntryPath) -> str:
        """Return the value at a path as `put_back` takes it."""
        _, start, end, _ = self.locate(text, path)
        return text[start:end]

    def put_back(self, text: str, path: EntryPath, alone: str) -> str:
        """Return the text with another value at a path, though its layout is another one now."""
        _, start, end, _ = self.locate(text, path)
        return text[:start] + alone + text[end:]


class Json(Syntax):
    """Reads and edits JSON."""

    quote = '"'

    def read(self, text: str) -> Any:
        with suppress(ValueError):
            return json.loads(text)  # without comments, as mostly
        try:
            return json.loads(_plain(text) if text.strip() else "{}", strict=False)
        except json.JSONDecodeError as error:
            raise SyntaxProblem(error.lineno, error.colno, error.msg.lower()) from None

    def locate(self, text: str, path: EntryPath) -> Span:
        if path:
            return _members(text, path[:-1])[path[-1]]
        plain = _plain(text)
        start = _skip(plain, 0)
        return start, start, len(plain.rstrip()), True

    def text_of(self, value: Any, path: EntryPath) -> str:
        return json_text({path[-2 if isinstance(value, list) else -1]: value}, indent=2)

    def remove(self, text: str, path: EntryPath) -> str:
        (start, _, end, _), plain = self.locate(text, path), _plain(text)
        if comma := _COMMA.match(plain, end):
            note = text[end : comma.end() - 1]
            rest = text[_skip(text, comma.end(), _BLANK) :]
            return text[:start] + (note if note.strip() else "") + rest
        at = plain.rindex(",", 0, start)
        return text[:at] + text[at + 1 : start].rstrip() + text[end:]


class Toml(Syntax):
    """Reads and edits TOML."""

    assign = " = "

    def read(self, text: str) -> Any:
        try:
            return tomlkit.parse(text).unwrap()
        except ParseError as error:
            reason = str(error).partition(" at line ")[0].lower()
            if reason.startswith("control characters"):  # mostly the end of the line
                reason = "its quote is not closed, or it has a control character"
            raise SyntaxProblem(error.line, error.col, reason) from None
        except TOMLKitError as error:  # a key that is there twice has no line
            raise ValueError(str(error).lower().removesuffix(".")) from None

    def locate(self, text: str, path: EntryPath) -> Span:
        document, parent = self._parent(text, path)
        if tomlkit.dumps(document) != text:
            reason = f"[[{path[0]}]] has other tables between its own; put them together first"
            raise NotPossible(reason)
        length = len(parent[path[-1]].as_string())
        parent[path[-1]] = _MARK  # it stands in the text at the start of the value
        start = tomlkit.dumps(document).index(f'"{_MARK}"')
        key = text.rindex(path[-1], 0, start)
        inline = "{" in text[text.rfind("\n", 0, key) + 1 : key]
        return key - (text[key - 1] in "\"'"), start, start + length, inline

    def literal(self, value: Any) -> str:
        if isinstance(value, dict):
            members = (f"{json_text(key)} = {self.literal(value[key])}" for key in value)
            return f"{{ {', '.join(members)} }}"
        return json_text(value)

    def remove(self, text: str, path: EntryPath) -> str:
        document, parent = self._parent(text, path)
        del parent[key_of(parent, path[-1])]
        return tomlkit.dumps(document)

    def text_of(self, value: Any, path: EntryPath) -> str:
        if isinstance(value, list):
            path = path[:-1]
        for name in reversed(path):
            value = {name: value}
        return tomlkit.dumps(value)

    def alone(self, text: str, path: EntryPath) -> str:
        document = self.read(text)
        in_list = isinstance(entry_at(document, path[:-1]), list)
        value = entry_at(document, path)
        return self.text_of([value] if in_list else value, path)

    def put_back(self, text: str, path: EntryPath, alone: str) -> str:
        rest = self.remove(text, path).rstrip("\n")
        return f"{rest}\n\n{alone}".lstrip("\n")

    def _parent(self, text: str, path: EntryPath) -> tuple[tomlkit.TOMLDocument, Any]:
        parent: Any = (document := tomlkit.parse(text))
        for name in path[:-1]:
            parent = parent[key_of(parent, name)]
        return document, parent


def replace(
    syntax: Syntax, text: str, path: EntryPath, members: Mapping[str, Any], *, keep: bool = False
) -> str:
    """Return the text with `members` in place of the member at a path, or after it with `keep`.

    {} removes it.
    """
    if not members:
        return syntax.remove(text, path)
    key, start, end, has_commas = syntax.locate(text, path)
    lead = text[text.rfind("\n", 0, key) + 1 : key]
    quote, assign = syntax.quote, syntax.assign
    words = [f"{quote}{name}{quote}{assign}{syntax.literal(members[name])}" for name in members]
    if keep:
        words.insert(0, text[key:end])
    elif path[-1] in members:
        # The first keeps its key, and the space around its colon.
        words[0] = text[key:start] + syntax.literal(members[path[-1]])
    between = newline(text) + re.sub(r"-(?=\s)", " ", lead)  # of YAML; TOML may repeat `a.`
    if has_commas:
        between = ", " if lead.strip() else f",{between}"
    return text[:key] + between.join(words) + text[end:]


def put_first(syntax: Syntax, text: str, path: EntryPath, words: list[str]) -> str:
    """Return the text with words before the elements of the array at a path, in its layout."""
    start = syntax.locate(text, path)[1]
    if re.match(r"-\s", text[start : start + 2]):  # a block of YAML
        lead = newline(text) + text[text.rfind("\n", 0, start) + 1 : start]
        return text[:start] + "".join(f"- {syntax.literal(w)}{lead}" for w in words) + text[start:]
    if text[start] != "[":
        raise ValueError(path)
    at = _skip(text, start + 1, _GAP)
    literals = [syntax.literal(word) for word in words]
    if text[at] == "]":
        return text[: start + 1] + ", ".join(literals) + text[start + 1 :]
    indent = re.search(r"\r?\n[ \t]*$", text[start + 1 : at])
    between = f",{indent[0] if indent else ' '}"
    return text[:at] + "".join(literal + between for literal in literals) + text[at:]


def newline(text: str) -> str:
    """Return the line end of a text."""
    return "\r\n" if "\r\n" in text else "\n"


@lru_cache(2)
def _plain(text: str) -> str:
    """Return JSON of the same length: comments and trailing commas are blank."""
    for pattern in (_COMMENT, _TRAILING):
        text = pattern.sub(
            lambda match: _VISIBLE.sub(" ", match[0]) if match["blank"] else match[0], text
        )
    return text


@lru_cache(100)
def _members(text: str, path: EntryPath) -> dict[str, Span]:
    """Return where the members of the object at a path are: it is looked through once."""
    plain, decoder = _plain(text), json.JSONDecoder(strict=False)
    at = Json().locate(text, path)[1]
    members: dict[str, Span] = {}
    if plain[at] != "{":
        return members
    at = _skip(plain, at + 1)
    while plain[at] != "}":
        key, colon = decoder.raw_decode(plain, at)
        start = _skip(plain, _skip(plain, colon) + 1)
        _, end = decoder.raw_decode(plain, start)
        members[key] = at, start, end, True
        at = _skip(plain, end)
        if plain[at] == ",":
            at = _skip(plain, at + 1)
    return members


def _skip(text: str, at: int, what: re.Pattern[str] = _SPACE) -> int:
    match = what.match(text, at)
    return match.end() if match else at
