"""Keeps the first and last elements of an array, with a note beside it on how many there were."""

from typing import Annotated, ClassVar

from msgspec import Meta

from mcp_abridge.document.names import nameable
from mcp_abridge.document.own_names import claim
from mcp_abridge.document.paths import ROOT, Path
from mcp_abridge.document.tree import Pieces, Slot, Value
from mcp_abridge.query.call import Call, Notice
from mcp_abridge.transforms.base import Transform, arrays

Count = Annotated[int, Meta(ge=0)]


class Elide(Transform, frozen=True):
    """Keep the first `first` and the last `last` elements of the array at `at`.

    If only one of the two is given, the other is 0; if none is, the first 3 stay. An array that is
    not longer stays unchanged. Beside a shortened array, `_elided` says how many elements there
    were: `_elided: {names: "5 of 4812"}`, or `"first 3 and last 2 of 4812"`.

    >>> from mcp_abridge.document.tree import Document
    >>> document = Document.read(b'{"names": ["a", "b", "c", "d"], "size": 4}')
    >>> Elide(Path.parse("names"), first=1, last=1)(document.root, Call("list"))
    >>> document.encode().decode()
    '{"names":["a","d"],"size":4,"_elided":{"names":"first 1 and last 1 of 4"}}'
    """

    name: ClassVar[str] = "elide"
    shorthand: ClassVar[str | None] = "at"
    cuts: ClassVar[bool] = True

    at: Path = ROOT
    """The array."""
    first: Count | None = None
    """How many of the first elements stay; 3 without both options, else 0."""
    last: Count | None = None
    """How many of the last elements stay; 0 by default."""

    def __call__(self, root: Slot, call: Call) -> None:
        (first, last), visible, total = self._ends, 0, 0
        for slot, _, value in arrays(root, self.at, call):
            if len(value) <= first + last:
                continue
            ends = value[:first] + value[len(value) - last :]
            slot.set(Pieces(ends) if isinstance(value, Pieces) else ends)
            if isinstance(slot.parent, dict) and nameable(str(slot.key)):
                _add_note(slot.parent, str(slot.key), self._counts(len(value)))
            elif slot.parent is root.parent:
                _notify(root, call, "items", self._counts(len(value)))
            else:
                visible, total = visible + len(ends), total + len(value)
        if total:
            _notify(root, call, str(self.at), f"{visible} of {total}")

    @property
    def _ends(self) -> tuple[int, int]:
        if self.first is None and self.last is None:
            return 3, 0
        return self.first or 0, self.last or 0

    def _counts(self, total: int) -> str:
        first, last = self._ends
        if first and last:
            return f"first {first} and last {last} of {total}"
        return f"last {last} of {total}" if last else f"{first} of {total}"


class _Note(dict[str, str]):
    """The counts by name: a type of its own, since steps open and change objects of a server."""


def _notify(root: Slot, call: Call, name: str, counts: str) -> None:
    value = root.get()
    if isinstance(value, dict):
        _add_note(value, name, counts)
    else:
        call.notices.append(
            Notice("_elided", counts if isinstance(value, Pieces) else {name: counts})
        )


def _add_note(holder: dict[str, Value], name: str, counts: str) -> None:
    """Add to the note in `holder`; an upstream member of that name is marked as such."""
    if not isinstance(holder.get("_elided"), _Note):
        claim(holder, "_elided")
    holder.setdefault("_elided", _Note())[name] = counts
