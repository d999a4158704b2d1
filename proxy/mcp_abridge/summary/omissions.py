"""Omissions: how much of what is shown at which place, and the notes that say so.

Without them a cut value would read as whole.
"""

from collections.abc import Iterator, Sequence
from itertools import accumulate, chain
from typing import Any

from msgspec import Struct
from msgspec.structs import replace

from mcp_abridge.document.measure import encoded_size
from mcp_abridge.summary.brief import Brief
from mcp_abridge.summary.columns import Pair, head_of
from mcp_abridge.summary.examples import Example
from mcp_abridge.summary.place import UNSHOWN, Place, member_place

LONGEST = 100  # characters of a path in a note
ELEMENTS, MEMBERS, CHARACTERS, COLUMNS = "", " members", " chars", " columns"

_CONTAINERS = {ELEMENTS: "arrays", MEMBERS: "objects", CHARACTERS: "texts", COLUMNS: "arrays"}
_NAMED = 6  # columns left out that a note names, at least
_NAMES = 300  # characters of such names: a model that has to guess one asks twice
FAILURE = "with a failure"  # in what is said of a text
_FAILING = 2  # texts of one path of which this is said
_OWN = frozenset(("more", "others", "read_from", "same", "counts"))


class Omission(Struct, frozen=True):
    """The count of elements, members or characters (`unit`) shown of `total`, at some places.

    `path` is the place without positions, `place` the view expression of the first place, of which
    `first_shown` of `first_total` are shown. `partial`: there may be more than `total`, in rows
    that were not read. `loss` is in bytes. `last`: of the visible elements or characters, so many
    stand at the end. `names` are the columns left out, `following` selects some of them; `examples`
    are questions on all rows. `beyond` says how many elements the server has if fewer came, `facts`
    what stands out in the part of a text that is left out.
    """

    path: str
    unit: str
    place: str
    first_shown: int
    first_total: int
    loss: int
    visible: int
    total: int
    count: int = 1
    last: int = 0
    partial: bool = False
    names: tuple[str, ...] = ()
    following: str = ""
    examples: tuple[Example, ...] = ()
    beyond: str = ""
    facts: tuple[str, ...] = ()

    def __str__(self) -> str:
        return self.naming(_NAMES)

    def naming(self, most: int) -> str:
        """Return the note with so many characters of names, or a few names."""
        says = self.beyond and self.count == 1 and most
        beyond = f"; the server has {self.beyond}" if says else ""
        several = f" in {self.count} {_CONTAINERS[self.unit]}" if self.count > 1 else ""
        text = f"{_amount([self])}{several}"
        if self.last and self.count == 1:
            ends = f"first {self.visible - self.last} and last {self.last}"
            text = ends + text.removeprefix(str(self.visible))
        if most:
            text = "; ".join((text, *self.facts))
        if not self.names:
            return text + beyond
        names = [*dict.fromkeys(self.names)]  # long ones may be cut alike
        widths = accumulate(len(name) + 2 for name in names)
        count = max(_NAMED, sum(width <= most for width in widths))
        rest = len(self.names) - len(names[:count])
        more = f" and {rest} more" if rest else ""
        return f"{text}, without {', '.join(names[:count])}{more}{beyond}"


def _amount(cuts: Sequence[Omission]) -> str:
    """Return how much of how much is shown at some places, in one unit."""
    more = "+" * any(cut.partial for cut in cuts)
    visible, total = sum(cut.visible for cut in cuts), sum(cut.total for cut in cuts)
    return f"{visible} of {total}{more}{cuts[0].unit}"


def of_texts(first: Place, clip: int, lengths: list[int]) -> Omission:
    """Return the omission of texts of some lengths, of each of which `clip` characters are shown.

    >>> str(of_texts(("rows[].note", "rows[3].note"), 24, [100, 70]))
    '48 of 170 chars in 2 texts'
    """
    (path, place), visible, total = first, clip * len(lengths), sum(lengths)
    cut = Omission(path, CHARACTERS, place, clip, lengths[0], total - visible, visible, total)
    return replace(cut, count=len(lengths))


