"""Cuts values to a number of bytes, keeping their structure and types.

Sizes are those of unopened parts: what will be left out is never decoded beyond the one level that
says how much it is. What room there is is shared among the members of an object, the small ones
first; an array keeps its first elements.
"""

from collections.abc import Iterable

from msgspec import Raw, Struct

from proxy.document import Document, encode, level
from proxy.surrogates import unmask
from proxy.written import fitting, weigh

WHOLE = 40  # characters: a string that short (an id, a date, a status) is never cut
LONGEST = 100  # characters of a name that is shown
UNSHOWN = "…"  # stands for a longer one
ELEMENTS, MEMBERS, CHARACTERS = "", " members", " chars"

_AMPLE = 2000  # bytes: enough of a large element; with less than that or half of it, it goes
_FAIR = 400  # bytes: a smaller element is kept or left out, not cut
_MOST_MEMBERS = 1000  # an object with more is a map: it keeps its first members
_RECORD = 60  # members: an object with more is a map where each would get less than _FAIR
_DEEPEST = 30  # levels; what is further down and does not fit is emptied


class Cut(Struct):
    """What was left out at one path; `place` is where it first was, as a view finds it."""

    place: str
    kept: int
    total: int
    what: str
    count: int = 0
    lost: int = 0

    def __str__(self) -> str:
        first = f" (the first of {self.count} cut)" if self.count > 1 else ""
        return f"{self.kept} of {self.total}{self.what}{first}"


