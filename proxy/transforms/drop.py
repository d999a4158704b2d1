"""Drops the members that a rule names; everything else stays."""

from collections.abc import Iterator
from functools import cached_property
from typing import ClassVar

from proxy.document.paths import ROOT, Path, PathMatches, Paths, blocked, places
from proxy.document.tree import Slot, Value, objects, opened
from proxy.transforms.base import Call, Transform


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
            value = _without(slot.get(), self._start, here)
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


def _without(value: Value, paths: Paths, matches: PathMatches) -> Value:
    members = objects(value) if paths.plain else None
    if members:
        present = [each for each in members if each is not None]
        _drop(present, paths, matches)
        if len(present) < len(members):
            matches.excused |= paths.open
        return members
    inner = opened(value)
    if isinstance(inner, dict):
        for name, after in paths.members(inner):
            if after.ends:
                del inner[name]
                matches.note(after)
            elif not after.barred(inner[name]):
                inner[name] = _without(inner[name], after, matches)
    elif inner is None or inner == []:
        matches.excused |= paths.open
    elif isinstance(inner, list):
        inner[:] = _remaining(inner, paths, matches)
    else:
        return value
    return inner


def _drop(members: list[dict[str, Value]], paths: Paths, matches: PathMatches) -> None:
    for name, after in paths.names.items():
        holders = [each for each in members if name in each]
        if after.ends and holders:
            matches.note(after)
            for holder in holders:
                del holder[name]
        for holder in holders if not after.ends else ():
            holder[name] = _without(holder[name], after, matches)


def _remaining(elements: list[Value], paths: Paths, matches: PathMatches) -> Iterator[Value]:
    for at, element in enumerate(elements):
        after = paths.element(at, len(elements))
        if after is None or after.barred(element):
            yield element
        elif after.ends:
            matches.note(after)
        else:
            yield _without(element, after, matches)
