"""The difference of a file for people to read: without masks, it would show their secrets.

A file of a client has much more than its servers, so all values are masked but those of a server
that are known to be harmless; comments are masked, too.
"""

import difflib
import json
import re
from collections.abc import Collection, Iterator
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
_SECRET = ("env", "environment", *HEADERS)


def difference(
    syntax: Syntax, path: str, before: str, after: str, harmless: Collection[str] = ()
) -> Iterator[str]:
    """Yield the lines of a unified diff of a file, with masked values but for those `harmless`."""
    values, secrets = {text: text for text in harmless}, set[str]()
    for text in (before, after):
        _read(syntax.read(text), values, secrets)
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
    old, new = (pattern.sub(masked, text).splitlines() for text in (before, after))
    yield from difflib.unified_diff(old, new, path, path, lineterm="")


def _read(document: Any, values: dict[str, str], secrets: set[str]) -> None:
    """Add the texts of a document that may be shown, and as what; and those that never may."""
    rest = [(document, False)]  # not by recursion: documents may be deep
    while rest:
        value, secret = rest.pop()
        if isinstance(value, dict):
            if not secret:
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
