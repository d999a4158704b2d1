"""Removes the members that have no value, wherever they are."""

import re
from typing import ClassVar

from msgspec import Raw

from mcp_abridge.document.paths import ROOT, Path, blocked, places
from mcp_abridge.document.tree import Slot, Value, opened
from mcp_abridge.query.call import Call
from mcp_abridge.transforms.base import Transform

# What is not in the bytes of a value need not be looked for in its members.
_NULL = re.compile(rb"null")
_EMPTY = re.compile(rb'null|""|\[\s*\]|\{\s*\}')


class Prune(Transform, frozen=True):
    """Remove the members that are null from all objects at `at`, and in them at any depth.

    With `empty: true` also those that are an empty text, array or object, or that become one.
    Elements of arrays stay, since others are counted by them.

    >>> from mcp_abridge.document.tree import Document
    >>> document = Document.read(b'{"id": 1.0, "due": null, "fields": [{"v": null}, null]}')
    >>> Prune()(document.root, Call("get"))
    >>> document.encode()
    b'{"id":1.0,"fields":[{},null]}'
    """

    name: ClassVar[str] = "prune"
    shorthand: ClassVar[str | None] = "at"

    at: Path = ROOT
    """The values to work on, with all that is in them."""
    empty: bool = False
    """`true`: empty texts, arrays and objects go too."""

    def __call__(self, root: Slot, call: Call) -> None:
        slots = places(root, self.at)
        for slot in slots:
            value = slot.get()
            rest = self._prune(value)
            if rest is not value:
                slot.set(rest)
        if not slots and not blocked(root, self.at):
            call.missing.append(str(self.at))

    def _prune(self, value: Value) -> Value:
        """Return `value` without the members that have no value; the same if there are none."""
        if type(value) is Raw and not (_EMPTY if self.empty else _NULL).search(value):
            return value
        inner = opened(value)
        if isinstance(inner, dict):
            members = {name: self._prune(each) for name, each in inner.items()}
            rest = {name: each for name, each in members.items() if not self._is_blank(each)}
            same = len(rest) == len(inner) and all(rest[name] is inner[name] for name in inner)
            return value if same else rest
        if isinstance(inner, list):
            elements = [*map(self._prune, inner)]
            same = all(old is new for old, new in zip(inner, elements, strict=True))
            return value if same else elements
        return value

    def _is_blank(self, value: Value) -> bool:
        content = opened(value)
        return content is None or (self.empty and content in ("", [], {}))
