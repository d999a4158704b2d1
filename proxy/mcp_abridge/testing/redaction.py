"""Secrets in recordings become `***`: without it, a recording can be shown to nobody."""

import re
import sys
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

import msgspec

from mcp_abridge.document import message
from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.message import members
from mcp_abridge.document.patterns import Pattern
from mcp_abridge.document.surrogates import replace_lone
from mcp_abridge.document.tree import encode, loads
from mcp_abridge.errors import DocumentError

MASK = "***"

_NAME = re.compile(r"[A-Za-z_][\w-]*", re.ASCII)
_INDENT = re.compile(r"\n( +)")
# A member in a text that is no JSON: `"name": "..."`, `"name": 5`, and `name = ...` to its line's
# end.
_IN_TEXT = (
    (r"""(?i)(\b(?:%s)["']?\s*[:=]\s*)"(?:[^"\\]|\\.)*\"""", rf'\1"{MASK}"'),
    (r"""(?i)(\b(?:%s)"\s*:\s*)[^"\s,}\]][^,}\]\n]*""", rf'\1"{MASK}"'),
    (r"""(?i)(\b(?:%s)'?\s*[:=]\s*)[^"\s&][^\n&]*""", rf"\1{MASK}"),
)


class Redaction:
    """Masks values in messages: all of the members of some names, and what patterns match in texts.

    Of `words`, each that is one word is a member's name, in any case of its letters; every other
    one is a regular expression. Raises PatternError if the engine does not take it.

    >>> masked = Redaction(["token", "sk-[a-z0-9]+"])
    >>> masked.text("use sk-a1 with token: abc"), masked.text('{"Token": [1], "n": 1.0}')
    ('use *** with token: ***', '{"Token":"***","n":1.0}')
    """

    def __init__(self, words: Sequence[str]) -> None:
        names = [word for word in words if _NAME.fullmatch(word)]
        self._names = {name.casefold() for name in names}
        # The replacement of a pattern is one for `re2`, in which \1 is a group.
        self._patterns = [(Pattern(word), MASK) for word in words if word not in names]
        if names:
            alternatives = "|".join(names)
            self._patterns += [(Pattern(text % alternatives), new) for text, new in _IN_TEXT]

    def request(self, raw: bytes) -> bytes:
        """Return a request with masked arguments and `_meta`. Raises DocumentError."""
        if not self._patterns:
            return raw
        params = members(members(raw).get("params", msgspec.Raw(b"{}")))
        parts = {name: params[name] for name in ("arguments", "_meta") if name in params}
        masked = {name: self._value(loads(bytes(part))) for name, part in parts.items()}
        return message.replaced(raw, params={**params, **masked}) if parts else raw

    def response(self, raw: bytes, *, names: bool = True) -> bytes:
        """Return a response with a masked result or error. Raises DocumentError.

        Without `names`, only texts are masked: the names in a tool's schema stand for no values.
        """
        if not self._patterns:
            return raw
        raw = replace_lone(raw)
        outer = members(raw)
        parts = {name: outer[name] for name in ("result", "error") if name in outer}
        masked = {name: self._value(loads(bytes(part)), names) for name, part in parts.items()}
        return message.replaced(raw, **masked)

    def text(self, text: str) -> str:
        """Return a text with masked parts; JSON stays JSON."""
        if text.lstrip()[:1] in ("{", "["):
            with suppress(DocumentError, UnicodeEncodeError):
                value = loads(replace_lone(text.encode()))
                if (masked := self._value(value)) == value:
                    return text
                raw, indent = encode(masked), _INDENT.search(text)
                return (msgspec.json.format(raw, indent=len(indent[1])) if indent else raw).decode()
        for pattern, replacement in self._patterns:
            text = pattern.replace(text, replacement, Fuel(sys.maxsize))
        return text

    def _value(self, value: Any, names: bool = True) -> Any:
        if isinstance(value, str):
            return self.text(value)
        if isinstance(value, list):
            return [self._value(each, names) for each in value]
        if not isinstance(value, dict):
            return value
        return {
            name: MASK if names and name.casefold() in self._names else self._value(each, names)
            for name, each in value.items()
        }
