"""Keeps the first and last elements of an array, with a note beside it on how many there were."""

from typing import Annotated, ClassVar

from msgspec import Meta

from proxy.document.paths import ROOT, Path, blocked, places
from proxy.document.tree import Pieces, Slot, Value
from proxy.transforms.base import BaseTransform, Call, Notice

Count = Annotated[int, Meta(ge=0)]


class Elide(BaseTransform, frozen=True):
    """Keep the first `first` and the last `last` elements of the array at `at`.

    If only one of the two is given, the other is 0; if none is, the first 3 stay. An array that is
    not longer stays unchanged. Beside a shortened array, `_elided` says how many elements there
    were: `_elided: {names: "5 of 4812"}`, or `"first 3 and last 2 of 4812"`.

    >>> from proxy.document.tree import Document
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
        """Shorten the arrays."""
        slots = places(root, self.at)
        inner = [0, 0]
        for slot in slots:
            value = slot.open()
            if not isinstance(value, list):
                call.missing += [str(self.at) or "[]"] if value is not None else []
                continue
            first, last = self._ends
            if len(value) <= first + last:
                continue
            kept = value[:first] + value[len(value) - last :]
            slot.set(Pieces(kept) if isinstance(value, Pieces) else kept)
            if isinstance(slot.parent, dict):
                _note(slot.parent, str(slot.key), self._says(len(value)))
            elif slot.parent is root.parent:
                _tell(root, call, None, self._says(len(value)))
            else:
                inner = [inner[0] + len(kept), inner[1] + len(value)]
        if inner[1]:
            _tell(root, call, str(self.at), f"{inner[0]} of {inner[1]}")
        if not slots and not blocked(root, self.at):
            call.missing.append(str(self.at))

    @property
    def _ends(self) -> tuple[int, int]:
        if self.first is None and self.last is None:
            return 3, 0
        return self.first or 0, self.last or 0

    def _says(self, total: int) -> str:
        first, last = self._ends
        if first and last:
            return f"first {first} and last {last} of {total}"
        return f"last {last} of {total}" if last else f"{first} of {total}"


def _tell(root: Slot, call: Call, name: str | None, says: str) -> None:
    """Add the note to the document, or beside it if the document is not an object."""
    value = root.get()
    if isinstance(value, dict):
        _note(value, name or "items", says)
    else:
        textual = isinstance(value, Pieces)
        call.notices.append(Notice("_elided", says if textual else {name or "items": says}))


def _note(holder: dict[str, Value], name: str, says: str) -> None:
    """Add to the note in `holder`, under a free name if upstream has a member of that name."""
    word = "_elided"
    while word in holder and not _ours(holder[word]):
        word += "_"
    holder.setdefault(word, {})[name] = says


def _ours(value: Value) -> bool:
    """Return True if `value` is a note of the proxy: members from upstream are Raw."""
    return isinstance(value, dict) and all(isinstance(says, str) for says in value.values())
