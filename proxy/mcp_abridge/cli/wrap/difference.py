"""The difference of entries for people to read: without masks, it would show their secrets."""

import difflib
import re
from collections.abc import Iterator
from itertools import islice
from typing import Any

from mcp_abridge.cli.options import URL
from mcp_abridge.cli.wrap.entry import HEADERS, command_key, words_of
from mcp_abridge.cli.wrap.text import EntryPath, Syntax
from mcp_abridge.document.masks import MASK, WORDS, masked_url, masked_words

_SECRET = ("env", "envs", "environment", *HEADERS)


Changes = dict[EntryPath, tuple[Any, Any]]
"""Masked entries before and after a change, by their paths; None if there is none."""


def difference(syntax: Syntax, path: str, changes: Changes) -> Iterator[str]:
    """Yield the lines of a unified diff of the entries in a file, each as a hunk."""
    yield from (f"--- {path}", f"+++ {path}") if changes else ()
    for names, entries in changes.items():
        old, new = (
            [] if each is None else syntax.text_of(each, names).splitlines() for each in entries
        )
        yield f"@@ {'.'.join(names)} @@"
        yield from islice(difflib.unified_diff(old, new, n=len(old), lineterm=""), 3, None)


def masked_value(value: Any, *, secret: bool = False) -> Any:
    """Return a value of a configuration, such as an entry; what may be secret is masked in it."""
    if isinstance(value, dict):
        members = {
            key: masked_value(each, secret=(secret or key in _SECRET) and key != URL)
            for key, each in value.items()
        }
        if not secret and (words := masked_words(words_of(value))):
            key, count = command_key(value), 1
            if isinstance(value[key], list):
                count = len(value[key])
            members[key] = words[:count] if isinstance(value[key], list) else words[0]
            if isinstance(value.get("args"), list):
                members["args"] = words[count:]
        return members
    if isinstance(value, list):
        return [masked_value(each, secret=secret) for each in value]
    if value is None or isinstance(value, bool) or (value in WORDS and not secret):
        return value
    if not isinstance(value, str):
        return value if len(str(value)) <= 5 and not secret else MASK
    is_url = not secret and re.match(r"[a-z][a-z+.-]*://", value)
    return masked_url(value) if is_url else MASK
