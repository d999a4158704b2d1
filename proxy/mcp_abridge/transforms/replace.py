"""Replaces the matches of a regular expression in strings."""

from typing import ClassVar

from msgspec import field

from mcp_abridge.document.fuel import Fuel
from mcp_abridge.document.measure import strings
from mcp_abridge.document.paths import ROOT, Path, find
from mcp_abridge.document.tree import Slot
from mcp_abridge.query.call import Call
from mcp_abridge.query.patterns import Pattern
from mcp_abridge.transforms.base import Transform


class Replace(Transform, frozen=True):
    r"""Replace every match of `pattern` in the strings at `at` by `with`.

    In `with`, `\1` to `\99` and `\g<name>` are the text of a group, `\\` is a backslash, `\n`,
    `\r` and `\t` are the usual characters. In an array each string is changed; in a text read as
    lines or records, each line or record; other values stay unchanged. The expression is written
    for the linear-time engine (RE2). To find all matches may still take quadratic time, as it does
    for `a(.*b)?`; the step fails if a text then takes more than the budget of a rule.

    >>> from mcp_abridge.document.tree import Document
    >>> document = Document.read(b'{"url": "/a?token=1&b=2"}')
    >>> hide = Replace(pattern=Pattern("(token)=[^&]*"), with_=r"\1=…", at=Path.parse("url"))
    >>> hide(document.root, Call("open"))
    >>> document.encode().decode()
    '{"url":"/a?token=…&b=2"}'
    """

    name: ClassVar[str] = "replace"
    burns: ClassVar[bool] = True
    works_on_pages: ClassVar[bool] = True

    pattern: Pattern
    """The matches to replace."""
    with_: str = field(name="with")
    r"""The replacement; `\1` is the match of the first group."""
    at: Path = ROOT
    """The texts, or arrays of texts."""

    def __post_init__(self) -> None:
        import re

        escapes = re.compile(r"\\(?:[\\nrt]|[1-9][0-9]?|g<\w+>)|(\\.?)", re.DOTALL)
        for escape in escapes.finditer(self.with_):
            if escape[1] is not None:
                raise ValueError(
                    f"with: {escape[1]!r} stands for nothing; groups are '\\1' or '\\g<name>', "
                    "a backslash is '\\\\'"
                )
        # This matches any text, and the replacement can use only groups of the pattern.
        probe = Pattern(f"(?:{self.pattern.text})|")
        try:
            probe.replace("", _ascii(self.with_), Fuel())
        except (IndexError, KeyError) as error:
            raise ValueError(
                f"with: {self.with_!r} names a group that {self.pattern.text!r} does not have"
            ) from error

    def __call__(self, root: Slot, call: Call) -> None:
        replacement = _ascii(self.with_)
        for slot, text in strings(root, self.at):
            changed = self.pattern.replace(text, replacement, call.fuel)
            if changed != text:
                slot.set(changed)
        if find(root, self.at) is None:
            call.missing.append(str(self.at))


def _ascii(replacement: str) -> str:
    r"""Write characters outside ASCII as escapes that the engine reads as those characters.

    >>> _ascii("→")
    '\\U00002192'
    """
    return "".join(sign if sign.isascii() else f"\\U{ord(sign):08x}" for sign in replacement)