def of_rows(
    rows: Brief, count: int, size: int, at: Place, unit: str, *, shape: bool, beyond: str
) -> Iterator[Omission]:
    """Yield what rows in brief leave out of `count`; of another `shape`, also that they are one."""
    path, place = at
    visible = rows.first + rows.last
    loss = size * (count - visible) // count if shape else size - len(rows.value) - rows.loss
    ways: dict[str, Any] = {"following": rows.following, "examples": rows.examples}
    if visible < count or (shape and not rows.omitted):
        cut = Omission(path or "@", unit, place, rows.first, count, loss, visible, count)
        yield replace(cut, last=rows.last, beyond=beyond, **ways)
        beyond = ""
    if rows.omitted:
        total, ways["names"] = rows.columns + len(rows.omitted), rows.omitted
        cut = Omission(path or "@", COLUMNS, place, visible, count, rows.loss, rows.columns, total)
        yield replace(cut, partial=visible < count, beyond=beyond, **ways)
    for index, column, clip, start, lengths in rows.clips:
        below = f"{path}[]", f"{place}[{index if index < rows.first else -1}]"
        for name in head_of(column):
            below = member_place(below, name)
        if isinstance(column[0], Pair):
            below = below[0], UNSHOWN
        yield replace(of_texts(below, clip, lengths), first_shown=start)


def by_path(omissions: list[Omission]) -> list[Omission]:
    """Return one omission for each path and unit; the greatest loss first."""
    alike: dict[tuple[str, str], list[Omission]] = {}
    for cut in omissions:
        alike.setdefault((cut.path, cut.unit), []).append(cut)
    return sorted(map(_merged, alike.values()), key=lambda cut: -cut.loss)


def _merged(cuts: list[Omission]) -> Omission:
    visible, total = sum(cut.visible for cut in cuts), sum(cut.total for cut in cuts)
    loss, names = sum(cut.loss for cut in cuts), chain.from_iterable(cut.names for cut in cuts)
    different = cuts[0].names if len(cuts) == 1 else tuple(dict.fromkeys(names))
    first = replace(cuts[0], loss=loss, names=different)
    partial, count = any(cut.partial for cut in cuts), sum(cut.count for cut in cuts)
    several = replace(first, visible=visible, total=total, count=count, partial=partial)
    if count == 1:
        return several
    reachable = (cut for cut in cuts if UNSHOWN not in cut.place)
    failing = [(cut, fact) for cut in reachable for fact in cut.facts if FAILURE in fact]
    facts = tuple(f"{cut.place}: {fact}" for cut, fact in failing[:_FAILING])
    examples = failing[0][0].examples if failing else several.examples
    return replace(several, facts=facts, examples=examples)


def notes_on(cuts: list[Omission], way: dict[str, Any], room: int) -> dict[str, Any]:
    """Return a note for each path that fits, one on the others, and the `way` to see more.

    A member of the server that is called as a note of our own has `@.` before its path.
    """
    notes: dict[str, Any] = {}
    others = list(cuts)
    for cut in cuts:
        path = f"@.{cut.path}" if cut.path in _OWN else cut.path
        before = f"{notes[path]}; " if path in notes else ""
        rest = [other for other in others if other is not cut]
        for note in dict.fromkeys((str(cut), cut.naming(0))):
            longer = {**notes, path: f"{before}{note}"}
            if len(path) <= LONGEST and encoded_size(longer | _sums(rest) | way) <= room:
                notes, others = longer, rest
                break
    sums = _sums(others)
    for cut in others[:1]:  # the greatest loss
        longer = {"others": f"{sums['others']}, most at {cut.path}"}
        fits = encoded_size(notes | longer | way) <= room
        sums = longer if fits and len(cut.path) <= LONGEST else sums
    return notes | sums | way


def _sums(cuts: list[Omission]) -> dict[str, str]:
    """Return the note on all paths without a note of their own: the sums shown of each unit."""
    units = {
        unit: [cut for cut in cuts if cut.unit == unit]
        for unit in (ELEMENTS, MEMBERS, COLUMNS, CHARACTERS)
    }
    amounts = ", ".join(_amount(some) for some in units.values() if some)
    paths = len({cut.path for cut in cuts})
    return {"others": f"{amounts} at {paths} path{'s' * (paths != 1)}"} if cuts else {}
