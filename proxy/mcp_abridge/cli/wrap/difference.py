"""The difference of a file for people to read: without masks, it would show their secrets.

A file of a client has much more than its servers, so all values are masked but those of a server
that are known to be harmless; comments are masked, too.
"""

import difflib
import json
import re
from collections.abc import Callable, Collection, Iterator
from itertools import islice
from typing import Any

from mcp_abridge.cli.options import URL
from mcp_abridge.cli.terminal import json_text
from mcp_abridge.cli.wrap.entry import HEADERS, words_of
from mcp_abridge.cli.wrap.text import Json, Syntax
from mcp_abridge.document.masks import MASK, WORDS, masked_url, masked_words

# A string before a colon, a dot or an equals sign is a key.
_JSON = re.compile(
    r'(?P<string>"(?:[^"\\]|\\.)*")(?P<key>\s*:)?|(?P<comment>//[^\n]*|/\*.*?\*/)'
    r"|(?P<number>(?<![\w.-])-?\d[\w.+-]*)",
    re.DOTALL,
)
_QUOTED = r"""(?:"(?:[^"\\\n]|\\.)*"|'[^'\n]*')"""
_TOML = re.compile(
    rf"(?P<header>^[ \t]*\[\[?[ \t]*[\w-]+[ \t]*(?:\.[ \t]*(?:[\w-]+|{_QUOTED})[ \t]*)*\]\]?)"
    rf"|(?P<string>\"{{3}}(?:[^\\]|\\.)*?\"{{3,5}}|'{{3}}.*?'{{3,5}}|{_QUOTED})(?P<key>[ \t]*[=.])?"
    r"|(?P<comment>\#[^\n]*)|(?P<number>(?<![\w.-])[-+]?\d[\w.:+-]*)",
    re.DOTALL | re.MULTILINE,
)
_AROUND = 4  # lines: that of a change, and three of context
_SECRET = ("env", "environment", *HEADERS)


def difference(
    syntax: Syntax,
    path: str,
    pieces: list[tuple[str, str]],
    document: Any,
    harmless: Collection[str] = (),
) -> Iterator[str]:
    """Yield the lines of a unified diff of a file, with masked values but for those `harmless`.

    The `pieces` are its text before and after, and differ where it was changed. `document` is its
    content before.
    """
    values, secrets = {text: text for text in harmless}, set[str]()
    _read(document, values, secrets)
    for before, after in pieces:
        if before != after:
            _read(syntax.read(after), values, secrets)
    values = {text: value for text, value in values.items() if text not in secrets}

    def masked(match: re.Match[str]) -> str:
        groups = match.groupdict()
        if comment := groups["comment"]:
            start = re.match("#|//|/[*]", comment)
            newlines = "\n" * comment.count("\n")  # or the lines after it would not be the same
            return f"{start[0] if start else ''} {MASK}{newlines}{' */' * comment.endswith('*/')}"
        if groups["number"]:
            return MASK if len(match[0]) > 5 or match[0] in secrets else match[0]
        if not groups["string"] or groups["key"]:
            return match[0]
        text = _decoded(groups["string"])
        value = MASK if text is None else values.get(text, MASK)
        return groups["string"] if value == text else json_text(value)

    pattern = _JSON if isinstance(syntax, Json) else _TOML
    is_strict = isinstance(syntax, Json) and syntax.is_strict("".join(text for text, _ in pieces))
    skipped = 0  # the head of the second hunk and so on
    for starts, *texts in _changes(pieces, lambda text: pattern.sub(masked, text), is_strict):
        old, new = (re.split(r"\r?\n", text.removesuffix("\n")) for text in texts)
        lines = difflib.unified_diff(old, new, path, path, lineterm="")
        for line in islice(lines, skipped, None):
            skipped = 2
            yield _renumber(line, *starts) if line.startswith("@@") else line


def _changes(
    pieces: list[tuple[str, str]], mask: Callable[[str], str], is_strict: bool
) -> Iterator[tuple[tuple[int, int], str, str]]:
    """Yield the changes with the lines around them, old and new, and how many lines come before.

    In strict JSON no token goes on in another line, so that only the lines shown are masked.
    """
    starts, old, new = (0, 0), "", ""
    for before, after in pieces:
        if before != after:
            old, new = old + mask(before), new + mask(after)
            continue
        lines = (before if is_strict else mask(before)).split("\n")
        around = [lines] if len(lines) <= 2 * _AROUND else [lines[:_AROUND], lines[-_AROUND:]]
        texts = ["\n".join(each) for each in around]
        head, *tail = map(mask, texts) if is_strict else texts
        old, new = old + head, new + head
        if tail:
            yield starts, old, new
            more = len(lines) - 2 * _AROUND + 1
            starts = starts[0] + old.count("\n") + more, starts[1] + new.count("\n") + more
            [old] = [new] = tail
    yield starts, old, new


def _renumber(head: str, old: int, new: int) -> str:
    """Return the head of a hunk that begins so many lines later."""
    return re.sub(
        r"-(\d+)(.*) \+(\d+)",
        lambda match: f"-{int(match[1]) + old}{match[2]} +{int(match[3]) + new}",
        head,
    )


def _read(document: Any, values: dict[str, str], secrets: set[str]) -> None:
    """Add the texts of a document that may be shown, and as what; and those that never may."""
    rest = [(document, False)]  # not by recursion: documents may be deep
    while rest:
        value, secret = rest.pop()
        if isinstance(value, dict):
            if not secret and "command" in value:
                words = words_of(value)
                for word, text in zip(words, masked_words(words), strict=True):
                    values.setdefault(word, text)
                    if text == MASK:
                        secrets.add(word)
            rest += (
                (each, (secret or key in _SECRET) and key != URL) for key, each in value.items()
            )
        elif isinstance(value, list):
            rest += ((each, secret) for each in value)
        elif secret:
            secrets.add(value if isinstance(value, str) else json_text(value))
        elif isinstance(value, str) and value in WORDS:
            values.setdefault(value, value)
        elif isinstance(value, str) and re.match(r"[a-z][a-z+.-]*://", value):
            values.setdefault(value, masked_url(value))


def _decoded(literal: str) -> str | None:
    if literal[0] == "'":
        return literal[1:-1]
    try:
        return str(json.loads(literal, strict=False))
    except ValueError:
        return None
