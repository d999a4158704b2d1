"""Drops the members that a rule names; everything else stays."""

from functools import cached_property
from typing import ClassVar

from proxy.document.paths import ROOT, Path, PathMatches, Paths, blocked, places
from proxy.document.tree import Slot, Value
from proxy.transforms.base import Call, Targets, Transform, edited


class Drop(Transform, frozen=True, dict=True):
    """Drop `paths` from each object at `at`: members of objects, elements of arrays by position.

    >>> from proxy.document.tree import Document
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
            here = PathMatches()
            value = edited(slot.get(), self._start, here, _drop)
            if here.present:
                slot.set(value)
            matches.add(here)
        if slots:
            call.missing += [str(self.at.then(path)) for path in matches.missing(self.paths)]
        elif not blocked(root, self.at):
            call.missing.append(str(self.at))

    @cached_property
    def _start(self) -> Paths:
        return Paths.of(self.paths)


def _drop(members: dict[str, Value], targets: Targets) -> dict[str, Value]:
    for name, _ in targets:
        del members[name]
    return members
