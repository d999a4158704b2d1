"""Drops the members that a rule names; everything else stays."""

from functools import cached_property
from typing import ClassVar

from mcp_abridge.document.paths import ROOT, Path, PathMatches, Paths, blocked, places
from mcp_abridge.document.tree import Slot
from mcp_abridge.query.call import Call
from mcp_abridge.transforms.base import Transform, edited


class Drop(Transform, frozen=True, dict=True):
    """Drop `paths` from each object at `at`: members of objects, elements of arrays by position.

    >>> from mcp_abridge.document.tree import Document
    >>> document = Document.read(b'{"items": [{"id": 1.0, "tagIds": [7]}, {"id": 2}], "total": 2}')
    >>> Drop((Path.parse("total"), Path.parse("**.*Ids")))(document.root, Call("list"))
    >>> document.encode()
    b'{"items":[{"id":1.0},{"id":2}]}'
    """

    name: ClassVar[str] = "drop"
    shorthand: ClassVar[str | None] = "paths"

    paths: tuple[Path, ...]
    """The members to remove from each object."""
    at: Path = ROOT
    """The objects to work on; an array means each of its elements."""

    def __post_init__(self) -> None:
        if not self.paths:
            raise ValueError("no path to drop")
        for number in self._start.ends:
            raise ValueError(f"{self.paths[number].text!r} names the whole; name what goes of it")

    def __call__(self, root: Slot, call: Call) -> None:
        matches, slots = PathMatches(), places(root, self.at)
        for slot in slots:
            value = edited(slot.get(), self._start, matches)
            if matches.present:
                slot.set(value)
        if slots:
            call.missing += [str(self.at.then(path)) for path in matches.missing(self.paths)]
        elif not blocked(root, self.at):
            call.missing.append(str(self.at))

    @cached_property
    def _start(self) -> Paths:
        return Paths.of(self.paths)
