"""Secrets in recordings become `***`: without it, a recording can be shown to nobody."""

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from mcp_abridge.document import message
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.masks import MASK
from mcp_abridge.document.message import members
from mcp_abridge.document.paths import matches
from mcp_abridge.document.surrogates import replace_lone
from mcp_abridge.document.tree import encode, loads
from mcp_abridge.errors import DocumentError
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.storage.text_redaction import LABEL, SEPARATOR, VALUE, mask_columns, mask_members

_NAME = re.compile(r"[A-Za-z_*][\w*-]*", re.ASCII)
_OPTION = re.compile(r"--?[\w.-]+")
_INDENT = re.compile(r"\n( +)")
# The words in a name: userPassword, DB_PASSWORD, api-key.
_PART = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_LONG = 5  # letters of a word that may stand at the end of another: PGPASSWORD, authtoken
# Marks of a page are no secrets, and a later call needs them: next_page_token, syncToken.
_PAGING = re.compile(r"next|prev|page|cursor|continu|resum|sync")
_LABELS = frozenset(("name", "key", "field", "header", "variable"))
_VALUES = frozenset(("value", "values", "val", "content", "default"))
# Members of results of MCP, which readers need.
_FIXED = frozenset(
    ("content", "structuredContent", "isError", "_meta", "type", "text", "data", "mimeType")
)


SECRETS = (
    *("password", "passwd", "pwd", "passphrase", "secret", "token", "authorization", "cookie"),
    *("credential", "api_key", "apikey", "access_key", "private_key", "bearer", "jwt", "auth"),
    "pat",
    r"\b(?:gh[pousr]_|github_pat_|glpat-|sk-|xox[a-z]-|AKIA|AIza|ya29\.)[\w.-]{8,}",
    r"\beyJ[\w-]{8,}\.[\w-]+\.[\w-]*",
    r"(?i)\b(?:bearer|basic) [\w.~+/=-]{8,}",
    r"(?s)-----BEGIN[^-]*PRIVATE KEY-----.*?(?:-----END[^-]*-----|$)",
    r"://[^/@\s]*:[^/@\s]*@",
)
"""Words for what is secret wherever it stands: names, forms of tokens, a password in a URL."""


class Redaction:
    """Masks values in messages: all of the members of some names, and what patterns match in texts.

    Of `words`, each that is one word is a member's name, in any case of its letters; so are its
    plural, and longer names that end with it, but for those of pages (`next_page_token`) and
    numbers of things (`max_tokens`). `*` stands for any part of a name. Every other word is a
    regular expression, for texts and names; the value of a name that it matches is masked, too.
    Raises PatternError if the engine does not take it.

    >>> masked = Redaction(["token", "sk-[a-z0-9]+"])
    >>> masked.text("use sk-a1 with token: abc"), masked.text('{"Token": [1], "n": 1.0}')
    ('use *** with token: ***', '{"Token":"***","n":1.0}')
    >>> masked.text("--api-token a1 --page-token b1")
    '--api-token *** --page-token b1'
    """

    def __init__(self, words: Sequence[str]) -> None:
        names = [word for word in words if _NAME.fullmatch(word) and word.strip("*")]
        self._exact = {name.casefold() for name in names}
        self._globs = [name for name in names if "*" in name]
        self._ends = [_parts(name) for name in names if "*" not in name]
        self._patterns = [Pattern(word) for word in words if word not in names]
        self._finders: list[Pattern] = []
        if names:
            spellings = (name.replace("*", "") for name in names)
            inner = "|".join("[-_.]*".join(_parts(name)) or re.escape(name) for name in spellings)
            name = rf"([\w.-]*(?:{inner})[\w-]*)"
            label = f"{LABEL}{name}{VALUE}"
            self._finders = [
                Pattern(each) for each in (f"(?i){name}", f"(?i){name}{SEPARATOR}", label)
            ]

    def _hides(self, name: str) -> bool:
        if name.strip("-").casefold() in self._exact:
            return True
        parts = _parts(name)
        for end in self._ends:
            for tail in (end, [*end[:-1], f"{end[-1]}s"]) if end else ():
                whole = parts[-len(tail) :] == tail
                spelling, letters = "".join(parts), "".join(tail)
                if (whole or (len(letters) >= _LONG and spelling.endswith(letters))) and (
                    not _PAGING.search(spelling.removesuffix(letters))
                ):
                    return True
        return any(matches(glob.casefold(), name.casefold()) for glob in self._globs)

    def request(self, raw: bytes) -> bytes:
        """Return a request in which all is masked but the name of a tool. Raises DocumentError."""
        if not (self._patterns or self._finders):
            return raw
        params = members(members(raw).get("params", msgspec.Raw(b"{}")))
        masked = self._parts(params, *(name for name in params if name != "name"))
        return message.replaced(raw, params={**params, **masked}) if masked else raw

    def response(self, raw: bytes, *, names: bool = True) -> bytes:
        """Return a response with a masked result or error. Raises DocumentError.

        Without `names`, only texts are masked: the names in a tool's schema stand for no values.
        """
        if not (self._patterns or self._finders):
            return raw
        raw = replace_lone(raw)
        return message.replaced(raw, **self._parts(members(raw), "result", "error", names=names))

    def _parts(self, whole: dict[str, Any], *some: str, names: bool = True) -> dict[str, Any]:
        parts = {name: whole[name] for name in some if name in whole}
        return {name: self._value(loads(bytes(part)), names) for name, part in parts.items()}

    def text(self, text: str) -> str:
        """Return a text with masked parts; JSON stays JSON."""
        if text.lstrip()[:1] in ("{", "["):
            with suppress(DocumentError, UnicodeEncodeError):
                value = loads(replace_lone(text.encode()))
                if (masked := self._value(value)) == value:
                    return text
                raw, indent = encode(masked), _INDENT.search(text)
                return (msgspec.json.format(raw, indent=len(indent[1])) if indent else raw).decode()
        for pattern in self._patterns:
            text = pattern.replace(text, MASK, Fuel(sys.maxsize))
        if self._finders:
            names, members, labels = self._finders
            text = mask_columns(text, names.finditer(text, Fuel(sys.maxsize)), self._hides)
            for finder in (members, labels):
                places = finder.finditer(text, Fuel(sys.maxsize))
                text = mask_members(text, places, self._hides)
        return text

    def _value(self, value: Any, names: bool = True) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            items: list[Any] = []
            secret = False  # the value of an option of a command
            for each in value:
                secret &= isinstance(each, str)
                items.append(MASK if secret else self._value(each, names))
                option = isinstance(each, str) and _OPTION.fullmatch(each) is not None
                secret = option and not secret and self._hides(each)
            return items
        if not isinstance(value, dict):
            return value
        if not names:
            return {name: self._value(each, names) for name, each in value.items()}
        labels = (each for name, each in value.items() if name.casefold() in _LABELS)
        labelled = any(isinstance(each, str) and self._hides(each) for each in labels)
        masked: dict[str, Any] = {}
        for name, each in value.items():
            secret = self._hides(name) or (labelled and name.casefold() in _VALUES)
            counts = name[-1:] in ("s", "S") and isinstance(each, int | float)
            if name not in _FIXED:
                for pattern in self._patterns:
                    match = pattern.search(name)
                    secret |= match is not None and match.span() == (0, len(name))
                    name = pattern.replace(name, MASK, Fuel(sys.maxsize))
                while name in masked:  # two names may have the same mask
                    name += "*"
            masked[name] = MASK if secret and not counts else self._value(each, names)
        return masked


def _parts(name: str) -> list[str]:
    return [part.lower() for part in _PART.findall(name)]