class Cutter:
    """Cuts values to a number of bytes, and remembers by path what that left out."""

    def __init__(self, document: Document) -> None:
        self.document = document
        self.cuts: dict[str, Cut] = {}

    def size(self, raw: Raw | bytes) -> int:
        """Return the bytes that compact JSON takes once it is written."""
        view = memoryview(raw)
        return len(unmask(bytes(view))) if self.document.masked else len(view)

    def fit(self, raw: Raw, room: int, path: str, place: str, depth: int) -> bytes | Raw | None:
        """Return `raw` cut to at most `room` bytes; None where it cannot be.

        Only containers and strings of more than 40 characters are cut: two bytes suffice for them.
        """
        size = self.size(raw)
        if size <= room:
            return raw
        if room < 2 or self._rigid(raw):
            return None
        opened = level(raw)
        if isinstance(opened, str):
            return self._string(opened, room, path, place)
        if depth > _DEEPEST:
            what = MEMBERS if isinstance(opened, dict) else ELEMENTS
            self._note(path, place, 0, len(opened), what, size)
            return b"{}" if isinstance(opened, dict) else b"[]"
        if isinstance(opened, dict):
            return self._object(opened, size, room, path, place, depth)
        return self._array(opened, size, room, path, place, depth)

    def _rigid(self, raw: Raw) -> bool:
        """Say whether a value stays whole or goes: a number, a word, an empty or short string."""
        head, length = memoryview(raw)[0], len(memoryview(raw))
        if head == 0x22:
            # A character takes from one byte to six.
            if length > 6 * WHOLE + 2:
                return False
            return length <= WHOLE + 2 or len(level(raw)) <= WHOLE
        return head not in (0x7B, 0x5B) or length <= 2

    def _string(self, said: str, room: int, path: str, place: str) -> bytes:
        mark = "…"
        end = fitting(self.document, said, room - 2 - len(mark.encode()))
        end = ending(said, end) if end > 0 else 0
        if end == len(said):
            return encode(said)  # it was only spelled in more bytes than it takes
        self._note(path, place, end, len(said), CHARACTERS, len(said) - end)
        return encode(said[:end] + mark) if end else b'""'

    def _array(
        self, elements: list[Raw], size: int, room: int, path: str, place: str, depth: int
    ) -> bytes:
        entries = ((b"", raw, path, f"{place}[{n}]") for n, raw in enumerate(elements))
        parts = self._first(entries, room, depth)
        if len(parts) < len(elements):
            lost = size - sum(map(len, parts))
            self._note(path, place, len(parts), len(elements), ELEMENTS, lost)
        return b"[" + b",".join(parts) + b"]"

    def _object(
        self, members: dict[str, Raw], size: int, room: int, path: str, place: str, depth: int
    ) -> bytes:
        parts = None
        if len(members) <= _MOST_MEMBERS:
            parts = self._record(members, room, path, place, depth)
        if parts is None:
            entries = (
                (encode(name) + b":", raw, *_below(path, place, name))
                for name, raw in members.items()
            )
            parts = self._first(entries, room, depth)
            if len(parts) < len(members):
                lost = size - sum(map(len, parts))
                self._note(path, place, len(parts), len(members), MEMBERS, lost)
        return b"{" + b",".join(parts) + b"}"

    def _record(
        self, members: dict[str, Raw], room: int, path: str, place: str, depth: int
    ) -> list[bytes] | None:
        """Return all members, the large ones cut to a fair share; None where that is no use."""
        left = room - 1 - sum(self._key(name) + 1 for name in members)
        sizes = {name: self.size(raw) for name, raw in members.items()}
        elastic = sorted(
            (name for name, raw in members.items() if not self._rigid(raw)), key=sizes.__getitem__
        )
        left -= sum(sizes.values()) - sum(sizes[name] for name in elastic)
        share = _share([sizes[name] for name in elastic], left)
        if share < (2 if len(members) <= _RECORD else _FAIR):
            return None
        fitted: dict[str, bytes | Raw] = dict(members)
        for position, name in enumerate(elastic):
            share = left // (len(elastic) - position)
            cut = self.fit(members[name], share, *_below(path, place, name), depth + 1)
            if cut is None:
                return None
            fitted[name] = cut
            left -= self.size(cut)
        return [encode(name) + b":" + bytes(raw) for name, raw in fitted.items()]

    def _first(
        self, entries: Iterable[tuple[bytes, Raw, str, str]], room: int, depth: int
    ) -> list[bytes]:
        """Return as many of the first entries as fit; large ones are cut, to have room for more."""
        left = room - 1
        limit = max(_AMPLE, left // 3)
        parts: list[bytes] = []
        for prefix, raw, path, place in entries:
            left -= self._written(prefix) + 1
            most, needed = left, self.size(raw)
            if needed > min(left, limit * 3 // 2):
                if parts and (needed < _FAIR or left < min(needed // 2, _AMPLE)):
                    break
                most = min(left, limit)
            cut = self.fit(raw, most, path, place, depth + 1)
            if cut is None:
                break
            parts.append(prefix + bytes(cut))
            left -= self.size(cut)
        return parts

    def _key(self, name: str) -> int:
        return weigh(self.document, name) + 1

    def _written(self, prefix: bytes) -> int:
        return len(unmask(prefix)) if self.document.masked else len(prefix)

    def _note(self, path: str, place: str, kept: int, total: int, what: str, lost: int) -> None:
        path = path or "@"
        cut = self.cuts.get(path)
        if cut is None:
            cut = self.cuts[path] = Cut(place, kept, total, what)
        cut.count += 1
        cut.lost += lost


def _share(sizes: list[int], room: int) -> int:
    """Return the most bytes each may take so that all together take at most `room`.

    >>> _share([10, 100, 1000], 500), _share([10, 20], 500)
    (390, 490)
    """
    for position, needed in enumerate(sorted(sizes)):
        share = room // (len(sizes) - position)
        if needed > share:
            return share
        room -= needed
    return room + max(sizes, default=0)


def ending(said: str, most: int) -> int:
    """Return where to cut a text after at most `most` characters: at a line, a word, or there."""
    if most >= len(said):
        return len(said)
    line = said.rfind("\n", most // 2, most) + 1
    return line or said.rfind(" ", most - most // 10, most) + 1 or most


def _below(path: str, place: str, name: str) -> tuple[str, str]:
    """Return the path and the place of a member, as JMESPath spells them."""
    plain = name.isascii() and name.isidentifier()
    spelled = name if plain else encode(name).decode()
    if len(spelled) > LONGEST:
        spelled = UNSHOWN  # neither shown nor to be viewed
    return (
        f"{path}.{spelled}" if path else spelled,
        f"{place}.{spelled}" if place else spelled,
    )
